//===- ChunkProducts.cpp - The products of a chunk in tiles ---------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChunkProducts.h"

#include "mlir/Dialect/AMX/AMXDialect.h"

using namespace mlir;
using namespace mlir::linattn;

/// Rows of a tile, and elements of a vector that is a row of sums.
static constexpr int64_t lines = 16;
/// Indices that one product contracts.
static constexpr int64_t step = 2 * lines;

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

/// The summands of two vectors, interleaved. Each summand is what those before
/// it left over, rounded. `probe` becomes NaN where a first one is not finite.
SmallVector<Value> ChunkProducts::split(Value low, Value high, int64_t summands,
                                        Value &probe) {
  SmallVector<Value> parts;
  auto narrow = [&](Value x) { return v.convert(x, v.b.getBF16Type()); };
  for (int64_t s = 0; s < summands; ++s) {
    Value pairs =
        vector::InterleaveOp::create(v.b, v.loc, narrow(low), narrow(high));
    parts.push_back(pairs);
    bool isLast = s + 1 == summands;
    if (s > 0 && isLast)
      break;
    // Halves of pairs, which cost less than the rounded vectors.
    auto halves = vector::DeinterleaveOp::create(v.b, v.loc, pairs);
    Value first = v.convert(halves.getRes1(), v.type),
          second = v.convert(halves.getRes2(), v.type);
    if (s == 0)
      for (Value rounded : {first, second})
        probe = v.fmaVector(rounded, v.zeros(lines), probe);
    if (isLast)
      break;
    low = v.subf(low, first);
    high = v.subf(high, second);
  }
  return parts;
}

/// `vectorAt` gives 16 numbers of a contracted index or, of a left operand, of
/// a line from a contracted index on.
PackedTiles ChunkProducts::pack(
    int64_t size, int64_t contracted, int64_t summands,
    function_ref<Value(Value line, Value block, Value index)> vectorAt,
    bool isLeft) {
  int64_t blocks = size / lines, steps = llvm::divideCeil(contracted, step);
  auto sizeAttr = [&](int64_t n) { return v.b.getIndexAttr(n); };
  PackedTiles tiles{
      v.scratch({sizeAttr(summands), sizeAttr(blocks), sizeAttr(steps),
                 sizeAttr(lines), sizeAttr(step)},
                v.b.getBF16Type()),
      summands,
      {}};
  auto packLine = [&](Value block, Value k, bool isHalf, Value line,
                      Value probe) {
    Value first = v.mul(k, v.index(step)),
          second = v.add(first, v.index(lines));
    if (!isLeft) {
      first = v.add(first, line);
      second = v.add(second, line);
    }
    Value low = vectorAt(line, block, first),
          high = isHalf ? v.zeros(lines) : vectorAt(line, block, second);
    for (auto [s, pairs] : llvm::enumerate(split(low, high, summands, probe)))
      v.storeVector(pairs, tiles.memory,
                    {v.index(s), block, k, line, v.index(0)});
    return probe;
  };
  // The last contracted indices may be half a step.
  auto packTile = [&](Value block, Value k, bool isHalf, Value probe) {
    return v
        .reduce(v.index(0), v.index(lines), 1, probe,
                [&](Value line, ValueRange carried) -> SmallVector<Value> {
                  return {packLine(block, k, isHalf, line, carried.front())};
                })
        .front();
  };
  int64_t whole = contracted / step;
  Value probe =
      v.reduce(v.index(blocks), v.zeros(lines), [&](Value block, Value probe) {
        if (whole)
          probe = v.reduce(v.index(whole), probe, [&](Value k, Value probe) {
            return packTile(block, k, /*isHalf=*/false, probe);
          });
        if (whole < steps)
          probe = packTile(block, v.index(whole), /*isHalf=*/true, probe);
        return probe;
      });
  tiles.isFinite =
      arith::CmpFOp::create(v.b, v.loc, arith::CmpFPredicate::OEQ,
                            v.reduceVector(vector::CombiningKind::ADD, probe),
                            v.constant(v.type, 0.0));
  return tiles;
}

PackedTiles ChunkProducts::packRows(Value rows, int64_t summands) {
  return pack(
      sizeOf(rows, 2), sizeOf(rows, 3), summands,
      [&](Value line, Value block, Value d) {
        Value t = v.add(v.mul(block, v.index(lines)), line);
        return v.loadVector(rows, v.at(t, d), lines);
      },
      /*isLeft=*/true);
}

PackedTiles ChunkProducts::packScores(Value scores, bool strict,
                                      int64_t summands) {
  return pack(
      sizeOf(scores, 2), sizeOf(scores, 3), summands,
      [&](Value line, Value block, Value j) {
        Value t = v.add(v.mul(block, v.index(lines)), line);
        Value seen = v.firstLanes(v.sub(strict ? t : v.add(t, v.index(1)), j));
        return v.select(seen, v.loadVector(scores, v.at(t, j), lines),
                        v.zeros(lines));
      },
      /*isLeft=*/true);
}

PackedTiles ChunkProducts::packColumns(Value rows, int64_t summands) {
  return pack(
      sizeOf(rows, 3), sizeOf(rows, 2), summands,
      [&](Value, Value block, Value t) {
        return v.loadVector(rows, v.at(t, v.mul(block, v.index(lines))), lines);
      },
      /*isLeft=*/false);
}

PackedTiles ChunkProducts::packKeyRows(Value keys, Value keysT,
                                       int64_t summands) {
  return pack(
      sizeOf(keys, 3), sizeOf(keys, 2), summands,
      [&](Value line, Value block, Value t) {
        Value d = v.add(v.mul(block, v.index(lines)), line);
        return v.loadVector(keysT, {v.div(t, v.index(lines)), d, v.index(0)},
                            lines);
      },
      /*isLeft=*/true);
}

PackedTiles ChunkProducts::packKeyColumns(Value keys, Value keysT,
                                          int64_t summands) {
  return pack(
      sizeOf(keys, 2), sizeOf(keys, 3), summands,
      [&](Value, Value block, Value d) {
        return v.loadVector(keysT, {block, d, v.index(0)}, lines);
      },
      /*isLeft=*/false);
}

//===----------------------------------------------------------------------===//
// Blocks of sums
//===----------------------------------------------------------------------===//

/// Each tile has a zero of its own: copies of one would go through memory.
void ChunkProducts::clear(Block &block) {
  auto type = amx::TileType::get({lines, lines}, v.type);
  block.sums.clear();
  for (int64_t i = 0; i < block.height * block.width; ++i)
    block.sums.push_back(amx::TileZeroOp::create(v.b, v.loc, type));
}

/// Adds the product of a row and a column of tiles, over the first `steps`, the
/// smallest summands first. Spelt out: sums stay in the tiles of one block.
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
  for (int64_t order = std::max(left.summands, right.summands); order-- > 0;)
    for (int64_t s = 0; s <= order; ++s) {
      int64_t other = order - s;
      if (s >= left.summands || other >= right.summands)
        continue;
      for (int64_t k = 0; k < steps; ++k) {
        auto a = loadTiles(left, s, block.row, block.height, k);
        auto b = loadTiles(right, other, block.column, block.width, k);
        for (auto [i, sum] : llvm::enumerate(block.sums))
          sum = amx::TileMulFOp::create(v.b, v.loc, sum.getType(),
                                        a[i / block.width], b[i % block.width],
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

/// The rows of stored sums, 16 columns at a time.
void ChunkProducts::forEachLine(
    const Block &block, ArrayRef<Value> memories,
    function_ref<void(Value row, Value column, ArrayRef<Value> sums)> body) {
  auto element = [&](Value tile, int64_t i) {
    return v.mul(v.add(tile, v.index(i)), v.index(lines));
  };
  v.forEach(v.index(lines), [&](Value line) {
    for (int64_t i = 0; i < block.height; ++i)
      for (int64_t j = 0; j < block.width; ++j) {
        SmallVector<Value> sums;
        for (Value memory : memories)
          sums.push_back(v.loadVector(
              memory, {v.index(i), v.index(j), line, v.index(0)}, lines));
        body(v.add(element(block.row, i), line), element(block.column, j),
             sums);
      }
  });
}

void ChunkProducts::ifFinite(ArrayRef<PackedTiles> matrices,
                             function_ref<void()> tiles,
                             function_ref<void()> vectors) {
  Value all = matrices.front().isFinite;
  for (const PackedTiles &matrix : matrices.drop_front())
    all = arith::AndIOp::create(v.b, v.loc, all, matrix.isFinite);
  auto branch = scf::IfOp::create(v.b, v.loc, all, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(v.b);
  v.b.setInsertionPointToStart(branch.thenBlock());
  tiles();
  v.b.setInsertionPointToStart(branch.elseBlock());
  vectors();
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

void ChunkProducts::emit(ChunkScoresOp op, ArrayRef<PackedTiles> matrices,
                         Value keysT, const ChunkVectors::Factors &factors) {
  Value output = op.getOutput(), memory = scratchOfSums();
  int64_t tiles = sizeOf(output, 2) / lines;
  int64_t steps = llvm::divideCeil(sizeOf(op.getRows(), 3), step);
  auto emitBlock = [&](Block block) {
    clear(block);
    multiply(block, matrices[0], matrices[1], steps);
    store(block, memory);
    forEachLine(block, memory, [&](Value t, Value j, ArrayRef<Value> sums) {
      v.storeVector(v.weigh(op, sums.front(), t, j, factors), output,
                    v.at(t, j));
    });
  };
  auto clearBlock = [&](const Block &block) {
    forEachLine(block, {}, [&](Value t, Value j, ArrayRef<Value>) {
      v.storeVector(v.zeros(lines), output, v.at(t, j));
    });
  };
  auto sizeAt = [&](int64_t tile) {
    return std::min<int64_t>(tiles - tile, tilesEachWay);
  };
  ifFinite(
      matrices,
      [&] {
        for (int64_t row = 0; row < tiles; row += tilesEachWay)
          for (int64_t column = 0; column < tiles; column += tilesEachWay) {
            Block block{v.index(row), v.index(column), sizeAt(row),
                        sizeAt(column)};
            if (column <= row)
              emitBlock(block);
            else
              clearBlock(block);
          }
      },
      [&] { v.compact().emit(op, keysT, factors); });
}

void ChunkProducts::emit(ChunkReadOp op, ArrayRef<PackedTiles> matrices,
                         const ChunkVectors::ReadRows &rows, bool fromZero,
                         Value into, ArrayRef<ChunkVectors::Stream> streams) {
  Value output = op.getOutput();
  // A decay multiplies the product with the state alone.
  SmallVector<Value> memories(rows.decay ? 2 : 1);
  for (Value &memory : memories)
    memory = scratchOfSums();
  int64_t tokens = sizeOf(output, 2) / lines,
          columns = sizeOf(output, 3) / lines;
  int64_t steps = llvm::divideCeil(sizeOf(rows.rows, 3), step);
  size_t writes = op.getScores().size();
  auto emitBlock = [&](Block block, int64_t row) {
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
    forEachLine(block, memories, [&](Value t, Value d, ArrayRef<Value> sums) {
      v.prefetch(streams, {t, d, 1, lines}, t);
      Value sum = sums[0];
      if (rows.decay) {
        Value factor = v.factorOf(rows.decay, rows.factors, t);
        sum = v.fmaVector(sums[1], v.splat(factor, lines), sum);
      }
      if (!fromZero)
        sum = v.addf(v.loadVector(output, v.at(t, d), lines), sum);
      v.writeOperand(sum, into, v.at(t, d));
    });
  };
  ifFinite(
      matrices,
      [&] {
        for (int64_t row = 0; row < tokens; row += tilesEachWay)
          v.forEachBlock(
              columns, tilesEachWay, [&](Value column, int64_t width) {
                emitBlock({v.index(row), column,
                           std::min<int64_t>(tokens - row, tilesEachWay),
                           width},
                          row);
              });
      },
      [&] { v.compact().emit(op, rows, fromZero, into, /*streams=*/{}); });
}

void ChunkProducts::emit(ChunkUpdateOp op, ArrayRef<PackedTiles> matrices,
                         const ChunkVectors::Factors &factors,
                         ArrayRef<ChunkVectors::Stream> streams) {
  Value state = op.getOutput(), memory = scratchOfSums();
  int64_t rows = sizeOf(state, 2) / lines, columns = sizeOf(state, 3) / lines;
  int64_t steps = llvm::divideCeil(sizeOf(op.getKeys().front(), 2), step);
  size_t writes = op.getKeys().size();
  auto emitBlock = [&](Block block) {
    auto element = [&](Value tile) { return v.mul(tile, v.index(lines)); };
    v.prefetchShare(streams,
                    {element(block.row), element(block.column),
                     block.height * lines, block.width * lines},
                    sizeOf(state, 2));
    clear(block);
    for (size_t w = 0; w < writes; ++w)
      multiply(block, matrices[w], matrices[writes + w], steps);
    store(block, memory);
    ChunkVectors::Memory kept = v.memoryOf(op, factors, lines);
    forEachLine(block, memory, [&](Value d, Value e, ArrayRef<Value> sums) {
      if (factors.total)
        kept = v.memoryOf(op, factors, lines, d, e);
      v.addToState(state, v.at(d, e), sums.front(), kept);
    });
  };
  ifFinite(
      matrices,
      [&] {
        v.forEachBlock(rows, tilesEachWay, [&](Value row, int64_t height) {
          v.forEachBlock(columns, tilesEachWay,
                         [&](Value column, int64_t width) {
                           emitBlock({row, column, height, width});
                         });
        });
      },
      [&] { v.compact().emit(op, factors, /*streams=*/{}); });
}
