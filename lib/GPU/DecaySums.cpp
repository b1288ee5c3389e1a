//===- DecaySums.cpp - Sums of decays over the tokens of a block ----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ColumnKernel.h"

using namespace mlir;
using namespace mlir::linattn;

DecaySums::DecaySums(KernelBuilder &k, ValueRange decays, bool exclusive)
    : upTo(decays), after(decays.size(), k.f32(0)), total(decays) {
  if (exclusive)
    before = after;
}

DecaySums::DecaySums(ValueRange sums, const DecaySums &like) {
  for (auto [mine, others] : {std::pair(&upTo, &like.upTo),
                              {&before, &like.before},
                              {&after, &like.after},
                              {&total, &like.total}}) {
    llvm::append_range(*mine, sums.take_front(others->size()));
    sums = sums.drop_front(others->size());
  }
}

SmallVector<Value> DecaySums::flatten() const {
  SmallVector<Value> all;
  for (const Matrix *sums : {&upTo, &before, &after, &total})
    llvm::append_range(all, *sums);
  return all;
}

void DecaySums::grow(KernelBuilder &k, Value rows, Value second) {
  // Four lanes hold a row.
  growAcross(k, k.shl(rows, 2), second);
}

void DecaySums::growAcross(KernelBuilder &k, Value distance, Value second) {
  Value zero = k.f32(0);
  for (size_t i = 0; i < total.size(); ++i) {
    Value other = k.shuffleXor(total[i], distance);
    Value earlier = k.select(second, other, zero);
    upTo[i] = k.addf(earlier, upTo[i]);
    if (!before.empty())
      before[i] = k.addf(earlier, before[i]);
    after[i] = k.addf(after[i], k.select(second, zero, other));
    total[i] = k.addf(total[i], other);
  }
}

void DecaySums::growWithin(KernelBuilder &k, size_t bit) {
  Matrix halves = total;
  for (size_t i = 0; i < total.size(); ++i) {
    Value other = halves[i ^ bit];
    if (i & bit) {
      upTo[i] = k.addf(other, upTo[i]);
      if (!before.empty())
        before[i] = k.addf(other, before[i]);
    } else {
      after[i] = k.addf(after[i], other);
    }
    total[i] = k.addf(halves[i], other);
  }
}

void DecaySums::growInLoop(
    KernelBuilder &k, int64_t levels, MutableArrayRef<Value> carried,
    function_ref<void(Value, DecaySums &, MutableArrayRef<Value>)> body) {
  Matrix all = flatten();
  size_t count = all.size();
  llvm::append_range(all, carried);
  all = k.loop(k.i32(levels), all, [&](Value level, ValueRange values) {
    DecaySums grown(values.take_front(count), *this);
    Matrix rest(values.drop_front(count));
    body(level, grown, rest);
    Matrix next = grown.flatten();
    next.append(rest);
    return next;
  });
  *this = DecaySums(ValueRange(all).take_front(count), *this);
  llvm::copy(ValueRange(all).drop_front(count), carried.begin());
}
