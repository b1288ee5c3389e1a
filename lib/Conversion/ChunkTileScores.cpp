//===- ChunkTileScores.cpp - Scores and decays inside a chunk -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// P^xy_tj = Σ_d x_td y_jd e^(c_t − c_j) in one of two ways. A decay per token
// factors out: XYᵀ as a product of matrices, a vector of keys at a time, times
// the decays between tokens. A decay per channel does not: the keys of the
// chunk are decayed token by token, in memory, and each token is multiplied
// with all of them as they are at its time. The result is Ke.
//
//===----------------------------------------------------------------------===//

#include "ChunkTile.h"

using namespace mlir;
using namespace mlir::linattn;

void ChunkScores::forEachReader(function_ref<void(const Reader &)> body) {
  if (packed.queries)
    forEachMember([&](Value member) { body(queryReader(member)); });
  if (hasTransition())
    body(transitionReader());
}

void ChunkScores::emit() {
  emitScores();
  if (panel.z)
    updateNormalizer();
}

void ChunkScores::emitScores() {
  if (hasChannelDecay())
    return runningScores();
  SmallVector<Value> linesT{scores.keysT};
  transpose(packed.keys, scores.keysT, keySize);
  if (packed.b) {
    transpose(packed.b, scores.bT, keySize);
    linesT.push_back(scores.bT);
  }
  if (hasScalarGate())
    emitDecays();
  if (numbers.readFactors)
    fillReadFactors();
  forEachReader(
      [&](const Reader &reader) { productScores(reader, linesT, keySize); });
  if (plan.valueRead)
    valueRead.score();
  // Reads need the keys as they are: the rows that the keys write are decayed
  // instead.
  if (hasScalarGate() && !readsKeys())
    ifTrue(writes, [&] {
      for (int64_t writer = 0; writer < writers(); ++writer)
        if (!decaysSolved() || writer != solvedWriter())
          decayKeys(keyRows(writer));
    });
}

//===----------------------------------------------------------------------===//
// Decays per token
//===----------------------------------------------------------------------===//

/// A decay per head is the same in all whole chunks: the first one of a task
/// fills in what the others find.
void ChunkScores::emitDecays() {
  if (numbers.rescales || rankOf(r.decay) != 1)
    return fillDecays();
  Value isFirst = compare(arith::CmpIPredicate::eq, first, task.from);
  Value isRagged = compare(arith::CmpIPredicate::ne, count, length);
  auto branch =
      scf::IfOp::create(b, loc, arith::OrIOp::create(b, loc, isFirst, isRagged),
                        /*withElse=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  fillDecays();
}

/// decays[t + 1, j] = Π α over (j, t], 1 for j = t; cumulated[t + 1] = Π α over
/// [0, t]. Row 0 is of the state before the chunk. Elements above the
/// diagonal are not read. Logarithms are added up from j on, one row after the
/// other: a product of factors close to 1 would round once per token, always
/// the same way where the decay is, and a difference of sums would cancel.
void ChunkScores::fillDecays() {
  fillCumulated();
  int64_t lanes = shape.lanes;
  Value zero = zeros(lanes), ones = constant(vectorType(lanes), 1.0);
  SmallVector<Value> initial;
  if (numbers.gates)
    initial.push_back(zero);
  if (numbers.rescales)
    initial.push_back(ones);
  forEach(index(0), rows, lanes, [&](Value j) {
    reduce(j, rows, 1, initial,
           [&](Value t, ValueRange carried) -> SmallVector<Value> {
             SmallVector<Value> next;
             Value factor, past = firstLanes(sub(t, j));
             // j < t decays on, j = t starts.
             if (numbers.gates) {
               Value log = addf(carried.front(),
                                splat(load(numbers.gates, {t}), lanes));
               next.push_back(select(past, log, zero));
               factor = exp(next.back());
             }
             if (numbers.rescales) {
               Value product = mulf(carried.back(),
                                    splat(load(numbers.rescales, {t}), lanes));
               next.push_back(select(past, product, ones));
               factor = factor ? mulf(factor, next.back()) : next.back();
             }
             storeVector(factor, scores.decays, {add(t, index(1)), j});
             return next;
           });
  });
}

/// Sums of logarithms, and products of rescalings, and both as factors, a
/// vector of tokens at a time.
void ChunkScores::fillCumulated() {
  int64_t lanes = shape.lanes;
  Value zero = zeros(lanes), ones = constant(vectorType(lanes), 1.0);
  // Of all tokens up to each one, and up to the last one.
  auto running = [&](Value x, Value past, Value neutral,
                     function_ref<Value(Value, Value)> combine) {
    for (int64_t step = 1; step < lanes; step *= 2)
      x = combine(x, delayed(x, neutral, step));
    x = combine(x, past);
    return std::pair(x, splat(lastLane(x), lanes));
  };
  SmallVector<Value> initial;
  if (numbers.gates)
    initial.push_back(zero);
  if (numbers.rescales)
    initial.push_back(ones);
  store(constant(type, 1.0), numbers.cumulated, {index(0)});
  SmallVector<Value> sums = reduce(
      index(0), rows, lanes, initial,
      [&](Value t, ValueRange carried) -> SmallVector<Value> {
        SmallVector<Value> next;
        Value factor;
        if (numbers.gates) {
          auto [sum, last] =
              running(loadVector(numbers.gates, {t}, lanes), carried.front(),
                      zero, [&](Value x, Value y) { return addf(x, y); });
          factor = exp(sum);
          next.push_back(last);
        }
        if (numbers.rescales) {
          auto [product, last] =
              running(loadVector(numbers.rescales, {t}, lanes), carried.back(),
                      ones, [&](Value x, Value y) { return mulf(x, y); });
          factor = factor ? mulf(factor, product) : product;
          next.push_back(last);
        }
        storeVector(factor, numbers.cumulated, {add(t, index(1))});
        return next;
      });
  if (!scores.residual)
    return;
  Value sum =
      vector::ExtractOp::create(b, loc, sums.front(), ArrayRef<int64_t>{0});
  store(residualOf(sum, load(numbers.cumulated, {rows})), scores.residual,
        {index(0)});
}

/// Fills the factors of the products of keys with the state.
void ChunkScores::fillReadFactors() {
  int64_t lanes = shape.lanes;
  forEach(index(0), rows, lanes, [&](Value t) {
    Value factor = numbers.betas ? negate(loadVector(numbers.betas, {t}, lanes))
                                 : constant(vectorType(lanes), -1.0);
    if (hasScalarGate())
      factor = mulf(factor, loadVector(numbers.cumulated,
                                       {before ? t : add(t, index(1))}, lanes));
    storeVector(factor, numbers.readFactors, {t});
  });
}

/// Decays the keys to the end of the chunk.
void ChunkScores::decayKeys(Value keyRows) {
  forEach(rows, [&](Value j) {
    Value factor = splat(load(scores.decays, {rows, j}), shape.lanes);
    reduceRow(keySize, {}, [&](Value d, ValueRange) -> SmallVector<Value> {
      Value k = loadVector(keyRows, {j, d}, shape.lanes);
      storeVector(mulf(k, factor), keyRows, {j, d});
      return {};
    });
  });
}

void ChunkBlock::productScores(const Reader &reader, ArrayRef<Value> linesT,
                               Value size) {
  int64_t lanes = shape.lanes;
  // Twice the rows of a tile: one vector of keys leaves registers for them.
  int64_t height = plan.padded % (2 * plan.rowsAtOnce) ? plan.rowsAtOnce
                                                       : 2 * plan.rowsAtOnce;
  auto writeBlock = [&](Value row, Value j, int64_t writer) {
    Rows sums = accumulate(
        Rows(height, zeros(lanes)), index(0), size,
        [&](int64_t r, Value d) {
          return load(reader.rows, rowAt(reader, add(row, index(r)), d));
        },
        [&](Value d) {
          return loadVector(linesT[writer], {div(j, index(lanes)), d, index(0)},
                            lanes);
        });
    for (int64_t r = 0; r < height; ++r) {
      Value t = add(row, index(r)), next = add(t, index(1));
      Value score = sums[r];
      if (reader.rows == packed.keys)
        score =
            numbers.betas
                ? mulf(score, splat(negate(load(numbers.betas, {t})), lanes))
                : negate(score);
      if (hasScalarGate())
        score = mulf(score, loadVector(scores.decays,
                                       {reader.shifted ? t : next, j}, lanes));
      storeVector(score, reader.scores, {reader.member, index(writer), t, j});
    }
  };
  forEach(index(0), rows, height, [&](Value row) {
    forEach(index(0), add(row, index(height)), lanes, [&](Value j) {
      for (size_t writer = 0; writer < linesT.size(); ++writer)
        writeBlock(row, j, writer);
    });
  });
}

void ChunkBlock::transpose(Value source, Value target, Value size) {
  int64_t lanes = shape.lanes;
  forEach(index(0), rows, lanes, [&](Value t) {
    forEach(index(0), size, lanes, [&](Value d) {
      Rows lines;
      for (int64_t i = 0; i < lanes; ++i)
        lines.push_back(loadVector(source, {add(t, index(i)), d}, lanes));
      lines = transposed(lines);
      for (int64_t i = 0; i < lanes; ++i)
        storeVector(lines[i], target,
                    {div(t, index(lanes)), add(d, index(i)), index(0)});
    });
  });
}

//===----------------------------------------------------------------------===//
// Decays per channel
//===----------------------------------------------------------------------===//

void ChunkScores::runningScores() {
  fillRow(scores.total, {}, 1.0);
  if (plan.valueRead)
    valueRead.score();
  // The first members are read along with a, in one pass over the keys.
  int64_t along =
      packed.queries
          ? std::clamp<int64_t>(getConstantIntValue(group).value_or(1), 1, 2)
          : 0;
  SmallVector<Reader> fixed;
  for (int64_t member = 0; member < along; ++member)
    fixed.push_back(queryReader(index(member)));
  if (hasTransition())
    fixed.push_back(transitionReader());
  auto readMembers = [&](Value t) {
    if (!packed.queries || getConstantIntValue(group) == along)
      return;
    forEach(index(along), group, 1, [&](Value member) {
      runningPairs(t, queryReader(member), /*scores.decays=*/false);
    });
  };
  forEach(rows, [&](Value t) {
    if (exclusive)
      readMembers(t);
    runningPairs(t, fixed, /*scores.decays=*/true);
    if (!exclusive)
      readMembers(t);
    forEachReader([&](const Reader &reader) { ownScores(t, reader); });
    if (plan.valueRead && !exclusive && !solvesWritten())
      valueRead.addOwnKey(/*writer=*/0, packed.keys, t);
    decayRow(t);
  });
  if (scores.residual)
    reduceRow(keySize, {}, [&](Value d, ValueRange) -> SmallVector<Value> {
      Value logarithm = loadVector(scores.residual, {d}, shape.lanes);
      Value factor = exp(logarithm);
      storeVector(factor, scores.total, {d});
      storeVector(residualOf(logarithm, factor), scores.residual, {d});
      return {};
    });
}

/// The scores of token t with the tokens before it; `decays` the keys by the
/// token's gate, before or after they are read. A few keys at a time: their
/// sums are taken together.
void ChunkScores::runningPairs(Value t, ArrayRef<Reader> readers, bool decays) {
  int64_t few = std::min<int64_t>(4, shape.lanes);
  Value whole = mul(div(t, index(few)), index(few));
  for (int64_t writer = 0; writer < writers(); ++writer) {
    forEach(index(0), whole, few,
            [&](Value j) { scoreKeys(t, readers, writer, j, few, decays); });
    forEach(whole, t, 1, [&](Value j) {
      scoreKeys(t, readers, writer, j, /*numKeys=*/1, decays);
    });
  }
}

/// The scores of token t with the keys from j on.
void ChunkScores::scoreKeys(Value t, ArrayRef<Reader> readers, int64_t writer,
                            Value j, int64_t numKeys, bool decays) {
  int64_t lanes = shape.lanes;
  size_t numReaders = readers.size();
  // The read along the values takes keys before they are decayed.
  Rows valueWeights;
  if (plan.valueRead && decays && writer == 0 && !solvesWritten())
    for (int64_t i = 0; i < numKeys; ++i)
      valueWeights.push_back(
          splat(load(along.scores, {index(0), index(0), t, add(j, index(i))}),
                lanes));
  // Key by key, reader by reader.
  Rows sums = reduceRow(
      keySize, Rows(numKeys * numReaders, zeros(lanes)),
      [&](Value d, ValueRange carried) -> SmallVector<Value> {
        Rows next(carried), rows;
        for (const Reader &reader : readers)
          rows.push_back(loadVector(reader.rows, rowAt(reader, t, d), lanes));
        Value gate =
            decays ? loadVector(packed.channelGates, {t, d}, lanes) : Value();
        Value valueRow;
        if (!valueWeights.empty())
          valueRow = loadVector(along.rows, {t, d}, lanes);
        for (int64_t i = 0; i < numKeys; ++i) {
          SmallVector<Value> at{add(j, index(i)), d};
          Value key = loadVector(keyRows(writer), at, lanes), decayed = key;
          if (decays) {
            decayed = mulf(key, gate);
            storeVector(decayed, keyRows(writer), at);
          }
          for (size_t r = 0; r < numReaders; ++r) {
            Value &sum = next[i * numReaders + r];
            sum = fmaVector(rows[r], readers[r].shifted ? key : decayed, sum);
          }
          if (valueRow)
            valueRow =
                fmaVector(valueWeights[i], exclusive ? key : decayed, valueRow);
        }
        if (valueRow)
          storeVector(valueRow, along.rows, {t, d});
        return next;
      });
  for (size_t r = 0; r < numReaders; ++r) {
    Rows ofReader;
    for (int64_t i = 0; i < numKeys; ++i)
      ofReader.push_back(sums[i * numReaders + r]);
    storeVector(sumVectors(ofReader), readers[r].scores,
                {readers[r].member, index(writer), t, j});
  }
}

/// A token's score with itself, where it reads its own write.
void ChunkScores::ownScores(Value t, const Reader &reader) {
  if (reader.strict)
    return;
  int64_t lanes = shape.lanes;
  for (int64_t writer = 0; writer < writers(); ++writer) {
    Value sum =
        reduceRow(keySize, zeros(lanes),
                  [&](Value d, ValueRange carried) -> SmallVector<Value> {
                    Value x =
                        loadVector(reader.rows, rowAt(reader, t, d), lanes);
                    Value key = loadVector(keyRows(writer), {t, d}, lanes);
                    return {fmaVector(x, key, carried.front())};
                  })
            .front();
    store(sumVector(sum), reader.scores, {reader.member, index(writer), t, t});
  }
}

/// Decays what token t reads from the start of the chunk, and Γ by its gate.
void ChunkScores::decayRow(Value t) {
  int64_t lanes = shape.lanes;
  auto decay = [&](bool shifted, Value d, Value factor) {
    forEachReader([&](const Reader &reader) {
      if (reader.shifted != shifted)
        return;
      Rows at = rowAt(reader, t, d);
      storeVector(mulf(loadVector(reader.rows, at, lanes), factor), reader.rows,
                  at);
    });
  };
  reduceRow(keySize, {}, [&](Value d, ValueRange) -> SmallVector<Value> {
    Value factor = loadVector(scores.total, {d}, lanes), before = factor;
    decay(/*shifted=*/true, d, factor);
    factor = mulf(factor, loadVector(packed.channelGates, {t, d}, lanes));
    decay(/*shifted=*/false, d, factor);
    if (plan.valueRead)
      storeVector(exclusive ? before : factor, along.factors, {t, d});
    storeVector(factor, scores.total, {d});
    return {};
  });
}

//===----------------------------------------------------------------------===//
// Normaliser
//===----------------------------------------------------------------------===//

/// The column of values 1: den_t = Qd_t·z + Σ_j P_tj, z ← Γ z + Σ_j Ke_j.
void ChunkScores::updateNormalizer() {
  forEach(index(0), count, shape.lanes, [&](Value t) {
    forEachMember([&](Value member) { divideTokens(t, member); });
  });
  // Several vectors side by side.
  int64_t width = shape.lanes;
  std::optional<int64_t> size = getConstantIntValue(keySize);
  while (size && *size % (2 * width) == 0 && width < 4 * shape.lanes)
    width *= 2;
  auto factorAt = [&](Value memref, Value d) -> Value {
    if (!memref)
      return {};
    return hasChannelDecay()
               ? loadVector(memref, {d}, width)
               : splat(load(memref,
                            {memref == numbers.cumulated ? rows : index(0)}),
                       width);
  };
  forEach(index(0), keySize, width, [&](Value d) {
    // The writes and the rounding residual of the factor come first: added to
    // the decayed sum, the residual would be rounded away.
    Value past = loadVector(panel.z, {d}, width);
    Value writes = reduce(rows, zeros(width), [&](Value j, Value partial) {
      return addf(partial, loadVector(packed.keys, {j, d}, width));
    });
    if (Value rest = factorAt(scores.residual, d))
      writes = fmaVector(past, rest, writes);
    Value factor = factorAt(scores.total ? scores.total : numbers.cumulated, d);
    Value sum = factor ? fmaVector(past, factor, writes) : addf(past, writes);
    storeVector(sum, panel.z, {d});
  });
}

/// 1/den of a vector of tokens from `first` on; what pads the chunk is among
/// them. A token's terms are summed lane by lane, then all lanes at once.
void ChunkScores::divideTokens(Value first, Value member) {
  int64_t lanes = shape.lanes;
  Rows tokens;
  for (int64_t i = 0; i < lanes; ++i)
    tokens.push_back(add(first, index(i)));
  Rows sums = reduceRow(
      keySize, Rows(lanes, zeros(lanes)),
      [&](Value d, ValueRange carried) -> SmallVector<Value> {
        Value line = loadVector(panel.z, {d}, lanes);
        Rows next(carried);
        for (auto [t, sum] : llvm::zip_equal(tokens, next))
          sum = fmaVector(loadVector(packed.queries, {member, t, d}, lanes),
                          line, sum);
        return next;
      });
  if (hasScalarGate())
    for (auto [t, sum] : llvm::zip_equal(tokens, sums))
      sum = mulf(sum, splat(cumulatedAt(t, /*before=*/false), lanes));
  auto score = [&](Value t, Value j) {
    return loadVector(scores.queries, {member, index(0), t, j}, lanes);
  };
  sums = reduce(index(0), first, lanes, sums,
                [&](Value j, ValueRange carried) -> SmallVector<Value> {
                  Rows next(carried);
                  for (auto [t, sum] : llvm::zip_equal(tokens, next))
                    sum = addf(sum, score(t, j));
                  return next;
                });
  // On the diagonal a token reads the keys up to its own.
  for (int64_t i = 0; i < lanes; ++i) {
    Value line =
        select(firstLanes(index(i + 1)), score(tokens[i], first), zeros(lanes));
    sums[i] = addf(sums[i], line);
  }
  Value runningMax =
      numbers.maxima ? loadVector(numbers.maxima, {first}, lanes) : Value();
  storeVector(emitInverseDenominator(b, loc, *r.normalize, tokenType,
                                     sumVectors(sums), runningMax),
              numbers.inverses, {member, first});
}
