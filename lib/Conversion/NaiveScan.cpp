//===- NaiveScan.cpp - The recurrence in scalar loops ---------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// State and read are the two halves of the scan.
//
//===----------------------------------------------------------------------===//

#include "NaiveLoops.h"
#include "linattn/Dialect/ScanTraits.h"

#include "linattn/Transforms/Recurrence.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// The recurrence of all state heads, token by token and column by column.
/// State and read are its two halves.
class NaiveScan : public NaiveOp {
public:
  NaiveScan(OpBuilder &b, const Recurrence &recurrence, bool lanes)
      : NaiveOp(b, recurrence.op,
                recurrence.query ? recurrence.query : recurrence.key,
                recurrence.scale,
                recurrence.query ? recurrence.normalize.has_value()
                                 : bool(recurrence.state.normalizer)),
        r(recurrence), update(r.update), heads(dim(r.state.state, 1)) {
    forThreads = lanes;
  }

  /// Emits the loops over all sequences, with snapshots of the state after
  /// every `every`-th token.
  void emit(ValueRange snapshots = {}, int64_t every = 0);

  /// Whether the columns of a state know nothing of one another, and threads of
  /// a GPU may have one each.
  bool hasApartColumns() {
    return forThreads &&
           (!r.key || (!r.state.normalizer && !r.state.runningMax &&
                       !getRule(update).couplesColumns()));
  }

  const Recurrence r;
  const Update update;
  const Value heads;
};

/// The scope of a task: a state head of one sequence, or a column of it.
class NaiveTask : public NaiveScan {
public:
  NaiveTask(const NaiveScan &scan, Value batch, Value slot, Value head,
            Value own)
      : NaiveScan(scan), batch(batch), slot(slot), head(head), own(own) {}

  void forEachColumn(function_ref<void(Value)> body) {
    if (own)
      return body(own);
    forLanes(dim(r.state.state, 3), body);
  }

  /// Runs `body(output head, query head)` for the group that reads this state.
  void forEachReader(function_ref<void(Value, Value)> body) {
    Value total = dim(r.output, 1);
    Value group = div(total, heads);
    forEach(group, [&](Value member) {
      Value reader = add(mul(head, group), member);
      body(reader, headOf(r.query, reader, total));
    });
  }

  /// Copies the state to its snapshots where the position, counted from the
  /// first one, ends a segment.
  void keepState(ValueRange snapshots, Value position, int64_t every) {
    if (snapshots.empty())
      return;
    Value behind = add(position, index(1)),
          number = div(position, index(every));
    Value ends = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                       rem(behind, index(every)), index(0));
    ifThen(ends, [&] {
      if (r.state.runningMax)
        store(load(r.state.runningMax, {slot, head}), snapshots.back(),
              {slot, number, head});
      Value rows = dim(r.state.state, 2);
      if (r.state.normalizer)
        forLanes(rows, [&](Value d) {
          store(load(r.state.normalizer, {slot, head, d}), snapshots[1],
                {slot, number, head, d});
        });
      forEachColumn([&](Value column) {
        forEach(rows, [&](Value d) {
          store(load(r.state.state, {slot, head, d, column}), snapshots[0],
                {slot, number, head, d, column});
        });
      });
    });
  }

  /// The outputs of tokens whose sequence has no state.
  void clearOutput(Value begin, Value end) {
    forEachReader([&](Value reader, Value) {
      forEach(begin, end, 1, [&](Value token) {
        forEachColumn([&](Value column) {
          store(constant(tokenType, 0.0), r.output,
                {batch, reader, token, column});
        });
      });
    });
  }

  /// Batch of the tokens, slot and head of the state, and the column where a
  /// task has one.
  const Value batch, slot, head, own;
};

/// The scope of a token.
class NaiveToken : public NaiveTask {
public:
  NaiveToken(const NaiveTask &task, Value t) : NaiveTask(task), t(t) {}

  void emit() {
    if (!r.key)
      return readToken();
    Key key = openKey();
    forEachColumn([&](Value column) {
      if (r.query && r.exclusive)
        readColumnExclusive(key, column);
      if (getRule(update).couplesColumns())
        decayColumn(column);
      else
        updateColumn(key, column);
    });
    if (getRule(update).couplesColumns())
      updateOja(key);
    if (r.state.normalizer)
      updateNormalizer(key);
    if (r.query && !r.exclusive)
      readToken();
  }

private:
  /// A key: its head, the shift of φ and the factor of an input gate, or null.
  struct Key {
    Value head, shift, gain;
  };

  /// Rescales the past where a running maximum is carried.
  Key openKey() {
    Key key{headOf(r.key, head, heads), {}, {}};
    if (r.inputGate)
      key.gain = openInputGate();
    else if (r.state.runningMax)
      key.shift = rescale(key.head);
    if (rowMax && !key.shift)
      key.shift = maximumOf(r.key, batch, key.head, t);
    return key;
  }

  /// A gate of this token, in the accumulation type. `channel` is for those
  /// that differ between channels.
  Value gate(Value operand, Value channel) {
    switch (cast<ShapedType>(operand.getType()).getRank()) {
    case 1:
      return loadAs(operand, {head});
    case 3:
      return loadAs(operand, {batch, head, t});
    default:
      return loadAs(operand, {batch, head, t, channel});
    }
  }

  /// `x` for a token that is written, `otherwise` for a masked one.
  Value written(Value x, Value otherwise) {
    return r.mask ? select(load(r.mask, {batch, t}), x, otherwise) : x;
  }

  void scalePast(Value factor) {
    Value rows = dim(r.state.state, 2);
    forLanes(rows, [&](Value d) {
      Value z = load(r.state.normalizer, {slot, head, d});
      store(mulf(z, factor), r.state.normalizer, {slot, head, d});
    });
    forEachColumn([&](Value e) {
      forEach(rows, [&](Value d) {
        Value s = load(r.state.state, {slot, head, d, e});
        store(mulf(s, factor), r.state.state, {slot, head, d, e});
      });
    });
  }

  /// Raises the running maximum to this key's and rescales the past by
  /// e^(m_{t-1} − m_t); a masked key changes nothing.
  Value rescale(Value keyHead) {
    Value old = load(r.state.runningMax, {slot, head});
    Value best = written(maxf(old, maximumOf(r.key, batch, keyHead, t)), old);
    store(best, r.state.runningMax, {slot, head});
    // −∞ − −∞, before the first key, is NaN.
    Value to = maxf(best, lowest(type));
    scalePast(exp(subf(maxf(old, lowest(type)), to)));
    return to;
  }

  /// m_t = max(decay_t + m_{t-1}, input_gate_t); the past is rescaled by
  /// e^(decay_t + m_{t-1} − m_t). Returns the factor of the key,
  /// e^(input_gate_t − m_t).
  Value openInputGate() {
    Value old = load(r.state.runningMax, {slot, head});
    Value log = r.decay ? gate(r.decay, Value()) : zero();
    Value faded = addf(old, log), opened = gate(r.inputGate, Value());
    Value best = written(maxf(faded, opened), faded);
    store(best, r.state.runningMax, {slot, head});
    Value to = maxf(best, lowest(type));
    // In this order the rounding of m_t is made up for.
    scalePast(exp(addf(subf(maxf(old, lowest(type)), to), log)));
    return exp(subf(opened, to));
  }

  /// φ(k_d), behind its input gate, 0 for a masked token.
  Value keyFeature(const Key &key, Value d) {
    Value feature = NaiveOp::feature(r.key, {batch, key.head, t, d}, key.shift);
    if (key.gain)
      feature = mulf(feature, key.gain);
    return written(feature, zero());
  }

  /// v; a masked value adds nothing, not even 0 · NaN.
  Value valueOf(Value column) {
    Value v = loadAs(r.value, {batch, headOf(r.value, head, heads), t, column});
    return written(v, zero());
  }

  /// The entry a_d of the transition, null for the additive update.
  Value transitionA(const Key &key, Value d) {
    if (getRule(update).isGiven)
      return loadAs(r.a, {batch, head, t, d});
    Value erased = keyFeature(key, d);
    if (r.erase)
      erased = mulf(erased, gate(r.erase, d));
    return negate(erased);
  }

  Value transitionRead(const Key &key, Value column) {
    Value read = reduce(dim(r.state.state, 2), zero(), [&](Value d, Value sum) {
      Value s = load(r.state.state, {slot, head, d, column});
      return addf(sum, mulf(s, transitionA(key, d)));
    });
    return written(read, zero());
  }

  void decayColumn(Value column) {
    // An input gate has decayed the whole state.
    if (r.inputGate || (!r.decay && !r.valueDecay))
      return;
    forEach(dim(r.state.state, 2), [&](Value d) {
      Value log = r.decay ? gate(r.decay, d) : zero();
      if (r.valueDecay)
        log = addf(log, gate(r.valueDecay, column));
      Value s = load(r.state.state, {slot, head, d, column});
      store(mulf(s, exp(log)), r.state.state, {slot, head, d, column});
    });
  }

  void updateColumn(const Key &key, Value column) {
    Value v = valueOf(column);
    Value read;
    if (getRule(update).couplesRows() && r.before)
      read = transitionRead(key, column);
    decayColumn(column);
    if (getRule(update).couplesRows() && !r.before)
      read = transitionRead(key, column);

    // The value written under φ(k): v, or beta·(write·v + r) with gates and a
    // correction.
    Value sum = v;
    if (r.write)
      sum = mulf(sum, gate(r.write, column));
    if (getRule(update).correctsValues())
      sum = addf(sum, read);
    if (r.beta)
      sum = mulf(sum, gate(r.beta, column));
    if (sum != v)
      sum = written(sum, zero());
    forEach(dim(r.state.state, 2), [&](Value d) {
      Value s = load(r.state.state, {slot, head, d, column});
      s = addf(s, mulf(keyFeature(key, d), sum));
      if (getRule(update).isGiven) {
        Value term = mulf(loadAs(r.b, {batch, head, t, d}), read);
        s = addf(s, written(term, zero()));
      }
      store(s, r.state.state, {slot, head, d, column});
    });
  }

  /// S_d ← S_d + (φ(k)_d − S_d·v) beta v, row by row of the decayed state.
  void updateOja(const Key &key) {
    Value columns = dim(r.state.state, 3);
    forLanes(dim(r.state.state, 2), [&](Value d) {
      Value read = reduce(columns, zero(), [&](Value column, Value sum) {
        Value s = load(r.state.state, {slot, head, d, column});
        return addf(sum, mulf(s, valueOf(column)));
      });
      Value error = subf(keyFeature(key, d), read);
      forEach(columns, [&](Value column) {
        Value s = load(r.state.state, {slot, head, d, column});
        Value step = mulf(valueOf(column), gate(r.beta, column));
        store(addf(s, written(mulf(error, step), zero())), r.state.state,
              {slot, head, d, column});
      });
    });
  }

  void updateNormalizer(const Key &key) {
    forLanes(dim(r.state.state, 2), [&](Value d) {
      Value z = load(r.state.normalizer, {slot, head, d});
      if (r.decay && !r.inputGate)
        z = mulf(z, exp(gate(r.decay, d)));
      store(addf(z, keyFeature(key, d)), r.state.normalizer, {slot, head, d});
    });
  }

  Value queryFeature(Value queryHead, Value shift, Value d) {
    return scaled(NaiveOp::feature(r.query, {batch, queryHead, t, d}, shift));
  }

  void readToken() {
    forEachReader([&](Value reader, Value queryHead) {
      Value shift = queryShift(r.query, batch, queryHead, t);
      Value den;
      if (r.normalize)
        den = reduce(dim(r.state.state, 2), zero(), [&](Value d, Value sum) {
          Value z = load(r.state.normalizer, {slot, head, d});
          return addf(sum, mulf(z, queryFeature(queryHead, shift, d)));
        });
      forEachColumn([&](Value column) {
        Value num = dotWithState(queryHead, shift, column);
        Value result = normalized(r.normalize, num, den, runningMax());
        store(convert(result, tokenType), r.output, {batch, reader, t, column});
      });
    });
  }

  /// The maximum that an absolute floor is relative to; null without a floor.
  Value runningMax() {
    if (!r.state.runningMax || !r.normalize || !r.normalize->getAbsFloor())
      return {};
    return load(r.state.runningMax, {slot, head});
  }

  Value dotWithState(Value queryHead, Value shift, Value column) {
    return reduce(dim(r.state.state, 2), zero(), [&](Value d, Value sum) {
      Value s = load(r.state.state, {slot, head, d, column});
      return addf(sum, mulf(s, queryFeature(queryHead, shift, d)));
    });
  }

  void readColumnExclusive(const Key &key, Value column) {
    Value v = valueOf(column);
    forEachReader([&](Value reader, Value queryHead) {
      Value shift = queryShift(r.query, batch, queryHead, t);
      Value result = dotWithState(queryHead, shift, column);
      if (r.bonus) {
        Value own =
            reduce(dim(r.state.state, 2), zero(), [&](Value d, Value sum) {
              Value weight =
                  mulf(loadAs(r.bonus, {head, d}), keyFeature(key, d));
              return addf(sum, mulf(queryFeature(queryHead, shift, d), weight));
            });
        result = addf(result, mulf(own, v));
      }
      store(convert(result, tokenType), r.output, {batch, reader, t, column});
    });
  }

  const Value t;
};

} // namespace

void NaiveScan::emit(ValueRange snapshots, int64_t every) {
  Value tokens = dim(r.query ? r.query : r.key, 2);
  Value sequences = dim(r.indices ? r.indices : r.state.state, 0);
  Value columns = dim(r.state.state, 3);
  bool isApart = hasApartColumns();
  // A read alone does not wait for the token before.
  bool isRead = isApart && !r.key && !r.offsets;
  Value tasks = mul(sequences, heads);
  if (isRead)
    tasks = mul(tasks, tokens);
  if (isApart)
    tasks = mul(tasks, columns);
  parallel(tasks, [&](Value task) {
    auto takeOff = [&](Value extent) {
      Value part = rem(task, extent);
      task = div(task, extent);
      return part;
    };
    Value own = isApart ? takeOff(columns) : Value();
    Value token = isRead ? takeOff(tokens) : Value();
    Value sequence = div(task, heads), head = rem(task, heads);
    Value batch = sequence, begin = index(0), end = tokens;
    if (r.offsets) {
      auto offset = [&](Value position) -> Value {
        return arith::IndexCastOp::create(b, loc, b.getIndexType(),
                                          load(r.offsets, {position}));
      };
      begin = offset(sequence);
      end = offset(add(sequence, index(1)));
      batch = index(0);
    }
    auto run = [&](Value slot) {
      NaiveTask task(*this, batch, slot, head, own);
      if (isRead)
        return NaiveToken(task, token).emit();
      forEach(begin, end, 1, [&](Value position) {
        Value t = position;
        if (r.reverse) // begin + end − 1 − position
          t = sub(sub(add(begin, end), index(1)), position);
        NaiveToken(task, t).emit();
        task.keepState(snapshots, position, every);
      });
    };
    withState(r.indices, sequence, run, [&] {
      NaiveTask(*this, batch, Value(), head, own).clearOutput(begin, end);
    });
  });
}

void mlir::linattn::lowerToNaiveLoops(OpBuilder &b, ScanOp op, bool lanes) {
  NaiveScan(b, Recurrence(op), lanes)
      .emit(op.getSnapshots(), op.getEvery().value_or(0));
}

void mlir::linattn::lowerToNaiveLoops(OpBuilder &b, StateOp op, bool lanes) {
  NaiveScan(b, Recurrence(op), lanes).emit();
}

void mlir::linattn::lowerToNaiveLoops(OpBuilder &b, ReadOp op, bool lanes) {
  NaiveScan(b, Recurrence(op), lanes).emit();
}
