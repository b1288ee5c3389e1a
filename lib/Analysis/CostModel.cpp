//===- CostModel.cpp - Cost functions of the forms ------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Analysis/CostModel.h"

#include <algorithm>

using namespace linattn;

bool FormComparison::prefersReassociated(int64_t queries, int64_t keys) const {
  // In double: sizes up to 2^31 would overflow the product.
  double panels = double((queries + panel - 1) / panel) * double(panel);
  return double(quadratic) * panels * (double(keys) + double(keyOffset)) >
         double(linear) * (double(queries) + double(keys)) + double(fixed);
}

FormComparison linattn::compareKernels(int64_t keySize, int64_t valueSize,
                                       int64_t panel) {
  // Relative costs of a multiply-add, times 100. Both kernels run at a similar
  // share of the FMA peak; packing adds a constant number of keys, loading and
  // storing the state a constant per element.
  constexpr int64_t quadraticWeight = 90, linearWeight = 81, stateWeight = 2320;
  constexpr int64_t packedKeys = 10;
  int64_t product = keySize * valueSize;
  return {quadraticWeight * (keySize + valueSize), packedKeys,
          linearWeight * product, stateWeight * product, panel};
}

StateTileShape linattn::chooseStateTile(VectorTarget target,
                                        int64_t elementBits, int64_t keySize,
                                        int64_t valueSize) {
  int64_t lanes = target.vectorBits / elementBits;
  // Half of the registers hold the tile; the rest hold v, o and broadcasts. Two
  // vectors per row use each broadcast of k and q twice.
  int64_t cols = 2 * lanes;
  int64_t rows = target.registers / 4;
  if (valueSize > 0 && valueSize <= lanes) {
    // One vector per row is enough: twice the rows for the same registers.
    cols = lanes;
    rows *= 2;
  }
  // q, k, v and o of a block should stay in L1 while the state streams from L2.
  // Cores with wide vectors have 48 KiB of L1, others 32. More tokens per block
  // mean fewer passes over the state.
  int64_t bytes = target.vectorBits >= 512 ? 32 << 10 : 16 << 10;
  int64_t perToken =
      (2 * std::max<int64_t>(keySize, 1) + 2 * cols) * elementBits / 8;
  int64_t block = 64;
  while (block > 16 && block * perToken > bytes)
    block /= 2;
  return {rows, cols, std::max(block, rows)};
}
