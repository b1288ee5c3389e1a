//===- CostModel.cpp - What a form costs ----------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Analysis/CostModel.h"

#include <algorithm>

using namespace linattn;

FormComparison linattn::compareProducts(int64_t keySize, int64_t valueSize) {
  return {keySize + valueSize, keySize * valueSize, 0};
}

FormComparison linattn::compareKernels(int64_t keySize, int64_t valueSize) {
  return {keySize + valueSize, keySize * valueSize, 0};
}

StateTileShape linattn::chooseStateTile(VectorTarget target,
                                        int64_t elementBits, int64_t keySize,
                                        int64_t valueSize) {
  int64_t lanes = target.vectorBits / elementBits;
  // Half of the registers hold the tile; the rest are v, o and broadcasts. Two
  // vectors per row reuse each broadcast of k and q twice.
  int64_t cols = 2 * lanes;
  int64_t rows = target.registers / 4;
  if (valueSize > 0 && valueSize <= lanes) {
    // One vector per row is enough: twice the rows for the same registers.
    cols = lanes;
    rows *= 2;
  }
  // q, k and v of a block should stay in L1 while the state streams from L2:
  // wide-vector cores have 48 KiB of it, others 32.
  int64_t block = target.vectorBits >= 512 ? 64 : 16;
  return {rows, cols, std::max(block, rows)};
}
