//===- HostRewriter.h - Kernels rewritten for the emulator ------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_EMULATOR_HOSTREWRITER_H
#define LINATTN_LIB_EMULATOR_HOSTREWRITER_H

#include "RuntimeABI.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"

namespace mlir::linattn {

/// The base of the rewrites of `linattn-nvvm-to-host`: calls of the runtime,
/// the current thread, and numbers of the operations for reports.
class HostRewriter : public OpBuilder {
public:
  explicit HostRewriter(gpu::GPUModuleOp module);

  gpu::GPUModuleOp getModule() { return module; }

  /// The thread that runs the function around `op`.
  Value getThread(Operation *op);
  /// Memory for the operands and results of a collective operation in that
  /// function.
  Value getFragment(Operation *op);

  /// A number for `op`, whose location the module's attribute holds.
  Value createSite(Operation *op);
  /// Stores the locations of the numbered operations.
  void setSitesAttribute();

  Value createI32(Location loc, uint32_t value);
  /// Calls a function of the runtime with the thread and `operands`; returns
  /// its result, if it has one.
  Value call(Operation *op, StringRef symbol, ValueRange operands,
             Type result = {});
  /// The same for a function that needs no thread.
  Value callPure(Operation *op, StringRef symbol, ValueRange operands,
                 Type result);

  /// Stores 32-bit values in the fragment, from word `first` on.
  void storeWords(Operation *op, ValueRange values, unsigned first = 0);
  Value loadWord(Operation *op, unsigned index, Type type);
  /// Loads a value of `type`, a 32-bit type or a struct of them, from `first`
  /// on.
  Value loadResult(Operation *op, unsigned first, Type type);

private:
  Value getWordPointer(Operation *op, unsigned index);
  LLVM::LLVMFuncOp declare(StringRef symbol, TypeRange operands, Type result);

  gpu::GPUModuleOp module;
  DenseMap<Operation *, Value> fragments;
  SmallVector<Attribute> sites;
};

/// Replaces an op of the NVVM dialect. Emits an error for an op without
/// emulation.
LogicalResult rewriteNVVMOp(HostRewriter &rewriter, Operation *op);

/// The same for intrinsics and inline assembly that are allowed by name.
LogicalResult rewriteIntrinsicCall(HostRewriter &rewriter,
                                   LLVM::CallIntrinsicOp op);
LogicalResult rewriteInlineAssembly(HostRewriter &rewriter, Operation *op,
                                    StringRef assembly, ValueRange operands);
/// The same for tensor maps, bulk copies and mbarriers. Returns whether the op
/// is one of those.
FailureOr<bool> rewriteBulkOp(HostRewriter &rewriter, Operation *op);
FailureOr<bool> rewriteTensorMap(HostRewriter &rewriter, Operation *op,
                                 StringRef assembly, ValueRange operands);
/// The same for products of warpgroups. Returns whether the assembly is one.
FailureOr<bool> rewriteWgmma(HostRewriter &rewriter, Operation *op,
                             StringRef assembly, ValueRange operands);

} // namespace mlir::linattn

#endif // LINATTN_LIB_EMULATOR_HOSTREWRITER_H
