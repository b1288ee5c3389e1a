//===- PackConversions.cpp - Floats to 16 bits, two at a time -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A conversion of one f32 to bf16 runs in the pipe of special functions, at a
// quarter of the rate of the one that converts two. LLVM takes vectors apart
// whose elements are used one by one, so that the instruction is named here.
//
//===----------------------------------------------------------------------===//

#include "linattn/GPU/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNPACKCONVERSIONSPASS
#include "linattn/GPU/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;

namespace {

struct PackTruncation : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &rewriter) const override {
    Type to = getElementTypeOrSelf(op.getType());
    if (!getElementTypeOrSelf(op.getIn()).isF32() ||
        (!to.isF16() && !to.isBF16()))
      return rewriter.notifyMatchFailure(op, "not from f32 to f16 or bf16");
    if (op.getRoundingmode())
      return rewriter.notifyMatchFailure(op, "another rounding is chosen");
    Location loc = op.getLoc();
    auto vector = dyn_cast<VectorType>(op.getType());
    if (!vector) {
      Value zero =
          arith::ConstantOp::create(rewriter, loc, rewriter.getF32FloatAttr(0));
      Value pair = pack(rewriter, loc, to, op.getIn(), zero);
      rewriter.replaceOp(op, extract(rewriter, loc, pair, 0));
      return success();
    }
    if (vector.getRank() != 1 || vector.isScalable() ||
        vector.getNumElements() % 2 != 0)
      return rewriter.notifyMatchFailure(op, "not a vector of pairs");
    Value result = LLVM::PoisonOp::create(rewriter, loc, vector);
    for (int64_t i = 0; i < vector.getNumElements(); i += 2) {
      Value pair =
          pack(rewriter, loc, to, extract(rewriter, loc, op.getIn(), i),
               extract(rewriter, loc, op.getIn(), i + 1));
      if (vector.getNumElements() == 2) {
        rewriter.replaceOp(op, pair);
        return success();
      }
      for (int64_t half = 0; half < 2; ++half)
        result = LLVM::InsertElementOp::create(
            rewriter, loc, result, extract(rewriter, loc, pair, half),
            number(rewriter, loc, i + half));
    }
    rewriter.replaceOp(op, result);
    return success();
  }

private:
  static Value number(OpBuilder &b, Location loc, int64_t value) {
    return LLVM::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
  }
  static Value extract(OpBuilder &b, Location loc, Value vector, int64_t at) {
    return LLVM::ExtractElementOp::create(b, loc, vector, number(b, loc, at));
  }
  /// Both rounded to nearest even, as `arith.truncf` does.
  static Value pack(OpBuilder &b, Location loc, Type to, Value low,
                    Value high) {
    auto pair = VectorType::get({2}, to);
    constexpr auto rounding = NVVM::FPRoundingMode::RN;
    if (to.isF16())
      return NVVM::ConvertF32x2ToF16x2Op::create(b, loc, pair, high, low,
                                                 /*random_bits=*/Value(),
                                                 rounding);
    return NVVM::ConvertF32x2ToBF16x2Op::create(b, loc, pair, high, low,
                                                /*random_bits=*/Value(),
                                                rounding);
  }
};

struct LinAttnPackConversionsPass final
    : mlir::linattn::impl::LinAttnPackConversionsPassBase<
          LinAttnPackConversionsPass> {
  using LinAttnPackConversionsPassBase::LinAttnPackConversionsPassBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<PackTruncation>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace
