//===- ChunkTileValues.cpp - Reads of a chunk along the values ------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// p_t = S x_t for the state that the scan carries. With scores
// P^xy_tj = (x_t·y_j) e^(c_t − c_j),
//
//   p = (S Xᵀ)ᵀ decayed from the start of the chunk + P^xv K + P^xr B
//
// Under a decay per channel the last two are summed as the keys decay, token by
// token. S Xᵀ sums along the rows of S, which lie in memory as the other
// products want them: here numbers of S are multiplied with vectors of tokens,
// panel by panel, and the sums are transposed when all panels have been. In the
// same way R, which is there a panel at a time, gives P^xr.
//
//===----------------------------------------------------------------------===//

#include "ChunkTile.h"

using namespace mlir;
using namespace mlir::linattn;

void ChunkValueRead::score() {
  int64_t lanes = shape.lanes;
  Value zero = zeros(lanes);
  auto clear = [&](Value products, Value size) {
    forEach(index(0), rows, lanes, [&](Value t) {
      forEach(size, [&](Value i) {
        storeVector(zero, products, {div(t, index(lanes)), i, index(0)});
      });
    });
  };
  clear(along.products, keySize);
  if (along.solved)
    clear(along.solved, rows);
  forEach(rows, [&](Value t) { fillRow(along.rows, {t}, 0.0); });
  transpose(along.queries, along.queriesT, valueSize);
  if (along.laterKeys)
    forEach(rows, [&](Value t) {
      reduceRow(keySize, {}, [&](Value d, ValueRange) -> SmallVector<Value> {
        storeVector(loadVector(keyRows(solvedWriter()), {t, d}, lanes),
                    along.laterKeys, {t, d});
        return {};
      });
    });
  if (solvesWritten())
    return;
  transpose(packed.values, along.valuesT, valueSize);
  productScores({along.queries, along.scores, index(0), exclusive, exclusive},
                {along.valuesT}, valueSize);
  if (!hasChannelDecay())
    addKeys(/*writer=*/0);
}

/// p += P^xy Y, where `writer` names the rows Y.
void ChunkValueRead::addKeys(int64_t writer) {
  std::optional<int64_t> size = getConstantIntValue(keySize);
  int64_t width = size && *size % shape.cols == 0 ? shape.cols : shape.lanes;
  forEach(index(0), rows, plan.rowsAtOnce, [&](Value row) {
    forEach(index(0), keySize, width, [&](Value d) {
      Rows sums;
      for (int64_t r = 0; r < plan.rowsAtOnce; ++r)
        sums.push_back(loadVector(along.rows, {add(row, index(r)), d}, width));
      sums = addScores(
          sums, along.scores, index(0), writer, row,
          [&](Value j) { return loadVector(keyRows(writer), {j, d}, width); },
          /*diagonal=*/true, exclusive);
      for (int64_t r = 0; r < plan.rowsAtOnce; ++r)
        storeVector(sums[r], along.rows, {add(row, index(r)), d});
    });
  });
}

void ChunkValueRead::addOwnKey(int64_t writer, Value rows, Value t) {
  int64_t lanes = shape.lanes;
  Value weight =
      splat(load(along.scores, {index(0), index(writer), t, t}), lanes);
  reduceRow(keySize, {}, [&](Value d, ValueRange) -> SmallVector<Value> {
    Value sum = fmaVector(weight, loadVector(rows, {t, d}, lanes),
                          loadVector(along.rows, {t, d}, lanes));
    storeVector(sum, along.rows, {t, d});
    return {};
  });
}

/// p += P^xy Y for the rows that the solution is written under, which decay
/// channel by channel, token by token.
void ChunkValueRead::addDecayingKeys() {
  int64_t lanes = shape.lanes, few = std::min<int64_t>(4, lanes);
  auto addFew = [&](Value t, Value j, int64_t count) {
    Rows weights;
    for (int64_t i = 0; i < count; ++i)
      weights.push_back(
          splat(load(along.scores,
                     {index(0), index(solvedWriter()), t, add(j, index(i))}),
                lanes));
    reduceRow(keySize, {}, [&](Value d, ValueRange) -> SmallVector<Value> {
      Value sum = loadVector(along.rows, {t, d}, lanes);
      Value gate = loadVector(packed.channelGates, {t, d}, lanes);
      for (int64_t i = 0; i < count; ++i) {
        SmallVector<Value> at{add(j, index(i)), d};
        Value key = loadVector(along.laterKeys, at, lanes),
              decayed = mulf(key, gate);
        storeVector(decayed, along.laterKeys, at);
        sum = fmaVector(weights[i], exclusive ? key : decayed, sum);
      }
      storeVector(sum, along.rows, {t, d});
      return {};
    });
  };
  forEach(rows, [&](Value t) {
    Value whole = mul(div(t, index(few)), index(few));
    forEach(index(0), whole, few, [&](Value j) { addFew(t, j, few); });
    forEach(whole, t, 1, [&](Value j) { addFew(t, j, 1); });
    if (!exclusive)
      addOwnKey(solvedWriter(), along.laterKeys, t);
  });
}

/// sums_it += Σ_v left(i, v) x_tv over the columns of the panel, a vector of
/// tokens at a time.
void ChunkValueRead::addQueryProducts(Value sums, Value size, int64_t height,
                                      Value column,
                                      function_ref<Value(Value, Value)> left) {
  int64_t lanes = shape.lanes;
  forEach(index(0), rows, lanes, [&](Value t) {
    Value block = div(t, index(lanes));
    forEach(index(0), size, height, [&](Value i) {
      auto at = [&](int64_t r) {
        return SmallVector<Value>{block, add(i, index(r)), index(0)};
      };
      Rows partial;
      for (int64_t r = 0; r < height; ++r)
        partial.push_back(loadVector(sums, at(r), lanes));
      partial = accumulate(
          partial, index(0), index(shape.cols),
          [&](int64_t r, Value v) { return left(add(i, index(r)), v); },
          [&](Value v) {
            return loadVector(along.queriesT, {block, add(column, v), index(0)},
                              lanes);
          });
      for (int64_t r = 0; r < height; ++r)
        storeVector(partial[r], sums, at(r));
    });
  });
}

void ChunkValueRead::readPanel(Value number, Value column) {
  std::optional<int64_t> size = getConstantIntValue(keySize);
  bool isEven = size && *size % (2 * plan.rowsAtOnce) == 0;
  ifTrue(reads, [&] {
    addQueryProducts(
        along.products, keySize, isEven ? 2 * plan.rowsAtOnce : plan.rowsAtOnce,
        column,
        [&](Value d, Value v) { return load(panel.state, {number, d, v}); });
  });
  if (along.solved)
    addQueryProducts(
        along.solved, rows, plan.rowsAtOnce, column,
        [&](Value j, Value v) { return load(panel.solved, {j, v}); });
}

/// The lines of a square block, which hold a vector of tokens each, as rows of
/// these tokens.
ChunkValueRead::Rows ChunkValueRead::rowsOfTokens(Value products, Value t,
                                                  Value from) {
  Rows lines;
  for (int64_t i = 0; i < shape.lanes; ++i)
    lines.push_back(loadVector(
        products, {div(t, index(shape.lanes)), add(from, index(i)), index(0)},
        shape.lanes));
  return transposed(lines);
}

/// The scores with what was solved for, which all panels have summed.
void ChunkValueRead::scoreSolved() {
  int64_t lanes = shape.lanes;
  forEach(index(0), rows, lanes, [&](Value t) {
    forEach(index(0), add(t, index(1)), lanes, [&](Value j) {
      Rows lines = rowsOfTokens(along.solved, t, j);
      for (int64_t i = 0; i < lanes; ++i) {
        Value at = add(t, index(i)), seen = exclusive ? at : add(at, index(1));
        if (hasScalarGate())
          lines[i] =
              mulf(lines[i], loadVector(scores.decays, {seen, j}, lanes));
        storeVector(lines[i], along.scores,
                    {index(0), index(solvedWriter()), at, j});
      }
    });
  });
}

void ChunkValueRead::write() {
  int64_t lanes = shape.lanes;
  if (along.solved) {
    scoreSolved();
    if (hasChannelDecay())
      addDecayingKeys();
    else
      addKeys(solvedWriter());
  }
  forEach(index(0), rows, lanes, [&](Value t) {
    forEach(index(0), keySize, lanes, [&](Value d) {
      Rows sums = rowsOfTokens(along.products, t, d);
      for (int64_t i = 0; i < lanes; ++i) {
        Value at = add(t, index(i)),
              row = loadVector(along.rows, {at, d}, lanes);
        Value factor;
        if (along.factors)
          factor = loadVector(along.factors, {at, d}, lanes);
        else if (hasScalarGate())
          factor = splat(cumulatedAt(at, exclusive), lanes);
        storeVector(factor ? fmaVector(sums[i], factor, row)
                           : addf(sums[i], row),
                    along.rows, {at, d});
      }
    });
  });
  forEach(count, [&](Value t) {
    Value token = tokenAt(add(first, t));
    forEach(index(0), dim(plan.valueRead.output, 3), lanes, [&](Value d) {
      writeOperand(loadVector(along.rows, {t, d}, lanes), plan.valueRead.output,
                   {task.batch, task.head, token, d});
    });
  });
}
