//===- OutputNorm.h - Loops of linattn.output_norm --------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_OUTPUTNORM_H
#define LINATTN_CONVERSION_OUTPUTNORM_H

#include "VectorBuilder.h"
#include "linattn/Dialect/LinAttn.h"

namespace mlir::linattn {

/// The vector form of rows, one at a time, at the builder's insertion point: in
/// loops over all rows, or in the kernel that computes them.
class NormRow : public VectorBuilder {
public:
  /// Allocates memory of the task, which `freeScratch` releases. An epilogue
  /// reads its rows from a `source`.
  NormRow(OpBuilder &b, OutputNormOp op, int64_t lanes,
          bool isEpilogue = false);

  /// A row: that of a token and head, or where it lies in a `source`, memory of
  /// the accumulation type in whole vectors.
  struct Place {
    Value batch, head, t;
    Value source;
    SmallVector<Value> sourceIndex;
  };
  void emit(const Place &place);

private:
  using Vectors = SmallVector<Value, 2>;
  /// Features of a step: those of all parts.
  int64_t span() const { return lanes * parts; }
  /// Features [d, d + span) of an operand, past the last one 0.
  Vectors read(Value memref, ValueRange at);
  Vectors load(const Place &place, Value memref, Value d) {
    return read(memref, {place.batch, place.head, place.t, d});
  }
  /// Of weights.
  Vectors affine(const Place &place, Value weights, Value d);
  Vectors gate(const Place &place, Value d);
  /// `apply` on each part of the operands.
  Vectors each(ArrayRef<Vectors> operands,
               function_ref<Value(ArrayRef<Value>)> apply);
  Vectors product(const Vectors &x, const Vectors &y) {
    return each({x, y}, [&](ArrayRef<Value> x) { return mulf(x[0], x[1]); });
  }
  Vectors sum(const Vectors &x, const Vectors &y) {
    return each({x, y}, [&](ArrayRef<Value> x) { return addf(x[0], x[1]); });
  }
  Vectors kept(Value d);
  void keep(const Vectors &x, Value d);
  /// Of what lies past the last feature, zeros.
  Vectors inside(const Vectors &x, Value d);
  /// The row before the norm.
  Vectors input(const Place &place, Value d);
  /// Applies weights and gate to features of the normalized row, and stores
  /// them.
  void finish(const Place &place, Vectors y, Value d);
  /// The sum of `term(d)` over the features, in as many partial sums as keep
  /// the additions busy.
  Value total(function_ref<Vectors(Value)> term);

  /// The number of partial sums.
  int64_t countSteps();

  OutputNormOp norm;
  const Type element;
  const int64_t lanes, parts, steps;
  /// Features, also as a float, and memory of a row in the order of `read`.
  const Value size, count, row;
};

/// The norm that the kernel of a scan applies, as linattn-fuse-epilogue
/// decided; null without one.
OutputNormOp findEpilogue(ScanOp scan);

/// Emits the op on buffers as scalar loops.
void lowerToNaiveLoops(OpBuilder &b, OutputNormOp op, bool lanes);

/// Emits it as loops over vectors of `lanes` elements of the accumulation type:
/// each row is read from memory once.
void lowerOutputNormToVector(OpBuilder &b, OutputNormOp op, int64_t lanes);

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_OUTPUTNORM_H
