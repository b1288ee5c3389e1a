//===- VisibleKeys.h - The keys that a query sees ---------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A query sees the keys [begin, end) and, where the pattern has global tokens,
// [0, globals). A dilation leaves some of them out. Where spans are given, keys
// count from the first one of the query's span.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_VISIBLEKEYS_H
#define LINATTN_CONVERSION_VISIBLEKEYS_H

#include "LoopBuilder.h"
#include "linattn/Dialect/Scores.h"

namespace mlir::linattn {

class VisibleKeys {
public:
  VisibleKeys(LoopBuilder &loops, QuadraticOp op, Value spans = {})
      : loops(loops), op(op), pattern(op.getPattern().value_or(PatternAttr())),
        spans(spans) {}

  /// Keys [first, end), in [0, Tk], and where the query stands among them.
  struct Span {
    Value first, end, position;
  };
  /// The keys that a query sees: its span, or those from 0 that `position` and
  /// `end` bound.
  Span span(Value batch, Value query) {
    if (!spans)
      return {loops.index(0), end(batch, query), position(query)};
    auto number = [&](int64_t which) -> Value {
      return arith::IndexCastOp::create(
          loops.b, loops.loc, loops.b.getIndexType(),
          loops.load(spans, {batch, query, loops.index(which)}));
    };
    Value at = number(2);
    Value first = loops.max(loops.min(number(0), keyCount()), loops.index(0));
    Value last = loops.min(number(1), keyCount());
    if (op.getCausal())
      last = loops.min(last, loops.add(first, loops.add(at, loops.index(1))));
    return {first, loops.max(last, first), at};
  }

  /// i + Tk − Tq: where a query stands among the keys.
  Value position(Value query) {
    return loops.add(query, loops.sub(keyCount(), loops.dim(op.getQuery(), 2)));
  }

  /// The number of keys that every query of a batch element sees.
  Value prefix(Value batch) {
    return arith::IndexCastOp::create(loops.b, loops.loc,
                                      loops.b.getIndexType(),
                                      loops.load(op.getPrefix(), {batch}));
  }

  /// One past the last key that a query sees, in [0, Tk].
  Value end(Value batch, Value query) {
    Value at = position(query), last = keyCount();
    if (op.getCausal()) {
      last = loops.add(at, loops.index(1));
      if (op.getPrefix())
        last = loops.max(last, prefix(batch));
    } else if (reach()) {
      Value near = loops.add(at, loops.index(reach()));
      last = isGlobal(at, keyCount(), near);
    }
    return loops.max(loops.min(last, keyCount()), loops.index(0));
  }

  /// The first key that a query sees; with global tokens the first one behind
  /// them, or 0 if there is none between. It never falls from query to query.
  Value begin(Value query) {
    Value zero = loops.index(0);
    if (!reach())
      return zero;
    Value at = position(query);
    Value first = loops.max(loops.sub(at, loops.index(reach() - 1)), zero);
    if (!globals())
      return first;
    Value joins =
        loops.compare(arith::CmpIPredicate::sle, first, loops.index(globals()));
    return isGlobal(at, zero, loops.select(joins, zero, first));
  }

  /// i1: is the key one of the pattern's, by position? True, as a null value,
  /// without a pattern.
  Value sees(Value at, Value key) {
    return pattern ? emitSees(loops.b, loops.loc, pattern, at, key) : Value();
  }

  int64_t reach() const { return pattern ? pattern.getReach() : 0; }
  int64_t globals() const {
    return pattern && isLimited() ? pattern.getGlobals() : 0;
  }
  /// True if a query does not see all keys from its first to its last.
  bool isDilated() const { return pattern && pattern.getDilation() > 1; }
  /// True if some key may be out of sight.
  bool isLimited() const { return reach() || isDilated(); }

private:
  Value keyCount() { return loops.dim(op.getKey(), 2); }
  /// `then` where the query at this position is a global token.
  Value isGlobal(Value at, Value then, Value otherwise) {
    if (!globals())
      return otherwise;
    return loops.select(
        loops.compare(arith::CmpIPredicate::slt, at, loops.index(globals())),
        then, otherwise);
  }

  LoopBuilder &loops;
  QuadraticOp op;
  PatternAttr pattern;
  /// [B, Tq, 3], or null.
  Value spans;
};

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_VISIBLEKEYS_H
