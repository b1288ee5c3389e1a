//===- SelectSummands.cpp - How many bf16 numbers stand for an f32 --------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/FeatureMaps.h"
#include "linattn/Dialect/LinAttnChunk.h"
#include "linattn/Dialect/Remarks.h"
#include "linattn/Transforms/Forms.h"
#include "linattn/Transforms/Passes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNSELECTSUMMANDSPASS
#include "linattn/Transforms/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// The tokens that a matrix was packed from.
struct Origin {
  Type type; ///< Null of what a chunk has computed.
  /// Whether the numbers are those of the tokens, up to the exponent.
  bool isExact = true;
};

} // namespace

static bool isPowerOfTwo(double x) {
  int exponent;
  return std::abs(std::frexp(x, &exponent)) == 0.5;
}

static bool keepsNumbers(ChunkPackOp pack) {
  double scale = pack.getScale() ? pack.getScale()->convertToDouble() : 1.0;
  return !pack.getShift() && !pack.getGate() && !pack.getFill() &&
         !pack.getScaleValue() && isPowerOfTwo(scale);
}

static Origin originOf(Value matrix) {
  Origin origin;
  while (Operation *op = matrix.getDefiningOp()) {
    if (auto pack = dyn_cast<ChunkPackOp>(op)) {
      origin.isExact &= keepsNumbers(pack);
      matrix = pack.getInput();
    } else if (auto map = dyn_cast<FeatureMapOp>(op)) {
      auto mapped = cast<FeatureMappedOpInterface>(op);
      origin.isExact &= keepsElements(mapped.getFeatureMapKind());
      matrix = map.getInput();
    } else if (auto insert = dyn_cast<tensor::InsertSliceOp>(op)) {
      // Wider rows, filled up with zeros.
      matrix = isZeroFill(insert.getSource()) ? insert.getDest()
                                              : insert.getSource();
      continue;
    } else {
      break;
    }
    origin.type = getElementTypeOrSelf(matrix);
  }
  return origin;
}

/// Why a matrix does not divide into tiles, as a sentence; empty if it does.
static StringRef whyNoTiles(Value matrix) {
  auto type = cast<ShapedType>(matrix.getType());
  if (!type.getElementType().isF32())
    return "it is not in f32";
  if (!type.hasStaticShape())
    return "it has sizes that are not known";
  if (type.getDimSize(0) != 1 || type.getDimSize(1) != 1)
    return "it has several heads";
  if (type.getDimSize(2) % kTileRows || type.getDimSize(3) % kTileRows)
    return "its tokens or features are not whole tiles of 16";
  return {};
}

namespace {

struct LinAttnSelectSummandsPass final
    : mlir::linattn::impl::LinAttnSelectSummandsPassBase<
          LinAttnSelectSummandsPass> {
  using LinAttnSelectSummandsPassBase::LinAttnSelectSummandsPassBase;

  void runOnOperation() override {
    getOperation()->walk([&](Operation *op) {
      TypeSwitch<Operation *>(op)
          .Case<ChunkScoresOp, ChunkReadOp, ChunkUpdateOp>(
              [&](auto product) { select(product); })
          .Case([&](QuadraticOp quadratic) { select(quadratic); });
    });
  }

private:
  /// Queries, keys and values are exact.
  void select(QuadraticOp op) {
    // The unit of the default takes bf16 tokens; ops on others get no remark.
    if (whereMeasured && !getElementTypeOrSelf(op.getQuery()).isBF16())
      return;
    StringRef why = whyNoMatrixUnit(op);
    if (why.empty() && whereMeasured)
      why = "they were not measured in a matrix unit";
    if (!why.empty()) {
      remark::missed(op.getLoc(), remarkNamed("select-summands"))
          << ("stays products of vectors: " + why).str();
      return;
    }
    op.setSummands(ArrayRef<int64_t>{1, 1, fastProducts ? 1 : 2, 1});
    ++numProducts;
  }

  template <typename Op>
  void select(Op op) {
    if (std::is_same_v<Op, ChunkReadOp> && op.decaysTerms()) {
      remark::missed(op.getLoc(), remarkNamed("select-summands"))
          << "stays a product of vectors: its columns decay";
      return;
    }
    // The column of a normaliser is a sum of vectors.
    if (cast<ShapedType>(op.getOutput().getType()).getDimSize(3) == 1)
      return;
    SmallVector<Value> matrices = op.getMatrices();
    for (Value matrix : matrices)
      if (StringRef why = whyNoTiles(matrix); !why.empty()) {
        remark::missed(op.getLoc(), remarkNamed("select-summands"))
            << ("stays a product of vectors: " + why).str();
        return;
      }
    bool isWide = hasWideTokens(op);
    if (isWide && !fastProducts) {
      remark::missed(op.getLoc(), remarkNamed("select-summands"))
          << "stays a product of vectors: tokens of its chunk have more than "
             "16 bits";
      return;
    }
    int64_t others = fastProducts && !isWide ? 1 : 2;
    op.setSummands(llvm::map_to_vector(matrices, [&](Value matrix) -> int64_t {
      Origin origin = originOf(matrix);
      // Elements that decay in the product are others than those of the tokens.
      bool isExact = origin.type && origin.type.isBF16() && origin.isExact &&
                     !op.decaysTerms();
      return isExact ? 1 : others;
    }));
    ++numProducts;
  }

  /// Whether a product of the same chunk takes tokens of more than 16 bits. One
  /// matrix rounded to 16 bits would lose their accuracy.
  static bool hasWideTokens(Operation *op) {
    auto isWide = [](Value matrix) {
      Origin origin = originOf(matrix);
      return origin.type && origin.type.getIntOrFloatBitWidth() > 16;
    };
    return llvm::any_of(*op->getBlock(), [&](Operation &other) {
      return TypeSwitch<Operation *, bool>(&other)
          .Case<ChunkScoresOp, ChunkReadOp, ChunkUpdateOp>([&](auto product) {
            return llvm::any_of(product.getMatrices(), isWide);
          })
          .Default(false);
    });
  }
};

} // namespace
