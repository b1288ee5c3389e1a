//===- CodeGen.h - From the LLVM dialect to object code ---------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CODEGEN_CODEGEN_H
#define LINATTN_CODEGEN_CODEGEN_H

#include "linattn/Analysis/CostModel.h"
#include "linattn/CodeGen/CompilerOptions.h"
#include "linattn/CodeGen/Signature.h"
#include "linattn/CodeGen/Subnormals.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

namespace llvm {
class Module;
} // namespace llvm

namespace linattn {

/// The machine that code is generated for: this one, or the one that
/// LINATTN_CPU names.
VectorTarget getVectorTarget();

} // namespace linattn

namespace linattn::detail {

enum class CodeFormat { Object, Assembly, LLVMIR };

/// The symbols that object code defines, both `void (void **args)`: each
/// element points at a memref descriptor or at a scalar. The first runs the
/// function, the second stores the shapes of its results.
std::string getRunSymbol(const Signature &signature);
std::string getShapesSymbol(const Signature &signature);

/// The CPU that code is generated for and its features, in LLVM's spelling:
/// this machine's, or those that LINATTN_CPU names.
const std::string &getTargetCPU();
const std::string &getTargetFeatures();

/// The arithmetic that LINATTN_MATH names, strict by default.
llvm::Expected<Math> getDefaultMath();

/// The optimization that LINATTN_OPTIMIZATION names, full by default.
llvm::Expected<Optimization> getDefaultOptimization();

/// The matrix instruction of scans that LINATTN_SCAN_MMA names, mma_sync by
/// default.
llvm::Expected<std::string> getDefaultScanMma();

/// The matrix unit that LINATTN_MATRIX_UNIT names, auto by default.
llvm::Expected<MatrixUnit> getDefaultMatrixUnit();

/// The matrix unit to generate code for: that of the options if this machine
/// has it and this process may use it, otherwise none. `why`, if given,
/// receives the reason why a unit that was named is none, or an empty string.
MatrixUnit resolveMatrixUnit(const CompilerOptions &options,
                             std::string *why = nullptr);

/// Optimises and emits a module of the LLVM dialect for this machine.
llvm::Expected<llvm::SmallVector<char, 0>>
generateCode(mlir::ModuleOp module, const Signature &signature,
             CodeFormat format, const CompilerOptions &options);

/// A machine, in LLVM's names.
struct Machine {
  /// If empty, code for `getTargetCPU` that is loaded just in time.
  std::string cpu = {};
  /// If empty, the triple of this process. The code generator of another one
  /// must have been initialized.
  std::string triple = {};
  /// Features beside those of the CPU, as "+v,+zvl128b".
  std::string features = {};
  /// The least length of a vector where the architecture leaves it open, as SVE
  /// and RISC-V do; 0 for the 128 bits that all of them have.
  int64_t vectorBits = 0;
};

struct CodeGenOptions {
  CodeFormat format = CodeFormat::Object;
  Math math = Math::Strict;
  Optimization optimization = Optimization::Full;
  Machine machine = {};
};

/// The target that forms and tiles are chosen for on that machine.
llvm::Expected<VectorTarget> getVectorTargetOf(const Machine &machine);

/// Adds the functions of `getRunSymbol` and `getShapesSymbol`, and hides all
/// others. The former sets the floating-point mode for its computation.
llvm::Error emitWrappers(llvm::Module &module, const Signature &signature,
                         Subnormals subnormals = Subnormals::Automatic);

/// Generates code without a signature. `emitEntries` makes the visible symbols
/// in the module in LLVM IR, before it is optimised.
llvm::Expected<llvm::SmallVector<char, 0>>
generateCode(mlir::ModuleOp module, llvm::StringRef name,
             llvm::function_ref<llvm::Error(llvm::Module &)> emitEntries,
             const CodeGenOptions &options);

/// Makes every function of a module internal, under another name. Names of the
/// user may coincide with names that LLVM knows, such as "exp" or "malloc".
void internalize(llvm::Module &module);

} // namespace linattn::detail

#endif // LINATTN_CODEGEN_CODEGEN_H
