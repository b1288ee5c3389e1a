//===- ChunkProducts.cpp - The products of a chunk in tiles ---------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChunkProducts.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// Blocks of sums
//===----------------------------------------------------------------------===//

/// Each tile has a zero of its own: copies of one would go through memory.
void ChunkProducts::clear(Block &block) {
  auto type = amx::TileType::get({lines, lines}, v.type);
  block.sums.clear();
  int64_t count = block.isDiagonal ? block.height : block.height * block.width;
  for (int64_t i = 0; i < count; ++i)
    block.sums.push_back(amx::TileZeroOp::create(v.b, v.loc, type));
}

/// The pairs of summands of two matrices whose products are added, the smallest
/// first.
static SmallVector<std::pair<int64_t, int64_t>>
summandPairs(const PackedTiles &left, const PackedTiles &right) {
  SmallVector<std::pair<int64_t, int64_t>> pairs;
  for (int64_t order = std::max(left.summands, right.summands); order-- > 0;)
    for (int64_t s = order; s >= 0; --s)
      if (s < left.summands && order - s < right.summands)
        pairs.push_back({s, order - s});
  return pairs;
}

/// Adds the product of a row and a column of tiles, over the first `steps`.
/// Spelt out: sums stay in the tiles of one block. A tile is loaded once for
/// the products that follow one another.
void ChunkProducts::multiply(Block &block, const PackedTiles &left,
                             const PackedTiles &right, int64_t steps) {
  auto type = amx::TileType::get({lines, step}, v.b.getBF16Type());
  Value zero = v.index(0);
  auto loadTiles = [&](const PackedTiles &tiles, int64_t summand, Value first,
                       int64_t count, int64_t k) {
    SmallVector<Value> loaded;
    Value part = v.index(summand), at = v.index(k);
    for (int64_t i = 0; i < count; ++i)
      loaded.push_back(amx::TileLoadOp::create(
          v.b, v.loc, type, tiles.memory,
          ValueRange{part, v.add(first, v.index(i)), at, zero, zero}));
    return loaded;
  };
  for (int64_t k = 0; k < steps; ++k) {
    SmallVector<Value> a, b;
    std::pair<int64_t, int64_t> last{-1, -1};
    for (auto [s, other] : summandPairs(left, right)) {
      if (s != last.first)
        a = loadTiles(left, s, block.row, block.height, k);
      if (other != last.second)
        b = loadTiles(right, other, block.column, block.width, k);
      last = {s, other};
      for (auto [i, sum] : llvm::enumerate(block.sums))
        sum = amx::TileMulFOp::create(v.b, v.loc, sum.getType(),
                                      a[block.isDiagonal ? i : i / block.width],
                                      b[block.isDiagonal ? i : i % block.width],
                                      sum);
    }
  }
}

Value ChunkProducts::scratchOfSums() {
  return v.scratch({v.b.getIndexAttr(tilesEachWay),
                    v.b.getIndexAttr(tilesEachWay), v.b.getIndexAttr(lines),
                    v.b.getIndexAttr(lines)});
}

void ChunkProducts::store(const Block &block, Value memory) {
  for (auto [i, sum] : llvm::enumerate(block.sums))
    amx::TileStoreOp::create(v.b, v.loc, memory,
                             ValueRange{v.index(i / block.width),
                                        v.index(i % block.width), v.index(0),
                                        v.index(0)},
                             sum);
}

Value ChunkProducts::loadSums(Value memory, int64_t i, int64_t j, Value line) {
  return v.loadVector(memory, {v.index(i), v.index(j), line, v.index(0)},
                      lines);
}

/// The row or column of a line in a tile behind another one.
Value ChunkProducts::element(Value tile, int64_t i, Value line) {
  return v.add(v.mul(v.add(tile, v.index(i)), v.index(lines)), line);
}

/// The lines of a block's rows of tiles.
void ChunkProducts::forEachLine(const Block &block,
                                function_ref<void(int64_t, Value)> body) {
  v.forEach(v.index(lines), [&](Value line) {
    for (int64_t i = 0; i < block.height; ++i)
      body(i, line);
  });
}

/// Matrices without `isFinite` are left out.
Value ChunkProducts::areFinite(ArrayRef<PackedTiles> matrices) {
  Value all;
  for (const PackedTiles &matrix : matrices) {
    Value one = matrix.flag && hasBits ? v.load(matrix.flag, {v.index(0)})
                                       : matrix.isFinite;
    if (one)
      all = all ? arith::AndIOp::create(v.b, v.loc, all, one).getResult() : one;
  }
  return all;
}

void ChunkProducts::ifFinite(ArrayRef<PackedTiles> matrices,
                             function_ref<void()> tiles, Otherwise vectors) {
  Value all = areFinite(matrices);
  if (!all)
    return tiles();
  // LLVM unrolls no loop that hardly ever runs.
  auto asItIs = LLVM::LoopAnnotationAttr::get(
      v.b.getContext(), /*disableNonforced=*/v.b.getBoolAttr(true), {}, {}, {},
      {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {});
  v.ifThenElse(all, tiles, vectors).getElseRegion().walk([&](scf::ForOp loop) {
    loop->setDiscardableAttr(kLoopAnnotationAttrName, asItIs);
  });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

void ChunkProducts::packTokenPair(Value low, Value high,
                                  const PackedTiles &tiles, Value column,
                                  Value contractionStep, Value line) {
  Value unused = startProbe();
  for (auto [s, pairs] :
       llvm::enumerate(split(low, high, tiles.summands, unused)))
    storePairs(pairs, tiles, s, {column, contractionStep, line});
}

void ChunkProducts::clearSteps(const PackedTiles &tiles, Value first) {
  Value none = v.constant(VectorType::get(step, v.b.getBF16Type()), 0.0);
  v.forEach(first, v.index(sizeOf(tiles.memory, 2)), 1, [&](Value k) {
    v.forEach(v.index(lines), [&](Value line) {
      for (int64_t tile = 0; tile < sizeOf(tiles.memory, 1); ++tile)
        for (int64_t s = 0; s < tiles.summands; ++s)
          storePairs(none, tiles, s, {v.index(tile), k, line});
    });
  });
}

void ChunkProducts::multiplyInto(Value into, const PackedTiles &left,
                                 const PackedTiles &right, Value row,
                                 int64_t height, Value firstColumn,
                                 int64_t columns) {
  for (int64_t column = 0; column < columns; column += tilesEachWay) {
    int64_t width = std::min(columns - column, tilesEachWay);
    Block block{row, v.add(firstColumn, v.index(column)), height, width};
    clear(block);
    multiply(block, left, right, sizeOf(left.memory, 2));
    for (auto [n, sum] : llvm::enumerate(block.sums))
      amx::TileStoreOp::create(
          v.b, v.loc, into,
          ValueRange{element(row, n / width, v.index(0)),
                     v.index((column + n % width) * lines)},
          sum);
  }
}

void ChunkProducts::emit(ChunkScoresOp op, ArrayRef<PackedTiles> matrices,
                         const ChunkVectors::Factors &factors,
                         PackedTiles *packed, Otherwise otherwise) {
  Value output = op.getOutput(), memory = scratchOfSums();
  int64_t tiles = sizeOf(output, 2) / lines;
  int64_t steps = llvm::divideCeil(sizeOf(op.getRows(), 3), step);
  Value probe = startProbe();
  auto weighed = [&](const Block &block, int64_t i, int64_t j, Value line) {
    return v.weigh(op, loadSums(memory, i, j, line),
                   element(block.row, i, line),
                   element(block.column, j, v.index(0)), factors);
  };
  auto storeLine = [&](const Block &block, int64_t i, Value line) {
    for (int64_t j = 0; j < block.width; ++j)
      v.storeVector(weighed(block, i, j, line), output,
                    v.at(element(block.row, i, line),
                         element(block.column, j, v.index(0))));
  };
  auto packLine = [&](const Block &block, int64_t i, Value line, Value probe) {
    Value low = weighed(block, i, 0, line);
    Value high = block.width == 2 ? weighed(block, i, 1, line) : v.zeros(lines);
    for (auto [s, pairs] :
         llvm::enumerate(split(low, high, packed->summands, probe)))
      storePairs(pairs, *packed, s,
                 {v.add(block.row, v.index(i)), v.div(block.column, v.index(2)),
                  line});
    return probe;
  };
  auto emitBlock = [&](Block block) {
    clear(block);
    multiply(block, matrices[0], matrices[1], steps);
    store(block, memory);
    if (!packed)
      return forEachLine(
          block, [&](int64_t i, Value line) { storeLine(block, i, line); });
    probe = v.reduce(v.index(lines), probe, [&](Value line, Value probe) {
      for (int64_t i = 0; i < block.height; ++i)
        probe = packLine(block, i, line, probe);
      return probe;
    });
  };
  auto clearBlock = [&](const Block &block) {
    forEachLine(block, [&](int64_t i, Value line) {
      for (int64_t j = 0; j < block.width; ++j)
        v.storeVector(v.zeros(lines), output,
                      v.at(element(block.row, i, line),
                           element(block.column, j, v.index(0))));
    });
  };
  auto sizeAt = [&](int64_t tile) {
    return std::min<int64_t>(tiles - tile, tilesEachWay);
  };
  auto emitAll = [&] {
    for (int64_t row = 0; row < tiles; row += tilesEachWay)
      for (int64_t column = 0; column < tiles; column += tilesEachWay) {
        Block block{v.index(row), v.index(column), sizeAt(row), sizeAt(column)};
        if (column <= row)
          emitBlock(block);
        else if (!packed)
          clearBlock(block);
      }
    if (packed)
      storeProbe(probe, *packed);
  };
  ifFinite(matrices, emitAll, otherwise);
}

void ChunkProducts::emit(ChunkReadOp op, ArrayRef<PackedTiles> matrices,
                         const ChunkVectors::ReadRows &rows, bool fromZero,
                         Value into, ArrayRef<ChunkVectors::Stream> streams,
                         Otherwise otherwise) {
  Value output = op.getOutput();
  // A decay multiplies the product with the state alone.
  SmallVector<Value> memories(rows.decay ? 2 : 1);
  for (Value &memory : memories)
    memory = scratchOfSums();
  int64_t tokens = sizeOf(output, 2) / lines,
          columns = sizeOf(output, 3) / lines;
  int64_t steps = llvm::divideCeil(sizeOf(rows.rows, 3), step);
  int64_t blocks = llvm::divideCeil(tokens, tilesEachWay) *
                   llvm::divideCeil(columns, tilesEachWay);
  size_t writes = op.getScores().size();
  auto sumAt = [&](const Block &block, int64_t i, int64_t j, Value line) {
    Value t = element(block.row, i, line),
          d = element(block.column, j, v.index(0));
    Value sum = loadSums(memories[0], i, j, line);
    if (rows.decay) {
      Value factor = v.factorOf(rows.decay, rows.factors, t);
      sum = v.fmaVector(loadSums(memories[1], i, j, line),
                        v.splat(factor, lines), sum);
    }
    if (!fromZero)
      sum = v.addf(v.loadVector(output, v.at(t, d), lines), sum);
    return v.scaledBy(rows.scaled, sum);
  };
  auto emitBlock = [&](Block block, int64_t row) {
    int64_t rowBlocks = llvm::divideCeil(tokens, tilesEachWay);
    Value number = v.add(
        v.mul(v.div(block.column, v.index(tilesEachWay)), v.index(rowBlocks)),
        v.index(row / tilesEachWay));
    clear(block);
    multiply(block, matrices[0], matrices[1], steps);
    if (rows.decay) {
      store(block, memories[1]);
      clear(block);
    }
    // No later token than those of the block.
    int64_t seen = llvm::divideCeil((row + block.height) * lines, step);
    for (size_t w = 0; w < writes; ++w)
      multiply(block, matrices[2 + w], matrices[2 + writes + w], seen);
    store(block, memories[0]);
    forEachLine(block, [&](int64_t i, Value line) {
      SmallVector<Value> sums;
      for (int64_t j = 0; j < block.width; ++j)
        sums.push_back(sumAt(block, i, j, line));
      if (i == 0)
        v.prefetchLines(streams, element(number, 0, line), blocks * lines);
      // Two vectors are rounded together.
      Value row = sums.size() == 2 ? concat(sums[0], sums[1]) : sums[0];
      Value rounded = v.convert(row, getElementTypeOrSelf(into));
      vector::TransferWriteOp::create(
          v.b, v.loc, rounded, into,
          v.at(element(block.row, i, line),
               element(block.column, 0, v.index(0))),
          ArrayRef<bool>{sizeOf(into, 3) == sizeOf(output, 3)});
    });
  };
  ifFinite(
      matrices,
      [&] {
        // All rows at a column: its state stays in the first cache.
        v.forEachBlock(columns, tilesEachWay, [&](Value column, int64_t width) {
          for (int64_t row = 0; row < tokens; row += tilesEachWay)
            emitBlock({v.index(row), column,
                       std::min<int64_t>(tokens - row, tilesEachWay), width},
                      row);
        });
      },
      otherwise);
}

void ChunkProducts::emit(ChunkUpdateOp op, ArrayRef<PackedTiles> matrices,
                         const ChunkVectors::Factors &factors,
                         const PackedTiles *packed,
                         ArrayRef<ChunkVectors::Stream> streams,
                         Otherwise otherwise) {
  Value state = op.getOutput(), memory = scratchOfSums();
  int64_t rows = sizeOf(state, 2) / lines, columns = sizeOf(state, 3) / lines;
  int64_t steps = llvm::divideCeil(sizeOf(op.getKeys().front(), 2), step);
  int64_t rowBlocks = llvm::divideCeil(rows, tilesEachWay),
          columnBlocks = llvm::divideCeil(columns, tilesEachWay);
  size_t writes = op.getKeys().size();
  // One factor is the same for all elements.
  ChunkVectors::Memory kept;
  // Two rows, which make a line of pairs.
  auto updateTwo = [&](const Block &block, int64_t i, Value line, Value probe) {
    for (int64_t j = 0; j < block.width; ++j) {
      Value next[2], column = element(block.column, j, v.index(0));
      for (int64_t half : {0, 1}) {
        Value own = v.add(line, v.index(half));
        Value d = element(block.row, i, own);
        next[half] = v.addToState(
            state, v.at(d, column), loadSums(memory, i, j, own),
            factors.total ? v.memoryOf(op, factors, lines, d, column) : kept);
      }
      if (!packed)
        continue;
      Value tile = v.add(block.row, v.index(i));
      Value k = v.div(tile, v.index(2));
      Value m =
          v.add(v.mul(v.sub(tile, v.mul(k, v.index(2))), v.index(lines / 2)),
                v.div(line, v.index(2)));
      for (auto [s, pairs] :
           llvm::enumerate(split(next[0], next[1], packed->summands, probe)))
        storePairs(pairs, *packed, s, {v.add(block.column, v.index(j)), k, m});
    }
    return probe;
  };
  auto emitBlock = [&](Block block, Value probe) -> Value {
    Value number = v.add(
        v.mul(v.div(block.row, v.index(tilesEachWay)), v.index(columnBlocks)),
        v.div(block.column, v.index(tilesEachWay)));
    clear(block);
    for (size_t w = 0; w < writes; ++w)
      multiply(block, matrices[w], matrices[writes + w], steps);
    store(block, memory);
    return v
        .reduce(v.index(0), v.index(lines), 2, probe,
                [&](Value line, ValueRange carried) -> SmallVector<Value> {
                  Value probe = carried.front();
                  Value pair = v.add(v.mul(number, v.index(lines / 2)),
                                     v.div(line, v.index(2)));
                  v.prefetchLines(streams, pair,
                                  rowBlocks * columnBlocks * lines / 2);
                  for (int64_t i = 0; i < block.height; ++i)
                    probe = updateTwo(block, i, line, probe);
                  return {probe};
                })
        .front();
  };
  auto emitAll = [&] {
    Value probe = startProbe();
    if (!factors.total)
      kept = v.memoryOf(op, factors, lines);
    probe =
        reduceBlocks(rows, probe, [&](Value row, int64_t height, Value probe) {
          return reduceBlocks(
              columns, probe, [&](Value column, int64_t width, Value probe) {
                return emitBlock({row, column, height, width}, probe);
              });
        });
    if (packed)
      storeProbe(probe, *packed);
  };
  ifFinite(matrices, emitAll, otherwise);
}

/// Carries a value over blocks of tiles.
Value ChunkProducts::reduceBlocks(
    int64_t size, Value initial,
    function_ref<Value(Value, int64_t, Value)> body) {
  int64_t whole = size / tilesEachWay * tilesEachWay;
  if (whole)
    initial = v.reduce(v.index(0), v.index(whole), tilesEachWay, initial,
                       [&](Value i, ValueRange carried) -> SmallVector<Value> {
                         return {body(i, tilesEachWay, carried.front())};
                       })
                  .front();
  return whole < size ? body(v.index(whole), size - whole, initial) : initial;
}
