//===- MathToIntrinsics.cpp - Math functions without a library ------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/GPU/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNMATHTOINTRINSICSPASS
#include "linattn/GPU/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;

namespace {

/// Called by name: the ops of the LLVM dialect are what `convert-gpu-to-nvvm`
/// refuses.
template <typename MathOp>
struct ToIntrinsic : OpRewritePattern<MathOp> {
  ToIntrinsic(MLIRContext *context, StringRef name)
      : OpRewritePattern<MathOp>(context), name(name) {}

  LogicalResult matchAndRewrite(MathOp op,
                                PatternRewriter &rewriter) const override {
    Type type = getElementTypeOrSelf(op.getType());
    if (!type.isF32() && !type.isF64())
      return rewriter.notifyMatchFailure(op, "neither on f32 nor on f64");
    rewriter.replaceOpWithNewOp<LLVM::CallIntrinsicOp>(
        op, op.getType(), rewriter.getStringAttr(name), op->getOperands());
    return success();
  }

  StringRef name;
};

/// Of 0 the width of the type, as the ops have it.
template <typename MathOp>
struct CountZeros : OpRewritePattern<MathOp> {
  CountZeros(MLIRContext *context, StringRef name)
      : OpRewritePattern<MathOp>(context), name(name) {}

  LogicalResult matchAndRewrite(MathOp op,
                                PatternRewriter &rewriter) const override {
    Type type = op.getType();
    if (!type.isIndex() && !type.isSignlessInteger())
      return rewriter.notifyMatchFailure(op, "not on a scalar");
    Location loc = op.getLoc();
    Type width = type.isIndex() ? rewriter.getI64Type() : type;
    Value operand = op.getOperand();
    if (type.isIndex())
      operand = arith::IndexCastOp::create(rewriter, loc, width, operand);
    // "false": 0 is not undefined.
    Value zero = arith::ConstantIntOp::create(rewriter, loc, 0, 1);
    auto call = LLVM::CallIntrinsicOp::create(rewriter, loc, width,
                                              rewriter.getStringAttr(name),
                                              ValueRange{operand, zero});
    if (type.isIndex())
      rewriter.replaceOpWithNewOp<arith::IndexCastOp>(op, type,
                                                      call.getResult(0));
    else
      rewriter.replaceOp(op, call);
    return success();
  }

  StringRef name;
};

struct LinAttnMathToIntrinsicsPass final
    : mlir::linattn::impl::LinAttnMathToIntrinsicsPassBase<
          LinAttnMathToIntrinsicsPass> {
  using LinAttnMathToIntrinsicsPassBase::LinAttnMathToIntrinsicsPassBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ToIntrinsic<math::AbsFOp>>(&getContext(), "llvm.fabs");
    patterns.add<ToIntrinsic<math::CeilOp>>(&getContext(), "llvm.ceil");
    patterns.add<ToIntrinsic<math::CopySignOp>>(&getContext(), "llvm.copysign");
    patterns.add<CountZeros<math::CountLeadingZerosOp>>(&getContext(),
                                                        "llvm.ctlz");
    patterns.add<CountZeros<math::CountTrailingZerosOp>>(&getContext(),
                                                         "llvm.cttz");
    patterns.add<ToIntrinsic<math::FloorOp>>(&getContext(), "llvm.floor");
    patterns.add<ToIntrinsic<math::FmaOp>>(&getContext(), "llvm.fma");
    patterns.add<ToIntrinsic<math::RoundEvenOp>>(&getContext(),
                                                 "llvm.roundeven");
    patterns.add<ToIntrinsic<math::SqrtOp>>(&getContext(), "llvm.sqrt");
    patterns.add<ToIntrinsic<math::TruncOp>>(&getContext(), "llvm.trunc");
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace
