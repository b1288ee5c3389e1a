//===- ReassociateChain.cpp - Chains of linalg contractions ---------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two contractions P = A·B and O += P·C, in any layout, as einsums:
//
//   A[b m r] B[b j r] -> P[b m j],  P C[b j n] -> O[b m n]
//   becomes  B C -> S[b r n],  A S -> O
//
// where b are batch letters, j what the second sums over and r the first.
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/Einsum.h"
#include "linattn/Transforms/Forms.h"
#include "linattn/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/LinalgInterfaces.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::linattn;

/// True for a multiply-accumulate of two tensors into a third.
static bool isContraction(linalg::LinalgOp op) {
  return op && op.hasPureTensorSemantics() && op.getNumDpsInputs() == 2 &&
         op.getNumDpsInits() == 1 && linalg::isaContractionOpInterface(op) &&
         llvm::all_of(op->getOperandTypes(), [&](Type type) {
           return isa<FloatType>(getElementTypeOrSelf(type)) &&
                  getElementTypeOrSelf(type) ==
                      getElementTypeOrSelf(op->getOperand(2));
         });
}

namespace {

/// The chain in letters: one letter per dimension, shared by all operands.
struct Chain {
  linalg::LinalgOp first, second;
  Value a, b, c, init;
  std::string aSubscript, bSubscript, cSubscript, output;

  int64_t staticSize(char letter) const {
    for (auto [value, subscript] :
         {std::pair(a, &aSubscript), std::pair(b, &bSubscript),
          std::pair(c, &cSubscript)})
      if (size_t at = subscript->find(letter); at != std::string::npos)
        return cast<ShapedType>(value.getType()).getDimSize(at);
    llvm_unreachable("letter of no operand");
  }

  /// The size of a letter, from any operand that has it.
  OpFoldResult size(OpBuilder &builder, Location loc, char letter) const {
    for (auto [value, subscript] :
         {std::pair(a, &aSubscript), std::pair(b, &bSubscript),
          std::pair(c, &cSubscript)})
      if (size_t at = subscript->find(letter); at != std::string::npos)
        return tensor::getMixedSize(builder, loc, value, at);
    llvm_unreachable("letter of no operand");
  }
};

} // namespace

static std::string letters(AffineMap map, ArrayRef<char> loops) {
  std::string subscript;
  for (AffineExpr expr : map.getResults())
    subscript += loops[cast<AffineDimExpr>(expr).getPosition()];
  return subscript;
}

/// Letters of x that are in y.
static std::string common(StringRef x, StringRef y) {
  std::string result;
  for (char letter : x)
    if (y.contains(letter))
      result += letter;
  return result;
}

static std::string without(StringRef x, StringRef y) {
  std::string result;
  for (char letter : x)
    if (!y.contains(letter))
      result += letter;
  return result;
}

/// Names the dimensions of the chain. Fails unless it is a plain product.
static FailureOr<Chain> matchChain(linalg::LinalgOp second,
                                   PatternRewriter &rewriter) {
  if (!isContraction(second))
    return rewriter.notifyMatchFailure(second, "not a contraction");
  Chain chain;
  chain.second = second;
  OpOperand *product = nullptr;
  for (OpOperand *operand : second.getDpsInputOperands()) {
    auto first = operand->get().getDefiningOp<linalg::LinalgOp>();
    if (first && isContraction(first) && first->hasOneUse() &&
        isZeroFill(first.getDpsInitOperand(0)->get())) {
      product = operand;
      chain.first = first;
      break;
    }
  }
  if (!product)
    return rewriter.notifyMatchFailure(
        second, "no operand is a product used only here");
  auto allProjected = [](linalg::LinalgOp op) {
    return llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) {
      return map.isProjectedPermutation();
    });
  };
  if (!allProjected(chain.first) || !allProjected(second))
    return rewriter.notifyMatchFailure(second, "indexing is not a permutation");

  SmallVector<char> secondLoops, firstLoops(chain.first.getNumLoops(), 0);
  for (unsigned i = 0; i < second.getNumLoops(); ++i)
    secondLoops.push_back('a' + i);
  char next = 'a' + second.getNumLoops();
  std::string productLetters =
      letters(second.getMatchingIndexingMap(product), secondLoops);
  AffineMap firstOutput =
      chain.first.getMatchingIndexingMap(chain.first.getDpsInitOperand(0));
  for (auto [expr, letter] :
       llvm::zip_equal(firstOutput.getResults(), productLetters))
    firstLoops[cast<AffineDimExpr>(expr).getPosition()] = letter;
  for (char &letter : firstLoops)
    if (!letter)
      letter = next++;

  OpOperand *other = second.getDpsInputOperand(0) == product
                         ? second.getDpsInputOperand(1)
                         : second.getDpsInputOperand(0);
  chain.c = other->get();
  chain.init = second.getDpsInitOperand(0)->get();
  chain.cSubscript = letters(second.getMatchingIndexingMap(other), secondLoops);
  chain.output = letters(
      second.getMatchingIndexingMap(second.getDpsInitOperand(0)), secondLoops);
  OpOperand *lhs = chain.first.getDpsInputOperand(0);
  OpOperand *rhs = chain.first.getDpsInputOperand(1);
  std::string lhsLetters =
      letters(chain.first.getMatchingIndexingMap(lhs), firstLoops);
  std::string rhsLetters =
      letters(chain.first.getMatchingIndexingMap(rhs), firstLoops);
  // B is the factor with the dimensions that the second product sums over.
  std::string summed = without(productLetters, chain.output);
  bool swapped = !common(lhsLetters, summed).empty();
  chain.a = (swapped ? rhs : lhs)->get();
  chain.b = (swapped ? lhs : rhs)->get();
  chain.aSubscript = swapped ? rhsLetters : lhsLetters;
  chain.bSubscript = swapped ? lhsLetters : rhsLetters;
  if (summed.empty() || !common(chain.aSubscript, summed).empty())
    return rewriter.notifyMatchFailure(
        second, "both factors carry the summed dimension");
  return chain;
}

/// Letters of S = B·C: the letters of B and C that A or the output needs.
static std::string stateLetters(const Chain &chain) {
  std::string needed = chain.aSubscript + chain.output;
  std::string state = common(chain.bSubscript, needed);
  return state + without(common(chain.cSubscript, needed), state);
}

static Value emitReassociated(OpBuilder &builder, Location loc,
                              const Chain &chain) {
  std::string state = stateLetters(chain);
  SmallVector<OpFoldResult> sizes;
  for (char letter : state)
    sizes.push_back(chain.size(builder, loc, letter));
  Value zero =
      filled(builder, loc, sizes, getElementTypeOrSelf(chain.init), 0.0);
  Value s = einsum(builder, loc,
                   chain.bSubscript + "," + chain.cSubscript + "->" + state,
                   chain.b, chain.c, zero);
  return einsum(builder, loc,
                chain.aSubscript + "," + state + "->" + chain.output, chain.a,
                s, chain.init);
}

/// Multiplies sizes; the result is dynamic if one is.
static OpFoldResult multiply(OpBuilder &b, Location loc, const Chain &chain,
                             StringRef subscript) {
  OpFoldResult product = b.getIndexAttr(1);
  AffineExpr d0, d1;
  bindSymbols(b.getContext(), d0, d1);
  for (char letter : subscript)
    product = affine::makeComposedFoldedAffineApply(
        b, loc, d0 * d1, {product, chain.size(b, loc, letter)});
  return product;
}

namespace {

struct ReassociateChain : OpInterfaceRewritePattern<linalg::LinalgOp> {
  ReassociateChain(MLIRContext *context, ReassociateMode mode)
      : OpInterfaceRewritePattern(context), mode(mode) {}

  LogicalResult matchAndRewrite(linalg::LinalgOp op,
                                PatternRewriter &rewriter) const override {
    FailureOr<Chain> chain = matchChain(op, rewriter);
    if (failed(chain))
      return failure();
    Location loc = op.getLoc();
    if (mode == ReassociateMode::Never)
      return rewriter.notifyMatchFailure(op, "mode=never");

    auto quadraticCount = staticMultiplyAdds(*chain, /*reassociated=*/false);
    auto linearCount = staticMultiplyAdds(*chain, /*reassociated=*/true);
    bool isStatic = quadraticCount && linearCount;
    if (mode == ReassociateMode::Auto && isStatic &&
        *quadraticCount <= *linearCount) {
      remark::missed(loc, remarkNamed("reassociate"))
          << llvm::formatv(
                 "(AB)C takes {0} multiply-adds, A(BC) would take {1}",
                 *quadraticCount, *linearCount)
                 .str();
      return rewriter.notifyMatchFailure(op, "not cheaper");
    }
    if (mode == ReassociateMode::Always || isStatic) {
      remark::passed(loc, remarkNamed("reassociate")) << "(AB)C becomes A(BC)";
      rewriter.replaceOp(op, emitReassociated(rewriter, loc, *chain));
      return success();
    }
    remark::passed(loc, remarkNamed("reassociate"))
        << "(AB)C becomes A(BC) at run time, where it is cheaper";
    Value cheaper = arith::CmpIOp::create(
        rewriter, loc, arith::CmpIPredicate::sgt,
        multiplyAdds(rewriter, loc, *chain, /*reassociated=*/false),
        multiplyAdds(rewriter, loc, *chain, /*reassociated=*/true));
    auto branch = scf::IfOp::create(rewriter, loc, op->getResultTypes(),
                                    cheaper, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(rewriter, loc,
                         emitReassociated(rewriter, loc, *chain));
    rewriter.setInsertionPointToStart(branch.elseBlock());
    // The clones must not match again.
    Operation *first = rewriter.clone(*chain->first);
    IRMapping mapping;
    mapping.map(chain->first->getResult(0), first->getResult(0));
    Operation *second = rewriter.clone(*op.getOperation(), mapping);
    scf::YieldOp::create(rewriter, loc, second->getResults());
    rewriter.replaceOp(op, branch);
    return success();
  }

private:
  /// The loops of the two products of one order. (AB)C: A·B, then its use.
  /// A(BC): B·C, then its use.
  static std::pair<std::string, std::string> loops(const Chain &chain,
                                                   bool reassociated) {
    const std::string &left =
        reassociated ? chain.bSubscript : chain.aSubscript;
    const std::string &right =
        reassociated ? chain.cSubscript : chain.bSubscript;
    const std::string &outer =
        reassociated ? chain.aSubscript : chain.cSubscript;
    return {left + without(right, left),
            chain.output + without(outer, chain.output)};
  }

  static std::optional<int64_t> staticMultiplyAdds(const Chain &chain,
                                                   bool reassociated) {
    auto [inner, outer] = loops(chain, reassociated);
    int64_t total = 0;
    for (StringRef nest : {StringRef(inner), StringRef(outer)}) {
      int64_t product = 1;
      for (char letter : nest) {
        int64_t size = chain.staticSize(letter);
        if (ShapedType::isDynamic(size))
          return std::nullopt;
        product *= size;
      }
      total += product;
    }
    return total;
  }

  static Value multiplyAdds(OpBuilder &b, Location loc, const Chain &chain,
                            bool reassociated) {
    auto [inner, outer] = loops(chain, reassociated);
    auto count = [&](StringRef nest) {
      return getValueOrCreateConstantIndexOp(b, loc,
                                             multiply(b, loc, chain, nest));
    };
    return b.createOrFold<arith::AddIOp>(loc, count(inner), count(outer));
  }

  ReassociateMode mode;
};

} // namespace

void mlir::linattn::populateReassociateChainPatterns(
    RewritePatternSet &patterns, ReassociateMode mode) {
  patterns.add<ReassociateChain>(patterns.getContext(), mode);
}
