//===- CommandLine.h - Options of linattn-run -----------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TOOLS_LINATTN_RUN_COMMANDLINE_H
#define LINATTN_TOOLS_LINATTN_RUN_COMMANDLINE_H

#include "../CompileFlags.h"
#include "linattn/Compiler/Compiler.h"
#include "linattn/Field/PrimeField.h"

#include <string>

namespace linattn {

struct CommandLine : CompileFlags {
  CommandLine() : CompileFlags("linattn-run options") {}

  llvm::cl::opt<std::string> file{
      llvm::cl::Positional, llvm::cl::Required,
      llvm::cl::desc("FILE.mlir, or - for the standard input"),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> referenceFile{
      llvm::cl::Positional, llvm::cl::Optional,
      llvm::cl::desc("[REFERENCE.mlir, for --compare=exact]"),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> referenceEntry{
      "reference-entry", llvm::cl::value_desc("name"),
      llvm::cl::desc("Function to compare with, if it has another name"),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> entry{
      "entry", llvm::cl::value_desc("name"),
      llvm::cl::desc("Function to run, if there are several"),
      llvm::cl::cat(category)};
  llvm::cl::opt<bool> all{
      "all", llvm::cl::desc("Run every public function, on random arguments"),
      llvm::cl::cat(category)};
  llvm::cl::list<std::string> args{
      "arg", llvm::cl::value_desc("spec"),
      llvm::cl::desc(
          "Next argument: a .npy file, random:2x128x4x64xf32[:SEED], "
          "zeros:TYPE or ones:TYPE; random if left out and static"),
      llvm::cl::cat(category)};
  llvm::cl::list<int64_t> openSizes{
      "open-size", llvm::cl::value_desc("N,..."), llvm::cl::CommaSeparated,
      llvm::cl::desc(
          "Size of every dimension that the types of random arguments "
          "leave open; with several, run once with each"),
      llvm::cl::cat(category)};
  llvm::cl::list<std::string> outs{
      "out", llvm::cl::value_desc("file.npy"),
      llvm::cl::desc("Where to write the next result"),
      llvm::cl::cat(category)};
  llvm::cl::opt<Target> target{
      "target", llvm::cl::desc("Pipeline to run:"),
      llvm::cl::values(
          clEnumValN(Target::CPU, "cpu", "fast code for this machine"),
          clEnumValN(Target::Reference, "reference", "naive loops"),
          clEnumValN(Target::Linalg, "linalg",
                     "scalar loops by way of linalg on tensors"),
          clEnumValN(Target::NVVMEmulated, "nvvm-emulated",
                     "GPU kernels in the emulator, which checks them"),
          clEnumValN(Target::NVVM, "nvvm",
                     "kernels on this machine's GPU; arguments and "
                     "results are copied, which no time includes"),
          clEnumValN(Target::Trace, "trace",
                     "naive loops that print every value")),
      llvm::cl::init(Target::CPU), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> reassociate{
      "reassociate", llvm::cl::value_desc("mode"), llvm::cl::init("auto"),
      llvm::cl::desc("When to rewrite (QKᵀ)V as Q(KᵀV): auto, always or never"),
      llvm::cl::cat(category)};
  llvm::cl::opt<bool> checkDecays{
      "check-decays",
      llvm::cl::desc(
          "Fail where a decay among the arguments is positive or NaN"),
      llvm::cl::cat(category)};
  llvm::cl::opt<MatrixUnit> matrixUnit{
      "matrix-unit",
      llvm::cl::desc("Unit that multiplies matrices of 16-bit tokens (default: "
                     "LINATTN_MATRIX_UNIT, else auto)"),
      llvm::cl::values(
          clEnumValN(MatrixUnit::Auto, "auto",
                     "for what was measured to gain: the tiles of AMX, or "
                     "under fast math the dot products of Zen 4"),
          clEnumValN(MatrixUnit::None, "none", "vectors"),
          clEnumValN(MatrixUnit::AMX, "amx",
                     "the tiles of AMX, where there are any"),
          clEnumValN(MatrixUnit::Dot, "dot", "dot products of AVX-512 BF16"),
          clEnumValN(MatrixUnit::EmulatedAMX, "emulated",
                     "vectors that compute what AMX does")),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> form{
      "form", llvm::cl::value_desc("form"), llvm::cl::init("auto"),
      llvm::cl::desc(
          "Form of the scans: auto, token, state_tile, chunk or chunk:SIZE"),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> compare{
      "compare", llvm::cl::value_desc("reference|FILE.mlir|exact"),
      llvm::cl::desc(
          "Run naive loops too, of this program or of another one with the "
          "same functions, and compare the results; exact: in prime fields "
          "instead of in floats, without a tolerance"),
      llvm::cl::cat(category)};
  llvm::cl::opt<unsigned> fields{
      "fields", llvm::cl::init(PrimeField::kNumFields),
      llvm::cl::value_desc("1|2"),
      llvm::cl::desc("In how many prime fields --compare=exact computes; one "
                     "takes half the time"),
      llvm::cl::cat(category)};
  llvm::cl::opt<double> tolerance{
      "tolerance", llvm::cl::init(-1),
      llvm::cl::desc(
          "Allowed max|difference| / max|reference| instead of 3e-6 for "
          "f32, 2.5e-3 for f16, 5e-3 for bf16, 1e-12 for f64"),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> time{
      "time", llvm::cl::ValueOptional, llvm::cl::value_desc("repetitions"),
      llvm::cl::desc("Time calls (20 if no number is given)"),
      llvm::cl::cat(category)};
  llvm::cl::opt<double> flops{
      "flops", llvm::cl::init(0),
      llvm::cl::desc("Floating-point operations per call, to report GFLOP/s"),
      llvm::cl::cat(category)};
  llvm::cl::opt<int> threads{
      "threads", llvm::cl::init(0),
      llvm::cl::desc("Number of threads (default: all CPUs)"),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> json{
      "json", llvm::cl::value_desc("file"),
      llvm::cl::desc("Write what is reported as JSON"),
      llvm::cl::cat(category)};
  llvm::cl::opt<bool> trace{
      "trace",
      llvm::cl::desc(
          "Print the arguments and what every op computes, token by token "
          "for scans; the same as --target=trace --print"),
      llvm::cl::cat(category)};
  llvm::cl::opt<bool> print{"print", llvm::cl::desc("Print the results"),
                            llvm::cl::cat(category)};
};

} // namespace linattn

#endif // LINATTN_TOOLS_LINATTN_RUN_COMMANDLINE_H
