//===- ChunkLinalg.h - Linalg ops of the ops of a chunk ---------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Subscripts: b batch, h head, i row, j key, s a token between them, k and v
// features. A selection leaves out what a causal mask hides; a product with 0
// would not: a later token's NaN stays behind it.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_DIALECT_CHUNKLINALG_H
#define LINATTN_LIB_DIALECT_CHUNKLINALG_H

#include "linattn/Dialect/Einsum.h"
#include "linattn/Dialect/FeatureMaps.h"
#include "linattn/Dialect/LinAttnChunk.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::linattn::chunk {

using Scalars = function_ref<Value(ImplicitLocOpBuilder &, ValueRange)>;

/// Emits linalg ops on tensors for one op of a chunk.
class ChunkLinalg {
public:
  ChunkLinalg(OpBuilder &b, Operation *op, Value output)
      : b(b), loc(op->getLoc()), output(output),
        type(getElementTypeOrSelf(output)) {}

  OpFoldResult size(Value value, int64_t dim) {
    return tensor::getMixedSize(b, loc, value, dim);
  }
  Value dim(Value value, int64_t dim) {
    return getValueOrCreateConstantIndexOp(b, loc, size(value, dim));
  }
  SmallVector<OpFoldResult> sizes(Value value) {
    return tensor::getMixedSizes(b, loc, value);
  }
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value empty(ArrayRef<OpFoldResult> sizes) {
    return tensor::EmptyOp::create(b, loc, sizes, type);
  }
  Value full(ArrayRef<OpFoldResult> sizes, double value) {
    return filled(b, loc, sizes, type, value);
  }
  /// The destination itself, filled with zeros.
  Value cleared(Value destination) {
    Value zero = emitFloat(b, loc, type, 0.0);
    return linalg::FillOp::create(b, loc, zero, destination).getResult(0);
  }
  Value map(StringRef subscripts, ValueRange inputs, Value init, Scalars body) {
    return elementwise(b, loc, subscripts, inputs, init,
                       [&](OpBuilder &nested, Location at, ValueRange args) {
                         ImplicitLocOpBuilder scalars(at, nested);
                         return body(scalars, args);
                       });
  }

  /// x itself, or a copy with the output's heads where x may have fewer heads
  /// and their number is dynamic. The copy may be reversed along the tokens.
  Value rowsOf(Value x, bool reverse = false);
  /// Σ_{s ∈ span} g_s, where `inSpan` says whether token s belongs to a row, or
  /// to a row and a key. `letters` are the dimensions of the result without
  /// features.
  Value spans(Value decay, StringRef letters, int64_t tokenDims,
              function_ref<Value(ImplicitLocOpBuilder &, Value s)> inSpan);

  OpBuilder &b;
  Location loc;
  Value output;
  Type type;
};

inline Value exp(ImplicitLocOpBuilder &b, Value x) {
  return math::ExpOp::create(b, x);
}
inline Value mul(ImplicitLocOpBuilder &b, Value x, Value y) {
  return arith::MulFOp::create(b, x, y);
}
inline Value add(ImplicitLocOpBuilder &b, Value x, Value y) {
  return arith::AddFOp::create(b, x, y);
}
inline Value less(ImplicitLocOpBuilder &b, Value x, Value y,
                  bool orEqual = false) {
  return arith::CmpIOp::create(
      b, orEqual ? arith::CmpIPredicate::sle : arith::CmpIPredicate::slt, x, y);
}
inline Value both(ImplicitLocOpBuilder &b, Value x, Value y) {
  return arith::AndIOp::create(b, x, y);
}
inline Value loopIndex(ImplicitLocOpBuilder &b, int64_t loop) {
  return linalg::IndexOp::create(b, loop);
}
/// tokens − 1 − t.
inline Value mirrored(ImplicitLocOpBuilder &b, Value t, Value tokens) {
  Value last =
      arith::SubIOp::create(b, tokens, arith::ConstantIndexOp::create(b, 1));
  return arith::SubIOp::create(b, last, t);
}
/// The letters of numbers, "bhi", or of rows, "bhik".
inline std::string withFeatures(StringRef letters, Value x,
                                char feature = 'k') {
  return letters.str() + (rankOf(x) == 4 ? std::string(1, feature) : "");
}

} // namespace mlir::linattn::chunk

#endif // LINATTN_LIB_DIALECT_CHUNKLINALG_H
