//===- LowerToVector.cpp - Structured ops as vector loops -----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads the schedule linattn-select-form wrote and emits it. Ops without a
// vector schedule stay, with a remark, for linattn-lower-to-loops.
//
//===----------------------------------------------------------------------===//

#include "TileBuilder.h"

#include "linattn/Conversion/Passes.h"
#include "linattn/Transforms/Transforms.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNLOWERTOVECTORPASS
#include "linattn/Conversion/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

/// The registers of the target and the op's schedule, as a tile shape for its
/// accumulation type.
template <typename OpTy>
static TileShape tileShape(OpTy op, Type tokenType, int64_t vectorBits,
                           int64_t registers) {
  int64_t lanes =
      vectorBits / getAccumulationType(tokenType).getIntOrFloatBitWidth();
  // Two vectors per accumulator; half of the registers hold the tile.
  TileShape shape{lanes, registers / 4, 2 * lanes, 32};
  if (std::optional<ConfigAttr> config = op.getConfig()) {
    if (config->getRows())
      shape.rows = config->getRows();
    if (config->getCols())
      shape.cols = config->getCols();
    if (config->getBlock())
      shape.block = config->getBlock();
  }
  return shape;
}

/// Checks what the emitters take for granted of a schedule written by hand.
static LogicalResult verifyShape(Operation *op, TileShape shape) {
  if (shape.cols % shape.lanes)
    return op->emitOpError("expected config cols to be a multiple of ")
           << shape.lanes << ", the lanes of a vector, but got " << shape.cols;
  if (!llvm::isPowerOf2_64(shape.rows) || shape.rows > 32)
    return op->emitOpError(
               "expected config rows to be a power of two up to 32, but got ")
           << shape.rows;
  if (shape.block % shape.rows)
    return op->emitOpError("expected config block to be a multiple of the ")
           << shape.rows << " rows, but got " << shape.block;
  if (isa<QuadraticOp>(op) && shape.cols % shape.rows)
    return op->emitOpError("expected config cols to be a multiple of the ")
           << shape.rows << " rows, but got " << shape.cols;
  return success();
}

template <typename OpTy>
static StringRef whyNot(OpTy op) {
  if constexpr (std::is_same_v<OpTy, ScanOp>)
    return whyNoStateTile(op);
  else if constexpr (std::is_same_v<OpTy, QuadraticOp>)
    return whyNoQuadraticTile(op);
  else
    return {};
}

/// The token form needs to know how many output heads read one state.
template <typename OpTy>
static bool wantsTokenForm(OpTy op) {
  if (!op.getConfig() || op.getConfig()->getForm() != Form::Token)
    return false;
  if constexpr (!std::is_same_v<OpTy, StateOp>) {
    auto heads = [](Value value) {
      return cast<ShapedType>(value.getType()).getDimSize(1);
    };
    return !ShapedType::isDynamic(heads(op.getOutput())) &&
           !ShapedType::isDynamic(heads(op.getState()));
  }
  return true;
}

namespace {

template <typename OpTy>
struct ToVector : OpRewritePattern<OpTy> {
  ToVector(MLIRContext *context, int64_t vectorBits, int64_t registers)
      : OpRewritePattern<OpTy>(context), vectorBits(vectorBits),
        registers(registers) {}

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureBufferSemantics())
      return rewriter.notifyMatchFailure(op, "not on buffers");
    if (StringRef reason = whyNot(op); !reason.empty()) {
      remark::missed(op.getLoc(), remarkNamed("lower-to-vector"))
          << llvm::formatv("runs as scalar loops: {0}", reason).str();
      return rewriter.notifyMatchFailure(op, reason);
    }
    Type tokenType = getElementTypeOrSelf(op->getOperand(0));
    TileShape shape = tileShape(op, tokenType, vectorBits, registers);
    if constexpr (std::is_same_v<OpTy, QuadraticOp>) {
      if (op.getConfig() && op.getConfig()->getForm() == Form::Token)
        lowerToQuadraticRows(rewriter, op, shape);
      else
        lowerToQuadraticTile(rewriter, op, shape);
    } else
      lowerToStateTile(rewriter, op, shape, wantsTokenForm(op));
    rewriter.eraseOp(op);
    return success();
  }

  int64_t vectorBits, registers;
};

struct LinAttnLowerToVectorPass final
    : mlir::linattn::impl::LinAttnLowerToVectorPassBase<
          LinAttnLowerToVectorPass> {
  using LinAttnLowerToVectorPassBase::LinAttnLowerToVectorPassBase;

  LogicalResult initialize(MLIRContext *context) override {
    return verifyVectorTarget(context, vectorBits, registers);
  }

  void runOnOperation() override {
    // An op whose schedule is refused must not fall back to another one.
    if (getOperation()
            ->walk([&](Operation *op) { return verifySchedule(op); })
            .wasInterrupted())
      return signalPassFailure();
    RewritePatternSet patterns(&getContext());
    patterns.add<ToVector<ScanOp>, ToVector<StateOp>, ToVector<ReadOp>,
                 ToVector<QuadraticOp>>(&getContext(), vectorBits, registers);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }

private:
  WalkResult verifySchedule(Operation *op) {
    auto verify = [&](auto structured) -> LogicalResult {
      if (!structured.hasPureBufferSemantics() || !whyNot(structured).empty())
        return success();
      Type tokenType = getElementTypeOrSelf(op->getOperand(0));
      return verifyShape(
          op, tileShape(structured, tokenType, vectorBits, registers));
    };
    return TypeSwitch<Operation *, LogicalResult>(op)
        .Case<ScanOp, StateOp, ReadOp, QuadraticOp>(verify)
        .Default(success());
  }
};

} // namespace
