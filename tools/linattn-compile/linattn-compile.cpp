//===- linattn-compile.cpp - Kernels ahead of time ------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../CompileFlags.h"
#include "Targets.h"
#include "linattn/Bundle/Bundle.h"
#include "linattn/Bundle/Object.h"
#include "linattn/Support/Text.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/ToolOutputFile.h"

namespace cl = llvm::cl;
using namespace linattn;

#ifndef LINATTN_PTXAS
#define LINATTN_PTXAS ""
#endif

namespace {

enum class Emit { Bundle, Object, Header, Shared, Assembly, LLVMIR, MLIR };

struct CommandLine : CompileFlags {
  CommandLine() : CompileFlags("linattn-compile options") {}

  cl::opt<std::string> file{cl::Positional, cl::Required,
                            cl::desc("FILE.mlir or FILE.onnx, or - for MLIR on "
                                     "the standard input"),
                            cl::cat(category)};
  cl::opt<std::string> python{
      "python", cl::value_desc("program"),
      cl::desc("Python with the packages linattn and onnx, which reads "
               "FILE.onnx (default: python3)"),
      cl::init("python3"), cl::cat(category)};
  cl::opt<std::string> entry{
      "entry", cl::value_desc("name"),
      cl::desc("Function to compile, if there are several"), cl::cat(category)};
  cl::opt<Emit> emit{
      "emit", cl::desc("Output:"),
      cl::values(
          clEnumValN(Emit::Bundle, "bundle",
                     "a bundle for the runner (default)"),
          clEnumValN(Emit::Object, "obj", "an object for C programs"),
          clEnumValN(Emit::Header, "header", "its header"),
          clEnumValN(Emit::Shared, "shared", "the object as a shared library"),
          clEnumValN(Emit::Assembly, "asm", "its assembly"),
          clEnumValN(Emit::LLVMIR, "llvm", "its LLVM IR"),
          clEnumValN(Emit::MLIR, "mlir", "its module in the LLVM dialect")),
      cl::init(Emit::Bundle), cl::cat(category)};
  cl::opt<std::string> target{
      "target", cl::value_desc("name"),
      cl::desc("Target of the code: nvvm, GPUs of NVIDIA; cpu, this "
               "machine's architecture; of objects also a triple of x86_64, "
               "aarch64, riscv64 or wasm32"),
      cl::Required, cl::cat(category)};
  cl::opt<std::string> cpu{
      "cpu", cl::value_desc("name"),
      cl::desc("LLVM's name of the CPU that an object is for (default: "
               "x86-64-v3, of others the architecture's common vectors)"),
      cl::cat(category)};
  cl::opt<std::string> features{
      "features", cl::value_desc("+name,..."),
      cl::desc("Features of that CPU beside those of its name"),
      cl::cat(category)};
  cl::opt<int64_t> vectorBits{
      "vector-bits", cl::value_desc("bits"), cl::init(0),
      cl::desc("Length of the vectors of AArch64 (SVE) or RISC-V, which longer "
               "ones run as well (default: 128)"),
      cl::cat(category)};
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
  cl::opt<std::string> scanMma{
      "scan-mma", cl::value_desc("instruction"), cl::init("mma_sync"),
      cl::desc("Matrix instruction of a GPU's chunk kernels of scans: mma_sync "
               "or, on sm_90a, wgmma"),
      cl::cat(category)};
  cl::opt<std::string> output{"o", cl::value_desc("file"), cl::Required,
                              cl::desc("Where to write it"), cl::cat(category)};
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

/// The module that Python's importer writes for a model.
static llvm::Expected<std::string> importModel(const CommandLine &options) {
  auto python = llvm::sys::findProgramByName(options.python);
  if (!python)
    return llvm::createStringError("--python: expected a program, but got '" +
                                   options.python + "'");
  llvm::SmallString<128> path;
  if (std::error_code error =
          llvm::sys::fs::createTemporaryFile("linattn", "mlir", path))
    return llvm::createStringError(error, "no temporary file");
  llvm::FileRemover remover(path);
  std::string problem;
  int status = llvm::sys::ExecuteAndWait(
      *python, {*python, "-m", "linattn", "import", options.file, "-o", path},
      /*Env=*/std::nullopt, /*Redirects=*/{}, /*SecondsToWait=*/0,
      /*MemoryLimit=*/0, &problem);
  if (status != 0)
    return llvm::createStringError(options.file + ": cannot be imported by " +
                                   *python +
                                   (problem.empty() ? "" : ": " + problem));
  return readText(std::string(path));
}

/// The text or bytes of a bundle's output.
static llvm::Expected<std::string>
makeBundle(const CommandLine &options, llvm::StringRef source,
           std::vector<std::string> &remarks) {
  BundleOptions bundle;
  bool isCpu = options.target == "cpu";
  if (!isCpu && options.target != "nvvm")
    return llvm::createStringError(
        "expected the target of a bundle to be nvvm or cpu, but got '" +
        options.target + "'");
  bundle.target =
      isCpu ? BundleOptions::Target::CPU : BundleOptions::Target::NVVM;
  bundle.chips.assign(options.chips.begin(), options.chips.end());
  if (bundle.chips.empty())
    bundle.chips = isCpu ? std::vector<std::string>{"x86-64-v3", "x86-64-v4"}
                         : std::vector<std::string>{"sm_80"};
  bundle.form = options.form;
  bundle.copy = options.copy;
  bundle.scanMma = options.scanMma;
  bundle.math = options.math;
  bundle.trusted = options.trusted;
  bundle.isolated = !options.trusted;
  if (isCpu) {
    bundle.linker = findLinker(options.linker);
    if (bundle.linker.empty())
      return llvm::createStringError(
          "expected ld.lld or ld to be installed, or one to be named by "
          "--linker");
  }
  if (options.cubin) {
    bundle.ptxas = findPtxas(options.ptxas);
    if (bundle.ptxas.empty())
      return llvm::createStringError(
          "expected ptxas to be installed, or named by --ptxas");
  }
  auto compiled = compileBundle(source, options.entry, options.file, bundle);
  if (!compiled)
    return compiled.takeError();
  remarks = std::move(compiled->remarks);
  return std::move(compiled->file);
}

/// The text or bytes of an object's output.
static llvm::Expected<std::string>
makeObject(const CommandLine &options, llvm::StringRef source,
           std::vector<std::string> &remarks) {
  using Format = ObjectOptions::Format;
  ObjectOptions object;
  if (llvm::Error error =
          setMachine(options.target, options.cpu, options.features,
                     options.vectorBits, object))
    return std::move(error);
  object.format = options.emit == Emit::Assembly ? Format::Assembly
                  : options.emit == Emit::LLVMIR ? Format::LLVMIR
                  : options.emit == Emit::MLIR   ? Format::MLIR
                                                 : Format::Object;
  object.form = options.form;
  object.math = options.math;
  object.trusted = options.trusted;
  object.isolated = !options.trusted;
  auto compiled = compileObject(source, options.entry, options.file, object);
  if (!compiled)
    return compiled.takeError();
  remarks = std::move(compiled->remarks);
  if (options.emit == Emit::Header)
    return std::move(compiled->header);
  if (options.emit != Emit::Shared)
    return std::move(compiled->code);
  return linkObject(compiled->code, findLinker(options.linker), object);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  CommandLine options;
  cl::HideUnrelatedOptions(options.category);
  cl::ParseCommandLineOptions(argc, argv, "linattn ahead-of-time compiler\n");

  bool isModel = llvm::StringRef(options.file).ends_with(".onnx");
  llvm::Expected<std::string> source =
      isModel ? importModel(options) : readText(options.file);
  if (!source)
    return fail(llvm::toString(source.takeError()));
  std::vector<std::string> remarks;
  auto *make = options.emit == Emit::Bundle ? makeBundle : makeObject;
  auto made = make(options, *source, remarks);
  if (!made)
    return fail(llvm::toString(made.takeError()));
  if (options.explain)
    for (const std::string &remark : remarks)
      llvm::outs() << remark << "\n";
  std::error_code code;
  llvm::ToolOutputFile file(options.output, code, llvm::sys::fs::OF_None);
  if (code)
    return fail(options.output + ": cannot be written: " + code.message());
  file.os() << *made;
  file.keep();
  return 0;
}
