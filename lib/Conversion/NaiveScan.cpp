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

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// The recurrence of one state head, token by token and column by column. State
/// and read are its two halves.
class NaiveScan : public NaiveOp {
public:
  using NaiveOp::NaiveOp;

  // Operands; absent ones are null.
  Value query, key, value, decay, valueDecay, beta, a, bVector, bonus, erase,
      write, inputGate, mask, output;
  StateValues state;
  Update update = Update::Add;
  bool exclusive = false, before = false;
  std::optional<NormalizeAttr> normalize;

  /// The current position: batch of the tokens, state slot and head, token; the
  /// column where a task has one.
  Value batch, slot, head, heads, t, own;

  /// Whether the columns of a state know nothing of one another, and threads of
  /// a GPU may have one each.
  bool hasApartColumns() {
    return forThreads && (!key || (!state.normalizer && !state.runningMax &&
                                   !getRule(update).couplesColumns()));
  }
  void forEachColumn(function_ref<void(Value)> body) {
    if (own)
      return body(own);
    forLanes(dim(state.state, 3), body);
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

  void token() {
    if (!key) {
      readToken();
      return;
    }
    Value keyHead = headOf(key, head, heads);
    Value shift;
    if (inputGate)
      openInputGate();
    else if (state.runningMax)
      shift = rescale(keyHead);
    if (rowMax && !shift)
      shift = maximumOf(key, batch, keyHead, t);
    forEachColumn([&](Value column) {
      if (query && exclusive)
        readColumnExclusive(keyHead, shift, column);
      if (getRule(update).couplesColumns())
        decayColumn(column);
      else
        updateColumn(keyHead, shift, column);
    });
    if (getRule(update).couplesColumns())
      updateOja(keyHead, shift);
    if (state.normalizer)
      updateNormalizer(keyHead, shift);
    if (query && !exclusive)
      readToken();
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
      if (state.runningMax)
        store(load(state.runningMax, {slot, head}), snapshots.back(),
              {slot, number, head});
      Value rows = dim(state.state, 2);
      if (state.normalizer)
        forLanes(rows, [&](Value d) {
          store(load(state.normalizer, {slot, head, d}), snapshots[1],
                {slot, number, head, d});
        });
      forEachColumn([&](Value column) {
        forEach(rows, [&](Value d) {
          store(load(state.state, {slot, head, d, column}), snapshots[0],
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
          store(constant(tokenType, 0.0), output,
                {batch, reader, token, column});
        });
      });
    });
  }

private:
  /// `x` for a token that is written, `otherwise` for a masked one.
  Value written(Value x, Value otherwise) {
    return mask ? select(load(mask, {batch, t}), x, otherwise) : x;
  }

  void scalePast(Value factor) {
    Value rows = dim(state.state, 2);
    forLanes(rows, [&](Value d) {
      Value z = load(state.normalizer, {slot, head, d});
      store(mulf(z, factor), state.normalizer, {slot, head, d});
    });
    forEachColumn([&](Value e) {
      forEach(rows, [&](Value d) {
        Value s = load(state.state, {slot, head, d, e});
        store(mulf(s, factor), state.state, {slot, head, d, e});
      });
    });
  }

  /// Raises the running maximum to this key's and rescales the past by
  /// e^(m_{t-1} − m_t); a masked key changes nothing.
  Value rescale(Value keyHead) {
    Value old = load(state.runningMax, {slot, head});
    Value best = written(maxf(old, maximumOf(key, batch, keyHead, t)), old);
    store(best, state.runningMax, {slot, head});
    // −∞ − −∞, before the first key, is NaN.
    Value to = maxf(best, lowest(type));
    scalePast(exp(subf(maxf(old, lowest(type)), to)));
    return to;
  }

  /// m_t = max(decay_t + m_{t-1}, input_gate_t); the past is rescaled by
  /// e^(decay_t + m_{t-1} − m_t), and the key will be by e^(input_gate_t −
  /// m_t).
  void openInputGate() {
    Value old = load(state.runningMax, {slot, head});
    Value log = decay ? gate(decay, Value()) : zero();
    Value faded = addf(old, log), opened = gate(inputGate, Value());
    Value best = written(maxf(faded, opened), faded);
    store(best, state.runningMax, {slot, head});
    Value to = maxf(best, lowest(type));
    // In this order the rounding of m_t is made up for.
    scalePast(exp(addf(subf(maxf(old, lowest(type)), to), log)));
    keyFactor = exp(subf(opened, to));
  }

  /// φ(k_d), behind its input gate, 0 for a masked token.
  Value keyFeature(Value keyHead, Value shift, Value d) {
    Value feature = NaiveOp::feature(key, {batch, keyHead, t, d}, shift);
    if (inputGate)
      feature = mulf(feature, keyFactor);
    return written(feature, zero());
  }

  /// v; a masked value adds nothing, not even 0 · NaN.
  Value valueOf(Value column) {
    Value v = loadAs(value, {batch, headOf(value, head, heads), t, column});
    return written(v, zero());
  }

  /// The entry a_d of the transition, null for the additive update.
  Value transitionA(Value keyHead, Value shift, Value d) {
    if (getRule(update).isGiven)
      return loadAs(a, {batch, head, t, d});
    Value erased = keyFeature(keyHead, shift, d);
    if (erase)
      erased = mulf(erased, gate(erase, d));
    return negate(erased);
  }

  Value transitionRead(Value keyHead, Value shift, Value column) {
    Value r = reduce(dim(state.state, 2), zero(), [&](Value d, Value sum) {
      Value s = load(state.state, {slot, head, d, column});
      return addf(sum, mulf(s, transitionA(keyHead, shift, d)));
    });
    return written(r, zero());
  }

  void decayColumn(Value column) {
    // An input gate has decayed the whole state.
    if (inputGate || (!decay && !valueDecay))
      return;
    forEach(dim(state.state, 2), [&](Value d) {
      Value log = decay ? gate(decay, d) : zero();
      if (valueDecay)
        log = addf(log, gate(valueDecay, column));
      Value s = load(state.state, {slot, head, d, column});
      store(mulf(s, exp(log)), state.state, {slot, head, d, column});
    });
  }

  void updateColumn(Value keyHead, Value shift, Value column) {
    Value v = valueOf(column);
    Value r;
    if (getRule(update).couplesRows() && before)
      r = transitionRead(keyHead, shift, column);
    decayColumn(column);
    if (getRule(update).couplesRows() && !before)
      r = transitionRead(keyHead, shift, column);

    // The value written under φ(k): v, or beta·(write·v + r) with gates and a
    // correction.
    Value sum = v;
    if (write)
      sum = mulf(sum, gate(write, column));
    if (getRule(update).correctsValues())
      sum = addf(sum, r);
    if (beta)
      sum = mulf(sum, gate(beta, column));
    if (sum != v)
      sum = written(sum, zero());
    forEach(dim(state.state, 2), [&](Value d) {
      Value s = load(state.state, {slot, head, d, column});
      s = addf(s, mulf(keyFeature(keyHead, shift, d), sum));
      if (getRule(update).isGiven) {
        Value term = mulf(loadAs(bVector, {batch, head, t, d}), r);
        s = addf(s, written(term, zero()));
      }
      store(s, state.state, {slot, head, d, column});
    });
  }

  /// S_d ← S_d + (φ(k)_d − S_d·v) beta v, row by row of the decayed state.
  void updateOja(Value keyHead, Value shift) {
    Value columns = dim(state.state, 3);
    forLanes(dim(state.state, 2), [&](Value d) {
      Value r = reduce(columns, zero(), [&](Value column, Value sum) {
        Value s = load(state.state, {slot, head, d, column});
        return addf(sum, mulf(s, valueOf(column)));
      });
      Value error = subf(keyFeature(keyHead, shift, d), r);
      forEach(columns, [&](Value column) {
        Value s = load(state.state, {slot, head, d, column});
        Value step = mulf(valueOf(column), gate(beta, column));
        store(addf(s, written(mulf(error, step), zero())), state.state,
              {slot, head, d, column});
      });
    });
  }

  void updateNormalizer(Value keyHead, Value shift) {
    forLanes(dim(state.state, 2), [&](Value d) {
      Value z = load(state.normalizer, {slot, head, d});
      if (decay && !inputGate)
        z = mulf(z, exp(gate(decay, d)));
      store(addf(z, keyFeature(keyHead, shift, d)), state.normalizer,
            {slot, head, d});
    });
  }

  /// Runs `body(output head, query head)` for the group that reads this state.
  void forEachReader(function_ref<void(Value, Value)> body) {
    Value total = dim(output, 1);
    Value group = div(total, heads);
    forEach(group, [&](Value member) {
      Value reader = add(mul(head, group), member);
      body(reader, headOf(query, reader, total));
    });
  }

  Value queryFeature(Value queryHead, Value shift, Value d) {
    return scaled(NaiveOp::feature(query, {batch, queryHead, t, d}, shift));
  }

  void readToken() {
    forEachReader([&](Value reader, Value queryHead) {
      Value shift = queryShift(query, batch, queryHead, t);
      Value den;
      if (normalize)
        den = reduce(dim(state.state, 2), zero(), [&](Value d, Value sum) {
          Value z = load(state.normalizer, {slot, head, d});
          return addf(sum, mulf(z, queryFeature(queryHead, shift, d)));
        });
      forEachColumn([&](Value column) {
        Value num = dotWithState(queryHead, shift, column);
        Value result = normalized(normalize, num, den, runningMax());
        store(convert(result, tokenType), output, {batch, reader, t, column});
      });
    });
  }

  /// The maximum that an absolute floor is relative to; null without a floor.
  Value runningMax() {
    if (!state.runningMax || !normalize || !normalize->getAbsFloor())
      return {};
    return load(state.runningMax, {slot, head});
  }

  Value dotWithState(Value queryHead, Value shift, Value column) {
    return reduce(dim(state.state, 2), zero(), [&](Value d, Value sum) {
      Value s = load(state.state, {slot, head, d, column});
      return addf(sum, mulf(s, queryFeature(queryHead, shift, d)));
    });
  }

  void readColumnExclusive(Value keyHead, Value keyShift, Value column) {
    Value v = valueOf(column);
    forEachReader([&](Value reader, Value queryHead) {
      Value shift = queryShift(query, batch, queryHead, t);
      Value result = dotWithState(queryHead, shift, column);
      if (bonus) {
        Value own =
            reduce(dim(state.state, 2), zero(), [&](Value d, Value sum) {
              Value weight = mulf(loadAs(bonus, {head, d}),
                                  keyFeature(keyHead, keyShift, d));
              return addf(sum, mulf(queryFeature(queryHead, shift, d), weight));
            });
        result = addf(result, mulf(own, v));
      }
      store(convert(result, tokenType), output, {batch, reader, t, column});
    });
  }

  /// e^(input_gate_t − m_t).
  Value keyFactor;
};

} // namespace

/// Runs `naive` over all sequences and their tokens, of which there are
/// `tokens`.
static void emitRecurrence(NaiveScan &naive, Value tokens, Value offsets,
                           bool reverse, Value indices = Value(),
                           ValueRange snapshots = {}, int64_t every = 0) {
  naive.heads = naive.dim(naive.state.state, 1);
  Value sequences = naive.dim(indices ? indices : naive.state.state, 0);
  Value columns = naive.dim(naive.state.state, 3);
  bool isApart = naive.hasApartColumns();
  // A read alone does not wait for the token before.
  bool isRead = isApart && !naive.key && !offsets;
  Value tasks = naive.mul(sequences, naive.heads);
  if (isRead)
    tasks = naive.mul(tasks, tokens);
  if (isApart)
    tasks = naive.mul(tasks, columns);
  naive.parallel(tasks, [&](Value task) {
    auto takeOff = [&](Value extent) {
      Value part = naive.rem(task, extent);
      task = naive.div(task, extent);
      return part;
    };
    if (isApart)
      naive.own = takeOff(columns);
    Value token = isRead ? takeOff(tokens) : Value();
    Value sequence = naive.div(task, naive.heads);
    naive.head = naive.rem(task, naive.heads);
    Value begin = naive.index(0), end = tokens;
    naive.batch = sequence;
    if (offsets) {
      auto offset = [&](Value position) -> Value {
        return arith::IndexCastOp::create(naive.b, naive.loc,
                                          naive.b.getIndexType(),
                                          naive.load(offsets, {position}));
      };
      begin = offset(sequence);
      end = offset(naive.add(sequence, naive.index(1)));
      naive.batch = naive.index(0);
    }
    auto run = [&](Value slot) {
      naive.slot = slot;
      if (isRead) {
        naive.t = token;
        return naive.token();
      }
      naive.forEach(begin, end, 1, [&](Value position) {
        naive.t = position;
        if (reverse) // begin + end − 1 − position
          naive.t = naive.sub(naive.sub(naive.add(begin, end), naive.index(1)),
                              position);
        naive.token();
        naive.keepState(snapshots, position, every);
      });
    };
    naive.withState(indices, sequence, run,
                    [&] { naive.clearOutput(begin, end); });
  });
}

void mlir::linattn::lowerToNaiveLoops(OpBuilder &b, ScanOp op, bool lanes) {
  NaiveScan naive(b, cast<FeatureMappedOpInterface>(op.getOperation()),
                  op.getQuery(), Scale::of(op), op.getNormalize().has_value());
  naive.forThreads = lanes;
  naive.query = op.getQuery();
  naive.key = op.getKey();
  naive.value = op.getValue();
  naive.decay = op.getDecay();
  naive.valueDecay = op.getValueDecay();
  naive.beta = op.getBeta();
  naive.a = op.getA();
  naive.bVector = op.getB();
  naive.bonus = op.getBonus();
  naive.erase = op.getErase();
  naive.write = op.getWrite();
  naive.inputGate = op.getInputGate();
  naive.mask = op.getMask();
  naive.output = op.getOutput();
  naive.state = {op.getState(), op.getNormalizer(), op.getRunningMax()};
  naive.update = op.getUpdate();
  naive.exclusive = op.getReadout() == Readout::Exclusive;
  naive.before = op.getTransition() == Transition::Before;
  naive.normalize = op.getNormalize();
  emitRecurrence(naive, naive.dim(op.getQuery(), 2), op.getCuSeqlens(),
                 op.getReverse(), op.getStateIndices(), op.getSnapshots(),
                 op.getEvery().value_or(0));
}

void mlir::linattn::lowerToNaiveLoops(OpBuilder &b, StateOp op, bool lanes) {
  NaiveScan naive(b, cast<FeatureMappedOpInterface>(op.getOperation()),
                  op.getKey(), Scale(), bool(op.getNormalizer()));
  naive.forThreads = lanes;
  naive.key = op.getKey();
  naive.value = op.getValue();
  naive.decay = op.getDecay();
  naive.valueDecay = op.getValueDecay();
  naive.mask = op.getMask();
  naive.state = {op.getState(), op.getNormalizer(), op.getRunningMax()};
  emitRecurrence(naive, naive.dim(op.getKey(), 2), op.getCuSeqlens(),
                 op.getReverse());
}

void mlir::linattn::lowerToNaiveLoops(OpBuilder &b, ReadOp op, bool lanes) {
  NaiveScan naive(b, cast<FeatureMappedOpInterface>(op.getOperation()),
                  op.getQuery(), Scale::of(op), op.getNormalize().has_value());
  naive.forThreads = lanes;
  naive.query = op.getQuery();
  naive.output = op.getOutput();
  naive.state = {op.getState(), op.getNormalizer(), op.getRunningMax()};
  naive.normalize = op.getNormalize();
  emitRecurrence(naive, naive.dim(op.getQuery(), 2), Value(), false);
}
