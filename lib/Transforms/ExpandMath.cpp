//===- ExpandMath.cpp - Transcendental functions without libm -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExpandMath.h"

#include "linattn/Dialect/RootPatterns.h"
#include "linattn/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNEXPANDMATHPASS
#include "linattn/Transforms/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;

namespace {

/// `attr` as a number, or as a vector with it in every element.
static Value constant(ImplicitLocOpBuilder &b, Type type, TypedAttr attr) {
  if (auto shaped = dyn_cast<ShapedType>(type))
    attr = DenseElementsAttr::get(shaped, Attribute(attr));
  return arith::ConstantOp::create(b, attr);
}

/// e^x = 2^n e^r, where n is the whole number nearest to x / ln 2 and e^r a
/// polynomial. The sum of x / ln 2 and 1.5 · 2²³ + 127 is rounded to n, and its
/// last bits are the exponent of 2^n. 0 becomes exactly 1, −∞ exactly 0. Under
/// `afn` there are fewer operations, with an error of 3e-6 for |x| ≤ 87;
/// arguments are clamped there, and a NaN may become a number.
struct ExpandExp : OpRewritePattern<math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::ExpOp op,
                                PatternRewriter &rewriter) const override {
    Type type = op.getType();
    if (!getElementTypeOrSelf(type).isF32())
      return rewriter.notifyMatchFailure(op, "not of f32");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Type bits = b.getI32Type();
    if (auto shaped = dyn_cast<ShapedType>(type))
      bits = shaped.clone(bits);
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
    // 2^n, by its exponent bits.
    Value places = constant(b, bits, b.getI32IntegerAttr(23));
    auto exponentOf = [&](Value shifted) -> Value {
      return arith::ShLIOp::create(
          b, arith::BitcastOp::create(b, bits, shifted), places);
    };
    if (bitEnumContainsAny(op.getFastmath(), arith::FastMathFlags::afn)) {
      // The negation is folded into the bounds and factors.
      auto opposite = op.getOperand().getDefiningOp<arith::NegFOp>();
      Value x = opposite ? opposite.getOperand() : op.getOperand();
      x = bound(arith::CmpFPredicate::UGE, x, -87.0);
      x = bound(arith::CmpFPredicate::ULE, x, 87.0);
      if (opposite)
        x = arith::NegFOp::create(b, x);
      constexpr double shift = 12582912.0;
      Value shifted = fma(x, number(1.44269504), number(shift));
      Value n = arith::SubFOp::create(b, shifted, number(shift));
      Value r = fma(n, number(-0.693147181), x);
      Value power = number(0.0414583981);
      for (double coefficient :
           {0.167910308, 0.50004369, 0.999963343, 0.999999285})
        power = fma(power, r, number(coefficient));
      Value sum = arith::AddIOp::create(
          b, arith::BitcastOp::create(b, bits, power), exponentOf(shifted));
      rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, type, sum);
      return success();
    }
    // Smaller arguments give 0. NaN stays NaN, here and below.
    Value x = bound(arith::CmpFPredicate::UGE, op.getOperand(), -87.8);
    constexpr double shift = 12582912.0 + 127.0;
    Value shifted = fma(x, number(1.44269504), number(shift));
    // Beyond this bound r grows, until the polynomial overflows.
    shifted = bound(arith::CmpFPredicate::ULE, shifted, shift + 127.0);
    Value n = arith::SubFOp::create(b, shifted, number(shift));
    // ln 2 in two parts. The first has few bits, so that its products are
    // exact.
    Value r = fma(n, number(-0.693145751953125), x);
    r = fma(n, number(-1.42860677e-6), r);
    // The polynomial errs by 3.2e-9 for |r| ≤ ln 2 / 2.
    Value power = number(0.00138187385);
    for (double coefficient :
         {0.00836872123, 0.0416682921, 0.166665211, 0.49999994, 1.0, 1.0})
      power = fma(power, r, number(coefficient));
    rewriter.replaceOpWithNewOp<arith::MulFOp>(
        op, power, arith::BitcastOp::create(b, type, exponentOf(shifted)));
    return success();
  }
};

/// log(1 + x) for x = e^−|y|, the logarithm of a softplus: x times a
/// polynomial, which errs by 4.7e-9 between 0 and 1, the result by 1.8 of its
/// last bits. Upstream's approximation for any x divides, and takes four times
/// as many operations. The exponential is matched before it is expanded, since
/// ops are visited from the last one on.
struct ExpandLogOfSoftplus : OpRewritePattern<math::Log1pOp> {
  ExpandLogOfSoftplus(MLIRContext *context)
      : OpRewritePattern(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(math::Log1pOp op,
                                PatternRewriter &rewriter) const override {
    Type type = op.getType();
    if (!getElementTypeOrSelf(type).isF32())
      return rewriter.notifyMatchFailure(op, "not of f32");
    auto power = op.getOperand().getDefiningOp<math::ExpOp>();
    auto opposite =
        power ? power.getOperand().getDefiningOp<arith::NegFOp>() : nullptr;
    if (!opposite || !opposite.getOperand().getDefiningOp<math::AbsFOp>())
      return rewriter.notifyMatchFailure(op, "its operand may exceed 1");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto number = [&](double value) {
      return constant(b, type, b.getF32FloatAttr(value));
    };
    Value quotient = number(-0.0032440251670777798);
    for (double coefficient :
         {0.01985146291553974, -0.05695953220129013, 0.10603655129671097,
          -0.15305592119693756, 0.1967593878507614, -0.24954134225845337,
          0.3332996368408203, -0.4999990165233612, 1.0})
      quotient = math::FmaOp::create(b, quotient, op.getOperand(),
                                     number(coefficient));
    rewriter.replaceOpWithNewOp<arith::MulFOp>(op, quotient, op.getOperand());
    return success();
  }
};

/// Under `arcp` and `ninf`, n/d is a product with 1/d. The first guess of 1/d
/// is one subtraction of integers, which negates the exponent. Newton's steps
/// refine it, to 2e-6 under `afn`, else to the last bits. d and 1/d are normal
/// numbers. LLVM's own lowering of these flags estimates the quotients of
/// vectors but divides single numbers, so that their bits would differ.
struct ExpandQuotient : OpRewritePattern<arith::DivFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::DivFOp op,
                                PatternRewriter &rewriter) const override {
    using arith::FastMathFlags;
    Type type = op.getType();
    FastMathFlags needed = FastMathFlags::arcp | FastMathFlags::ninf;
    if (!getElementTypeOrSelf(type).isF32() ||
        !bitEnumContainsAll(op.getFastmath(), needed))
      return rewriter.notifyMatchFailure(op, "not a quick quotient of f32");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto number = [&](double value) {
      return constant(b, type, b.getF32FloatAttr(value));
    };
    auto fma = [&](Value x, Value y, Value z) -> Value {
      return math::FmaOp::create(b, x, y, z);
    };
    Type bits = b.getI32Type();
    if (auto shaped = dyn_cast<ShapedType>(type))
      bits = shaped.clone(bits);
    Value divisor = op.getRhs();
    Value guess = arith::SubIOp::create(
        b, constant(b, bits, b.getI32IntegerAttr(0x7ef33400)),
        arith::BitcastOp::create(b, bits, divisor));
    Value inverse = arith::BitcastOp::create(b, type, guess);
    Value opposite = arith::NegFOp::create(b, divisor);
    // The guess errs by up to 1/8, always to the same side.
    inverse = arith::MulFOp::create(b, inverse,
                                    fma(opposite, inverse, number(2.00127991)));
    bool isRough = bitEnumContainsAny(op.getFastmath(), FastMathFlags::afn);
    for (int step = isRough ? 1 : 0; step < 2; ++step)
      inverse = fma(inverse, fma(opposite, inverse, number(1.0)), inverse);
    rewriter.replaceOpWithNewOp<arith::MulFOp>(op, op.getLhs(), inverse);
    return success();
  }
};

/// The even or the odd bf16 of a vector. The first of a pair is the lower half
/// of a word.
struct ExpandPairExtension : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::ExtFOp op,
                                PatternRewriter &rewriter) const override {
    auto pairs = op.getIn().getDefiningOp<vector::DeinterleaveOp>();
    auto type = dyn_cast<VectorType>(op.getType());
    if (!pairs || !type || type.getRank() != 1 || type.isScalable() ||
        !getElementTypeOrSelf(op.getIn()).isBF16() ||
        !type.getElementType().isF32())
      return rewriter.notifyMatchFailure(op, "not one half of pairs of bf16");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto words = VectorType::get(type.getShape(), b.getI32Type());
    Value word = vector::BitCastOp::create(b, words, pairs.getSource());
    bool isFirst = op.getIn() == pairs.getRes1();
    Value bits;
    if (isFirst)
      bits = arith::ShLIOp::create(b, word,
                                   constant(b, words, b.getI32IntegerAttr(16)));
    else
      bits = arith::AndIOp::create(
          b, word,
          constant(b, words, b.getI32IntegerAttr(int32_t(0xffff0000))));
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, type, bits);
    return success();
  }
};

/// Two vectors of f32 as pairs of bf16, rounded to nearest even.
struct ExpandPairTruncation : OpRewritePattern<vector::InterleaveOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(vector::InterleaveOp op,
                                PatternRewriter &rewriter) const override {
    auto [low, high] = mlir::linattn::getRoundedPairs(op);
    VectorType type = op.getResultVectorType();
    if (!low)
      return rewriter.notifyMatchFailure(op, "not pairs of rounded bf16");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto words = VectorType::get({type.getNumElements() / 2}, b.getI32Type());
    auto word = [&](uint32_t value) {
      return constant(b, words, b.getI32IntegerAttr(int32_t(value)));
    };
    auto round = [&](Value x) -> Value {
      Value bits = arith::BitcastOp::create(b, words, x);
      Value odd = arith::AndIOp::create(
          b, arith::ShRUIOp::create(b, bits, word(16)), word(1));
      Value up = arith::AddIOp::create(
          b, bits, arith::AddIOp::create(b, odd, word(0x7fff)));
      // Keeps a NaN.
      Value isNaN = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, x, x);
      return arith::SelectOp::create(b, isNaN, word(0x7fc00000), up);
    };
    Value lower = arith::ShRUIOp::create(b, round(low), word(16));
    Value upper = arith::AndIOp::create(b, round(high), word(0xffff0000));
    rewriter.replaceOpWithNewOp<vector::BitCastOp>(
        op, type, arith::OrIOp::create(b, lower, upper));
    return success();
  }
};

struct ExpandMathPass
    : public mlir::linattn::impl::LinAttnExpandMathPassBase<ExpandMathPass> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    auto everything = [](StringRef) { return true; };
    populateMathF32ExpansionPatterns(patterns, everything);
    auto exceptExp = [](StringRef name) {
      return name != math::ExpOp::getOperationName();
    };
    populateMathPolynomialApproximationPatterns(patterns, exceptExp);
    patterns.add<ExpandExp, ExpandLogOfSoftplus, ExpandQuotient,
                 ExpandPairExtension, ExpandPairTruncation>(&getContext());
    if (avx512)
      mlir::linattn::populateExpandMathToAVX512Patterns(patterns);
    if (avx512Bf16)
      mlir::linattn::populateExpandMathToAVX512Bf16Patterns(patterns);
    // Neither libm nor LLVM has vector forms of these functions.
    math::populateExpansionPatterns(patterns, {"clampf", "exp2", "sinh", "cosh",
                                               "asinh", "acosh", "atanh"});
    if (failed(mlir::linattn::applyPatternsToRoots(getOperation(),
                                                   std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

std::pair<Value, Value>
mlir::linattn::getRoundedPairs(vector::InterleaveOp op) {
  VectorType type = op.getResultVectorType();
  if (type.getRank() != 1 || type.isScalable() ||
      !type.getElementType().isBF16())
    return {};
  auto getRounded = [](Value value) -> Value {
    auto narrow = value.getDefiningOp<arith::TruncFOp>();
    if (!narrow || narrow.getRoundingmode() ||
        !getElementTypeOrSelf(narrow.getIn()).isF32())
      return {};
    return narrow.getIn();
  };
  Value low = getRounded(op.getLhs()), high = getRounded(op.getRhs());
  return low && high ? std::pair(low, high) : std::pair<Value, Value>();
}
