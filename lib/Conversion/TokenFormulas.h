//===- TokenFormulas.h - Feature maps of whole tokens -----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_CONVERSION_TOKENFORMULAS_H
#define LINATTN_LIB_CONVERSION_TOKENFORMULAS_H

#include "LoopBuilder.h"

#include "linattn/Dialect/LinAttn.h"
#include <functional>

namespace mlir::linattn {

/// The elements of a token while its features are computed: one per step, or
/// the lanes of a register; in memory, or computed where they are read. Sizes
/// and indices are those of `feature_map`: d elements, m rows of a matrix.
class TokenRows {
public:
  /// Numbers as a function of their index.
  using Element = std::function<Value(Value)>;
  /// Numbers side by side.
  struct Row {
    Element lanes;  ///< Those from an index on, as many as a step takes.
    Element scalar; ///< One, in all lanes.
  };

  virtual ~TokenRows() = default;

  virtual Value getBatch() = 0;
  virtual Value getTime() = 0;
  /// The token times the map's scale, [d].
  virtual Row getToken() = 0;
  /// W x, where W is the parameter at `position`, [m].
  virtual Row getProduct(size_t position) = 0;
  /// The parameter at `position`, a vector.
  virtual Element getParameter(size_t position) = 0;
  /// relu([x, −x]) rolled to the right by `shift`, [2d].
  virtual Element getRolled(Value shift) = 0;
  /// A scalar in all lanes.
  virtual Value toLanes(Value scalar) = 0;
  /// The sum over [0, size), a scalar.
  virtual Value sumOf(Value size, Element f) = 0;
  /// The largest number over [0, size), at least `start`, a scalar.
  virtual Value largestOf(Value size, double start, Element f) = 0;
  /// f over [0, d) for several readers; the token may be overwritten.
  virtual Row keep(Element f) = 0;
  /// Writes f over [0, size), one row of features from each of `firsts` on.
  /// `firsts` rise.
  virtual void put(ArrayRef<Value> firsts, Value size,
                   function_ref<SmallVector<Value>(Value)> f) = 0;
};

/// Whether the parameter at `position` has a leading dimension of heads.
bool hasHeads(FeatureMapOp op, size_t position);

/// Emits the features of one token by the formulas of `#linattn.feature_map`.
/// The map reads whole tokens (`needsWholeToken`).
void emitTokenFeatures(LoopBuilder &builder, FeatureMapOp op, TokenRows &rows);

} // namespace mlir::linattn

#endif // LINATTN_LIB_CONVERSION_TOKENFORMULAS_H
