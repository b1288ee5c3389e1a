//===- QuadraticUnit.cpp - The quadratic form in a matrix unit ------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Both products of a block of keys are made transposed, so that queries lie
// across vector lanes as in QuadraticTile.cpp, and the steps in between are the
// same:
//
//   scores   Sᵀ = K Qᵀ        rows of keys are left operands as they lie
//   outputs  Oᵀ = Vᵀ Pᵀ       two rows of weights make a line of pairs
//
// Weights are packed while they are made. Queries are packed once for a task,
// keys and values once for all of its queries.
//
//===----------------------------------------------------------------------===//

#include "ChunkProducts.h"
#include "QuadraticTile.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

class QuadraticUnit : public QuadraticTile {
public:
  QuadraticUnit(OpBuilder &b, QuadraticOp op, int64_t tilesEachWay,
                bool hasBits)
      : QuadraticTile(
            b, op,
            {lines, /*rows=*/8, /*cols=*/step, atMost(mostKeys, op.getKey())}),
        vectors(b, loc, type, lines, /*rows=*/8),
        products(vectors, tilesEachWay, hasBits), hasBits(hasBits) {
    sharedQueries = atMost(mostQueries, op.getQuery());
  }

protected:
  void allocateScratch() override;
  void freeTask() override;
  void packQueries() override;
  void packKeys(Value count) override;
  void initialize() override;
  void scorePanel(Value panel, Value count) override;
  void weighPanel(Value panel, Value count) override;
  void accumulatePanel(Value panel, Value count) override;
  void writeOutputs() override;

private:
  /// Rows of a tile, and tokens that one product contracts.
  static constexpr int64_t lines = kTileRows, step = 2 * lines;
  /// Keys between two corrections of the outputs, and queries that share their
  /// packing.
  static constexpr int64_t mostKeys = 128, mostQueries = 256;
  /// Tiles of a panel's queries.
  static constexpr int64_t panelTiles = 2;

  /// So many tokens, or all of a smaller number that is known, in whole steps.
  static int64_t atMost(int64_t count, Value tokens) {
    int64_t known = sizeOf(tokens, 2);
    if (ShapedType::isDynamic(known))
      return count;
    int64_t steps = llvm::divideCeil(std::max<int64_t>(known, 1), step);
    return std::min(count, steps * step);
  }
  int64_t columns() { return tiledFeatures(op.getValue()); }
  Value allocateTokens(int64_t tokens, int64_t width);
  void copyTokens(Value operand, Value head, Value first, Value count,
                  bool isMasked, Value rows);
  void withTransposed(Value rows, function_ref<void(Value)> body);
  Value visibleCount(Value panel, Value count);
  Value stepsOf(Value keys) { return ceilDiv(keys, step); }
  bool isScaledLate();
  void adjustScores(Value panel);
  Value scoreOf(Value j);
  /// A line of pairs: its step of the contraction and its place there.
  using PairBody = function_ref<SmallVector<Value>(Value, Value, ValueRange)>;
  SmallVector<Value> reducePairs(ArrayRef<Value> initial, PairBody body);
  /// The keys m and m + 16 that such a line interleaves.
  std::pair<Value, Value> keysOfPair(Value k, Value line);
  void weighPairs(Value panel);
  void prefetchPair(Value operand, Value head, Value panel, Value k,
                    Value line);
  void forEachOutput(Value panel, function_ref<Value(Value, Value)> body);
  void accumulateVectors(Value panel, Value count);
  void writeTile(Value panel, Value lane);

  ChunkVectors vectors;
  ChunkProducts products;
  /// Whether tokens are bits that are packed as they are.
  bool hasBits;
  struct {
    PackedTiles queries, keys, weights, values, valueColumns;
  } packed;
  /// Rows of tokens, [1, 1, tokens, features].
  struct {
    Value queries, keys, values;
  } staged;
  /// Sums of a block of keys, [V, cols], and rows of outputs, [16, V].
  Value summed, finished;
  /// The keys of the block that a panel's queries may see.
  Value visibleKeys;
};

} // namespace

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value QuadraticUnit::allocateTokens(int64_t tokens, int64_t width) {
  OpFoldResult one = b.getIndexAttr(1);
  return scratch({one, one, b.getIndexAttr(tokens), b.getIndexAttr(width)},
                 hasBits ? tokenType : type);
}

void QuadraticUnit::allocateScratch() {
  auto size = [&](int64_t n) -> OpFoldResult { return b.getIndexAttr(n); };
  ArrayRef<int64_t> summands = *op.getSummands();
  int64_t width = tiledFeatures(op.getQuery());
  staged = {allocateTokens(queriesOfTask(), width),
            allocateTokens(blockKeys(), width),
            allocateTokens(blockKeys(), columns())};
  packed.queries = products.allocate(queriesOfTask(), width, summands[0]);
  packed.keys = products.allocate(blockKeys(), width, summands[1]);
  packed.weights = products.allocate(shape.cols, blockKeys(), summands[2]);
  packed.values = products.allocate(columns(), blockKeys(), summands[3]);
  packed.values.flag = scratch({size(1)}, b.getI1Type());
  packed.valueColumns = products.allocate(blockKeys(), columns(), 1);
  scores = scratch({size(blockKeys()), size(shape.cols)});
  summed = scratch({size(columns()), size(shape.cols)});
  output = scratch({size(panelsPerTask()), size(columns()), size(shape.cols)});
  finished = scratch({size(lines), size(llvm::alignTo(columns(), shape.cols))});
  sums = scratch({size(panelsPerTask()), size(shape.cols)});
  if (softmax) {
    maxima = scratch({size(panelsPerTask()), size(shape.cols)});
    corrections = scratch({size(shape.cols)});
  }
}

void QuadraticUnit::freeTask() {
  QuadraticTile::freeTask();
  vectors.freeScratch();
}

/// Copies rows of tokens; zeros past the last one, past its features and where
/// the mask is false.
void QuadraticUnit::copyTokens(Value operand, Value head, Value first,
                               Value count, bool isMasked, Value rows) {
  int64_t width = sizeOf(rows, 3), known = sizeOf(operand, 3);
  Type element = getElementTypeOrSelf(rows);
  auto forEachPart = [&](function_ref<void(Value, int64_t)> body) {
    for (int64_t d = 0; d < width; d += step)
      body(index(d), std::min(step, width - d));
  };
  auto none = [&](int64_t size) {
    return constant(VectorType::get(size, element), 0.0);
  };
  forEach(count, [&](Value i) {
    Value token = add(first, i), kept = isMasked ? isKept(token) : Value();
    forEachPart([&](Value d, int64_t size) {
      bool isInside = *getConstantIntValue(d) + size <= known;
      Value part = convert(readElements(operand, {batch, head, token, d}, size,
                                        /*padding=*/0.0, isInside),
                           element);
      storeVector(kept ? select(kept, part, none(size)) : part, rows,
                  vectors.at(i, d));
    });
  });
  forEach(count, index(sizeOf(rows, 2)), 1, [&](Value i) {
    forEachPart([&](Value d, int64_t size) {
      storeVector(none(size), rows, vectors.at(i, d));
    });
  });
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

/// Runs `body` with rows as vectors of tokens.
void QuadraticUnit::withTransposed(Value rows, function_ref<void(Value)> body) {
  ChunkVectors temporary(b, loc, type, lines, /*rows=*/8);
  body(temporary.transposedKeys(rows));
  temporary.freeScratch();
}

void QuadraticUnit::packQueries() {
  copyTokens(op.getQuery(), queryHead, range.firstQuery, range.queryCount,
             /*isMasked=*/false, staged.queries);
  if (hasBits) {
    products.packTokenKeyColumns(staged.queries, /*isNegated=*/false,
                                 &packed.queries);
    return;
  }
  withTransposed(staged.queries, [&](Value queriesT) {
    products.packKeyColumns(queriesT, sizeOf(queriesT, 0),
                            packed.queries.summands, &packed.queries);
  });
}

void QuadraticUnit::packKeys(Value count) {
  copyTokens(op.getKey(), keyHead, range.firstKey, count, /*isMasked=*/false,
             staged.keys);
  if (hasBits)
    products.packTokenRows(staged.keys, /*isNegated=*/false, &packed.keys);
  else
    products.packRows(staged.keys, packed.keys.summands, &packed.keys);
  copyTokens(op.getValue(), valueHead, range.firstKey, count, /*isMasked=*/true,
             staged.values);
  if (hasBits) {
    products.packTokenKeyColumns(staged.values, /*isNegated=*/false,
                                 &packed.valueColumns);
    products.packTokenKeyRows(packed.valueColumns, columns(), {},
                              packed.values.summands, &packed.values);
    return;
  }
  withTransposed(staged.values, [&](Value valuesT) {
    products.packKeyRows(valuesT, packed.values.summands, &packed.values);
  });
}

void QuadraticUnit::initialize() {
  forEach(panelCount(), [&](Value panel) {
    clearSums(panel);
    forEach(index(columns()), [&](Value d) {
      storeVector(zeros(shape.cols), output, {panel, d, index(0)});
    });
  });
}

//===----------------------------------------------------------------------===//
// The three steps
//===----------------------------------------------------------------------===//

/// Keys from this one on are hidden from all queries of the panel.
Value QuadraticUnit::visibleCount(Value panel, Value count) {
  if (!op.getCausal() || visible.isLimited())
    return count;
  Value last = add(firstOfPanel(panel), index(shape.cols - 1));
  return max(min(sub(visibleEnd(last), range.firstKey), count), index(0));
}

void QuadraticUnit::scorePanel(Value panel, Value count) {
  visibleKeys = visibleCount(panel, count);
  int64_t height = products.blockTiles();
  Value tiles = mul(stepsOf(visibleKeys), index(step / lines));
  forEach(index(0), tiles, height, [&](Value row) {
    products.multiplyInto(scores, packed.keys, packed.queries, row, height,
                          mul(panel, index(panelTiles)), panelTiles);
  });
  if (!isScaledLate())
    adjustScores(panel);
  Value hidden = constant(vectorType(shape.cols), hiddenScore());
  forEach(visibleKeys, mul(tiles, index(lines)), 1,
          [&](Value j) { storeVector(hidden, scores, {j, index(0)}); });
}

/// A positive scale leaves −∞ what it is, so that it may wait until scores are
/// weighed.
bool QuadraticUnit::isScaledLate() {
  return softmax && !adjustsScores(op) && !scale.getValue() &&
         scaleOr1(op.getScale()) > 0;
}

/// The scale, and what depends on a key's place.
void QuadraticUnit::adjustScores(Value panel) {
  bool isAdjusted = adjustsScores(op);
  if (scale.isOne() && !isAdjusted)
    return;
  Value at = isAdjusted ? positions(panel) : Value();
  forEach(visibleKeys, [&](Value j) {
    Value score =
        scale.apply(b, loc, loadVector(scores, {j, index(0)}, shape.cols));
    if (isAdjusted)
      score = emitAdjustedScore(b, loc, op, score, slope, at,
                                add(range.firstKey, j));
    storeVector(score, scores, {j, index(0)});
  });
}

Value QuadraticUnit::scoreOf(Value j) {
  Value score = loadVector(scores, {j, index(0)}, shape.cols);
  return isScaledLate() ? scale.apply(b, loc, score) : score;
}

SmallVector<Value> QuadraticUnit::reducePairs(ArrayRef<Value> initial,
                                              PairBody body) {
  return reduce(index(0), stepsOf(visibleKeys), 1, initial,
                [&](Value k, ValueRange carried) {
                  return reduce(index(0), index(lines), 1,
                                llvm::to_vector(carried),
                                [&](Value line, ValueRange carried) {
                                  return body(k, line, carried);
                                });
                });
}

std::pair<Value, Value> QuadraticUnit::keysOfPair(Value k, Value line) {
  Value first = add(mul(k, index(step)), line);
  return {first, add(first, index(lines))};
}

/// Prefetches two rows of the next block, while the first panel is weighed.
void QuadraticUnit::prefetchPair(Value operand, Value head, Value panel,
                                 Value k, Value line) {
  ifThen(both(fetches.keys, isZero(panel)), [&] {
    Value pair = add(mul(k, index(lines)), line);
    prefetchNextBlock(operand, head, mul(pair, index(2)), 2);
  });
}

void QuadraticUnit::weighPanel(Value panel, Value count) {
  products.ifFinite(
      packed.values, [&] { weighPairs(panel); },
      [&] {
        if (isScaledLate())
          adjustScores(panel);
        QuadraticTile::weighPanel(panel, count);
      });
}

/// As the function of the base class, with weights as pairs in tiles.
void QuadraticUnit::weighPairs(Value panel) {
  int64_t cols = shape.cols;
  Value sum = loadVector(sums, {panel, index(0)}, cols), newMax;
  if (softmax) {
    Value oldMax = loadVector(maxima, {panel, index(0)}, cols);
    SmallVector<Value> largest = reducePairs(
        {oldMax, oldMax},
        [&](Value k, Value line, ValueRange carried) -> SmallVector<Value> {
          prefetchPair(op.getKey(), keyHead, panel, k, line);
          auto [low, high] = keysOfPair(k, line);
          return {larger(carried[0], scoreOf(low)),
                  larger(carried[1], scoreOf(high))};
        });
    newMax = larger(largest[0], largest[1]);
    Value correction = exp(subf(oldMax, newMax));
    storeVector(newMax, maxima, {panel, index(0)});
    storeVector(correction, corrections, {index(0)});
    sum = mulf(sum, correction);
  }
  SmallVector<Value> total = reducePairs(
      {sum, zeros(cols)},
      [&](Value k, Value line, ValueRange carried) -> SmallVector<Value> {
        prefetchPair(op.getValue(), valueHead, panel, k, line);
        auto [low, high] = keysOfPair(k, line);
        auto weightOf = [&](Value j) {
          return softmax ? exp(subf(scoreOf(j), newMax)) : scoreOf(j);
        };
        Value first = weightOf(low), second = weightOf(high);
        auto part = [&](Value x, int64_t tile) -> Value {
          return vector::ExtractStridedSliceOp::create(
              b, loc, x, ArrayRef<int64_t>{tile * lines},
              ArrayRef<int64_t>{lines}, ArrayRef<int64_t>{1});
        };
        for (int64_t tile = 0; tile < panelTiles; ++tile)
          products.packTokenPair(part(first, tile), part(second, tile),
                                 packed.weights, index(tile), k, line);
        return {addf(carried[0], first), addf(carried[1], second)};
      });
  storeVector(addf(total[0], total[1]), sums, {panel, index(0)});
  products.clearSteps(packed.weights, stepsOf(visibleKeys));
}

/// o = c · o + Σ_j p_j v_j, transposed.
void QuadraticUnit::accumulatePanel(Value panel, Value count) {
  products.ifFinite(
      packed.values,
      [&] {
        vectors.forEachBlock(columns() / lines, products.blockTiles(),
                             [&](Value row, int64_t height) {
                               products.multiplyInto(
                                   summed, packed.values, packed.weights, row,
                                   height, index(0), panelTiles);
                             });
        forEachOutput(panel, [&](Value d, Value o) {
          return addf(o, loadVector(summed, {d, index(0)}, shape.cols));
        });
      },
      [&] { accumulateVectors(panel, count); });
}

/// Replaces each row of a panel's outputs, which meets the correction first.
void QuadraticUnit::forEachOutput(Value panel,
                                  function_ref<Value(Value, Value)> body) {
  forEach(index(columns()), [&](Value d) {
    Value o = loadVector(output, {panel, d, index(0)}, shape.cols);
    if (softmax)
      o = mulf(o, loadVector(corrections, {index(0)}, shape.cols));
    storeVector(body(d, o), output, {panel, d, index(0)});
  });
}

/// A key that a query may not see is left out rather than weighed by 0: its
/// value may be NaN.
void QuadraticUnit::accumulateVectors(Value panel, Value count) {
  Value one = constant(vectorType(shape.cols), 1.0);
  forEachOutput(panel, [&](Value d, Value o) {
    return reduce(index(0), count, 1, o,
                  [&](Value j, ValueRange carried) -> SmallVector<Value> {
                    Value v = convert(
                        load(staged.values, {index(0), index(0), j, d}), type);
                    Value p = loadVector(scores, {j, index(0)}, shape.cols);
                    Value sum =
                        fmaVector(splat(v, shape.cols), p, carried.front());
                    Value seen = arith::CmpFOp::create(
                        b, loc, arith::CmpFPredicate::OEQ,
                        maskScores(one, panel, j, 0.0), one);
                    return {select(seen, sum, carried.front())};
                  })
        .front();
  });
}

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

void QuadraticUnit::writeOutputs() {
  forEach(panelCount(), [&](Value panel) {
    for (int64_t tile = 0; tile < panelTiles; ++tile)
      writeTile(panel, index(tile * lines));
  });
}

/// Writes the queries of a panel from a lane on.
void QuadraticUnit::writeTile(Value panel, Value lane) {
  forEach(index(0), index(columns()), lines, [&](Value d) {
    SmallVector<Value> transposedRows;
    for (int64_t i = 0; i < lines; ++i)
      transposedRows.push_back(
          loadVector(output, {panel, add(d, index(i)), lane}, lines));
    for (auto [i, row] :
         llvm::enumerate(VectorBuilder::transposed(transposedRows)))
      storeVector(row, finished, {index(i), d});
  });
  Value first = add(mul(panel, index(shape.cols)), lane);
  Value count = max(min(sub(range.queryCount, first), index(lines)), index(0));
  forEach(count, [&](Value i) {
    Value query = add(range.firstQuery, add(first, i));
    Value inverse = finishRow(panel, add(lane, i), query);
    forEach(index(0), index(columns()), shape.cols, [&](Value column) {
      writeRow(loadVector(finished, {i, column}, shape.cols), inverse, query,
               column);
    });
  });
}

void mlir::linattn::lowerToQuadraticUnit(OpBuilder &b, QuadraticOp op,
                                         int64_t tilesEachWay, bool hasBits) {
  QuadraticUnit(b, op, tilesEachWay, hasBits).emit();
}
