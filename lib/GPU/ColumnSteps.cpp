//===- ColumnSteps.cpp - Chunks by columns: the state through a block -----===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ColumnKernel.h"
#include "linattn/Dialect/FeatureMaps.h"

using namespace mlir;
using namespace mlir::linattn;

ColumnSteps::ColumnSteps(const ColumnFrame &frame, Value number, Value lane)
    : ColumnFrame(frame), number(number), lane(lane), row(k.shr(lane, 2)),
      pair(k.band(lane, 3)) {
  // Rows of four 8×8 matrices: first below one another, or first side by side.
  Value low15 = k.band(lane, 15), high = k.shr(lane, 4);
  Value low7 = k.band(lane, 7);
  bit3 = k.band(k.shr(lane, 3), 1);
  paired = k.add(low7, k.mul(high, 8));
  tokenPlace = tokenTile().place(k, low15, high);
  transposedPlace = tokenTile().place(k, paired, bit3);
  valuePlace = placeOfColumns(type());
  if (op.getWrite())
    gatePlace = placeOfColumns(typeOf(op.getWrite()));
  if (hasValueDecay())
    decayPlace = placeOfColumns(typeOf(op.getValueDecay()));
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

Matrix ColumnSteps::loadScores(Value address) {
  Value place = k.add(k.mul(row, scorePitch), k.mul(pair, 8));
  Value mine = k.offset(address, place);
  Matrix matrix;
  for (int64_t i = 0; i < 4; ++i) {
    auto [x, y] = loadPair(k.offset(mine, i % 2 * 8 * scorePitch + i / 2 * 32));
    matrix.append({x, y});
  }
  return matrix;
}

/// The summands of a block's rows in tiles of tokens.
ColumnSteps::TileRows ColumnSteps::rowsOf(Place tiles, Value block,
                                          int64_t summands, Value place) {
  SharedTile tile = tokenTile();
  Value start = k.mul(block, blockSize * tile.pitch());
  TileRows rows;
  for (int64_t s = 0; s < summands; ++s)
    rows.emplace_back(k, tile, k.offset(at(tiles + s * tile.bytes()), start),
                      place);
  return rows;
}

/// 16 channels of them.
Summands ColumnSteps::loadStep(TileRows &rows, int64_t step, bool transposed) {
  Summands summands;
  for (LanePointer &pointer : rows)
    summands.push_back(
        Values(k.loadMatrices(pointer.at(0, 2 * step), transposed)));
  return summands;
}

/// Of this lane in a tile of value columns.
Value ColumnSteps::placeOfColumns(Type element) {
  SharedTile tile = columnTile(element);
  return element.isF32() ? transposedOffset(k, tile, row, k.mul(warp, 4), pair)
                         : tile.place(k, paired, k.add(k.mul(warp, 2), bit3));
}

/// The warp's columns of a block in such a tile, as they arrive: columns ×
/// tokens.
ColumnSteps::Values ColumnSteps::loadColumns(Place columns, Type element,
                                             Value place, Value block) {
  SharedTile tile = columnTile(element);
  Value base = k.offset(at(columns), k.mul(block, blockSize * tile.pitch()));
  LanePointer pointer(k, tile, base, place);
  if (element.isF32())
    return loadTransposed(k, pointer, 0, 0);
  return Values(k.loadMatrices(pointer.at(0, 0), /*transposed=*/true));
}

/// The same of gates, in f32.
Matrix ColumnSteps::loadGates(Place tile, Value gate, Value place,
                              Value block) {
  Type element = typeOf(gate);
  Values gates = loadColumns(tile, element, place, block);
  return element.isF32() ? gates : linattn::join(k, element, {gates});
}

/// The warp's columns of a block's values.
Summands ColumnSteps::loadValues(Value block) {
  Values values = loadColumns(arrived.value, type(), valuePlace, block);
  if (!op.getWrite())
    return isWide() ? split(values, stateSummands()) : Summands{values};
  Matrix matrix = isWide() ? values : join({values});
  Matrix gates = loadGates(arrived.write, op.getWrite(), gatePlace, block);
  for (auto [x, gate] : llvm::zip(matrix, gates))
    x = k.mulf(x, gate);
  return split(matrix, stateSummands());
}

Summands ColumnSteps::loadScore(Value block, Score score, int64_t count) {
  Value scores = at(layout.finalScores, block, finalBytes());
  return split(loadScores(k.offset(scores, score * scoreBytes)), count);
}

/// Factors of the tokens that are columns of this lane's matrices.
ColumnSteps::Values ColumnSteps::tokenFactors(Place factors, Value block) {
  Value token = k.add(k.mul(block, blockSize), k.mul(pair, 2));
  auto [w, x] = loadPair(at(factors, token));
  auto [y, z] = loadPair(at(factors, k.add(token, 8)));
  return {w, x, w, x, y, z, y, z};
}

/// Multiplies the rows of a matrix, one per token, by the decays of queries.
void ColumnSteps::scaleRows(MutableArrayRef<Value> o, Value block) {
  Value token = k.add(k.mul(block, blockSize), row);
  for (int64_t lower = 0; lower < 2; ++lower) {
    Value factor = loadFloat(at(layout.factors.query, k.add(token, 8 * lower)));
    for (size_t i = 2 * lower; i < o.size(); i += 4)
      for (size_t j : {i, i + 1})
        o[j] = k.mulf(o[j], factor);
  }
}

/// 16 channels of the normalizer, as every row of a matrix.
Summands ColumnSteps::normalizerColumn(Value block, int64_t step) {
  Value channel = k.add(k.mul(block, paddedKey()), k.mul(pair, 2));
  auto [w, x] =
      loadPair(at(layout.normalizers, k.add(channel, step * blockSize)));
  auto [y, z] =
      loadPair(at(layout.normalizers, k.add(channel, step * blockSize + 8)));
  return split(Values{w, x, w, x, y, z, y, z}, readSummands());
}

//===----------------------------------------------------------------------===//
// One block
//===----------------------------------------------------------------------===//

/// Decays the product of the readers of a transition with the state.
Matrix ColumnSteps::decayRead(Matrix read, Value block) {
  if (hasScalarDecay()) {
    Values factors = tokenFactors(layout.factors.read, block);
    for (auto [x, factor] : llvm::zip(read, factors))
      x = k.mulf(x, factor);
  }
  return read;
}

/// Δ = (I + A)⁻¹ β (V − (K ⊙ e^c) S); β stands in the inverse.
Matrix ColumnSteps::solveDelta(Value block, ValueRange read, Matrix values) {
  for (auto [x, r] : llvm::zip(values, read))
    x = k.subf(x, r);
  return product(split(values, stateSummands()),
                 loadScore(block, ReaderKey, stateSummands()));
}

/// R = (I − AB)⁻¹ ((A ⊙ e^c) S + AK V).
Matrix ColumnSteps::solveGiven(Value block, Matrix read,
                               const Summands &values) {
  multiply(read, values, loadScore(block, ReaderKey, stateSummands()),
           stateSummands());
  return product(split(read, stateSummands()),
                 loadScore(block, ReaderPush, stateSummands()));
}

/// The values that keys are written with, where nothing is read.
Summands ColumnSteps::loadIncrement(Value block) {
  Summands values = loadValues(block);
  return hasScalarDecay() ? scaleTokens(join(values), block) : values;
}

/// Decays written values from their token to the end of the block.
Summands ColumnSteps::scaleTokens(Matrix written, Value block) {
  Values factors = tokenFactors(layout.factors.write, block);
  for (auto [x, factor] : llvm::zip(written, factors))
    x = k.mulf(x, factor);
  return split(written, stateSummands());
}

/// S through one block: reads for Δ and the outputs, then the update.
ColumnSteps::Values ColumnSteps::advance(Value block, ValueRange state) {
  if (hasValueDecay())
    return advanceColumns(block, state);
  if (!hasScores())
    return updateState(block, state, loadIncrement(block));
  Value zero = k.f32(0);
  Matrix read(8, zero);
  Values o(8, zero), denominators(4, zero);
  TileRows queries = rowsOf(layout.tiles.query, block,
                            reads() ? querySummands() : 0, tokenPlace);
  TileRows readers = rowsOf(layout.tiles.read, block,
                            hasTransition() ? readerSummands() : 0, tokenPlace);
  for (int64_t step = 0; step < steps(); ++step) {
    Summands s = split(state.slice(8 * step, 8),
                       hasTransition() ? stateSummands() : readSummands());
    if (hasTransition())
      multiply(read, s, loadStep(readers, step), stateSummands());
    if (!reads())
      continue;
    Summands q = loadStep(queries, step);
    multiply(o, q, s, readSummands());
    if (normalizes())
      multiply(denominators, q, normalizerColumn(block, step), readSummands(),
               /*halves=*/1);
  }
  if (hasScalarDecay() && reads()) {
    scaleRows(o, block);
    if (normalizes())
      scaleRows(denominators, block);
  }
  Summands delta = loadValues(block), pushed;
  Matrix whole, pushedWhole;
  if (hasTransition())
    read = decayRead(read, block);
  if (isDelta()) {
    whole = solveDelta(block, read, join(delta));
    delta = split(whole, stateSummands());
  }
  if (isGiven()) {
    pushedWhole = solveGiven(block, read, delta);
    pushed = split(pushedWhole, stateSummands());
  }
  if (reads()) {
    if (isGiven())
      multiply(o, loadScore(block, QueryPush, readSummands()), pushed,
               readSummands());
    Summands p = loadScore(block, QueryKey, readSummands());
    multiply(o, p, delta, readSummands());
    if (normalizes())
      multiply(denominators, p, split(Values(8, k.f32(1)), 1), readSummands(),
               /*halves=*/1);
    writeOutput(block, o, denominators);
  }
  if (hasScalarDecay()) {
    delta = scaleTokens(isDelta() ? whole : join(delta), block);
    if (isGiven())
      pushed = scaleTokens(pushedWhole, block);
  }
  return updateState(block, state, delta, pushed);
}

/// S = e^(c_16) ⊙ S + Keysᵀ Δ, of given updates + Bᵀ R. `decayedRows`: by what
/// the two columns of this lane decay, where columns do.
ColumnSteps::Values ColumnSteps::updateState(Value block, ValueRange state,
                                             const Summands &delta,
                                             const Summands &pushed,
                                             ValueRange decayedRows) {
  Values next(state);
  TileRows keys =
      rowsOf(layout.tiles.write, block, keySummands(), transposedPlace);
  TileRows pushes = rowsOf(layout.tiles.push, block,
                           isGiven() ? pushSummands() : 0, transposedPlace);
  Value scalar;
  if (hasScalarDecay())
    scalar = loadFloat(at(layout.totals, block));
  for (int64_t step = 0; step < steps(); ++step) {
    Values factors(8, scalar);
    if (hasChannelDecay()) {
      Value channel = k.add(k.mul(block, paddedKey()), k.mul(pair, 2));
      auto [w, x] =
          loadPair(at(layout.totals, k.add(channel, step * blockSize)));
      auto [y, z] =
          loadPair(at(layout.totals, k.add(channel, step * blockSize + 8)));
      factors = {w, x, w, x, y, z, y, z};
    }
    for (size_t i = 0; i < factors.size() && !decayedRows.empty(); ++i)
      factors[i] = decayedRows[i / 2 % 2];
    Matrix written = product(delta, loadStep(keys, step, /*transposed=*/true));
    if (isGiven())
      accumulate(k, summandType(), written, pushed,
                 loadStep(pushes, step, /*transposed=*/true), stateSummands());
    for (int64_t i = 0; i < 8; ++i) {
      Value &s = next[8 * step + i];
      s = factors[i] ? k.fma(s, factors[i], written[i]) : k.addf(s, written[i]);
    }
  }
  for (int64_t i = 0; i < factorCount(); ++i) {
    Value factor = scalar;
    if (!factor) {
      Value channel = k.add(scan.thread, i * warps() * 32);
      channel = k.select(k.less(channel, paddedKey()), channel, k.i32(0));
      Value index = k.add(k.mul(block, paddedKey()), channel);
      factor = loadFloat(at(layout.totals, index));
    }
    Value &product = next[8 * steps() + i];
    product = k.mulf(product, factor);
  }
  return next;
}

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

void ColumnSteps::writeOutput(Value block, Values o, ValueRange denominators) {
  Value scale = k.f32(scaleOr1(op.getScale()));
  std::array<Value, 2> inverse;
  for (int64_t lower = 0; lower < 2 && normalizes(); ++lower)
    inverse[lower] =
        emitInverseDenominator(k.b, k.loc, *op.getNormalize(), type(),
                               k.mulf(denominators[2 * lower], scale));
  for (size_t i = 0; i < o.size(); ++i) {
    o[i] = k.mulf(o[i], scale);
    if (normalizes())
      o[i] = emitClamp(k.b, k.loc, *op.getNormalize(),
                       k.mulf(o[i], inverse[i / 2 % 2]));
  }
  Value first = k.add(k.mul(number, tokens()), k.mul(block, blockSize));
  writeRows(first, o);
}

/// Writes 16 rows of the warp's columns. A row is two units of 16 bytes, that
/// lanes put together in shared memory; of f32 four lanes have 32 bytes of it
/// anyway.
void ColumnSteps::writeRows(Value first, ValueRange o) {
  Value warpColumn = k.mul(warp, blockSize);
  if (scan.firstColumn)
    warpColumn = k.add(warpColumn, scan.firstColumn);
  int64_t granule = granuleOf(valueSize(), type());
  // `values` of a row, from `column` of the warp on, in pieces of a granule.
  auto write = [&](Value mine, Value column, int64_t words, Values values) {
    Value number = k.add(first, mine);
    k.ifThen(k.less(number, scan.here.count), [&] {
      Value token = k.extend(number);
      Value to = arrays.output.at(k, token);
      Value inSlice = k.add(k.mul(warp, blockSize), column);
      to = k.offset(to, k.mul(inSlice, elementBytes()));
      int64_t atOnce = std::min(words, granule / 4);
      for (int64_t i = 0; i < words; i += atOnce) {
        Value exists;
        if (isRagged())
          exists =
              k.less(k.add(k.add(warpColumn, column), 4 * i / elementBytes()),
                     valueSize());
        k.ifThen(exists, [&] {
          ValueRange part = ValueRange(values).slice(i, atOnce);
          k.store(atOnce == 1 ? part[0] : k.vectorOf(part), k.offset(to, 4 * i),
                  4 * atOnce);
        });
      }
    });
  };
  if (isWide()) {
    for (int64_t i = 0; i < 4; ++i)
      write(k.add(row, i % 2 * 8), k.add(k.mul(pair, 2), i / 2 * 8), 2,
            Values(o.slice(2 * i, 2)));
    return;
  }
  SharedTile tile = outputTile();
  Value base = at(layout.output), unit = k.mul(warp, 2);
  LanePointer pointer(k, tile, base,
                      k.add(tile.place(k, row, unit), k.mul(pair, 4)));
  k.warpBarrier(); // The rows before these have been read.
  for (int64_t i = 0; i < 4; ++i)
    k.store(k.pack(type(), o[2 * i], o[2 * i + 1]),
            pointer.at(i % 2 * 8, i / 2), 4);
  k.warpBarrier();
  // Eight lanes read four rows that the swizzle keeps in different banks.
  Value mine = k.add(
      k.add(k.mul(k.band(k.shr(lane, 1), 3), 2), k.band(k.shr(lane, 3), 1)),
      k.mul(k.shr(lane, 4), 8));
  Value half = k.band(lane, 1);
  Value x = k.load(VectorType::get({4}, k.b.getI32Type()),
                   k.offset(base, tile.place(k, mine, k.add(unit, half))), 16);
  Values words;
  for (int64_t i = 0; i < 4; ++i)
    words.push_back(k.element(x, i));
  write(mine, k.mul(half, 8), 4, words);
}

ColumnSteps::Values ColumnSteps::run(ValueRange state) {
  return k.loop(k.i32(blocks()), state, [&](Value block, ValueRange carried) {
    return advance(block, carried);
  });
}
