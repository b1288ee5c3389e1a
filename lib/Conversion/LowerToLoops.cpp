//===- LowerToLoops.cpp - The naive form of every op ----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Scalar loops that say what the ops' descriptions say, and nothing cleverer:
// whatever executes IR can be checked against them.
//
//===----------------------------------------------------------------------===//

#include "LoopBuilder.h"

#include "linattn/Conversion/Passes.h"
#include "linattn/Dialect/LinAttn.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

#include <limits>

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNLOWERTOLOOPSPASS
#include "linattn/Conversion/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// What the loops of all ops share: φ, the token type and the scale.
class NaiveOp : public LoopBuilder {
public:
  NaiveOp(OpBuilder &b, FeatureMappedOpInterface op, Value tokens,
          std::optional<APFloat> scale, bool stabilised)
      : LoopBuilder(b, op->getLoc()), op(op),
        tokenType(getElementTypeOrSelf(tokens)),
        type(getAccumulationType(tokenType)), scale(scaleOr1(scale)),
        rowMax(needsRowMax(op.getFeatureMapKind(), stabilised)) {}

  Value zero() { return constant(type, 0.0); }
  Value loadAs(Value memref, ValueRange indices) {
    return convert(load(memref, indices), type);
  }

  Value maximumOf(Value tokens, Value batch, Value head, Value t) {
    return reduce(dim(tokens, 3),
                  constant(type, -std::numeric_limits<double>::infinity()),
                  [&](Value d, Value best) {
                    return maxf(best, loadAs(tokens, {batch, head, t, d}));
                  });
  }
  /// The shift φ of one query needs, or nothing.
  Value queryShift(Value tokens, Value batch, Value head, Value t) {
    return rowMax ? maximumOf(tokens, batch, head, t) : Value();
  }
  /// φ of one element.
  Value feature(Value tokens, ValueRange indices, Value shift) {
    Value x = loadAs(tokens, indices);
    if (shift)
      x = subf(x, shift);
    return emitFeatureMap(b, loc, op, x);
  }
  Value scaled(Value x) {
    return scale == 1.0 ? x : mulf(x, constant(type, scale));
  }
  Value normalized(std::optional<NormalizeAttr> normalize, Value num,
                   Value den) {
    return normalize ? emitNormalize(b, loc, *normalize, tokenType, num, den)
                     : num;
  }

  FeatureMappedOpInterface op;
  Type tokenType, type;
  double scale;
  bool rowMax;
};

//===----------------------------------------------------------------------===//
// scan, state, read: one recurrence
//===----------------------------------------------------------------------===//

/// The recurrence of one state head, token by token and column by column. State
/// and read are its two halves.
class NaiveScan : public NaiveOp {
public:
  using NaiveOp::NaiveOp;

  // Operands; absent ones are null.
  Value query, key, value, decay, valueDecay, beta, a, bVector, bonus, erase,
      write, mask, output;
  StateValues state;
  Update update = Update::Add;
  bool exclusive = false, before = false;
  std::optional<NormalizeAttr> normalize;

  /// The position at hand: batch of the tokens, state slot and head, token.
  Value batch, slot, head, heads, t;

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
    if (state.runningMax)
      shift = rescale(keyHead);
    else if (rowMax)
      shift = maximumOf(key, batch, keyHead, t);
    forEach(dim(state.state, 3),
            [&](Value column) { updateColumn(keyHead, shift, column); });
    if (state.normalizer)
      updateNormalizer(keyHead, shift);
    if (query && !exclusive)
      readToken();
  }

private:
  /// Raises the running maximum to this key's and rescales the past by
  /// e^(m_{t-1} − m_t); a masked key changes nothing.
  Value rescale(Value keyHead) {
    Value old = load(state.runningMax, {slot, head});
    Value best = maxf(old, maximumOf(key, batch, keyHead, t));
    if (mask)
      best = select(load(mask, {batch, t}), best, old);
    store(best, state.runningMax, {slot, head});
    // −∞ − −∞, before the first key, is no number.
    Value same =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, old, best);
    Value factor =
        select(same, constant(old.getType(), 1.0), exp(subf(old, best)));
    forEach(dim(state.state, 2), [&](Value d) {
      Value z = load(state.normalizer, {slot, head, d});
      store(mulf(z, factor), state.normalizer, {slot, head, d});
      forEach(dim(state.state, 3), [&](Value e) {
        Value s = load(state.state, {slot, head, d, e});
        store(mulf(s, factor), state.state, {slot, head, d, e});
      });
    });
    return best;
  }

  /// φ(k_d), 0 for a masked token.
  Value keyFeature(Value keyHead, Value shift, Value d) {
    Value feature = NaiveOp::feature(key, {batch, keyHead, t, d}, shift);
    return mask ? select(load(mask, {batch, t}), feature, zero()) : feature;
  }

  /// The entry a_d of the transition, null for the additive update.
  Value transitionA(Value keyHead, Value shift, Value d) {
    if (update == Update::Dplr)
      return loadAs(a, {batch, head, t, d});
    Value erased = keyFeature(keyHead, shift, d);
    if (erase)
      erased = mulf(erased, gate(erase, d));
    return negate(erased);
  }

  Value transitionRead(Value keyHead, Value shift, Value column) {
    return reduce(dim(state.state, 2), zero(), [&](Value d, Value sum) {
      Value s = load(state.state, {slot, head, d, column});
      return addf(sum, mulf(s, transitionA(keyHead, shift, d)));
    });
  }

  void decayColumn(Value column) {
    if (!decay && !valueDecay)
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
    Value v = loadAs(value, {batch, headOf(value, head, heads), t, column});
    if (mask) // A masked value adds nothing, not even 0 · NaN.
      v = select(load(mask, {batch, t}), v, zero());
    if (query && exclusive)
      readColumnExclusive(keyHead, shift, column, v);
    Value r;
    if (update != Update::Add && before)
      r = transitionRead(keyHead, shift, column);
    decayColumn(column);
    if (update != Update::Add && !before)
      r = transitionRead(keyHead, shift, column);

    // What is written under φ(k): v, or beta·(write·v + r) for the delta rule.
    Value written = v;
    if (update == Update::Delta) {
      if (write)
        written = mulf(written, gate(write, column));
      written = addf(written, r);
      if (beta)
        written = mulf(written, gate(beta, column));
    }
    forEach(dim(state.state, 2), [&](Value d) {
      Value s = load(state.state, {slot, head, d, column});
      s = addf(s, mulf(keyFeature(keyHead, shift, d), written));
      if (update == Update::Dplr)
        s = addf(s, mulf(loadAs(bVector, {batch, head, t, d}), r));
      store(s, state.state, {slot, head, d, column});
    });
  }

  void updateNormalizer(Value keyHead, Value shift) {
    forEach(dim(state.state, 2), [&](Value d) {
      Value z = load(state.normalizer, {slot, head, d});
      if (decay)
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
      forEach(dim(state.state, 3), [&](Value column) {
        Value num = dotWithState(queryHead, shift, column);
        store(convert(normalized(normalize, num, den), tokenType), output,
              {batch, reader, t, column});
      });
    });
  }

  Value dotWithState(Value queryHead, Value shift, Value column) {
    return reduce(dim(state.state, 2), zero(), [&](Value d, Value sum) {
      Value s = load(state.state, {slot, head, d, column});
      return addf(sum, mulf(s, queryFeature(queryHead, shift, d)));
    });
  }

  void readColumnExclusive(Value keyHead, Value keyShift, Value column,
                           Value v) {
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
};

} // namespace

/// Runs `naive` over all states and their tokens, of which there are `tokens`.
static void emitRecurrence(NaiveScan &naive, Value tokens, Value offsets,
                           bool reverse) {
  naive.heads = naive.dim(naive.state.state, 1);
  Value slots = naive.dim(naive.state.state, 0);
  naive.parallel(naive.mul(slots, naive.heads), [&](Value task) {
    naive.slot = naive.div(task, naive.heads);
    naive.head = naive.rem(task, naive.heads);
    Value begin = naive.index(0), end = tokens;
    naive.batch = naive.slot;
    if (offsets) {
      auto offset = [&](Value position) -> Value {
        return arith::IndexCastOp::create(naive.b, naive.loc,
                                          naive.b.getIndexType(),
                                          naive.load(offsets, {position}));
      };
      begin = offset(naive.slot);
      end = offset(naive.add(naive.slot, naive.index(1)));
      naive.batch = naive.index(0);
    }
    naive.forEach(begin, end, 1, [&](Value position) {
      naive.t = position;
      if (reverse) // begin + end − 1 − position
        naive.t = naive.sub(naive.sub(naive.add(begin, end), naive.index(1)),
                            position);
      naive.token();
    });
  });
}

static void lower(OpBuilder &b, ScanOp op) {
  NaiveScan naive(b, cast<FeatureMappedOpInterface>(op.getOperation()),
                  op.getQuery(), op.getScale(), op.getNormalize().has_value());
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
  naive.mask = op.getMask();
  naive.output = op.getOutput();
  naive.state = {op.getState(), op.getNormalizer(), op.getRunningMax()};
  naive.update = op.getUpdate();
  naive.exclusive = op.getReadout() == Readout::Exclusive;
  naive.before = op.getTransition() == Transition::Before;
  naive.normalize = op.getNormalize();
  emitRecurrence(naive, naive.dim(op.getQuery(), 2), op.getCuSeqlens(),
                 op.getReverse());
}

static void lower(OpBuilder &b, StateOp op) {
  NaiveScan naive(b, cast<FeatureMappedOpInterface>(op.getOperation()),
                  op.getKey(), std::nullopt, bool(op.getNormalizer()));
  naive.key = op.getKey();
  naive.value = op.getValue();
  naive.mask = op.getMask();
  naive.state = {op.getState(), op.getNormalizer(), op.getRunningMax()};
  emitRecurrence(naive, naive.dim(op.getKey(), 2), Value(), false);
}

static void lower(OpBuilder &b, ReadOp op) {
  NaiveScan naive(b, cast<FeatureMappedOpInterface>(op.getOperation()),
                  op.getQuery(), op.getScale(), op.getNormalize().has_value());
  naive.query = op.getQuery();
  naive.output = op.getOutput();
  naive.state = {op.getState(), op.getNormalizer(), Value()};
  naive.normalize = op.getNormalize();
  emitRecurrence(naive, naive.dim(op.getQuery(), 2), Value(), false);
}

//===----------------------------------------------------------------------===//
// quadratic
//===----------------------------------------------------------------------===//

namespace {

/// One query row at a time: no more than a row of the output is ever stored.
class NaiveQuadratic : public NaiveOp {
public:
  NaiveQuadratic(OpBuilder &b, QuadraticOp op)
      : NaiveOp(b, cast<FeatureMappedOpInterface>(op.getOperation()),
                op.getQuery(), op.getScale(), op.getNormalize().has_value()),
        op(op), softmax(op.getWeights() == Weights::Softmax) {}

  void emit() {
    Value heads = dim(op.getOutput(), 1);
    Value tasks = mul(dim(op.getOutput(), 0), heads);
    parallel(tasks, [&](Value task) {
      batch = div(task, heads);
      head = rem(task, heads);
      queryHead = headOf(op.getQuery(), head, heads);
      keyHead = headOf(op.getKey(), head, heads);
      valueHead = headOf(op.getValue(), head, heads);
      OpFoldResult columns = getAsOpFoldResult(dim(op.getValue(), 3));
      SmallVector<int64_t> shape;
      SmallVector<Value> dynamic;
      dispatchIndexOpFoldResult(columns, dynamic, shape);
      sums = memref::AllocOp::create(b, loc, MemRefType::get(shape, type),
                                     dynamic);
      forEach(dim(op.getQuery(), 2), [&](Value row) { emitRow(row); });
      memref::DeallocOp::create(b, loc, sums);
    });
  }

private:
  void emitRow(Value row) {
    i = row;
    keys = dim(op.getKey(), 2);
    if (op.getCausal()) { // j ≤ i + Tk − Tq
      Value visible = add(add(i, index(1)), sub(keys, dim(op.getQuery(), 2)));
      keys = max(min(visible, keys), index(0));
    }
    shift = queryShift(op.getQuery(), batch, queryHead, i);
    Value lowest = constant(type, -std::numeric_limits<double>::infinity());
    // Softmax: the largest score. Stabilised exp: the largest key seen.
    if (softmax)
      best = reduce(keys, lowest, [&](Value j, Value top) {
        return maxf(top, masked(j, score(j), lowest));
      });
    else if (needsRunningMax(NaiveOp::op.getFeatureMapKind(),
                             op.getNormalize().has_value()))
      best = reduce(keys, lowest, [&](Value j, Value top) {
        return maxf(
            top, masked(j, maximumOf(op.getKey(), batch, keyHead, j), lowest));
      });
    Value columns = dim(op.getValue(), 3);
    forEach(columns, [&](Value column) { store(zero(), sums, {column}); });
    Value den = reduce(keys, zero(), [&](Value j, Value sum) {
      Value w = weight(j);
      forEach(columns, [&](Value column) {
        Value v = loadAs(op.getValue(), {batch, valueHead, j, column});
        // A masked key adds nothing, not even 0 · NaN.
        Value term = masked(j, mulf(w, v), zero());
        store(addf(load(sums, {column}), term), sums, {column});
      });
      return addf(sum, w);
    });
    forEach(columns, [&](Value column) {
      store(convert(divide(load(sums, {column}), den), tokenType),
            op.getOutput(), {batch, head, i, column});
    });
  }

  Value divide(Value num, Value den) {
    if (!softmax)
      return normalized(op.getNormalize(), num, den);
    // A row without a key to attend has no weights and gives 0.
    Value isEmpty =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, den, zero());
    return arith::DivFOp::create(b, loc, num,
                                 select(isEmpty, constant(type, 1.0), den));
  }

  Value masked(Value j, Value x, Value otherwise) {
    return op.getMask() ? select(load(op.getMask(), {batch, j}), x, otherwise)
                        : x;
  }

  /// scale · φ(q_i)·φ(k_j)
  Value score(Value j) {
    Value keyShift = best && !softmax ? best
                     : rowMax ? maximumOf(op.getKey(), batch, keyHead, j)
                              : Value();
    return scaled(
        reduce(dim(op.getQuery(), 3), zero(), [&](Value d, Value sum) {
          Value q = feature(op.getQuery(), {batch, queryHead, i, d}, shift);
          Value k = feature(op.getKey(), {batch, keyHead, j, d}, keyShift);
          return addf(sum, mulf(q, k));
        }));
  }

  Value weight(Value j) {
    Value s = score(j);
    if (softmax)
      s = exp(subf(s, best));
    return masked(j, s, zero());
  }

  QuadraticOp op;
  bool softmax;
  Value batch, head, queryHead, keyHead, valueHead, i, keys, shift, best, sums;
};

} // namespace

static void lower(OpBuilder &b, QuadraticOp op) {
  NaiveQuadratic(b, op).emit();
}

//===----------------------------------------------------------------------===//
// feature_map
//===----------------------------------------------------------------------===//

static void lower(OpBuilder &b, FeatureMapOp op) {
  NaiveOp naive(b, cast<FeatureMappedOpInterface>(op.getOperation()),
                op.getInput(), std::nullopt, /*stabilised=*/false);
  Value heads = naive.dim(op.getInput(), 1);
  Value tasks = naive.mul(naive.dim(op.getInput(), 0), heads);
  naive.parallel(tasks, [&](Value task) {
    Value batch = naive.div(task, heads), head = naive.rem(task, heads);
    naive.forEach(naive.dim(op.getInput(), 2), [&](Value t) {
      Value shift = naive.queryShift(op.getInput(), batch, head, t);
      naive.forEach(naive.dim(op.getInput(), 3), [&](Value d) {
        Value y = naive.feature(op.getInput(), {batch, head, t, d}, shift);
        naive.store(naive.convert(y, naive.tokenType), op.getOutput(),
                    {batch, head, t, d});
      });
    });
  });
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {

template <typename OpTy>
struct ToLoops : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureBufferSemantics())
      return rewriter.notifyMatchFailure(op, "not on buffers");
    lower(rewriter, op);
    rewriter.eraseOp(op);
    return success();
  }
};

struct LinAttnLowerToLoopsPass final
    : mlir::linattn::impl::LinAttnLowerToLoopsPassBase<
          LinAttnLowerToLoopsPass> {
  using LinAttnLowerToLoopsPassBase::LinAttnLowerToLoopsPassBase;
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ToLoops<ScanOp>, ToLoops<StateOp>, ToLoops<ReadOp>,
                 ToLoops<QuadraticOp>, ToLoops<FeatureMapOp>>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace
