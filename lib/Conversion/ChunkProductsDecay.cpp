//===- ChunkProductsDecay.cpp - Scores that decay per channel, in tiles ---===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Between a key and a row of a later block of 16 tokens lie three factors, each
// at most 1: to the end of the key's block, through the blocks in between, and
// from the start of the row's block. Keys get the first one, rows the other
// two, so that each pair of blocks is a product of matrices. Keys are packed
// once, a block of rows once for each block before it. Vectors score what lies
// within a block, and if a number is not finite, all pairs once more.
//
//===----------------------------------------------------------------------===//

#include "ChunkProducts.h"

#include "mlir/Dialect/AMX/AMXDialect.h"

using namespace mlir;
using namespace mlir::linattn;

/// Memory for rows of so many tokens.
static Value rowsOf(ChunkVectors &v, int64_t tokens, int64_t features) {
  return v.scratch({v.b.getIndexAttr(1), v.b.getIndexAttr(1),
                    v.b.getIndexAttr(tokens), v.b.getIndexAttr(features)});
}

PackedTiles ChunkProducts::packDecayedKeys(Value keys, Value gates,
                                           int64_t summands) {
  int64_t tokens = sizeOf(keys, 2) - lines;
  Value decayed = rowsOf(v, tokens, sizeOf(keys, 3));
  v.forEach(v.index(0), v.index(tokens), lines, [&](Value first) {
    v.decayBlock({keys, gates, decayed, /*toEnd=*/true}, first, lines);
  });
  return packKeyColumns(decayed, v.transposedKeys(decayed), summands);
}

/// The factors from the end of each block before `row` to the start of that
/// one, [blocks, K], made of those to the start of the block before.
void ChunkProducts::extendReach(Value reach, Value fades, int64_t row) {
  v.forEach(v.index(0), v.index(sizeOf(reach, 1)), lines, [&](Value d) {
    Value between = v.loadVector(fades, {v.index(row - 1), d}, lines);
    for (int64_t block = 0; block < row - 1; ++block) {
      SmallVector<Value> place{v.index(block), d};
      v.storeVector(v.mulf(v.loadVector(reach, place, lines), between), reach,
                    place);
    }
    v.storeVector(v.constant(v.vectorType(lines), 1.0), reach,
                  {v.index(row - 1), d});
  });
}

void ChunkProducts::emitDecaying(ChunkScoresOp op, int64_t rowSummands,
                                 const PackedTiles &keys,
                                 const ChunkVectors::Factors &factors) {
  Value output = op.getOutput();
  int64_t blocks = sizeOf(op.getRows(), 2) / lines,
          features = sizeOf(op.getRows(), 3);
  v.clearScores(op);
  Value decayed = rowsOf(v, blocks * lines, features);
  SmallVector<OpFoldResult> factorsOfBlocks{v.b.getIndexAttr(blocks),
                                            v.b.getIndexAttr(features)};
  Value fades = v.scratch(factorsOfBlocks), reach = v.scratch(factorsOfBlocks);
  ChunkVectors::BlockDecay decay{op.getRows(),    factors.gates,  decayed,
                                 /*toEnd=*/false, op.getBefore(), fades};
  v.forEach(v.index(0), v.index(blocks * lines), lines,
            [&](Value first) { v.decayBlock(decay, first, lines); });
  SmallVector<PackedTiles> matrices{keys};
  for (int64_t row = 1; row < blocks; ++row) {
    extendReach(reach, fades, row);
    PackedTiles tiles = pack(
        row * lines, features, rowSummands, /*pairsFeatures=*/true,
        /*isLeft=*/true, [&](const Place &place, bool isHalf) -> TwoVectors {
          Value t = element(v.index(row), 0, place.line);
          auto load = [&](int64_t offset) {
            Value d = v.add(v.mul(place.step, v.index(step)), v.index(offset));
            return v.mulf(v.loadVector(decayed, v.at(t, d), lines),
                          v.loadVector(reach, {place.tile, d}, lines));
          };
          return {load(0), isHalf ? v.zeros(lines) : load(lines)};
        });
    matrices.push_back(tiles);
    for (int64_t column = 0; column < row; column += tilesEachWay) {
      int64_t count = std::min(row - column, tilesEachWay);
      Block block{v.index(column), v.index(column), count, count,
                  /*isDiagonal=*/true};
      clear(block);
      multiply(block, tiles, keys, llvm::divideCeil(features, step));
      for (auto [i, sum] : llvm::enumerate(block.sums))
        amx::TileStoreOp::create(
            v.b, v.loc, output,
            v.at(v.index(row * lines), v.index((column + i) * lines)), sum);
    }
  }
  Value blockTokens = v.index(lines);
  if (Value all = areFinite(matrices))
    blockTokens = v.select(all, blockTokens, v.index(blocks * lines));
  v.scoreBlocks(op, factors, blockTokens);
}
