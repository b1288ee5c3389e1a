//===- DecomposeSteps.h - The equations of decompositions -------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_DIALECT_DECOMPOSESTEPS_H
#define LINATTN_DIALECT_DECOMPOSESTEPS_H

#include "linattn/Dialect/Einsum.h"
#include "linattn/Dialect/FeatureMaps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::linattn {

/// Emits the steps of one op's decomposition.
class DecomposeSteps {
public:
  /// The keys that a query sees: up to its own position, unmasked, in the
  /// prefix and in the pattern, where these are present.
  struct Sight {
    bool causal = false;
    Value mask = {}, prefix = {};
    PatternAttr pattern = {};
  };

  DecomposeSteps(OpBuilder &b, FeatureMappedOpInterface op, Type tokenType)
      : b(b), loc(op->getLoc()), op(op), tokenType(tokenType),
        accumulation(getAccumulationType(op)) {}

  OpFoldResult dim(Value value, int64_t index) {
    return tensor::getMixedSize(b, loc, value, index);
  }
  Value zeros(ArrayRef<OpFoldResult> sizes) {
    return filled(b, loc, sizes, accumulation, 0.0);
  }
  Value contract(StringRef subscripts, Value lhs, Value rhs, Value init) {
    return einsum(b, loc, subscripts, lhs, rhs, init);
  }
  /// The products lhs_i · rhs_j of rows of one head size, [B, H, I, J].
  Value dotRows(Value lhs, Value rhs, OpFoldResult heads) {
    return contract("bhik,bhjk->bhij", lhs, rhs,
                    zeros({dim(lhs, 0), heads, dim(lhs, 2), dim(rhs, 2)}));
  }
  Value emptyLike(Value value) {
    return tensor::EmptyOp::create(b, loc, tensor::getMixedSizes(b, loc, value),
                                   accumulation);
  }

  /// scale · φ(x), in the accumulation type. `maxOver` names the elements that
  /// share the maximum of a stabilised map: those of one token ("bht") or of
  /// one head ("bh").
  Value features(Value x, bool stabilised, StringRef maxOver, Scale scale);

  Value maximum(Value x, StringRef over);

  /// Sets rows of masked tokens to zero, in the accumulation type: keys get
  /// weight zero, and 0 · NaN of a value would not be 0.
  Value maskRows(Value rows, Value mask);

  /// Tk − Tq of scores [B, H, Tq, Tk]: the position of query 0.
  Value firstPosition(Value scores);

  /// Softcap and ALiBi's bias of scores [B, H, Tq, Tk].
  Value adjustScores(QuadraticOp quadratic, Value scores);

  /// Replaces scores by `otherwise` where query i does not see key j: j > i +
  /// Tk − Tq and not in the prefix, outside the pattern, or masked.
  Value maskScores(Value scores, const Sight &sight, double otherwise);

  /// Computes rows [B, H, T] from other rows and a sink for each head, which is
  /// the last argument of `body`.
  Value withSinks(Value sinks, ArrayRef<Value> rows,
                  function_ref<Value(OpBuilder &, Location, ValueRange)> body);

  /// −Σ_j |p − j| x_ij of [B, H, I, J], with query i at position p.
  Value sumDistances(Value x);

  /// Row sums of [B, H, I, J].
  Value rowSums(Value rows);

  /// S_1 = S_0 + KᵀV and, with a normalizer, z_1 = z_0 + Σ K.
  SmallVector<Value> write(Value k, Value v, Value state, Value normalizer);

  /// Divides under `normalize` and writes the result to the destination in the
  /// token type.
  Value finish(Value numerator, Value denominator, Value destination,
               function_ref<Value(OpBuilder &, Location, Value, Value)> divide);

  Value finishNormalized(Value numerator, Value denominator, Value destination,
                         std::optional<NormalizeAttr> normalize);

  OpBuilder &b;
  Location loc;
  FeatureMappedOpInterface op;
  Type tokenType;
  Type accumulation;
};

} // namespace mlir::linattn

#endif // LINATTN_DIALECT_DECOMPOSESTEPS_H
