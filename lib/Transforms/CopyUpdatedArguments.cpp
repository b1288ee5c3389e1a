//===- CopyUpdatedArguments.cpp - Initial states, copied once -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/LinAttn.h"
#include "linattn/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNCOPYUPDATEDARGUMENTSPASS
#include "linattn/Transforms/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

namespace {

struct LinAttnCopyUpdatedArgumentsPass final
    : mlir::linattn::impl::LinAttnCopyUpdatedArgumentsPassBase<
          LinAttnCopyUpdatedArgumentsPass> {
  using LinAttnCopyUpdatedArgumentsPassBase::
      LinAttnCopyUpdatedArgumentsPassBase;

  void runOnOperation() override {
    getOperation()->walk([&](DestinationStyleOpInterface op) {
      if (!isa<ScanOp, StateOp>(op.getOperation()) ||
          !op.hasPureTensorSemantics())
        return;
      OpBuilder b(op);
      for (OpOperand &init : op.getDpsInitsMutable())
        if (isEntryArgument(init.get()))
          init.set(copyOf(b, op.getLoc(), init.get()));
    });
  }

private:
  bool isEntryArgument(Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && argument.getOwner() == &getOperation().front();
  }

  static Value copyOf(OpBuilder &b, Location loc, Value value) {
    Value empty =
        tensor::EmptyOp::create(b, loc, tensor::getMixedSizes(b, loc, value),
                                getElementTypeOrSelf(value));
    return linalg::CopyOp::create(b, loc, value, empty).getResult(0);
  }
};

} // namespace
