//===- RecurrenceBuilder.h - Base of small recurrences ----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_RECURRENCEBUILDER_H
#define LINATTN_CONVERSION_RECURRENCEBUILDER_H

#include "VectorBuilder.h"

#include "linattn/Dialect/LinAttnSweep.h"

namespace mlir::linattn {

/// Emits a recurrence over tokens, in the type of its state, `width` channels
/// at a time: 1 for scalars.
class RecurrenceBuilder : public VectorBuilder {
public:
  RecurrenceBuilder(OpBuilder &b, RecurrenceOpInterface op, int64_t width)
      : RecurrenceBuilder(b, op, getElementTypeOrSelf(op.getFirstState().get()),
                          width) {}
  /// For a state that is stored in another type than it is computed in.
  RecurrenceBuilder(OpBuilder &b, RecurrenceOpInterface op, Type type,
                    int64_t width)
      : VectorBuilder(b, op->getLoc(), type), op(op), width(width) {}

  Type valueType() { return width == 1 ? type : Type(vectorType(width)); }
  Value number(double value) { return constant(valueType(), value); }
  /// A scalar of the state's type on all channels.
  Value broadcast(Value scalar) {
    return width == 1 ? scalar : splat(scalar, width);
  }
  Value loadAs(Value memref, ValueRange indices) {
    return convert(load(memref, indices), type);
  }

  /// `width` channels of an operand from `indices` on, in the state's type.
  Value read(Value memref, ValueRange indices) {
    return width == 1 ? loadAs(memref, indices)
                      : readOperand(memref, indices, width);
  }
  void write(Value value, Value memref, ValueRange indices) {
    if (width > 1)
      return writeOperand(value, memref, indices);
    store(convert(value, cast<MemRefType>(memref.getType()).getElementType()),
          memref, indices);
  }

  Value fma(Value x, Value y, Value z) {
    return math::FmaOp::create(b, loc, x, y, z);
  }
  Value divf(Value x, Value y) { return arith::DivFOp::create(b, loc, x, y); }
  Value compare(arith::CmpFPredicate predicate, Value x, Value y) {
    return arith::CmpFOp::create(b, loc, predicate, x, y);
  }
  /// log(1 + e^x), for x of any size.
  Value softplus(Value x);
  /// `rest` is the rounding residual of the phase, if known.
  std::pair<Value, Value> polar(Value log, Value phase, Value rest = Value());
  /// e^(step·(log + i·phase)).
  std::pair<Value, Value> polarStep(Value step, Value log, Value phase);
  /// x·y + z for complex numbers, whose parts are null together.
  std::pair<Value, Value> complexFma(std::pair<Value, Value> x,
                                     std::pair<Value, Value> y,
                                     std::pair<Value, Value> z);

  /// Sets the tokens of the sequence whose state is number `slot`.
  void enterSequence(Value slot);
  /// The token behind a position in [begin, end).
  Value tokenAt(Value position) {
    if (!op.isReversed())
      return position;
    return sub(sub(add(begin, end), index(1)), position);
  }
  /// Runs over the tokens of the sequence with carried values.
  SmallVector<Value>
  forEachToken(ValueRange initial,
               function_ref<SmallVector<Value>(Value, ValueRange)> body) {
    return reduce(begin, end, 1, initial,
                  [&](Value position, ValueRange carried) {
                    return body(tokenAt(position), carried);
                  });
  }

  RecurrenceOpInterface op;
  int64_t width;
  /// The current sequence.
  Value slot, batch, begin, end;
};

// The lowerings, each at the builder's insertion point, for ops on buffers.
// `width` is a number of channels or columns, 1 for scalar loops; with `lanes`
// threads of a GPU share a task of those.
void lowerRecurrence(OpBuilder &b, DiagonalScanOp op, int64_t width);
void lowerRecurrence(OpBuilder &b, Wkv4Op op, int64_t width);
void lowerRecurrence(OpBuilder &b, SelectiveScanOp op, int64_t width,
                     bool lanes = false);
void lowerRecurrence(OpBuilder &b, LogLinearOp op, int64_t width,
                     bool lanes = false);
void lowerRecurrence(OpBuilder &b, SweepSelectiveOp op, int64_t width);

/// One token of RWKV-4: the output, and the next sum, weight and maximum.
SmallVector<Value, 4> emitQuotientStep(RecurrenceBuilder &r, ValueRange state,
                                       Value key, Value value, Value decay,
                                       Value bonus);

/// Adds the patterns that turn recurrences on tensors into loops over tokens of
/// linalg ops.
void populateRecurrencesToLinalgPatterns(::mlir::RewritePatternSet &patterns);

/// Adds the patterns that lower recurrences to vectors of `vectorBits`, or for
/// 0 to scalar loops, with `lanes` for the threads of a GPU.
void populateRecurrencePatterns(::mlir::RewritePatternSet &patterns,
                                int64_t vectorBits, bool lanes = false);

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_RECURRENCEBUILDER_H
