//===- BufferizeModule.cpp - Bufferization with the layout of kernels -----===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Entry/EntryLayout.h"
#include "linattn/Transforms/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotModuleBufferize.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNBUFFERIZEMODULEPASS
#include "linattn/Transforms/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

namespace {

struct BufferizeModulePass
    : public mlir::linattn::impl::LinAttnBufferizeModulePassBase<
          BufferizeModulePass> {
  using Base::Base;

  void runOnOperation() override {
    bufferization::OneShotBufferizationOptions options;
    options.bufferizeFunctionBoundaries = true;
    options.allowReturnAllocsFromLoops = true;
    InnermostStride stride = innermost;
    options.functionArgTypeConverterFn =
        [stride](bufferization::TensorLikeType type, Attribute memorySpace,
                 func::FuncOp func, const bufferization::BufferizationOptions &)
        -> bufferization::BufferLikeType {
      auto tensor = cast<TensorType>(type);
      if (!tensor.hasRank())
        return cast<bufferization::BufferLikeType>(
            UnrankedMemRefType::get(tensor.getElementType(), memorySpace));
      // Private functions are called with the layouts of their callers' values.
      // Only the arguments of entries have a unit stride.
      InnermostStride known =
          func.isPublic() ? stride : InnermostStride::Dynamic;
      return cast<bufferization::BufferLikeType>(getEntryMemRefType(
          tensor.getShape(), tensor.getElementType(), known, memorySpace));
    };

    bufferization::BufferizationState state;
    ModuleOp module = getOperation();
    if (failed(
            bufferization::runOneShotModuleBufferize(module, options, state)))
      return signalPassFailure();
    bufferization::removeBufferizationAttributesInModule(module);
  }
};

} // namespace
