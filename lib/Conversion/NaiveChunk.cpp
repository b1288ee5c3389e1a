//===- NaiveChunk.cpp - The ops of a chunk in scalar loops ----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One task a batch element and head; inside it, the formulas of the ops'
// descriptions as they stand there.
//
//===----------------------------------------------------------------------===//

#include "NaiveChunk.h"

#include "LoopBuilder.h"

#include "mlir/IR/PatternMatch.h"

#include <limits>

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// The loops of one op, whose output has a batch and heads.
class NaiveChunk : public LoopBuilder {
public:
  NaiveChunk(OpBuilder &b, Operation *op, Value output)
      : LoopBuilder(b, op->getLoc()), output(output),
        type(getElementTypeOrSelf(output)) {}

  void forEachHead(function_ref<void()> body) {
    heads = dim(output, 1);
    parallel(mul(dim(output, 0), heads), [&](Value task) {
      batch = div(task, heads);
      head = rem(task, heads);
      body();
    });
  }

  /// x of the current head: numbers by token, rows by token and feature,
  /// states by both features.
  Value at(Value x, Value token, Value feature = {}) {
    SmallVector<Value> place{batch, headOf(x, head, heads), token};
    if (rankOf(x) == 4)
      place.push_back(feature);
    return load(x, place);
  }
  void put(Value value, Value x, Value token, Value feature = {}) {
    SmallVector<Value> place{batch, head, token};
    if (rankOf(x) == 4)
      place.push_back(feature);
    store(value, x, place);
  }
  void forEachFeature(Value x, function_ref<void(Value)> body) {
    if (rankOf(x) == 3)
      return body(Value());
    forEach(dim(x, 3), body);
  }

  Value zero() { return constant(type, 0.0); }
  Value next(Value t) { return add(t, index(1)); }
  /// e^{Σ g_t} over [from, to), of one feature.
  Value factor(Value decay, Value from, Value to, Value feature) {
    Value sum = reduce(from, to, 1, zero(),
                       [&](Value t, ValueRange sum) -> SmallVector<Value> {
                         return {addf(sum.front(), at(decay, t, feature))};
                       })
                    .front();
    return exp(sum);
  }
  /// The token that row t stands for.
  Value tokenOf(Value t, bool reverse) {
    return reverse ? sub(sub(dim(output, 2), index(1)), t) : t;
  }

  Value output, batch, head, heads;
  Type type;
};

} // namespace

static void lower(OpBuilder &b, ChunkPackOp op) {
  NaiveChunk n(b, op, op.getOutput());
  Scale scale = Scale::of(op);
  n.forEachHead([&] {
    Value tokens = n.dim(n.output, 2);
    if (op.getPadded()) {
      Value all = tokens;
      tokens = n.dim(op.getInput(), 2);
      n.forEach(tokens, all, 1, [&](Value t) {
        n.forEachFeature(n.output,
                         [&](Value d) { n.put(n.zero(), n.output, t, d); });
      });
    }
    n.forEach(tokens, [&](Value t) {
      Value token = n.tokenOf(t, op.getReverse());
      n.forEachFeature(n.output, [&](Value d) {
        Value x = rankOf(op.getInput()) == 1 ? n.load(op.getInput(), {n.head})
                                             : n.at(op.getInput(), token, d);
        x = n.convert(x, n.type);
        if (op.getShift())
          x = n.subf(x, n.convert(n.at(op.getShift(), t), n.type));
        if (op.getGate())
          x = n.mulf(x, n.convert(n.at(op.getGate(), t, d), n.type));
        x = scale.apply(n.b, n.loc, x);
        if (op.getMask()) {
          double fill = op.getFill() ? op.getFill()->convertToDouble() : 0.0;
          x = n.select(n.load(op.getMask(), {n.batch, t}), x,
                       n.constant(n.type, fill));
        }
        n.put(x, n.output, t, d);
      });
    });
  });
}

static void lower(OpBuilder &b, ChunkUnpackOp op) {
  NaiveChunk n(b, op, op.getOutput());
  n.forEachHead([&] {
    n.forEach(n.dim(n.output, 2), [&](Value t) {
      Value token = n.tokenOf(t, op.getReverse());
      n.forEachFeature(n.output, [&](Value d) {
        Value y = n.at(op.getRows(), t, d);
        if (op.getNormalize()) {
          Value maximum =
              op.getRunningMax() ? n.at(op.getRunningMax(), t) : Value();
          y = emitNormalize(b, op.getLoc(), *op.getNormalize(), n.type, y,
                            n.at(op.getDenominator(), t, n.index(0)), maximum);
        }
        n.put(n.convert(y, n.type), n.output, token, d);
      });
    });
  });
}

static void lower(OpBuilder &b, ChunkDecayOp op) {
  NaiveChunk n(b, op, op.getOutput());
  n.forEachHead([&] {
    Value tokens = n.dim(n.output, 2);
    n.forEach(tokens, [&](Value t) {
      n.forEachFeature(n.output, [&](Value d) {
        Value from = op.getToEnd() ? n.next(t) : n.index(0);
        Value to = op.getToEnd() ? tokens : op.getBefore() ? t : n.next(t);
        Value factor = n.factor(op.getDecay(), from, to, d);
        n.put(n.mulf(n.at(op.getRows(), t, d), factor), n.output, t, d);
      });
    });
  });
}

static void lower(OpBuilder &b, ChunkStabilizeOp op) {
  NaiveChunk n(b, op, op.getMaxima());
  Value least = n.lowest(n.type),
        none = n.constant(n.type, -std::numeric_limits<double>::infinity());
  n.forEachHead([&] {
    SmallVector<Value> place{n.batch, n.head};
    n.forEach(n.dim(n.output, 2), [&](Value t) {
      Value magnitude = op.getMagnitude();
      Value i =
          rankOf(magnitude) == 3
              ? n.at(magnitude, t)
              : n.reduce(n.dim(magnitude, 3), none, [&](Value d, Value best) {
                  return n.maxf(best, n.at(magnitude, t, d));
                });
      Value old = n.load(op.getRunningMax(), place), past = old;
      if (op.getDecay() && !op.getSteady())
        past = n.addf(past, n.at(op.getDecay(), t));
      Value best = n.maxf(past, i);
      Value change = n.subf(n.maxf(old, least), n.maxf(best, least));
      n.forEachFeature(op.getFade(), [&](Value d) {
        Value fade =
            op.getDecay() ? n.addf(change, n.at(op.getDecay(), t, d)) : change;
        n.put(fade, op.getFade(), t, d);
      });
      n.put(n.maxf(best, least), op.getMaxima(), t);
      n.store(best, op.getRunningMax(), place);
    });
  });
}

static void lower(OpBuilder &b, ChunkScoresOp op) {
  NaiveChunk n(b, op, op.getOutput());
  Value rows = op.getRows(), keys = op.getKeys(), decay = op.getDecay();
  // The product of row t and key j, each feature with its weight.
  auto product = [&](Value t, Value j, function_ref<Value(Value)> weight) {
    return n.reduce(n.dim(rows, 3), n.zero(), [&](Value d, Value sum) {
      Value key = n.at(keys, j, d);
      if (Value factor = weight(d))
        key = n.mulf(key, factor);
      return n.addf(sum, n.mulf(n.at(rows, t, d), key));
    });
  };
  n.forEachHead([&] {
    Value tokens = n.dim(rows, 2);
    n.forEach(tokens, [&](Value t) {
      n.forEach(tokens, [&](Value j) { n.put(n.zero(), n.output, t, j); });
      n.forEach(op.getStrict() ? t : n.next(t), [&](Value j) {
        Value score = product(t, j, [&](Value d) -> Value {
          Value to = op.getBefore() ? t : n.next(t);
          return decay ? n.factor(decay, n.next(j), to, d) : Value();
        });
        n.put(score, n.output, t, j);
      });
      if (Value bonus = op.getBonus())
        n.put(product(t, t,
                      [&](Value d) {
                        Value few = n.dim(bonus, 0);
                        Value own = n.div(n.mul(n.head, few), n.heads);
                        return n.convert(n.load(bonus, {own, d}), n.type);
                      }),
              n.output, t, t);
    });
  });
}

static void lower(OpBuilder &b, ChunkSolveOp op) {
  NaiveChunk n(b, op, op.getOutput());
  bool transpose = op.getTranspose();
  n.forEachHead([&] {
    Value tokens = n.dim(n.output, 2);
    n.forEach(tokens, [&](Value step) {
      Value t = n.tokenOf(step, transpose);
      n.forEachFeature(n.output, [&](Value d) {
        Value x =
            n.reduce(transpose ? n.next(t) : n.index(0), transpose ? tokens : t,
                     1, n.at(n.output, t, d),
                     [&](Value j, ValueRange sum) -> SmallVector<Value> {
                       Value score = transpose ? n.at(op.getScores(), j, t)
                                               : n.at(op.getScores(), t, j);
                       return {n.addf(sum.front(),
                                      n.mulf(score, n.at(n.output, j, d)))};
                     })
                .front();
        if (op.getGate())
          x = n.mulf(x, n.at(op.getGate(), t, d));
        n.put(x, n.output, t, d);
      });
    });
  });
}

static void lower(OpBuilder &b, ChunkReadOp op) {
  NaiveChunk n(b, op, op.getOutput());
  Value rows = op.getRows(), state = op.getState(), decay = op.getDecay();
  bool adjoint = op.getAdjoint();
  auto addTerm = [&](Value t, Value v, Value scores, Value values, Value sum) {
    Value from = n.index(0), to = op.getStrict() ? t : n.next(t);
    if (adjoint) {
      from = op.getStrict() ? n.next(t) : t;
      to = n.dim(n.output, 2);
    }
    return n
        .reduce(from, to, 1, sum,
                [&](Value j, ValueRange sum) -> SmallVector<Value> {
                  Value score =
                      adjoint ? n.at(scores, j, t) : n.at(scores, t, j);
                  Value value = n.at(values, j, v);
                  if (decay)
                    value =
                        n.mulf(value, n.factor(decay, n.next(adjoint ? t : j),
                                               n.next(adjoint ? j : t), v));
                  return {n.addf(sum.front(), n.mulf(score, value))};
                })
        .front();
  };
  n.forEachHead([&] {
    n.forEach(n.dim(n.output, 2), [&](Value t) {
      n.forEachFeature(n.output, [&](Value v) {
        Value start = n.at(n.output, t, v);
        Value sum = n.reduce(n.dim(rows, 3), decay ? n.zero() : start,
                             [&](Value k, Value sum) {
                               Value s = op.getTranspose() ? n.at(state, v, k)
                                                           : n.at(state, k, v);
                               return n.addf(sum, n.mulf(n.at(rows, t, k), s));
                             });
        if (decay) {
          Value from = adjoint ? n.next(t) : n.index(0);
          Value to = adjoint ? n.dim(n.output, 2) : n.next(t);
          sum = n.addf(start, n.mulf(sum, n.factor(decay, from, to, v)));
        }
        for (auto [scores, values] :
             llvm::zip_equal(op.getScores(), op.getValues()))
          sum = addTerm(t, v, scores, values, sum);
        n.put(sum, n.output, t, v);
      });
    });
  });
}

static void lower(OpBuilder &b, ChunkUpdateOp op) {
  NaiveChunk n(b, op, op.getOutput());
  n.forEachHead([&] {
    n.forEach(n.dim(n.output, 2), [&](Value k) {
      n.forEach(n.dim(n.output, 3), [&](Value v) {
        Value s = n.at(n.output, k, v);
        auto decayed = [&](Value decay, Value feature) {
          if (decay)
            s = n.mulf(s,
                       n.factor(decay, n.index(0), n.dim(decay, 2), feature));
        };
        decayed(op.getDecay(), k);
        decayed(op.getValueDecay(), v);
        for (auto [keys, values] :
             llvm::zip_equal(op.getKeys(), op.getValues()))
          s = n.reduce(n.dim(keys, 2), s,
                       [&, keys = keys, values = values](Value t, Value sum) {
                         return n.addf(
                             sum, n.mulf(n.at(keys, t, k), n.at(values, t, v)));
                       });
        n.put(s, n.output, k, v);
      });
    });
  });
}

namespace {

template <typename OpTy>
struct ChunkToLoops : OpRewritePattern<OpTy> {
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

} // namespace

void mlir::linattn::populateNaiveChunkPatterns(RewritePatternSet &patterns) {
  patterns.add<ChunkToLoops<ChunkPackOp>, ChunkToLoops<ChunkUnpackOp>,
               ChunkToLoops<ChunkDecayOp>, ChunkToLoops<ChunkStabilizeOp>,
               ChunkToLoops<ChunkScoresOp>, ChunkToLoops<ChunkSolveOp>,
               ChunkToLoops<ChunkReadOp>, ChunkToLoops<ChunkUpdateOp>>(
      patterns.getContext());
}
