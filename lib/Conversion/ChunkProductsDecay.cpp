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
// The state before a chunk is a key before the first block, the state behind it
// a row behind the last one: rows and keys that meet them decay on from the
// same blocks.
//
//===----------------------------------------------------------------------===//

#include "ChunkProducts.h"

#include "mlir/Dialect/AMX/AMXDialect.h"

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// Rows that decay within their blocks, and in `fades` the products of gates.
static Value decayBlocks(ChunkVectors &v, Value rows, Value gates, bool toEnd,
                         bool before, Value fades) {
  Value output = v.scratch(llvm::map_to_vector(
      cast<MemRefType>(rows.getType()).getShape(),
      [&](int64_t size) -> OpFoldResult { return v.b.getIndexAttr(size); }));
  int64_t lines = ChunkProducts::lines;
  v.forEach(v.index(0), v.index(sizeOf(rows, 2)), lines, [&](Value first) {
    v.decayBlock({rows, gates, output, toEnd, before, fades}, first, lines);
  });
  return output;
}

/// [blocks, K], a number for each block and channel.
Value ChunkProducts::factorsOfBlocks(Value rows) {
  return v.scratch({v.b.getIndexAttr(sizeOf(rows, 2) / lines),
                    v.b.getIndexAttr(sizeOf(rows, 3))});
}

/// The products of the blocks before each one, or behind it.
Value ChunkProducts::productsBeside(Value fades, Value rows, bool behind) {
  Value products = factorsOfBlocks(rows);
  int64_t blocks = sizeOf(products, 0);
  v.forEach(v.index(0), v.index(sizeOf(products, 1)), lines, [&](Value d) {
    Value product = v.constant(v.vectorType(lines), 1.0);
    for (int64_t i = 0; i < blocks; ++i) {
      Value block = v.index(behind ? blocks - 1 - i : i);
      v.storeVector(product, products, {block, d});
      product = v.mulf(product, v.loadVector(fades, {block, d}, lines));
    }
  });
  return products;
}

ChunkProducts::BlockKeys ChunkProducts::decayKeys(Value keys, Value gates,
                                                  int64_t summands) {
  BlockKeys result;
  Value fades = factorsOfBlocks(keys);
  result.transposed = v.transposedKeys(
      decayBlocks(v, keys, gates, /*toEnd=*/true, /*before=*/false, fades));
  result.rest = productsBeside(fades, keys, /*behind=*/true);
  result.columns = packKeyColumns(result.transposed,
                                  sizeOf(result.transposed, 0) - 1, summands);
  return result;
}

ChunkProducts::BlockRows ChunkProducts::decayRows(Value rows, Value gates,
                                                  bool before) {
  BlockRows result;
  result.fades = factorsOfBlocks(rows);
  result.rows =
      decayBlocks(v, rows, gates, /*toEnd=*/false, before, result.fades);
  result.past = productsBeside(result.fades, rows, /*behind=*/false);
  return result;
}

//===----------------------------------------------------------------------===//
// Products with a state
//===----------------------------------------------------------------------===//

PackedTiles ChunkProducts::packKeyRows(const BlockKeys &keys,
                                       int64_t summands) {
  int64_t features = sizeOf(keys.transposed, 1);
  return pack(features, sizeOf(keys.transposed, 0) * lines, summands,
              /*pairsFeatures=*/false, /*isLeft=*/true,
              [&](const Place &place, bool isHalf) -> TwoVectors {
                Value d = element(place.tile, 0, place.line);
                auto tokens = [&](int64_t half) {
                  Value block =
                      v.add(v.mul(place.step, v.index(2)), v.index(half));
                  return v.mulf(v.loadVector(keys.transposed,
                                             {block, d, v.index(0)}, lines),
                                v.splat(v.load(keys.rest, {block, d}), lines));
                };
                return {tokens(0), isHalf ? v.zeros(lines) : tokens(1)};
              });
}

PackedTiles ChunkProducts::packRows(const BlockRows &rows, int64_t summands) {
  return packRowsTimes(rows.rows, sizeOf(rows.past, 0), rows.past, summands,
                       [](Value tile) { return tile; });
}

/// Tiles of rows, each of a block of its own or of one that `blockOf` names,
/// times the factors of that tile.
PackedTiles ChunkProducts::packRowsTimes(Value rows, int64_t tiles,
                                         Value factors, int64_t summands,
                                         function_ref<Value(Value)> blockOf) {
  return pack(
      tiles * lines, sizeOf(rows, 3), summands, /*pairsFeatures=*/true,
      /*isLeft=*/true, [&](const Place &place, bool isHalf) -> TwoVectors {
        Value t = element(blockOf(place.tile), 0, place.line);
        auto load = [&](int64_t offset) {
          Value d = v.add(v.mul(place.step, v.index(step)), v.index(offset));
          return v.mulf(v.loadVector(rows, v.at(t, d), lines),
                        v.loadVector(factors, {place.tile, d}, lines));
        };
        return {load(0), isHalf ? v.zeros(lines) : load(lines)};
      });
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

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
                                 const BlockRows &rows, const BlockKeys &keys,
                                 const ChunkVectors::Factors &factors) {
  Value output = op.getOutput();
  int64_t blocks = sizeOf(rows.rows, 2) / lines,
          steps = llvm::divideCeil(sizeOf(rows.rows, 3), step);
  v.clearScores(op);
  Value reach = factorsOfBlocks(rows.rows);
  SmallVector<PackedTiles> matrices{keys.columns};
  for (int64_t row = 1; row < blocks; ++row) {
    extendReach(reach, rows.fades, row);
    PackedTiles tiles = packRowsTimes(rows.rows, row, reach, rowSummands,
                                      [&](Value) { return v.index(row); });
    matrices.push_back(tiles);
    for (int64_t column = 0; column < row; column += tilesEachWay) {
      int64_t count = std::min(row - column, tilesEachWay);
      Block block{v.index(column), v.index(column), count, count,
                  /*isDiagonal=*/true};
      clear(block);
      multiply(block, tiles, keys.columns, steps);
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
