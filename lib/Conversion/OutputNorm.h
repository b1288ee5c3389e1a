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

/// The vector form of one row, at the builder's insertion point: in loops over
/// all rows, or in the kernel that computes them.
class NormRow : public VectorBuilder {
public:
  NormRow(OpBuilder &b, OutputNormOp op, int64_t lanes)
      : VectorBuilder(b, op.getLoc(),
                      getAccumulationType(getElementTypeOrSelf(op.getInput()))),
        norm(op), lanes(lanes) {}

  /// Memory of the task; `freeScratch` releases it.
  void allocate();
  /// One row, which is read from the input or, if there is a `source`, from
  /// there: memory of the accumulation type, in whole vectors.
  void emit(ArrayRef<Value> position, Value source = {},
            ArrayRef<Value> sourcePosition = {});

  OutputNormOp norm;

private:
  /// The row before the norm.
  Value input(Value d);
  /// What becomes of a vector of the normalized row.
  void finish(Value y, Value d);
  Value load(Value memref, Value d) {
    return readOperand(memref, {batch, head, t, d}, lanes);
  }
  Value gate(Value d);
  Value affine(Value weights, Value d);
  /// The sum of `term(d)` over the features, in as many partial sums as keep
  /// the additions busy.
  Value total(function_ref<Value(Value)> term);
  /// Of what lies past the last feature, zeros.
  Value inside(Value x, Value d);

  int64_t lanes, sums = 1;
  Value size, count, row;
  Value batch, head, t;
  // The row where it is not in the input.
  Value source;
  SmallVector<Value> sourceIndex;
};

/// The norm that the kernel of a scan applies, as linattn-fuse-epilogue
/// decided; null without one.
OutputNormOp findEpilogue(ScanOp scan);

/// Emits the op on buffers as scalar loops.
void lowerToNaiveLoops(OpBuilder &b, OutputNormOp op);

/// Emits it as loops over vectors of `lanes` elements of the accumulation type:
/// each row is read from memory once.
void lowerOutputNormToVector(OpBuilder &b, OutputNormOp op, int64_t lanes);

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_OUTPUTNORM_H
