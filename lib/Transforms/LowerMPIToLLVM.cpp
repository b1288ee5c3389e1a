//===- LowerMPIToLLVM.cpp - Call the functions of MPI ---------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Transforms/Passes.h"

#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MPIToLLVM/MPIToLLVM.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MPI/IR/MPI.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Transforms/DialectConversion.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNLOWERMPITOLLVMPASS
#include "linattn/Transforms/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;

namespace {

struct LowerMPIToLLVMPass
    : public mlir::linattn::impl::LinAttnLowerMPIToLLVMPassBase<
          LowerMPIToLLVMPass> {
  using Base::Base;

  void runOnOperation() override {
    // Grids have no uses left: their ops are messages now.
    for (auto grid : llvm::make_early_inc_range(
             getOperation().getBody()->getOps<shard::GridOp>()))
      if (SymbolTable::symbolKnownUseEmpty(grid, getOperation()))
        grid.erase();
    bool hasMessages =
        getOperation()
            ->walk([](Operation *op) {
              return isa_and_present<mpi::MPIDialect>(op->getDialect())
                         ? WalkResult::interrupt()
                         : WalkResult::advance();
            })
            .wasInterrupted();
    if (!hasMessages)
      return;
    LLVMTypeConverter types(&getContext());
    RewritePatternSet patterns(&getContext());
    mpi::populateMPIToLLVMConversionPatterns(types, patterns);
    LLVMConversionTarget target(getContext());
    target.addIllegalDialect<mpi::MPIDialect>();
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    if (failed(applyPartialConversion(getOperation(), target,
                                      std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
