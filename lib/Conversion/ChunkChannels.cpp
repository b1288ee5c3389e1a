//===- ChunkChannels.cpp - Decays per channel in a chunk ------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A decay per channel weighs each term of a score, and each value under a
// score, so that they are not a product of matrices. Quotients of factors from
// the start of the chunk would make them one, but are 0/0 behind a closed gate.
// This file divides the rows into tiles. Earlier keys decay in two steps, each
// by at most 1: to the start of the tile, in memory, tile after tile, and from
// there to each row. Products with earlier keys are then products of matrices.
// Only pairs of rows within a tile have factors of their own, in registers.
//
// In tiles of AMX the same happens once more: scores within a block of 16
// tokens are those above, scores of a later block are products in tiles.
//
//===----------------------------------------------------------------------===//

#include "ChunkVectors.h"

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

ChunkVectors::Factors ChunkVectors::channelFactorsOf(Value decay) {
  int64_t tokens = sizeOf(decay, 2), channels = sizeOf(decay, 3);
  OpFoldResult width = b.getIndexAttr(channels);
  Factors factors;
  factors.gates = scratch({b.getIndexAttr(tokens), width});
  factors.total = scratch({width});
  factors.residual = scratch({width});
  forEach(index(0), index(channels), lanes, [&](Value d) {
    Value sum = reduce(index(tokens), zeros(lanes), [&](Value t, Value sum) {
      Value log = loadVector(decay, at(t, d), lanes);
      storeVector(exp(log), factors.gates, {t, d});
      return addf(sum, log);
    });
    Value factor = exp(sum);
    storeVector(factor, factors.total, {d});
    storeVector(residualOf(sum, factor), factors.residual, {d});
  });
  return factors;
}

void ChunkVectors::decayBlock(const BlockDecay &decay, Value first,
                              int64_t tokens) {
  Value last = add(first, index(tokens - 1));
  bool readsFirst = decay.toEnd || decay.before;
  // Products of gates wait for each other, those of several vectors do not.
  forEachBlock(sizeOf(decay.output, 3), 4 * lanes, [&](Value d, int64_t width) {
    int64_t count = width / lanes;
    auto channel = [&](int64_t i) { return add(d, index(i * lanes)); };
    Rows fades = reduce(
        index(0), index(tokens), 1,
        Rows(count, constant(vectorType(lanes), 1.0)),
        [&](Value step, ValueRange carried) -> SmallVector<Value> {
          Value t = decay.toEnd ? sub(last, step) : add(first, step);
          Rows next(carried);
          for (auto [i, f] : llvm::enumerate(next)) {
            Value past = f;
            f = mulf(f, loadVector(decay.gates, {t, channel(i)}, lanes));
            storeVector(mulf(loadVector(decay.rows, at(t, channel(i)), lanes),
                             readsFirst ? past : f),
                        decay.output, at(t, channel(i)));
          }
          return next;
        });
    for (auto [i, fade] : llvm::enumerate(fades))
      if (decay.fades)
        storeVector(fade, decay.fades, {div(first, index(tokens)), channel(i)});
  });
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

struct ChunkVectors::RunningKeys {
  int64_t rows;   ///< Of a tile: their sums, and those of their pairs, fit.
  Value keys;     ///< [C, K]: before a tile, decayed to its first row.
  Value tileRows; ///< [rows, K]: the rows of a tile, decayed from there on.
  Value fade;     ///< [K]: the product of a tile's gates.
};

void ChunkVectors::emitDecaying(ChunkScoresOp op, const Factors &factors) {
  clearScores(op);
  scoreBlocks(op, factors, /*blockTokens=*/Value());
}

void ChunkVectors::clearScores(ChunkScoresOp op) {
  Value output = op.getOutput();
  int64_t tokens = sizeOf(output, 2);
  forEach(index(tokens), [&](Value t) {
    for (int64_t j = 0; j < tokens; j += lanes)
      writeOperand(zeros(lanes), output, at(t, index(j)));
  });
}

void ChunkVectors::scoreBlocks(ChunkScoresOp op, const Factors &factors,
                               Value blockTokens) {
  int64_t tokens = sizeOf(op.getOutput(), 2);
  OpFoldResult features = b.getIndexAttr(sizeOf(op.getRows(), 3));
  int64_t height = std::min<int64_t>(4, lanes);
  RunningKeys running{height, scratch({b.getIndexAttr(tokens), features}),
                      scratch({b.getIndexAttr(height), features}),
                      scratch({features})};
  forEachBlock(tokens, running.rows, [&](Value row, int64_t height) {
    scoreOwnRows(op, factors, running, row, height);
    Value first = blockTokens ? sub(row, rem(row, blockTokens)) : index(0);
    scoreEarlierKeys(op, running, first, row, height);
  });
}

/// Stores the sums of vectors, so many to each row, from a column on.
void ChunkVectors::storeSums(Rows sums, int64_t columns, Value output,
                             Value row, Value column, int64_t height) {
  int64_t group = std::min<int64_t>(lanes, sums.size());
  for (int64_t first = 0; first < height * columns; first += group) {
    Value all = sumVectors(Rows(ArrayRef(sums).slice(first, group)));
    for (int64_t i = 0; i < group && first + i < height * columns;
         i += columns) {
      Value part = vector::ExtractStridedSliceOp::create(
          b, loc, all, ArrayRef<int64_t>{i}, ArrayRef<int64_t>{columns},
          ArrayRef<int64_t>{1});
      Value t = add(row, index((first + i) / columns));
      writeOperand(part, output, at(t, column));
    }
  }
}

/// The scores of a tile's rows with its own keys.
void ChunkVectors::scoreOwnRows(ChunkScoresOp op, const Factors &factors,
                                const RunningKeys &running, Value row,
                                int64_t height) {
  bool strict = op.getStrict(), before = op.getBefore();
  int64_t columns = running.rows;
  // From each key to the rows behind it, that of the key first.
  SmallVector<std::pair<int64_t, int64_t>> pairs;
  for (int64_t x = 0; x < height; ++x)
    for (int64_t r = strict ? x + 1 : x; r < height; ++r)
      pairs.push_back({r, x});
  Rows sums =
      reduce(index(0), index(sizeOf(op.getRows(), 3)), lanes,
             Rows(pairs.size(), zeros(lanes)),
             [&](Value d, ValueRange carried) -> SmallVector<Value> {
               Rows next(carried), gates, lines;
               Value fade = constant(vectorType(lanes), 1.0);
               for (int64_t r = 0; r < height; ++r) {
                 Value t = add(row, index(r));
                 gates.push_back(loadVector(factors.gates, {t, d}, lanes));
                 lines.push_back(loadVector(op.getRows(), at(t, d), lanes));
                 Value past = fade;
                 fade = mulf(fade, gates[r]);
                 storeVector(mulf(lines[r], before ? past : fade),
                             running.tileRows, {index(r), d});
               }
               storeVector(fade, running.fade, {d});
               auto *sum = next.begin();
               for (int64_t x = 0; x < height; ++x) {
                 Value j = add(row, index(x));
                 Value key = loadVector(op.getKeys(), at(j, d), lanes);
                 for (int64_t r = x; r < height; ++r) {
                   Value past = key;
                   if (r > x)
                     key = mulf(key, gates[r]);
                   if (r > x || !strict) {
                     *sum = fmaVector(lines[r], before ? past : key, *sum);
                     ++sum;
                   }
                 }
                 storeVector(key, running.keys, {j, d});
               }
               return next;
             });
  Rows all;
  for (int64_t i = 0; i < columns * columns; ++i)
    all.push_back(zeros(lanes));
  for (auto [pair, sum] : llvm::zip_equal(pairs, sums))
    all[pair.first * columns + pair.second] = sum;
  storeSums(all, columns, op.getOutput(), row, row, height);
}

/// Those with the keys from `first` to the tile, which decay on to the next
/// one.
void ChunkVectors::scoreEarlierKeys(ChunkScoresOp op,
                                    const RunningKeys &running, Value first,
                                    Value row, int64_t height) {
  int64_t columns = std::clamp<int64_t>(rows / 2, 1, running.rows);
  forEach(first, row, columns, [&](Value j) {
    Rows sums = reduce(index(0), index(sizeOf(op.getRows(), 3)), lanes,
                       Rows(running.rows * columns, zeros(lanes)),
                       [&](Value d, ValueRange carried) -> SmallVector<Value> {
                         Rows next(carried);
                         Value fade = loadVector(running.fade, {d}, lanes);
                         for (int64_t i = 0; i < columns; ++i) {
                           SmallVector<Value> place{add(j, index(i)), d};
                           Value key = loadVector(running.keys, place, lanes);
                           for (int64_t r = 0; r < height; ++r) {
                             Value line = loadVector(running.tileRows,
                                                     {index(r), d}, lanes);
                             Value &sum = next[r * columns + i];
                             sum = fmaVector(line, key, sum);
                           }
                           storeVector(mulf(key, fade), running.keys, place);
                         }
                         return next;
                       });
    storeSums(sums, columns, op.getOutput(), row, j, height);
  });
}

//===----------------------------------------------------------------------===//
// Reads
//===----------------------------------------------------------------------===//

struct ChunkVectors::RunningValues {
  SmallVector<Value> terms; ///< Of each scores [C, 2 · lanes]: values of the
                            ///< tiles that are done, decayed to the next one.
  Value state;              ///< [2 · lanes]: the same of the state's factor.
};

/// Tiles go to the last row, or with `adjoint` back to the first.
void ChunkVectors::emitDecaying(ChunkReadOp op, const ReadRows &read,
                                const Factors &factors, bool fromZero,
                                Value into, ArrayRef<Stream> streams) {
  Value output = op.getOutput(), products;
  if (op.getTranspose())
    products = timesTransposed(op, read.rowsT, streams);
  int64_t tokens = sizeOf(output, 2);
  OpFoldResult width = b.getIndexAttr(2 * lanes);
  RunningValues running;
  for (size_t i = 0; i < op.getScores().size(); ++i)
    running.terms.push_back(scratch({b.getIndexAttr(tokens), width}));
  running.state = scratch({width});
  auto readTile = [&](const Tile &tile) {
    auto gate = [&](int64_t r) {
      return loadVector(factors.gates, {add(tile.row, index(r)), tile.column},
                        tile.width);
    };
    Rows sums = timesState(op, read, products,
                           Rows(tile.height, zeros(tile.width)), tile, streams);
    Value past = loadVector(running.state, {index(0)}, tile.width),
          fade = gate(0);
    for (int64_t r = 1; r < tile.height; ++r)
      fade = mulf(fade, gate(r));
    for (Value &sum : sums)
      sum = mulf(sum, past);
    storeVector(mulf(past, fade), running.state, {index(0)});
    sums = readEarlierValues(op, running, sums, tile, fade);
    sums = readOwnValues(op, running, sums, tile, gate);
    for (auto [r, sum] : llvm::enumerate(sums)) {
      SmallVector<Value> line = at(add(tile.row, index(r)), tile.column);
      if (!fromZero)
        sum = addf(loadVector(output, line, tile.width), sum);
      writeOperand(sum, into, line);
    }
  };
  forEachBlock(sizeOf(output, 3), 2 * lanes, [&](Value column, int64_t width) {
    storeVector(constant(vectorType(width), 1.0), running.state, {index(0)});
    forEachRows(
        tokens,
        [&](Value row, int64_t height) {
          readTile({row, column, height, width});
        },
        /*fromLast=*/op.getAdjoint());
  });
}

/// Adds the values of the tiles that are done, which decay by `fade` behind it.
ChunkVectors::Rows ChunkVectors::readEarlierValues(ChunkReadOp op,
                                                   const RunningValues &running,
                                                   Rows sums, const Tile &tile,
                                                   Value fade) {
  bool adjoint = op.getAdjoint();
  Value behind = add(tile.row, index(tile.height));
  for (auto [scores, values] : llvm::zip_equal(op.getScores(), running.terms))
    sums = accumulate(
        sums, adjoint ? behind : index(0),
        adjoint ? dim(op.getOutput(), 2) : tile.row,
        [&, scores = scores](int64_t r, Value j) {
          Value t = add(tile.row, index(r));
          return load(scores, adjoint ? at(j, t) : at(t, j));
        },
        [&, values = values](Value j) {
          SmallVector<Value> place{j, index(0)};
          Value line = loadVector(values, place, tile.width);
          storeVector(mulf(line, fade), values, place);
          return line;
        });
  return sums;
}

/// Decays the sums on to their rows, and adds the values of the tile's own.
ChunkVectors::Rows
ChunkVectors::readOwnValues(ChunkReadOp op, const RunningValues &running,
                            Rows sums, const Tile &tile,
                            function_ref<Value(int64_t)> gate) {
  bool adjoint = op.getAdjoint();
  int64_t height = tile.height;
  // Rows in the order in which they decay. Row `step` is `gateOf` away from the
  // one before.
  auto rowOf = [&](int64_t step) { return adjoint ? height - 1 - step : step; };
  auto gateOf = [&](int64_t step) {
    return gate(adjoint ? height - step : step);
  };
  Value factor;
  for (int64_t step = adjoint ? 1 : 0; step < height; ++step) {
    factor = factor ? mulf(factor, gateOf(step)) : gateOf(step);
    Value &sum = sums[rowOf(step)];
    sum = mulf(sum, factor);
  }
  for (auto [scores, values, done] :
       llvm::zip_equal(op.getScores(), op.getValues(), running.terms))
    for (int64_t first = 0; first < height; ++first) {
      Value j = add(tile.row, index(rowOf(first)));
      Value line = loadVector(values, at(j, tile.column), tile.width);
      for (int64_t step = first; step < height; ++step) {
        if (step > first)
          line = mulf(line, gateOf(step));
        else if (op.getStrict())
          continue;
        Value t = add(tile.row, index(rowOf(step)));
        Value score = load(scores, adjoint ? at(j, t) : at(t, j));
        Value &sum = sums[rowOf(step)];
        sum = fmaVector(splat(score, tile.width), line, sum);
      }
      if (adjoint)
        line = mulf(line, gate(0));
      storeVector(line, done, {j, index(0)});
    }
  return sums;
}
