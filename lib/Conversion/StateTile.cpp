//===- StateTile.cpp - The state-tile schedule ----------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile of S, rows × cols, stays in vector registers while a block of tokens
// streams past it: no QKᵀ, no exponential of a cumulated decay, exact for any
// gate. Columns are cut into panels; S is kept panel by panel so that a tile is
// contiguous. Per block:
//
//   pack    φ(q), φ(k), v and the gates, zero-padded to whole vectors
//   z       the normaliser's row and the denominators
//   sweep   for each panel, for each tile: S_i ← γ S_i + k_i v,  o ← o + q_i
//   S_i write   o · 1/den to the output
//
// Every element sees the same operations in the same order whatever the block,
// the panel or the number of threads: results are bitwise reproducible, and a
// sequence split anywhere gives the same bits.
//
//===----------------------------------------------------------------------===//

#include "TileBuilder.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

class StateTile : public TileBuilder {
public:
  using TileBuilder::TileBuilder;

  // Operands; absent ones are null.
  Value query, key, value, decay, valueDecay, bonus, mask, offsets, output;
  StateValues state;
  std::optional<NormalizeAttr> normalize;
  double scale = 1.0;
  bool exclusive = false, reverse = false, stabilised = false,
       tokenForm = false;

  void emit();

private:
  void emitTask(Value task);
  void emitBlock(Value first, Value count);
  void allocateScratch();
  void loadState();
  void storeState();

  // Packing.
  void packToken(Value t);
  void packKey(Value t);
  void packGates(Value t, Value rescale);
  void packQueries(Value t);
  Value raiseRunningMax(Value keyRowMax, Value keep);
  Value tokenAt(Value t);

  // Normaliser.
  void updateNormalizer(Value count);

  // Sweep.
  void sweepPanel(Value panel, Value count);
  void sweepTile(Value panel, Value row, Value count);
  void sweepToken(Value panel, Value t);
  Value decayed(Value s, Value t, Value row, Value column);
  Value initialOutput(Value member, Value t, Value column);
  void writeOutput(Value o, Value member, Value t, Value column);

  bool hasScalarGate() const {
    return state.runningMax || (decay && rankOf(decay) != 4);
  }
  bool hasChannelGate() const { return decay && rankOf(decay) == 4; }
  static int64_t rankOf(Value v) {
    return cast<ShapedType>(v.getType()).getRank();
  }
  /// Number of panels.
  Value panels() { return div(valueSize, index(shape.cols)); }
  Value outputHead(Value member) { return add(mul(head, group), member); }
  void forEachMember(function_ref<void(Value)> body) {
    if (getConstantIntValue(group) == 1)
      return body(index(0));
    forEach(group, body);
  }

  // Sizes: padded key and value size, output heads per state head.
  Value keySize, valueSize, group, heads;
  // The task at hand.
  Value slot, batch, head, begin, end;
  // The block at hand.
  Value first;
  // Scratch: see allocateScratch.
  Value keys, values, queries, outputs, scalarGates, channelGates, valueGates,
      tile, z, denominators, inverses, own;
};

} // namespace

//===----------------------------------------------------------------------===//
// Tasks and blocks
//===----------------------------------------------------------------------===//

void StateTile::emit() {
  heads = dim(state.state, 1);
  // No heads, no tasks; but the division is made before any.
  group = query ? div(dim(output, 1), max(heads, index(1))) : index(1);
  keySize = roundUp(dim(state.state, 2), std::max(shape.lanes, shape.rows));
  valueSize = roundUp(dim(state.state, 3), shape.cols);
  // A state head is one task: its columns could be split further, its tokens
  // could not without changing the order of the sums.
  parallel(mul(dim(state.state, 0), heads),
           [&](Value task) { emitTask(task); });
}

void StateTile::emitTask(Value task) {
  slot = div(task, heads);
  head = rem(task, heads);
  batch = slot;
  begin = index(0);
  end = dim(key ? key : query, 2);
  if (offsets) {
    auto offset = [&](Value position) -> Value {
      return arith::IndexCastOp::create(b, loc, b.getIndexType(),
                                        load(offsets, {position}));
    };
    begin = offset(slot);
    end = offset(add(slot, index(1)));
    batch = index(0);
  }
  allocateScratch();
  loadState();
  forEach(begin, end, shape.block, [&](Value blockStart) {
    emitBlock(blockStart, min(sub(end, blockStart), index(shape.block)));
  });
  if (key)
    storeState();
  freeScratch();
}

void StateTile::emitBlock(Value blockStart, Value count) {
  first = blockStart;
  forEach(count, [&](Value t) { packToken(t); });
  if (state.normalizer)
    updateNormalizer(count);
  forEach(panels(), [&](Value panel) { sweepPanel(panel, count); });
}

void StateTile::allocateScratch() {
  OpFoldResult block = b.getIndexAttr(shape.block);
  OpFoldResult columns = getAsOpFoldResult(valueSize);
  OpFoldResult rows = getAsOpFoldResult(keySize);
  OpFoldResult members = getAsOpFoldResult(group);
  if (key) {
    keys = scratch({block, rows});
    values = scratch({block, columns});
    if (hasScalarGate())
      scalarGates = scratch({block});
    if (hasChannelGate())
      channelGates = scratch({block, rows});
    if (valueDecay)
      valueGates = scratch({block, columns});
  }
  if (query) {
    queries = scratch({members, block, rows});
    if (!tokenForm)
      outputs = scratch({members, block, b.getIndexAttr(shape.cols)});
    if (bonus)
      own = scratch({members, block});
  }
  if (!tokenForm)
    tile = scratch(
        {getAsOpFoldResult(panels()), rows, b.getIndexAttr(shape.cols)});
  if (state.normalizer) {
    z = scratch({rows});
    if (query) {
      denominators = scratch({members, block, b.getIndexAttr(shape.lanes)});
      inverses = scratch({members, block});
    }
  }
}

/// Copies the state into panels, rows and columns past the end zero.
void StateTile::loadState() {
  Value rows = dim(state.state, 2);
  if (!tokenForm)
    forEach(panels(), [&](Value panel) {
      Value column = mul(panel, index(shape.cols));
      forEach(index(0), rows, 1, [&](Value d) {
        storeVector(
            readOperand(state.state, {slot, head, d, column}, shape.cols), tile,
            {panel, d, index(0)});
      });
      forEach(rows, keySize, 1, [&](Value d) {
        storeVector(zeros(shape.cols), tile, {panel, d, index(0)});
      });
    });
  if (state.normalizer)
    forEach(index(0), keySize, shape.lanes, [&](Value d) {
      storeVector(readOperand(state.normalizer, {slot, head, d}, shape.lanes),
                  z, {d});
    });
}

void StateTile::storeState() {
  if (!tokenForm)
    forEach(panels(), [&](Value panel) {
      Value column = mul(panel, index(shape.cols));
      forEach(dim(state.state, 2), [&](Value d) {
        writeOperand(loadVector(tile, {panel, d, index(0)}, shape.cols),
                     state.state, {slot, head, d, column});
      });
    });
  if (state.normalizer)
    forEach(index(0), dim(state.state, 2), shape.lanes, [&](Value d) {
      writeOperand(loadVector(z, {d}, shape.lanes), state.normalizer,
                   {slot, head, d});
    });
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

/// The token behind position t of the block.
Value StateTile::tokenAt(Value t) {
  Value position = add(first, t);
  if (!reverse)
    return position;
  return sub(sub(add(begin, end), index(1)), position);
}

void StateTile::packToken(Value t) {
  if (key)
    packKey(t);
  if (query)
    packQueries(t);
}

/// Raises the running maximum; returns e^(old − new), the factor of the past.
Value StateTile::raiseRunningMax(Value keyRowMax, Value keep) {
  Value old = load(state.runningMax, {slot, head});
  Value best = maxf(old, keyRowMax);
  if (keep)
    best = select(keep, best, old);
  store(best, state.runningMax, {slot, head});
  // −∞ − −∞, before the first key, is no number.
  Value same =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, old, best);
  return select(same, constant(type, 1.0), exp(subf(old, best)));
}

void StateTile::packKey(Value t) {
  Value token = tokenAt(t);
  Row row;
  row.source = key;
  row.index = {batch, headOf(key, head, heads), token};
  if (mask)
    row.keep = load(mask, {batch, token});
  Value rescale;
  if (needsRowMax(op.getFeatureMapKind(), stabilised)) {
    row.shift = rowMaximum(key, row.index);
    if (state.runningMax) {
      rescale = raiseRunningMax(row.shift, row.keep);
      row.shift = load(state.runningMax, {slot, head});
    }
  }
  packRow(row, keys, t);

  Row valueRow;
  valueRow.source = value;
  valueRow.index = {batch, headOf(value, head, heads), token};
  valueRow.mapped = false;
  // A masked token writes nothing, not even 0 · NaN.
  valueRow.keep = row.keep;
  packRow(valueRow, values, t);
  packGates(t, rescale);
}

void StateTile::packGates(Value t, Value rescale) {
  Value token = tokenAt(t);
  if (hasScalarGate()) {
    Value gate = rescale;
    if (decay && rankOf(decay) != 4) {
      Value log = rankOf(decay) == 1 ? load(decay, {head})
                                     : load(decay, {batch, head, token});
      Value factor = exp(convert(log, type));
      gate = gate ? mulf(gate, factor) : factor;
    }
    store(gate, scalarGates, {t});
  }
  auto packVector = [&](Value gate, Value target) {
    forEach(index(0), dim(gate, 3), shape.lanes, [&](Value d) {
      Value log = readOperand(gate, {batch, head, token, d}, shape.lanes);
      storeVector(exp(log), target, {t, d});
    });
  };
  if (hasChannelGate())
    packVector(decay, channelGates);
  if (valueDecay)
    packVector(valueDecay, valueGates);
}

void StateTile::packQueries(Value t) {
  Value token = tokenAt(t);
  forEachMember([&](Value member) {
    Row row;
    row.source = query;
    row.index = {batch, headOf(query, outputHead(member), dim(output, 1)),
                 token};
    if (needsRowMax(op.getFeatureMapKind(), stabilised))
      row.shift = rowMaximum(query, row.index);
    row.scale = scale;
    packRow(row, queries, {member, t});
    if (denominators)
      storeVector(zeros(shape.lanes), denominators, {member, t, index(0)});
    if (!bonus)
      return;
    // q·(u ⊙ k), the weight of the token's own value.
    Value sum = reduce(index(0), keySize, shape.lanes, zeros(shape.lanes),
                       [&](Value d, ValueRange carried) -> SmallVector<Value> {
                         Value q =
                             loadVector(queries, {member, t, d}, shape.lanes);
                         Value k = loadVector(keys, {t, d}, shape.lanes);
                         Value u = readOperand(bonus, {head, d}, shape.lanes);
                         return {fmaVector(q, mulf(u, k), carried.front())};
                       })
                    .front();
    store(reduceVector(vector::CombiningKind::ADD, sum), own, {member, t});
  });
}

//===----------------------------------------------------------------------===//
// Normaliser
//===----------------------------------------------------------------------===//

/// z ← γ z + k token by token, den += q ⊙ z, one vector of features at a time.
void StateTile::updateNormalizer(Value count) {
  int64_t lanes = shape.lanes;
  forEach(index(0), keySize, lanes, [&](Value d) {
    Value total =
        reduce(index(0), count, 1, loadVector(z, {d}, lanes),
               [&](Value t, ValueRange carried) -> SmallVector<Value> {
                 Value sum = carried.front();
                 if (key) {
                   if (hasScalarGate())
                     sum = mulf(sum, splat(load(scalarGates, {t}), lanes));
                   if (hasChannelGate())
                     sum = mulf(sum, loadVector(channelGates, {t, d}, lanes));
                   sum = addf(sum, loadVector(keys, {t, d}, lanes));
                 }
                 if (query)
                   forEachMember([&](Value member) {
                     Value q = loadVector(queries, {member, t, d}, lanes);
                     SmallVector<Value> at{member, t, index(0)};
                     Value den = loadVector(denominators, at, lanes);
                     storeVector(fmaVector(q, sum, den), denominators, at);
                   });
                 return {sum};
               })
            .front();
    storeVector(total, z, {d});
  });
  if (!query)
    return;
  forEach(count, [&](Value t) {
    forEachMember([&](Value member) {
      Value den =
          reduceVector(vector::CombiningKind::ADD,
                       loadVector(denominators, {member, t, index(0)}, lanes));
      store(emitInverseDenominator(b, loc, *normalize, tokenType, den),
            inverses, {member, t});
    });
  });
}

//===----------------------------------------------------------------------===//
// Sweep
//===----------------------------------------------------------------------===//

/// γ_t ⊙ s for one row of the state, columns [column, column + cols).
Value StateTile::decayed(Value s, Value t, Value row, Value column) {
  if (hasScalarGate())
    s = mulf(s, splat(load(scalarGates, {t}), shape.cols));
  if (hasChannelGate())
    s = mulf(s, splat(load(channelGates, {t, row}), shape.cols));
  if (valueDecay)
    s = mulf(s, loadVector(valueGates, {t, column}, shape.cols));
  return s;
}

Value StateTile::initialOutput(Value member, Value t, Value column) {
  if (!bonus)
    return zeros(shape.cols);
  Value weight = splat(load(own, {member, t}), shape.cols);
  return mulf(weight, loadVector(values, {t, column}, shape.cols));
}

void StateTile::writeOutput(Value o, Value member, Value t, Value column) {
  if (normalize) {
    o = mulf(o, splat(load(inverses, {member, t}), shape.cols));
    o = emitClamp(b, loc, *normalize, o);
  }
  writeOperand(o, output, {batch, outputHead(member), tokenAt(t), column});
}

void StateTile::sweepPanel(Value panel, Value count) {
  if (tokenForm) {
    forEach(count, [&](Value t) { sweepToken(panel, t); });
    return;
  }
  Value column = mul(panel, index(shape.cols));
  auto forEachOutput = [&](function_ref<void(Value, Value)> body) {
    if (query)
      forEachMember([&](Value member) {
        forEach(count, [&](Value t) { body(member, t); });
      });
  };
  forEachOutput([&](Value member, Value t) {
    storeVector(initialOutput(member, t, column), outputs,
                {member, t, index(0)});
  });
  forEach(index(0), keySize, shape.rows,
          [&](Value row) { sweepTile(panel, row, count); });
  forEachOutput([&](Value member, Value t) {
    writeOutput(loadVector(outputs, {member, t, index(0)}, shape.cols), member,
                t, column);
  });
}

/// One tile over the tokens of a block: the loop everything else serves.
void StateTile::sweepTile(Value panel, Value row, Value count) {
  int64_t cols = shape.cols;
  Value column = mul(panel, index(cols));
  SmallVector<Value> rows, s;
  for (int64_t i = 0; i < shape.rows; ++i) {
    rows.push_back(add(row, index(i)));
    s.push_back(loadVector(tile, {panel, rows.back(), index(0)}, cols));
  }

  auto update = [&](Value t, SmallVector<Value> &carried) {
    Value v = loadVector(values, {t, column}, cols);
    for (int64_t i = 0; i < shape.rows; ++i) {
      Value k = splat(load(keys, {t, rows[i]}), cols);
      carried[i] = fmaVector(k, v, decayed(carried[i], t, rows[i], column));
    }
  };
  auto readOut = [&](Value t, ArrayRef<Value> carried) {
    if (!query)
      return;
    forEachMember([&](Value member) {
      SmallVector<Value> at{member, t, index(0)};
      Value o = loadVector(outputs, at, cols);
      for (int64_t i = 0; i < shape.rows; ++i)
        o = fmaVector(splat(load(queries, {member, t, rows[i]}), cols),
                      carried[i], o);
      storeVector(o, outputs, at);
    });
  };
  SmallVector<Value> last =
      reduce(index(0), count, 1, s,
             [&](Value t, ValueRange carriedIn) -> SmallVector<Value> {
               SmallVector<Value> carried(carriedIn);
               if (exclusive)
                 readOut(t, carried);
               if (key)
                 update(t, carried);
               if (!exclusive)
                 readOut(t, carried);
               return carried;
             });
  if (key)
    for (int64_t i = 0; i < shape.rows; ++i)
      storeVector(last[i], tile, {panel, rows[i], index(0)});
}

/// One token over one panel of the state in memory, in the tile's order of
/// operations: read, decay, write, read out, in a single pass.
void StateTile::sweepToken(Value panel, Value t) {
  int64_t cols = shape.cols;
  Value column = mul(panel, index(cols));
  // Whoever selects this form made sure that the group is static.
  int64_t members = *getConstantIntValue(group);
  SmallVector<Value> o;
  if (query)
    for (int64_t i = 0; i < members; ++i)
      o.push_back(initialOutput(index(i), t, column));
  Value v = key ? loadVector(values, {t, column}, cols) : Value();

  SmallVector<Value> total =
      reduce(index(0), dim(state.state, 2), 1, o,
             [&](Value d, ValueRange carriedIn) -> SmallVector<Value> {
               SmallVector<Value> carried(carriedIn);
               SmallVector<Value> at{slot, head, d, column};
               Value s = readOperand(state.state, at, cols);
               auto readOut = [&] {
                 for (auto [i, sum] : llvm::enumerate(carried))
                   sum = fmaVector(splat(load(queries, {index(i), t, d}), cols),
                                   s, sum);
               };
               if (exclusive)
                 readOut();
               if (key) {
                 Value k = splat(load(keys, {t, d}), cols);
                 s = fmaVector(k, v, decayed(s, t, d, column));
                 writeOperand(s, state.state, at);
               }
               if (!exclusive)
                 readOut();
               return carried;
             });
  for (auto [i, sum] : llvm::enumerate(total))
    writeOutput(sum, index(i), t, column);
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

StringRef mlir::linattn::whyNoStateTile(ScanOp op) {
  if (op.getUpdate() != Update::Add)
    return "a rank-1 transition couples the rows of a state column";
  return {};
}

template <typename OpTy>
static FeatureMappedOpInterface mapped(OpTy op) {
  return cast<FeatureMappedOpInterface>(op.getOperation());
}

void mlir::linattn::lowerToStateTile(OpBuilder &b, ScanOp op, TileShape shape,
                                     bool tokenForm) {
  StateTile tile(b, mapped(op), getElementTypeOrSelf(op.getQuery()), shape);
  tile.query = op.getQuery();
  tile.key = op.getKey();
  tile.value = op.getValue();
  tile.decay = op.getDecay();
  tile.valueDecay = op.getValueDecay();
  tile.bonus = op.getBonus();
  tile.mask = op.getMask();
  tile.offsets = op.getCuSeqlens();
  tile.output = op.getOutput();
  tile.state = {op.getState(), op.getNormalizer(), op.getRunningMax()};
  tile.normalize = op.getNormalize();
  tile.scale = scaleOr1(op.getScale());
  tile.exclusive = op.getReadout() == Readout::Exclusive;
  tile.reverse = op.getReverse();
  tile.stabilised = op.getNormalize().has_value();
  tile.tokenForm = tokenForm;
  tile.emit();
}

void mlir::linattn::lowerToStateTile(OpBuilder &b, StateOp op, TileShape shape,
                                     bool tokenForm) {
  StateTile tile(b, mapped(op), getElementTypeOrSelf(op.getKey()), shape);
  tile.key = op.getKey();
  tile.value = op.getValue();
  tile.mask = op.getMask();
  tile.state = {op.getState(), op.getNormalizer(), op.getRunningMax()};
  tile.stabilised = bool(op.getNormalizer());
  tile.tokenForm = tokenForm;
  tile.emit();
}

void mlir::linattn::lowerToStateTile(OpBuilder &b, ReadOp op, TileShape shape,
                                     bool tokenForm) {
  StateTile tile(b, mapped(op), getElementTypeOrSelf(op.getQuery()), shape);
  tile.query = op.getQuery();
  tile.output = op.getOutput();
  tile.state = {op.getState(), op.getNormalizer(), Value()};
  tile.normalize = op.getNormalize();
  tile.scale = scaleOr1(op.getScale());
  tile.stabilised = op.getNormalize().has_value();
  tile.tokenForm = tokenForm;
  tile.emit();
}
