//===- ExpandMathAVX512.cpp - Rough arithmetic with AVX-512 ---------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Intrinsics, since LLVM would choose estimates for some lanes and divisions
// for others: every lane of a result must see the same instructions.
//
//===----------------------------------------------------------------------===//

#include "ExpandMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;

namespace {

/// Lanes of a register.
constexpr int64_t lanes = 16;

static bool isOfRegisters(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector && vector.getRank() == 1 && !vector.isScalable() &&
         vector.getElementType().isF32() &&
         vector.getNumElements() % lanes == 0;
}

static Value call(ImplicitLocOpBuilder &b, Type result, StringRef intrinsic,
                  ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(b, result, b.getStringAttr(intrinsic),
                                       operands)
      .getResult(0);
}

/// Applies `apply` to each register of the operands and concatenates the
/// results.
static Value
forEachRegister(ImplicitLocOpBuilder &b, ArrayRef<Value> operands,
                function_ref<Value(ArrayRef<Value> registers)> apply) {
  auto type = cast<VectorType>(operands.front().getType());
  SmallVector<Value> results;
  for (int64_t at = 0; at < type.getNumElements(); at += lanes) {
    SmallVector<Value> registers;
    for (Value operand : operands)
      registers.push_back(type.getNumElements() == lanes
                              ? operand
                              : vector::ExtractStridedSliceOp::create(
                                    b, operand, ArrayRef<int64_t>{at},
                                    ArrayRef<int64_t>{lanes},
                                    ArrayRef<int64_t>{1}));
    results.push_back(apply(registers));
  }
  if (results.size() == 1)
    return results.front();
  Value all = arith::ConstantOp::create(b, b.getZeroAttr(type));
  for (auto [i, result] : llvm::enumerate(results))
    all = vector::InsertStridedSliceOp::create(
        b, result, all, ArrayRef<int64_t>{int64_t(i) * lanes},
        ArrayRef<int64_t>{1});
  return all;
}

/// The trailing operands of every masked intrinsic.
struct NoMask {
  explicit NoMask(ImplicitLocOpBuilder &b)
      : zeros(arith::ConstantOp::create(
            b, b.getZeroAttr(VectorType::get(lanes, b.getF32Type())))),
        all(LLVM::ConstantOp::create(b, b.getI16Type(),
                                     b.getI16IntegerAttr(-1))),
        rounding(LLVM::ConstantOp::create(b, b.getI32Type(),
                                          b.getI32IntegerAttr(4))) {}

  Value zeros, all;
  /// Rounding by the thread's mode.
  Value rounding;
};

/// 2^t = 2^⌊t⌋ p(t − ⌊t⌋) for t = x / ln 2. p errs by 3e-6, the rounding of t
/// by 6e-6 for |x| ≤ 87. Beyond, the result has that error or is ∞ or 0. A NaN
/// stays NaN.
struct ExpandRoughExp : OpRewritePattern<math::ExpOp> {
  ExpandRoughExp(MLIRContext *context)
      : OpRewritePattern(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(math::ExpOp op,
                                PatternRewriter &rewriter) const override {
    if (!isOfRegisters(op.getType()) ||
        !bitEnumContainsAny(op.getFastmath(), arith::FastMathFlags::afn))
      return rewriter.notifyMatchFailure(op, "not a rough one of registers");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto type = cast<VectorType>(op.getType());
    auto number = [&](double value) -> Value {
      return arith::ConstantOp::create(
          b, DenseElementsAttr::get(type, static_cast<float>(value)));
    };
    // The negation is folded into the factor.
    auto opposite = op.getOperand().getDefiningOp<arith::NegFOp>();
    constexpr double perNatural = 1.44269504;
    Value t = arith::MulFOp::create(
        b, opposite ? opposite.getOperand() : op.getOperand(),
        number(opposite ? -perNatural : perNatural));
    NoMask mask(b);
    Value toFloor =
        LLVM::ConstantOp::create(b, b.getI32Type(), b.getI32IntegerAttr(9));
    Value fraction = forEachRegister(b, {t}, [&](ArrayRef<Value> x) {
      return call(b, x[0].getType(), "llvm.x86.avx512.mask.reduce.ps.512",
                  {x[0], toFloor, mask.zeros, mask.all, mask.rounding});
    });
    Value power = number(kCoefficients[0]);
    for (double coefficient : ArrayRef(kCoefficients).drop_front())
      power = math::FmaOp::create(b, power, fraction, number(coefficient));
    rewriter.replaceOp(
        op, forEachRegister(b, {power, t}, [&](ArrayRef<Value> x) {
          return call(b, x[0].getType(), "llvm.x86.avx512.mask.scalef.ps.512",
                      {x[0], x[1], mask.zeros, mask.all, mask.rounding});
        }));
    return success();
  }

  /// The coefficients of 2^f for 0 ≤ f < 1, highest power first.
  static constexpr double kCoefficients[] = {
      0.0135341706, 0.0520114638, 0.241442755, 0.693003833, 1.00000262};
};

/// Under `arcp` and `ninf`, n/d is a product with 1/d: an estimate of 14 bits,
/// and one of Newton's steps unless `afn` allows the estimate.
struct ExpandQuickQuotient : OpRewritePattern<arith::DivFOp> {
  ExpandQuickQuotient(MLIRContext *context)
      : OpRewritePattern(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(arith::DivFOp op,
                                PatternRewriter &rewriter) const override {
    using arith::FastMathFlags;
    if (!isOfRegisters(op.getType()) ||
        !bitEnumContainsAll(op.getFastmath(),
                            FastMathFlags::arcp | FastMathFlags::ninf))
      return rewriter.notifyMatchFailure(op, "not a quick one of registers");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    NoMask mask(b);
    Value divisor = op.getRhs();
    Value inverse = forEachRegister(b, {divisor}, [&](ArrayRef<Value> x) {
      return call(b, x[0].getType(), "llvm.x86.avx512.rcp14.ps.512",
                  {x[0], mask.zeros, mask.all});
    });
    if (!bitEnumContainsAny(op.getFastmath(), FastMathFlags::afn)) {
      Value one = arith::ConstantOp::create(
          b, DenseElementsAttr::get(cast<VectorType>(op.getType()), 1.0f));
      Value error = math::FmaOp::create(b, arith::NegFOp::create(b, divisor),
                                        inverse, one);
      inverse = math::FmaOp::create(b, inverse, error, inverse);
    }
    rewriter.replaceOpWithNewOp<arith::MulFOp>(op, op.getLhs(), inverse);
    return success();
  }
};

/// Two vectors of f32, rounded to bf16 one behind the other.
static Value roundNeighbours(ImplicitLocOpBuilder &b, Type type, Value first,
                             Value second) {
  return call(b, type, "llvm.x86.avx512bf16.cvtne2ps2bf16.512",
              {second, first});
}

/// Two vectors of f32 as pairs of bf16: each is rounded, then both are
/// interleaved.
struct ConvertPairs : OpRewritePattern<vector::InterleaveOp> {
  ConvertPairs(MLIRContext *context)
      : OpRewritePattern(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(vector::InterleaveOp op,
                                PatternRewriter &rewriter) const override {
    auto [low, high] = mlir::linattn::getRoundedPairs(op);
    VectorType type = op.getResultVectorType();
    if (!low || type.getNumElements() != 2 * lanes)
      return rewriter.notifyMatchFailure(op, "not a register of pairs");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value narrow = roundNeighbours(b, type, low, high);
    auto words = VectorType::get(2 * lanes, b.getI16Type());
    narrow = vector::BitCastOp::create(b, words, narrow);
    SmallVector<int64_t> order;
    for (int64_t i = 0; i < lanes; ++i)
      order.append({i, lanes + i});
    narrow = vector::ShuffleOp::create(b, narrow, narrow, order);
    rewriter.replaceOpWithNewOp<vector::BitCastOp>(op, type, narrow);
    return success();
  }
};

/// Two vectors of f32, one behind the other, as one of bf16.
struct ConvertNeighbours : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &rewriter) const override {
    auto both = op.getIn().getDefiningOp<vector::ShuffleOp>();
    auto type = dyn_cast<VectorType>(op.getType());
    if (!both || !type || !type.getElementType().isBF16() ||
        op.getRoundingmode() ||
        both.getV1VectorType() != VectorType::get(lanes, rewriter.getF32Type()))
      return rewriter.notifyMatchFailure(op, "not two registers of f32");
    if (!llvm::equal(both.getMask(), llvm::seq<int64_t>(2 * lanes)))
      return rewriter.notifyMatchFailure(op, "not one behind the other");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    rewriter.replaceOp(op,
                       roundNeighbours(b, type, both.getV1(), both.getV2()));
    return success();
  }
};

} // namespace

void mlir::linattn::populateExpandMathToAVX512Patterns(
    RewritePatternSet &patterns) {
  patterns.add<ExpandRoughExp, ExpandQuickQuotient>(patterns.getContext());
}

void mlir::linattn::populateExpandMathToAVX512Bf16Patterns(
    RewritePatternSet &patterns) {
  patterns.add<ConvertPairs, ConvertNeighbours>(patterns.getContext());
}
