//===- TokenRows.h - A token's rows in vectors ------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GRADIENT_TOKENROWS_H
#define LINATTN_LIB_GRADIENT_TOKENROWS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <map>

namespace mlir::linattn {

/// Batch, heads and tokens: the outer loops of row-wise ops.
constexpr unsigned kNumOuter = 3;

/// Whether TokenRows can emit `op`, whose outer loops are parallel and whose
/// maps are projected permutations; else the reason why not.
bool isTokenRow(linalg::LinalgOp op, std::string &whyNot);

/// Emits row-wise ops for one token. A row of features is one vector, a number
/// of the token a scalar; what an op computes another one uses without memory
/// in between. A sum over a row is one `vector.reduction`, whose order depends
/// on the number of features alone.
class TokenRows {
public:
  /// `position` holds the token's indices in whole tensors.
  TokenRows(OpBuilder &b, Location loc, ArrayRef<Value> position)
      : b(b), loc(loc), position(position) {}

  /// From now on rows of `tensor` are read from `tile`, at `position`.
  void readFrom(Value tensor, Value tile, ArrayRef<Value> position) {
    tiles[tensor] = {tile, SmallVector<Value>(position)};
  }

  void emit(linalg::LinalgOp op);

  /// `tile` with the row of `result`, of an emitted op, at `position`.
  Value write(OpResult result, Value tile, ArrayRef<Value> position);

private:
  /// The row of `tensor` that an op needs: a vector if the map has features,
  /// else a scalar.
  Value read(Value tensor, AffineMap map);
  /// `loops` holds the outer loop of each dimension; kNumOuter means features.
  Value load(Value tensor, ArrayRef<unsigned> loops);
  /// The value that a generic op's body yields for these of its arguments,
  /// without the last operation of a sum.
  Value emitBody(linalg::GenericOp op, ArrayRef<Value> arguments);
  Value toVector(Value value, int64_t size);

  OpBuilder &b;
  Location loc;
  SmallVector<Value> position;
  struct Tile {
    Value value;
    SmallVector<Value> position;
  };
  DenseMap<Value, Tile> tiles;
  /// Results of ops; a row of equal numbers may be a scalar.
  DenseMap<Value, Value> rows;
  /// Loaded rows, by tensor and its loops.
  std::map<std::pair<const void *, std::vector<unsigned>>, Value> inputs;
};

} // namespace mlir::linattn

#endif // LINATTN_LIB_GRADIENT_TOKENROWS_H
