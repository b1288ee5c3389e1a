//===- TokenTile.cpp - Rank-1 updates token by token ----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For a few tokens: a panel of columns of the state is read twice from the
// nearest cache, where it was prefetched while the panel before it was written.
// One token finds it where it lies; for several it is copied, since its rows
// lie so far apart that the nearest cache may have no room for them. Per token
//
//   r = Sᵀ(γ ⊙ a)               or Sᵀ a, before the decay
//   S ← γ ⊙ S + k (β (w v + r))ᵀ   or + k vᵀ + b rᵀ
//   o = Sᵀ q                       before or after that
//
// An element of the state sees the same operations in the same order however
// many tokens there are: a sequence split anywhere gives the same bits.
//
//===----------------------------------------------------------------------===//

#include "ScanTile.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

class TokenTile : public ScanTile {
public:
  using ScanTile::ScanTile;
  void emit();

private:
  /// Partial sums of one reduction over the rows: independent chains.
  static constexpr int64_t chains = 4;

  void sweepPanel(Value panel, Value first, Value count);
  void enterPanel(Value panel);
  Value loadRow(Value d);
  void storeRow(Value row, Value d);
  void allocateScratch();
  void packToken(Value first, Value t);
  void packQueryOf(Value member, Value first, Value t);
  void packFactors(Value token, Value t);
  void sweepToken(Value first, Value t);
  Value readTransition(Value t);
  Value valueOf(Value t, Value r);
  void updateRows(Value t, Value writtenByKey, Value r, Value first);
  void readMember(Value t, Value member, Value first);
  SmallVector<Value>
  reduceRows(SmallVector<Value> initial,
             function_ref<void(Value, MutableArrayRef<Value>)> body,
             bool fromLast = false);
  Value sumOf(ArrayRef<Value> partial);
  void write(Value sum, Value first, Value t, Value member);

  // Scratch, rows of a block of tokens.
  Value queries, keys, values, transition, bRows, factors, writeGates,
      columnBetas, betas, own;
  // The current panel; null where it is used in place.
  Value copied;
  /// A panel's first column, and the panel after it, maybe of the next head.
  struct Panel {
    Value column, nextColumn, nextHead;
  };
  Panel current;
};

} // namespace

void TokenTile::emit() {
  forEachTask(1, [&] {
    allocateScratch();
    forEach(begin, end, shape.block, [&](Value first) {
      Value count = min(sub(end, first), index(shape.block));
      stageTokens(first, count);
      forEach(count, [&](Value t) { packToken(first, t); });
      forEachMember([&](Value member) {
        stageQueries(queryHead(member), first, count);
        forEach(count, [&](Value t) { packQueryOf(member, first, t); });
      });
      forEach(panels(), [&](Value panel) { sweepPanel(panel, first, count); });
    });
  });
}

void TokenTile::sweepPanel(Value panel, Value first, Value count) {
  enterPanel(panel);
  if (copied)
    loadPanel(scan.getState(), {slot, head}, current.column, copied, {});
  forEach(count, [&](Value t) { sweepToken(first, t); });
  if (copied)
    storePanel(scan.getState(), {slot, head}, current.column, copied, {},
               {slot, current.nextHead}, current.nextColumn);
}

Value TokenTile::loadRow(Value d) {
  if (copied)
    return loadVector(copied, {d, index(0)}, shape.cols);
  return readOperand(scan.getState(), {slot, head, d, current.column},
                     shape.cols);
}

void TokenTile::storeRow(Value row, Value d) {
  if (copied)
    storeVector(row, copied, {d, index(0)});
  else
    writeOperand(row, scan.getState(), {slot, head, d, current.column});
}

void TokenTile::enterPanel(Value panel) {
  current.column = mul(panel, index(shape.cols));
  Value next = add(current.column, index(shape.cols));
  Value isLast =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, next, valueSize);
  current.nextColumn = select(isLast, index(0), next);
  current.nextHead = select(isLast, add(head, index(1)), head);
}

void TokenTile::allocateScratch() {
  OpFoldResult tokens = b.getIndexAttr(shape.block);
  OpFoldResult columns = getAsOpFoldResult(valueSize);
  OpFoldResult features = getAsOpFoldResult(keySize);
  OpFoldResult members = getAsOpFoldResult(group);
  keys = scratch({tokens, features});
  values = scratch({tokens, columns});
  queries = scratch({members, tokens, features});
  transition = scratch({tokens, features});
  if (getRule(update).isGiven)
    bRows = scratch({tokens, features});
  if (scan.getDecay())
    factors = scratch({tokens, features});
  if (Value beta = scan.getBeta()) {
    if (rankOf(beta) == 4)
      columnBetas = scratch({tokens, columns});
    else
      betas = scratch({tokens});
  }
  if (scan.getWrite())
    writeGates = scratch({tokens, columns});
  if (scan.getBonus())
    own = scratch({members, tokens});
  allocateStaged(shape.block);
  // For fewer tokens the copies cost what they save.
  constexpr int64_t manyTokens = 4;
  if (shape.block >= manyTokens || isTransposed(scan.getState()))
    copied = scratch({features, b.getIndexAttr(shape.cols)});
}

void TokenTile::packToken(Value first, Value t) {
  Value token = tokenAt(add(first, t));
  packKey(token, keys, {t});
  packValue(token, values, {t});
  packTransition(token, keys, {t}, transition, {t});
  if (bRows)
    packGate(scan.getB(), token, bRows, {t});
  if (factors)
    packFactors(token, t);
  if (columnBetas)
    packGate(scan.getBeta(), token, columnBetas, {t});
  if (betas)
    store(written(convert(load(scan.getBeta(), {batch, head, token}), type),
                  token),
          betas, {t});
  if (writeGates)
    packGate(scan.getWrite(), token, writeGates, {t});
}

void TokenTile::packQueryOf(Value member, Value first, Value t) {
  packQuery(tokenAt(add(first, t)), queryHead(member), queries, {member, t});
  if (own)
    store(ownWeight(queries, {member, t}, keys, {t}), own, {member, t});
}

/// γ, a factor per row of the state; a is decayed here where it reads S after
/// its decay.
void TokenTile::packFactors(Value token, Value t) {
  if (hasChannelDecay()) {
    packGate(scan.getDecay(), token, factors, {t}, /*exponential=*/true);
  } else {
    Value factor = splat(exp(logarithmOfDecay(token)), shape.lanes);
    forEach(index(0), keySize, shape.lanes,
            [&](Value d) { storeVector(factor, factors, {t, d}); });
  }
  if (before)
    return;
  reduceRow(keySize, {}, [&](Value d, ValueRange) -> SmallVector<Value> {
    Value a = loadVector(transition, {t, d}, shape.lanes);
    storeVector(mulf(a, loadVector(factors, {t, d}, shape.lanes)), transition,
                {t, d});
    return {};
  });
}

/// Reduces over the rows of the state; `body` updates the sums of one chain.
/// Rows past the last whole group go to the first chain.
SmallVector<Value>
TokenTile::reduceRows(SmallVector<Value> initial,
                      function_ref<void(Value, MutableArrayRef<Value>)> body,
                      bool fromLast) {
  size_t sums = initial.size() / chains;
  Value size = dim(scan.getState(), 2), last = sub(size, index(1));
  Value whole = mul(div(size, index(chains)), index(chains));
  auto rowAt = [&](Value i) { return fromLast ? sub(last, i) : i; };
  SmallVector<Value> partial =
      reduce(index(0), whole, chains, initial,
             [&](Value d, ValueRange carried) -> SmallVector<Value> {
               SmallVector<Value> next(carried);
               for (int64_t i = 0; i < chains; ++i)
                 body(rowAt(add(d, index(i))),
                      MutableArrayRef<Value>(next).slice(i * sums, sums));
               return next;
             });
  return reduce(whole, size, 1, partial,
                [&](Value d, ValueRange carried) -> SmallVector<Value> {
                  SmallVector<Value> next(carried);
                  body(rowAt(d), MutableArrayRef<Value>(next).take_front(sums));
                  return next;
                });
}

Value TokenTile::sumOf(ArrayRef<Value> partial) {
  return addf(addf(partial[0], partial[1]), addf(partial[2], partial[3]));
}

Value TokenTile::readTransition(Value t) {
  SmallVector<Value> initial(chains, zeros(shape.cols));
  return sumOf(reduceRows(initial, [&](Value d, MutableArrayRef<Value> sums) {
    Value s = loadRow(d);
    Value a = splat(load(transition, {t, d}), shape.cols);
    sums[0] = fmaVector(a, s, sums[0]);
  }));
}

/// The value written under the key.
Value TokenTile::valueOf(Value t, Value r) {
  Value v = loadVector(values, {t, current.column}, shape.cols);
  if (getRule(update).isGiven)
    return v;
  if (writeGates)
    v = mulf(v, loadVector(writeGates, {t, current.column}, shape.cols));
  v = addf(v, r);
  if (betas)
    v = mulf(v, splat(load(betas, {t}), shape.cols));
  if (columnBetas)
    v = mulf(v, loadVector(columnBetas, {t, current.column}, shape.cols));
  return v;
}

void TokenTile::sweepToken(Value first, Value t) {
  Value r = readTransition(t);
  if (exclusive)
    forEachMember([&](Value member) { readMember(t, member, first); });
  updateRows(t, valueOf(t, r), r, first);
  if (!exclusive && getConstantIntValue(group) != 1)
    forEachMember([&](Value member) { readMember(t, member, first); });
}

/// Decays and writes every row; a single reader reads in the same pass. It goes
/// from the last row to the first: where a panel is a little larger than what
/// the nearest cache has room for, since its rows lie far apart, the rows that
/// were read last are still there.
void TokenTile::updateRows(Value t, Value writtenByKey, Value r, Value first) {
  int64_t cols = shape.cols;
  bool reads = !exclusive && getConstantIntValue(group) == 1;
  SmallVector<Value> initial(reads ? chains : 0, zeros(cols));
  SmallVector<Value> sums = reduceRows(
      initial,
      [&](Value d, MutableArrayRef<Value> sums) {
        if (!copied)
          prefetchState(scan.getState(),
                        {slot, current.nextHead, d, current.nextColumn}, cols);
        Value s = loadRow(d);
        if (factors)
          s = mulf(s, splat(load(factors, {t, d}), cols));
        s = fmaVector(splat(load(keys, {t, d}), cols), writtenByKey, s);
        if (bRows)
          s = fmaVector(splat(load(bRows, {t, d}), cols), r, s);
        storeRow(s, d);
        if (reads)
          sums[0] = fmaVector(splat(load(queries, {index(0), t, d}), cols), s,
                              sums[0]);
      },
      /*fromLast=*/true);
  if (reads)
    write(sumOf(sums), first, t, index(0));
}

/// In the order of `updateRows`: a head has the same bits alone and in a group.
void TokenTile::readMember(Value t, Value member, Value first) {
  SmallVector<Value> initial(chains, zeros(shape.cols));
  Value sum = sumOf(reduceRows(
      initial,
      [&](Value d, MutableArrayRef<Value> sums) {
        Value s = loadRow(d);
        Value q = splat(load(queries, {member, t, d}), shape.cols);
        sums[0] = fmaVector(q, s, sums[0]);
      },
      /*fromLast=*/true));
  if (own)
    sum = fmaVector(splat(load(own, {member, t}), shape.cols),
                    loadVector(values, {t, current.column}, shape.cols), sum);
  write(sum, first, t, member);
}

void TokenTile::write(Value sum, Value first, Value t, Value member) {
  writeOutput(sum, Value(), member, tokenAt(add(first, t)), current.column);
}

void mlir::linattn::lowerToTokenTile(OpBuilder &b, ScanOp op, TileShape shape,
                                     LengthRange range) {
  TokenTile tile(b, op, shape);
  tile.lengths = range;
  tile.emit();
}
