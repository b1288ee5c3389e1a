//===- linattn-compile.cpp - Kernels ahead of time
//-------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Bundle/Bundle.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/ToolOutputFile.h"

namespace cl = llvm::cl;
using namespace linattn;

#ifndef LINATTN_PTXAS
#define LINATTN_PTXAS ""
#endif

namespace {

struct CommandLine {
  cl::OptionCategory category{"linattn-compile options"};
  cl::opt<std::string> file{cl::Positional, cl::Required,
                            cl::desc("FILE.mlir, or - for the standard input"),
                            cl::cat(category)};
  cl::opt<std::string> entry{
      "entry", cl::value_desc("name"),
      cl::desc("Function to compile, if there are several"), cl::cat(category)};
  cl::opt<BundleOptions::Target> target{
      "target", cl::desc("What the code is for:"),
      cl::values(
          clEnumValN(BundleOptions::Target::NVVM, "nvvm", "GPUs of NVIDIA"),
          clEnumValN(BundleOptions::Target::CPU, "cpu", "CPUs of x86-64")),
      cl::Required, cl::cat(category)};
  cl::list<std::string> chips{
      "chip", cl::value_desc("name,..."), cl::CommaSeparated,
      cl::desc("Chips to compile for (default: sm_80; of CPUs x86-64-v3 and "
               "x86-64-v4)"),
      cl::cat(category)};
  cl::opt<bool> cubin{"cubin",
                      cl::desc("Add machine code, which ptxas makes, to PTX"),
                      cl::cat(category)};
  cl::opt<std::string> ptxas{
      "ptxas", cl::value_desc("program"),
      cl::desc(
          "ptxas to use (default: the one in PATH, or found by the build)"),
      cl::cat(category)};
  cl::opt<std::string> linker{
      "linker", cl::value_desc("program"),
      cl::desc("Linker of code for CPUs (default: ld.lld or ld in PATH)"),
      cl::cat(category)};
  cl::opt<std::string> form{
      "form", cl::value_desc("form"), cl::init("auto"),
      cl::desc(
          "Form of the scans on CPUs: auto, token, state_tile or chunk:SIZE"),
      cl::cat(category)};
  cl::opt<std::string> copy{
      "copy", cl::value_desc("engine"), cl::init("cp_async"),
      cl::desc("How tiles of attention come to a GPU's shared memory: cp_async "
               "or, on sm_90a, tma"),
      cl::cat(category)};
  cl::opt<Math> math{
      "math", cl::desc("Arithmetic:"),
      cl::values(clEnumValN(Math::Strict, "strict",
                            "every operation as written (default)"),
                 clEnumValN(Math::Fast, "fast",
                            "fused and reassociated; on GPUs products take 16 "
                            "bits of f32")),
      cl::init(Math::Strict), cl::cat(category)};
  cl::opt<bool> trusted{
      "trusted",
      cl::desc("Let the module call any function and hold assembly, and "
               "compile it in this process"),
      cl::cat(category)};
  cl::opt<bool> explain{"explain", cl::desc("Print the compiler's remarks"),
                        cl::cat(category)};
  cl::opt<std::string> output{"o", cl::value_desc("file"), cl::Required,
                              cl::desc("Where to write the bundle"),
                              cl::cat(category)};
};

} // namespace

static int fail(const llvm::Twine &message) {
  llvm::errs() << "linattn-compile: " << message << "\n";
  return 1;
}

static std::string findPtxas(const std::string &named) {
  if (!named.empty())
    return named;
  if (auto found = llvm::sys::findProgramByName("ptxas"))
    return *found;
  return LINATTN_PTXAS;
}

static std::string findLinker(const std::string &named) {
  if (!named.empty())
    return named;
  for (const char *name : {"ld.lld-22", "ld.lld", "ld"})
    if (auto found = llvm::sys::findProgramByName(name))
      return *found;
  return "";
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  CommandLine options;
  cl::HideUnrelatedOptions(options.category);
  cl::ParseCommandLineOptions(argc, argv, "linattn ahead-of-time compiler\n");

  BundleOptions bundle;
  bundle.target = options.target;
  bundle.chips = options.chips;
  bool isCpu = bundle.target == BundleOptions::Target::CPU;
  if (bundle.chips.empty())
    bundle.chips = isCpu ? std::vector<std::string>{"x86-64-v3", "x86-64-v4"}
                         : std::vector<std::string>{"sm_80"};
  bundle.form = options.form;
  bundle.copy = options.copy;
  bundle.math = options.math;
  bundle.trusted = options.trusted;
  bundle.isolated = !options.trusted;
  if (isCpu) {
    bundle.linker = findLinker(options.linker);
    if (bundle.linker.empty())
      return fail("expected ld.lld or ld to be installed, or one to be named "
                  "by --linker");
  }
  if (options.cubin) {
    bundle.ptxas = findPtxas(options.ptxas);
    if (bundle.ptxas.empty())
      return fail("expected ptxas to be installed, or named by --ptxas");
  }
  auto source = llvm::MemoryBuffer::getFileOrSTDIN(options.file, true);
  if (!source)
    return fail(options.file +
                ": cannot be read: " + source.getError().message());
  auto compiled = compileBundle((*source)->getBuffer(), options.entry,
                                options.file, bundle);
  if (!compiled)
    return fail(llvm::toString(compiled.takeError()));
  if (options.explain)
    for (const std::string &remark : compiled->remarks)
      llvm::outs() << remark << "\n";
  std::error_code code;
  llvm::ToolOutputFile file(options.output, code, llvm::sys::fs::OF_None);
  if (code)
    return fail(options.output + ": cannot be written: " + code.message());
  file.os() << compiled->file;
  file.keep();
  return 0;
}
