//===- Summands.cpp - Matrices in the registers of a warp -----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Summands.h"

using namespace mlir;
using namespace mlir::linattn;

Type mlir::linattn::summandTypeOf(Type type) {
  Builder b(type.getContext());
  return type.isF16() ? Type(b.getF16Type()) : Type(b.getBF16Type());
}

SmallVector<Value, allSummands> mlir::linattn::splitPair(KernelBuilder &k,
                                                         Type type, Value x,
                                                         Value y,
                                                         int64_t count) {
  SmallVector<Value, allSummands> summands;
  for (int64_t s = 0; s < count; ++s) {
    summands.push_back(k.pack(type, x, y));
    if (s + 1 == count)
      break;
    auto [near, next] = k.unpack(type, summands.back());
    x = k.subf(x, near);
    y = k.subf(y, next);
  }
  return summands;
}

Summands mlir::linattn::split(KernelBuilder &k, Type type, ValueRange matrix,
                              int64_t count) {
  Summands summands(count);
  for (int64_t i = 0; i < 8; i += 2)
    for (auto [s, pair] :
         llvm::enumerate(splitPair(k, type, matrix[i], matrix[i + 1], count)))
      summands[s].push_back(pair);
  return summands;
}

Matrix mlir::linattn::join(KernelBuilder &k, Type type,
                           const Summands &summands) {
  Matrix matrix(8);
  for (const auto &fragment : llvm::reverse(summands))
    for (int64_t i = 0; i < 4; ++i) {
      auto [x, y] = k.unpack(type, fragment[i]);
      Value &sum = matrix[2 * i], &next = matrix[2 * i + 1];
      sum = sum ? k.addf(sum, x) : x;
      next = next ? k.addf(next, y) : y;
    }
  return matrix;
}

void mlir::linattn::accumulate(KernelBuilder &k, Type type,
                               MutableArrayRef<Value> c, const Summands &a,
                               const Summands &b, int64_t terms,
                               int64_t halves) {
  for (int64_t order = terms - 1; order >= 0; --order)
    for (int64_t i = 0; i <= order; ++i) {
      int64_t j = order - i;
      if (i >= int64_t(a.size()) || j >= int64_t(b.size()))
        continue;
      for (int64_t half = 0; half < halves; ++half) {
        auto part = c.slice(4 * half, 4);
        auto sum = k.multiply(type, a[i], {b[j][half], b[j][half + 2]},
                              ValueRange(ArrayRef<Value>(part)));
        llvm::copy(sum, part.begin());
      }
    }
}

Matrix mlir::linattn::product(KernelBuilder &k, Type type, const Summands &a,
                              const Summands &b, int64_t terms) {
  Matrix c(8, k.f32(0));
  accumulate(k, type, c, a, b, terms, /*halves=*/2);
  return c;
}

void mlir::linattn::addProduct(KernelBuilder &k, Type type,
                               MutableArrayRef<Value> c, const Summands &a,
                               const Summands &b, int64_t terms,
                               int64_t halves) {
  Matrix sum(4 * halves, k.f32(0));
  accumulate(k, type, sum, a, b, terms, halves);
  for (auto [x, y] : llvm::zip(c, sum))
    x = k.addf(x, y);
}
