//===- Canonicalize.cpp - Canonicalization patterns -----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/FeatureMaps.h"
#include "linattn/Dialect/LinAttn.h"
#include "linattn/Dialect/MapParameters.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::linattn;

template <typename OpTy>
static bool hasNoFeatureMap(OpTy op) {
  return cast<FeatureMappedOpInterface>(op.getOperation())
             .getFeatureMapKind() == FeatureMapKind::Identity;
}

/// The feature map that computes a value, if its consumer can apply it instead.
/// `exp` under a normalizer is stabilised, which makes it another map.
static FeatureMapOp foldableMap(Value value, bool normalized) {
  auto map = value.getDefiningOp<FeatureMapOp>();
  if (!map || !map.hasPureTensorSemantics())
    return {};
  auto kind =
      cast<FeatureMappedOpInterface>(map.getOperation()).getFeatureMapKind();
  // Maps of whole tokens are computed once, not by every consumer. A map that
  // widens its tokens is not the identity on them.
  bool stays = needsRunningMax(kind, normalized) || needsWholeToken(kind) ||
               getElementTypeOrSelf(map.getInput()) !=
                   getElementTypeOrSelf(map.getOutput());
  return stays ? FeatureMapOp() : map;
}

/// A region computes in one type, so that beside a wider state it stays an op
/// of its own.
template <typename OpTy>
static bool canTakeOver(OpTy op, FeatureMapOp map) {
  return map.getPhi().empty() ||
         getAccumulationType(op) == getAccumulationType(map);
}

template <typename OpTy>
static void takeOver(OpTy op, FeatureMapOp map, PatternRewriter &rewriter) {
  op.setFeatureMapAttr(map.getFeatureMapAttr());
  if (!map.getPhi().empty())
    rewriter.cloneRegionBefore(map.getPhi(), op.getPhi(), op.getPhi().end());
}

namespace {

/// Removes feature_map<identity>.
struct FoldIdentityMap : OpRewritePattern<FeatureMapOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(FeatureMapOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics() || !hasNoFeatureMap(op))
      return rewriter.notifyMatchFailure(op, "not the identity on tensors");
    Value input = op.getInput();
    Type type = op.getResults().front().getType();
    if (input.getType() != type)
      return rewriter.notifyMatchFailure(op, "static shapes differ");
    rewriter.replaceOp(op, input);
    return success();
  }
};

/// Moves φ from an op of its own into the consumer, which applies it as it
/// loads: φ(q) and φ(k) are never stored.
template <typename OpTy>
struct FuseFeatureMaps : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (!hasNoFeatureMap(op))
      return rewriter.notifyMatchFailure(op, "already has a feature map");
    bool normalized = op.getNormalize().has_value();
    FeatureMapOp query = foldableMap(op.getQuery(), normalized);
    FeatureMapOp key = foldableMap(op.getKey(), normalized);
    if (!query || !key)
      return rewriter.notifyMatchFailure(
          op, "query and key are not both feature maps");
    if (!haveSameFeatureMap(query, key))
      return rewriter.notifyMatchFailure(op, "feature maps differ");
    if (!canTakeOver(op, query))
      return rewriter.notifyMatchFailure(op, "φ's region has another type");
    if constexpr (std::is_same_v<OpTy, AttentionOp>)
      if (op.getWeights() == Weights::Softmax)
        return rewriter.notifyMatchFailure(op, "softmax takes no feature map");
    rewriter.modifyOpInPlace(op, [&] {
      op.getQueryMutable().assign(query.getInput());
      op.getKeyMutable().assign(key.getInput());
      takeOver(op, query, rewriter);
    });
    return success();
  }
};

static MutableOperandRange mappedOperand(StateOp op) {
  return op.getKeyMutable();
}
static MutableOperandRange mappedOperand(ReadOp op) {
  return op.getQueryMutable();
}

/// The one-sided variant for linattn.state, which maps keys, and linattn.read,
/// which maps queries.
template <typename OpTy>
struct FuseOneFeatureMap : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (!hasNoFeatureMap(op))
      return rewriter.notifyMatchFailure(op, "already has a feature map");
    MutableOperandRange tokens = mappedOperand(op);
    FeatureMapOp map = foldableMap(tokens[0].get(), bool(op.getNormalizer()));
    if (!map)
      return rewriter.notifyMatchFailure(op, "tokens come from no feature map");
    if (!canTakeOver(op, map))
      return rewriter.notifyMatchFailure(op, "φ's region has another type");
    rewriter.modifyOpInPlace(op, [&] {
      tokens.assign(map.getInput());
      takeOver(op, map, rewriter);
    });
    return success();
  }
};

/// Turns a constant scale into an attribute, so that a scale of 1 costs
/// nothing.
template <typename OpTy>
struct ConstantScaleToAttribute : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    FloatAttr scale;
    if (!op.getScaleValue() ||
        !matchPattern(op.getScaleValue(), m_Constant(&scale)))
      return rewriter.notifyMatchFailure(op,
                                         "the scale is not a constant operand");
    if (!isUsableScale(scale.getValueAsDouble(), getAccumulationType(op)))
      return rewriter.notifyMatchFailure(op, "an attribute cannot hold it");
    rewriter.modifyOpInPlace(op, [&] {
      op.getScaleValueMutable().clear();
      op.setScaleAttr(scale);
    });
    return success();
  }
};

/// Rewrites attention(c·q) with a constant c to attention(q) with scale·c.
template <typename OpTy>
struct FoldScale : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (!hasNoFeatureMap(op))
      return rewriter.notifyMatchFailure(op, "φ does not commute with a scale");
    if (op.getScaleValue())
      return rewriter.notifyMatchFailure(op, "the scale is an operand");
    auto product = op.getQuery().template getDefiningOp<arith::MulFOp>();
    if (!product)
      return rewriter.notifyMatchFailure(op, "query is not a product");
    for (bool swapped : {false, true}) {
      Value factor = swapped ? product.getLhs() : product.getRhs();
      Value other = swapped ? product.getRhs() : product.getLhs();
      DenseElementsAttr splat;
      if (!matchPattern(factor, m_Constant(&splat)) || !splat.isSplat())
        continue;
      double c = splat.getSplatValue<APFloat>().convertToDouble();
      double scale = scaleOr1(op.getScale());
      Type type = getAccumulationType(op);
      if (!isUsableScale(c * scale, type))
        return rewriter.notifyMatchFailure(op, "folded scale is out of range");
      rewriter.modifyOpInPlace(op, [&] {
        op.getQueryMutable().assign(other);
        op.setScaleAttr(rewriter.getF64FloatAttr(c * scale));
      });
      return success();
    }
    return rewriter.notifyMatchFailure(op, "no factor is a splat constant");
  }
};

/// Drops the causal mask of one query over one key.
struct DropCausalOfSingleToken : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    auto tokens = [](Value value) {
      return cast<ShapedType>(value.getType()).getDimSize(2);
    };
    if (!op.getCausal() || tokens(op.getQuery()) != 1 ||
        tokens(op.getKey()) != 1)
      return rewriter.notifyMatchFailure(op, "not causal over one token");
    rewriter.modifyOpInPlace(op, [&] {
      op.setCausal(false);
      op.getPrefixMutable().clear();
      op.removePatternAttr();
    });
    return success();
  }
};

/// Drops a normalizer without uses.
struct DropDeadNormalizer : OpRewritePattern<StateOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(StateOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics() || !op.getNormalizer() ||
        op.getRunningMax() || !op.getResults()[1].use_empty())
      return rewriter.notifyMatchFailure(op, "normalizer is read");
    auto plain =
        StateOp::create(rewriter, op.getLoc(), op.getKey(), op.getValue(),
                        op.getDecay(), op.getValueDecay(), op.getMask(),
                        op.getCuSeqlens(), StateValues{op.getState(), {}, {}});
    plain.setReverse(op.getReverse());
    plain.setFeatureMapAttr(op.getFeatureMapAttr());
    plain.setConfigAttr(op.getConfigAttr());
    rewriter.inlineRegionBefore(op.getPhi(), plain.getPhi(),
                                plain.getPhi().end());
    rewriter.replaceAllUsesWith(op.getResults()[0], plain.getResults()[0]);
    rewriter.eraseOp(op);
    return success();
  }
};

/// Makes a size of a branch's result a result of its own. Otherwise a use of
/// the shape alone would keep both branches alive.
struct HoistDimOfBranch : OpRewritePattern<tensor::DimOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::DimOp op,
                                PatternRewriter &rewriter) const override {
    auto branch = op.getSource().getDefiningOp<scf::IfOp>();
    std::optional<int64_t> index = op.getConstantIndex();
    if (!branch || !index)
      return rewriter.notifyMatchFailure(op, "not a size of a branch's result");
    unsigned number = cast<OpResult>(op.getSource()).getResultNumber();
    auto yielded = [&](scf::YieldOp yield) {
      return yield.getOperand(number)
          .getDefiningOp<ReifyRankedShapedTypeOpInterface>();
    };
    if (!yielded(branch.thenYield()) || !yielded(branch.elseYield()))
      return rewriter.notifyMatchFailure(op, "shapes cannot be reified");

    SmallVector<Type> types(branch.getResultTypes());
    types.push_back(rewriter.getIndexType());
    rewriter.setInsertionPoint(branch);
    auto wider = scf::IfOp::create(rewriter, branch.getLoc(), types,
                                   branch.getCondition(),
                                   /*addThenBlock=*/false,
                                   /*addElseBlock=*/false);
    rewriter.inlineRegionBefore(branch.getThenRegion(), wider.getThenRegion(),
                                wider.getThenRegion().end());
    rewriter.inlineRegionBefore(branch.getElseRegion(), wider.getElseRegion(),
                                wider.getElseRegion().end());
    for (scf::YieldOp yield : {wider.thenYield(), wider.elseYield()}) {
      rewriter.setInsertionPoint(yield);
      Value size = sizeOf(rewriter, yield.getOperand(number), *index);
      rewriter.modifyOpInPlace(yield,
                               [&] { yield.getResultsMutable().append(size); });
    }
    rewriter.replaceOp(branch, wider.getResults().drop_back());
    rewriter.replaceOp(op, wider.getResults().back());
    return success();
  }

private:
  static Value sizeOf(OpBuilder &b, Value value, int64_t index) {
    ReifiedRankedShapedTypeDims shapes;
    auto op = value.getDefiningOp<ReifyRankedShapedTypeOpInterface>();
    if (failed(op.reifyResultShapes(b, shapes)))
      return tensor::DimOp::create(b, value.getLoc(), value, index);
    unsigned number = cast<OpResult>(value).getResultNumber();
    return getValueOrCreateConstantIndexOp(b, value.getLoc(),
                                           shapes[number][index]);
  }
};

} // namespace

void LinAttnDialect::getCanonicalizationPatterns(
    RewritePatternSet &patterns) const {
  patterns.add<HoistDimOfBranch>(getContext());
}

void AttentionOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                              MLIRContext *context) {
  patterns.add<FuseFeatureMaps<AttentionOp>, FoldScale<AttentionOp>,
               ConstantScaleToAttribute<AttentionOp>,
               ConstantScaleToAttribute<QuadraticOp>, DropCausalOfSingleToken>(
      context);
}

void ScanOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                         MLIRContext *context) {
  patterns.add<FuseFeatureMaps<ScanOp>, FoldScale<ScanOp>,
               ConstantScaleToAttribute<ScanOp>>(context);
}

void StateOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                          MLIRContext *context) {
  patterns.add<FuseOneFeatureMap<StateOp>, DropDeadNormalizer>(context);
}

void ReadOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                         MLIRContext *context) {
  patterns.add<FuseOneFeatureMap<ReadOp>, ConstantScaleToAttribute<ReadOp>>(
      context);
}

void FeatureMapOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                               MLIRContext *context) {
  patterns.add<FoldIdentityMap>(context);
}
