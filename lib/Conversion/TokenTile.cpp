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
// The first token may read a state that lies elsewhere, for the copy that would
// otherwise precede all of this.
//
// An element of the state sees the same operations in the same order however
// many tokens there are: a sequence split anywhere gives the same bits.
//
//===----------------------------------------------------------------------===//

#include "ScanTile.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// Partial sums of one reduction over the rows: independent chains.
constexpr int64_t chains = 4;

/// Scratch memory of a task: rows of a block of tokens.
struct PackedTokens {
  explicit PackedTokens(ScanTask &task);

  Value queries, keys, values, transition, b, factors, writeGates, columnBetas,
      betas, own;
  /// The current panel; null where it is used in place.
  Value panel;
};

/// The tokens of a block: packed, then panel by panel one after the other.
class TokenBlock : public ScanBlock {
public:
  TokenBlock(const ScanTask &task, Value first, Value count,
             const PackedTokens &packed)
      : ScanBlock(task, first, count), packed(packed) {}

  void emit();

private:
  /// The first column of a panel, and the next panel, possibly of the next
  /// head.
  struct Panel {
    Value column, nextColumn, nextHead;
  };

  Panel enterPanel(Value number);
  void sweepPanel(const Panel &panel);
  Value stateOf(Value t) { return stateBefore(add(first, t)); }
  Value loadRow(const Panel &panel, Value state, Value d);
  void storeRow(const Panel &panel, Value row, Value d);
  void packToken(Value t);
  void packQueryOf(Value member, Value t);
  void packFactors(Value token, Value t);
  void sweepToken(const Panel &panel, Value t);
  Value readTransition(const Panel &panel, Value t);
  Value valueOf(const Panel &panel, Value t, Value read);
  void updateRows(const Panel &panel, Value t, Value writtenByKey, Value read,
                  bool reads);
  void prefetchRowOf(const Panel &panel, Value state, Value d);
  void readMember(const Panel &panel, Value t, Value member);
  using RowBody = function_ref<void(Value, Value, MutableArrayRef<Value>)>;
  SmallVector<Value> reduceRows(const Panel &panel, Value state,
                                SmallVector<Value> initial, RowBody body,
                                bool fromLast = false);
  Value sumOf(ArrayRef<Value> partial);
  void write(const Panel &panel, Value sum, Value t, Value member);

  const PackedTokens &packed;
};

} // namespace

PackedTokens::PackedTokens(ScanTask &task) {
  OpBuilder &b = task.b;
  OpFoldResult tokens = b.getIndexAttr(task.shape.block);
  OpFoldResult columns = getAsOpFoldResult(task.valueSize);
  OpFoldResult features = getAsOpFoldResult(task.keySize);
  OpFoldResult groupSize = getAsOpFoldResult(task.group);
  keys = task.scratch({tokens, features});
  values = task.scratch({tokens, columns});
  queries = task.scratch({groupSize, tokens, features});
  transition = task.scratch({tokens, features});
  if (getRule(task.update).isGiven)
    this->b = task.scratch({tokens, features});
  if (task.r.decay)
    factors = task.scratch({tokens, features});
  if (Value beta = task.r.beta) {
    if (rankOf(beta) == 4)
      columnBetas = task.scratch({tokens, columns});
    else
      betas = task.scratch({tokens});
  }
  if (task.r.write)
    writeGates = task.scratch({tokens, columns});
  if (task.r.bonus)
    own = task.scratch({groupSize, tokens});
  // With fewer tokens the copies cost as much as they save.
  constexpr int64_t manyTokens = 4;
  if (task.shape.block >= manyTokens || isTransposed(task.r.state.state))
    panel = task.scratch({features, b.getIndexAttr(task.shape.cols)});
}

void TokenBlock::emit() {
  stageTokens();
  forEach(count, [&](Value t) { packToken(t); });
  forEachMember([&](Value member) {
    stageQueries(queryHead(member));
    forEach(count, [&](Value t) { packQueryOf(member, t); });
  });
  forEach(panels(), [&](Value number) { sweepPanel(enterPanel(number)); });
}

void TokenBlock::sweepPanel(const Panel &panel) {
  SmallVector<Value> place{task.slot, task.head};
  if (packed.panel)
    loadPanel(stateBefore(first), place, panel.column, packed.panel, {});
  forEach(count, [&](Value t) { sweepToken(panel, t); });
  if (packed.panel)
    storePanel(r.state.state, place, panel.column, packed.panel, {},
               {task.slot, panel.nextHead}, panel.nextColumn);
}

/// A row of the panel, or of that memory where it is used in place.
Value TokenBlock::loadRow(const Panel &panel, Value state, Value d) {
  if (packed.panel)
    return loadVector(packed.panel, {d, index(0)}, shape.cols);
  return readOperand(state, {task.slot, task.head, d, panel.column},
                     shape.cols);
}

void TokenBlock::storeRow(const Panel &panel, Value row, Value d) {
  if (packed.panel)
    storeVector(row, packed.panel, {d, index(0)});
  else
    writeOperand(row, r.state.state, {task.slot, task.head, d, panel.column});
}

TokenBlock::Panel TokenBlock::enterPanel(Value number) {
  Value column = mul(number, index(shape.cols));
  Value next = add(column, index(shape.cols));
  Value isLast =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, next, valueSize);
  return {column, select(isLast, index(0), next),
          select(isLast, add(task.head, index(1)), task.head)};
}

void TokenBlock::packToken(Value t) {
  Value token = tokenAt(add(first, t));
  packKey(token, packed.keys, {t});
  packValue(token, packed.values, {t});
  packTransition(token, packed.keys, {t}, packed.transition, {t});
  if (packed.b)
    packGate(r.b, token, packed.b, {t});
  if (packed.factors)
    packFactors(token, t);
  if (packed.columnBetas)
    packGate(r.beta, token, packed.columnBetas, {t});
  if (packed.betas)
    store(written(convert(load(r.beta, {task.batch, task.head, token}), type),
                  token),
          packed.betas, {t});
  if (packed.writeGates)
    packGate(r.write, token, packed.writeGates, {t});
}

void TokenBlock::packQueryOf(Value member, Value t) {
  packQuery(tokenAt(add(first, t)), queryHead(member), packed.queries,
            {member, t});
  if (packed.own)
    store(ownWeight(packed.queries, {member, t}, packed.keys, {t}), packed.own,
          {member, t});
}

/// γ, a factor per row of the state; a is decayed here where it reads S after
/// its decay.
void TokenBlock::packFactors(Value token, Value t) {
  if (hasChannelDecay()) {
    packGate(r.decay, token, packed.factors, {t}, /*exponential=*/true);
  } else {
    Value factor = splat(exp(logarithmOfDecay(token)), shape.lanes);
    forEach(index(0), keySize, shape.lanes,
            [&](Value d) { storeVector(factor, packed.factors, {t, d}); });
  }
  if (before)
    return;
  reduceRow(keySize, {}, [&](Value d, ValueRange) -> SmallVector<Value> {
    Value a = loadVector(packed.transition, {t, d}, shape.lanes);
    storeVector(mulf(a, loadVector(packed.factors, {t, d}, shape.lanes)),
                packed.transition, {t, d});
    return {};
  });
}

/// Reduces over the rows of the state. `body` gets a row and its number, and
/// updates the sums of one chain. Rows after the last whole group belong to the
/// first chain.
SmallVector<Value> TokenBlock::reduceRows(const Panel &panel, Value state,
                                          SmallVector<Value> initial,
                                          RowBody body, bool fromLast) {
  size_t sums = initial.size() / chains;
  Value size = dim(r.state.state, 2), last = sub(size, index(1));
  Value whole = mul(div(size, index(chains)), index(chains));
  auto rowAt = [&](Value i) { return fromLast ? sub(last, i) : i; };
  SmallVector<Value> partial =
      reduce(index(0), whole, chains, initial,
             [&](Value d, ValueRange carried) -> SmallVector<Value> {
               SmallVector<Value> next(carried);
               for (int64_t i = 0; i < chains; ++i) {
                 Value row = rowAt(add(d, index(i)));
                 body(row, loadRow(panel, state, row),
                      MutableArrayRef<Value>(next).slice(i * sums, sums));
               }
               return next;
             });
  return reduce(whole, size, 1, partial,
                [&](Value d, ValueRange carried) -> SmallVector<Value> {
                  SmallVector<Value> next(carried);
                  Value row = rowAt(d);
                  body(row, loadRow(panel, state, row),
                       MutableArrayRef<Value>(next).take_front(sums));
                  return next;
                });
}

Value TokenBlock::sumOf(ArrayRef<Value> partial) {
  return addf(addf(partial[0], partial[1]), addf(partial[2], partial[3]));
}

Value TokenBlock::readTransition(const Panel &panel, Value t) {
  SmallVector<Value> initial(chains, zeros(shape.cols));
  return sumOf(reduceRows(panel, stateOf(t), initial,
                          [&](Value d, Value s, MutableArrayRef<Value> sums) {
                            Value a = splat(load(packed.transition, {t, d}),
                                            shape.cols);
                            sums[0] = fmaVector(a, s, sums[0]);
                          }));
}

/// The value written under the key.
Value TokenBlock::valueOf(const Panel &panel, Value t, Value read) {
  Value v = loadVector(packed.values, {t, panel.column}, shape.cols);
  if (getRule(update).isGiven)
    return v;
  if (packed.writeGates)
    v = mulf(v, loadVector(packed.writeGates, {t, panel.column}, shape.cols));
  v = addf(v, read);
  if (packed.betas)
    v = mulf(v, splat(load(packed.betas, {t}), shape.cols));
  if (packed.columnBetas)
    v = mulf(v, loadVector(packed.columnBetas, {t, panel.column}, shape.cols));
  return v;
}

void TokenBlock::sweepToken(const Panel &panel, Value t) {
  Value read = readTransition(panel, t);
  if (exclusive)
    forEachMember([&](Value member) { readMember(panel, t, member); });
  Value writtenByKey = valueOf(panel, t, read);
  auto readAfter = [&] {
    updateRows(panel, t, writtenByKey, read, /*reads=*/false);
    forEachMember([&](Value member) { readMember(panel, t, member); });
  };
  if (exclusive)
    return updateRows(panel, t, writtenByKey, read, /*reads=*/false);
  if (std::optional<int64_t> groupSize = getConstantIntValue(group))
    return *groupSize == 1 ? updateRows(panel, t, writtenByKey, read,
                                        /*reads=*/true)
                           : readAfter();
  ifThenElse(
      compare(arith::CmpIPredicate::eq, group, index(1)),
      [&] { updateRows(panel, t, writtenByKey, read, /*reads=*/true); },
      readAfter);
}

/// Prefetches a row of the next panel, and the row that it is written to, if
/// that lies elsewhere: into the second cache where the first one has no room
/// for two panels of both.
void TokenBlock::prefetchRowOf(const Panel &panel, Value state, Value d) {
  SmallVector<Value> at{task.slot, panel.nextHead, d, panel.nextColumn};
  prefetchState(state, at, shape.cols,
                /*isWritten=*/state == r.state.state);
  if (state != r.state.state)
    prefetchState(r.state.state, at, shape.cols,
                  /*isWritten=*/scatteredRows == firstCache, scatteredRows);
}

/// Decays and writes every row; a single reader `reads` in the same pass. It
/// goes from the last row to the first: where a panel slightly exceeds the
/// first cache, since its rows lie far apart, the rows read last are still
/// cached.
void TokenBlock::updateRows(const Panel &panel, Value t, Value writtenByKey,
                            Value read, bool reads) {
  int64_t cols = shape.cols;
  Value state = stateOf(t);
  SmallVector<Value> initial(reads ? chains : 0, zeros(cols));
  SmallVector<Value> sums = reduceRows(
      panel, state, initial,
      [&](Value d, Value s, MutableArrayRef<Value> sums) {
        if (packed.factors)
          s = mulf(s, splat(load(packed.factors, {t, d}), cols));
        s = fmaVector(splat(load(packed.keys, {t, d}), cols), writtenByKey, s);
        if (packed.b)
          s = fmaVector(splat(load(packed.b, {t, d}), cols), read, s);
        storeRow(panel, s, d);
        if (reads)
          sums[0] = fmaVector(
              splat(load(packed.queries, {index(0), t, d}), cols), s, sums[0]);
        // A prefetch between the load of a row and its product would keep the
        // two from being one instruction.
        if (!packed.panel)
          prefetchRowOf(panel, state, d);
      },
      /*fromLast=*/true);
  if (reads)
    write(panel, sumOf(sums), t, index(0));
}

/// In the order of `updateRows`: a head has the same bits alone and in a group.
void TokenBlock::readMember(const Panel &panel, Value t, Value member) {
  SmallVector<Value> initial(chains, zeros(shape.cols));
  Value state = exclusive ? stateOf(t) : r.state.state;
  Value sum = sumOf(reduceRows(
      panel, state, initial,
      [&](Value d, Value s, MutableArrayRef<Value> sums) {
        Value q = splat(load(packed.queries, {member, t, d}), shape.cols);
        sums[0] = fmaVector(q, s, sums[0]);
      },
      /*fromLast=*/true));
  if (packed.own)
    sum = fmaVector(splat(load(packed.own, {member, t}), shape.cols),
                    loadVector(packed.values, {t, panel.column}, shape.cols),
                    sum);
  write(panel, sum, t, member);
}

void TokenBlock::write(const Panel &panel, Value sum, Value t, Value member) {
  writeRow(sum, Value(), member, t, panel.column);
}

void mlir::linattn::lowerToTokenTile(OpBuilder &b, ScanOp op, TileShape shape,
                                     LengthRange range, Value initial) {
  Recurrence r(op);
  r.initial = initial;
  ScanTile tile(b, r, shape, /*rowMultiple=*/1, range);
  tile.forEachTask(
      tile.index(1), /*spanMultiple=*/0, [&](const ScanTile::Task &number) {
        ScanTask task(tile, number, shape.block);
        PackedTokens packed(task);
        task.forEach(number.begin, number.end, shape.block, [&](Value first) {
          Value count =
              task.min(task.sub(number.end, first), task.index(shape.block));
          TokenBlock(task, first, count, packed).emit();
        });
        task.freeScratch();
      });
}
