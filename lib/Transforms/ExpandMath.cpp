//===- ExpandMath.cpp - Transcendental functions without libm -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNEXPANDMATHPASS
#include "linattn/Transforms/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;

namespace {

/// `attr` as a number, or as every element of a vector.
static Value constant(ImplicitLocOpBuilder &b, Type type, TypedAttr attr) {
  if (auto shaped = dyn_cast<ShapedType>(type))
    attr = DenseElementsAttr::get(shaped, Attribute(attr));
  return arith::ConstantOp::create(b, attr);
}

/// e^x = 2^n e^r, n the whole number next to x / ln 2, e^r a polynomial. The
/// sum of x / ln 2 and 1.5 · 2²³ + 127 is rounded to n, and its last bits are
/// those of the exponent of 2^n. 0 becomes exactly 1, −∞ exactly 0.
struct ExpandExp : OpRewritePattern<math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::ExpOp op,
                                PatternRewriter &rewriter) const override {
    Type type = op.getType();
    if (!getElementTypeOrSelf(type).isF32())
      return rewriter.notifyMatchFailure(op, "not of f32");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto number = [&](double value) {
      return constant(b, type, b.getF32FloatAttr(value));
    };
    auto fma = [&](Value x, Value y, Value z) -> Value {
      return math::FmaOp::create(b, x, y, z);
    };
    auto bound = [&](arith::CmpFPredicate inside, Value x, double limit) {
      Value end = number(limit);
      Value isInside = arith::CmpFOp::create(b, inside, x, end);
      return arith::SelectOp::create(b, isInside, x, end).getResult();
    };
    // What is less becomes 0. NaN stays, here as below.
    Value x = bound(arith::CmpFPredicate::UGE, op.getOperand(), -87.8);
    constexpr double shift = 12582912.0 + 127.0;
    Value shifted = fma(x, number(1.44269504), number(shift));
    // Beyond it r grows, until the polynomial overflows.
    shifted = bound(arith::CmpFPredicate::ULE, shifted, shift + 127.0);
    Value n = arith::SubFOp::create(b, shifted, number(shift));
    // ln 2 in two parts: the first one has few bits, its products are exact.
    Value r = fma(n, number(-0.693145751953125), x);
    r = fma(n, number(-1.42860677e-6), r);
    // Where |r| ≤ ln 2 / 2 it errs by 3.2e-9.
    Value power = number(0.00138187385);
    for (double coefficient :
         {0.00836872123, 0.0416682921, 0.166665211, 0.49999994, 1.0, 1.0})
      power = fma(power, r, number(coefficient));
    Type bits = b.getI32Type();
    if (auto shaped = dyn_cast<ShapedType>(type))
      bits = shaped.clone(bits);
    Value exponent =
        arith::ShLIOp::create(b, arith::BitcastOp::create(b, bits, shifted),
                              constant(b, bits, b.getI32IntegerAttr(23)));
    rewriter.replaceOpWithNewOp<arith::MulFOp>(
        op, power, arith::BitcastOp::create(b, type, exponent));
    return success();
  }
};

struct ExpandMathPass
    : public linattn::impl::LinAttnExpandMathPassBase<ExpandMathPass> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    auto everything = [](StringRef) { return true; };
    populateMathF32ExpansionPatterns(patterns, everything);
    auto exceptExp = [](StringRef name) {
      return name != math::ExpOp::getOperationName();
    };
    populateMathPolynomialApproximationPatterns(patterns, exceptExp);
    patterns.add<ExpandExp>(&getContext());
    // Neither libm nor LLVM has these as vectors, or at all.
    math::populateExpansionPatterns(patterns, {"clampf", "exp2", "sinh", "cosh",
                                               "asinh", "acosh", "atanh"});
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
