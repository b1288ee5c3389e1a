//===- QuadraticBuilder.h - Base of quadratic schedules ---------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_QUADRATICBUILDER_H
#define LINATTN_CONVERSION_QUADRATICBUILDER_H

#include "TileBuilder.h"
#include "VisibleKeys.h"

#include <limits>

namespace mlir::linattn {

/// One quadratic op at one output head: which keys a query sees, the shift of a
/// stabilised map, and the division that ends every row.
class QuadraticBuilder : public TileBuilder {
public:
  QuadraticBuilder(OpBuilder &b, QuadraticOp op, TileShape shape)
      : TileBuilder(b, cast<FeatureMappedOpInterface>(op.getOperation()),
                    getElementTypeOrSelf(op.getQuery()), shape),
        op(op), softmax(op.getWeights() == Weights::Softmax),
        scale(Scale::of(op)), visible(*this, op) {}

protected:
  /// Stands for −∞ as a row maximum: differences with it stay finite.
  static constexpr double lowestMaximum = -1e30;
  static constexpr double minusInfinity =
      -std::numeric_limits<double>::infinity();

  /// Sets the heads from the number of an output head within the batch.
  void locate(Value batchHead) {
    Value heads = dim(op.getOutput(), 1);
    batch = div(batchHead, heads);
    head = rem(batchHead, heads);
    queryHead = headOf(op.getQuery(), head, heads);
    keyHead = headOf(op.getKey(), head, heads);
    valueHead = headOf(op.getValue(), head, heads);
    auto perHead = [&](Value numbers) {
      return numbers ? convert(load(numbers, {head}), type) : Value();
    };
    slope = perHead(op.getSlopes());
    sink = perHead(op.getSinks());
  }
  Value batchHeads() {
    return mul(dim(op.getOutput(), 0), dim(op.getOutput(), 1));
  }

  /// One past the last key query i sees.
  Value visibleEnd(Value query) { return visible.end(batch, query); }

  /// Runs `body` for the keys that queries from the first one to the last see:
  /// the global ones before the others, if there are some between.
  void forEachRange(Value begin, Value end,
                    function_ref<void(Value, Value)> body) {
    if (visible.reach() && visible.globals())
      body(index(0), min(index(visible.globals()), begin));
    body(begin, end);
  }

  /// The row maximum and the sum of weights before the first key: with a sink
  /// that is one of the scores, its own.
  std::pair<Value, Value> emptyRow() {
    Value lowest = constant(type, lowestMaximum);
    if (!sink)
      return {lowest, constant(type, 0.0)};
    Value first = maxf(sink, lowest);
    return {first, exp(subf(sink, first))};
  }

  /// i1: may the key be attended at all? Null without a mask.
  Value isKept(Value token) {
    return op.getMask() ? load(op.getMask(), {batch, token}) : Value();
  }

  /// The largest entry of the keys before `end` that may be attended, where φ
  /// is shifted by it; else null.
  Value headMaximum(Value end) {
    if (!needsRunningMax(TileBuilder::op.getFeatureMapKind(), stabilised()))
      return {};
    return reduce(end, constant(type, minusInfinity), [&](Value j, Value best) {
      Value candidate = rowMaximum(op.getKey(), {batch, keyHead, j});
      if (Value kept = isKept(j))
        candidate = select(kept, candidate, best);
      return maxf(best, candidate);
    });
  }

  Row queryRow(Value query) {
    Row row;
    row.source = op.getQuery();
    row.index = {batch, queryHead, query};
    row.scale = scale;
    if (needsRowMax(TileBuilder::op.getFeatureMapKind(), stabilised()))
      row.shift = rowMaximum(op.getQuery(), row.index);
    return row;
  }
  Row keyRow(Value token) {
    Row row;
    row.source = op.getKey();
    row.index = {batch, keyHead, token};
    row.shift = keyShift;
    if (!keyShift && needsRowMax(TileBuilder::op.getFeatureMapKind(), false))
      row.shift = rowMaximum(op.getKey(), row.index);
    row.keep = isKept(token);
    return row;
  }

  /// The factor of a finished row; null if there is none. A row without a key
  /// to attend to gives 0.
  Value inverseOf(Value denominator) {
    if (softmax)
      return emitInverseDenominator(b, loc,
                                    NormalizeAttr::get(b.getContext(),
                                                       b.getF64FloatAttr(0.0),
                                                       {}, {}, {}),
                                    tokenType, denominator);
    if (!op.getNormalize())
      return {};
    return emitInverseDenominator(b, loc, *op.getNormalize(), tokenType,
                                  denominator);
  }
  void writeRow(Value o, Value inverse, Value query, Value column) {
    if (inverse)
      o = mulf(o, splat(inverse, shape.cols));
    if (op.getNormalize())
      o = emitClamp(b, loc, *op.getNormalize(), o);
    writeOperand(o, op.getOutput(), {batch, head, query, column});
  }

  bool stabilised() { return op.getNormalize().has_value(); }
  /// The score of a key that a query does not see.
  double hiddenScore() { return softmax ? minusInfinity : 0.0; }

  QuadraticOp op;
  bool softmax;
  Scale scale;
  VisibleKeys visible;
  Value batch, head, queryHead, keyHead, valueHead, keyShift, slope, sink;
};

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_QUADRATICBUILDER_H
