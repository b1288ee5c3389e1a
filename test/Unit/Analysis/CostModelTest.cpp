//===- CostModelTest.cpp - Choices between forms and tiles ----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Analysis/CostModel.h"
#include "linattn/Reference/CostFunctions.h"
#include "gtest/gtest.h"

using namespace linattn;

namespace {

/// The smallest N at which Q(KᵀV) is chosen for N queries and N keys.
int64_t getCrossover(const FormComparison &cost) {
  for (int64_t n = 0; n < 1 << 16; ++n)
    if (cost.prefersReassociated(n, n))
      return n;
  return -1;
}

const int64_t headSizes[] = {1, 3, 8, 16, 32, 60, 64, 100, 128, 256};

TEST(CostModel, TinyIsQuadraticAndLargeIsReassociated) {
  for (int64_t panel : {1, 4, 8, 16, 32})
    for (int64_t k : headSizes)
      for (int64_t v : headSizes) {
        SCOPED_TRACE(testing::Message()
                     << "K " << k << ", V " << v << ", panel " << panel);
        FormComparison cost = compareKernels(k, v, panel);
        EXPECT_FALSE(cost.prefersReassociated(0, 0));
        // A panel costs the same for one query as for all of its.
        if (panel == 1 || k * v >= 64 * 64)
          EXPECT_FALSE(cost.prefersReassociated(1, 1));
        EXPECT_TRUE(cost.prefersReassociated(4096, 4096));
        EXPECT_TRUE(
            cost.prefersReassociated(int64_t(1) << 40, int64_t(1) << 40));
      }
}

TEST(CostModel, ChoiceIsMonotone) {
  for (int64_t size : headSizes) {
    SCOPED_TRACE(size);
    FormComparison cost = compareKernels(size, size, 32);
    // One switch along the keys, and along whole panels of queries.
    for (int64_t queries : {32, 64, 256, 1024}) {
      bool before = false;
      for (int64_t keys = 1; keys < 4096; ++keys) {
        bool now = cost.prefersReassociated(queries, keys);
        EXPECT_TRUE(now || !before)
            << queries << " queries, " << keys << " keys";
        before = now;
      }
    }
    bool before = false;
    for (int64_t n = 32; n < 8192; n += 32) {
      bool now = cost.prefersReassociated(n, n);
      EXPECT_TRUE(now || !before) << n;
      before = now;
    }
  }
}

TEST(CostModel, CrossoverGrowsWithTheHead) {
  int64_t before = 0;
  for (int64_t size : headSizes) {
    int64_t crossover = getCrossover(compareKernels(size, size, 1));
    EXPECT_GE(crossover, before) << size;
    before = crossover;
    // Kernels are no counts of multiply-adds, but of the same order.
    if (size >= 32) {
      double counted = reference::crossoverTokens(double(size), double(size));
      EXPECT_GT(double(crossover), counted / 2) << size;
      EXPECT_LT(double(crossover), counted * 2) << size;
    }
  }
}

TEST(CostModel, LongSequencesDoNotOverflow) {
  FormComparison cost = compareKernels(256, 256, 32);
  int64_t most = (int64_t(1) << 62) - 1;
  EXPECT_TRUE(cost.prefersReassociated(most, most));
}

TEST(CostModel, StateTilesFitTheRegisters) {
  VectorTarget targets[] = {{512, 32}, {256, 16}, {128, 32}, {128, 16}};
  for (VectorTarget target : targets)
    for (int64_t elementBits : {32, 64})
      for (int64_t valueSize : {-1, 1, 3, 8, 16, 64, 100, 256}) {
        SCOPED_TRACE(testing::Message()
                     << target.vectorBits << " bits, " << target.registers
                     << " registers, elements of " << elementBits << ", V "
                     << valueSize);
        int64_t lanes = target.vectorBits / elementBits;
        StateTileShape tile =
            chooseStateTile(target, elementBits, 64, valueSize);
        EXPECT_GE(tile.rows, 1);
        EXPECT_EQ(tile.rows & (tile.rows - 1), 0) << "a power of two";
        EXPECT_LE(tile.rows, 32);
        ASSERT_EQ(tile.cols % lanes, 0) << "whole vectors";
        EXPECT_EQ(tile.block % tile.rows, 0);
        // The tile, a row of v and one of o, a broadcast.
        int64_t perRow = tile.cols / lanes;
        EXPECT_LE(tile.rows * perRow + 2 * perRow + 1, target.registers);
        EXPECT_GE(tile.rows * perRow, target.registers / 2);
        if (valueSize > 0 && valueSize <= lanes)
          EXPECT_EQ(tile.cols, lanes) << "no vector of padding";
      }
}

} // namespace
