//===- ChunkProducts.cpp - Products of a chunk as linalg on tensors -------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChunkLinalg.h"

using namespace mlir;
using namespace mlir::linattn;
using namespace mlir::linattn::chunk;

//===----------------------------------------------------------------------===//
// scores, solve
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Value>> ChunkScoresOp::decomposeOperation(OpBuilder &b) {
  ChunkLinalg steps(b, *this, getOutput());
  SmallVector<Value> inputs{getRows(), steps.rowsOf(getKeys())};
  std::string subscripts = "bhik,bhjk";
  Value decay = getDecay() ? steps.rowsOf(getDecay()) : Value(), logs;
  bool strict = getStrict(), channels = decay && rankOf(decay) == 4;
  if (decay) {
    logs = steps.spans(
        decay, "bhij", 2, [&](ImplicitLocOpBuilder &s, Value token) {
          Value row = loopIndex(s, 2), key = loopIndex(s, 3);
          return both(s, less(s, key, token),
                      less(s, token, row, /*orEqual=*/!getBefore()));
        });
  }
  auto isVisible = [&](ImplicitLocOpBuilder &s) {
    return less(s, loopIndex(s, 3), loopIndex(s, 2), /*orEqual=*/!strict);
  };
  if (channels) {
    // Logarithms [B, H, C, C, K] have a rank of their own.
    inputs.push_back(logs);
    subscripts += ",bhijk";
  }
  Value scores = steps.map(
      subscripts + "->bhij", inputs, steps.cleared(getOutput()),
      [&](ImplicitLocOpBuilder &s, ValueRange args) -> Value {
        Value key = args[1];
        if (channels)
          key = mul(s, key, exp(s, args[2]));
        Value sum = add(s, args.back(), mul(s, args[0], key));
        return arith::SelectOp::create(s, isVisible(s), sum, args.back());
      });
  if (decay && !channels)
    scores = steps.map("bhij->bhij", logs, scores,
                       [&](ImplicitLocOpBuilder &s, ValueRange args) -> Value {
                         Value decayed = mul(s, args[1], exp(s, args[0]));
                         return arith::SelectOp::create(s, isVisible(s),
                                                        decayed, args[1]);
                       });
  if (getBonus())
    scores = steps.map(
        "bhik,bhjk,hk->bhij", {getRows(), inputs[1], steps.rowsOf(getBonus())},
        scores, [&](ImplicitLocOpBuilder &s, ValueRange args) -> Value {
          Value own = arith::CmpIOp::create(s, arith::CmpIPredicate::eq,
                                            loopIndex(s, 2), loopIndex(s, 3));
          Value weight =
              mul(s, convertFloat(s, s.getLoc(), args[2], steps.type), args[1]);
          return arith::SelectOp::create(
              s, own, add(s, args[3], mul(s, args[0], weight)), args[3]);
        });
  return SmallVector<Value>{scores};
}

FailureOr<SmallVector<Value>> ChunkSolveOp::decomposeOperation(OpBuilder &b) {
  ChunkLinalg steps(b, *this, getOutput());
  Location loc = getLoc();
  Value gate = getGate() ? steps.rowsOf(getGate()) : Value();
  Value tokens = steps.dim(getOutput(), 2);
  auto loop = scf::ForOp::create(b, loc, steps.index(0), tokens, steps.index(1),
                                 ValueRange{getOutput()});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value solved = loop.getRegionIterArg(0), t = loop.getInductionVar();
  bool transpose = getTranspose();
  if (transpose)
    t = arith::SubIOp::create(
        b, loc, arith::SubIOp::create(b, loc, tokens, steps.index(1)), t);
  // Row t of rows or numbers, or column t of scores.
  auto rowAt = [&](Value x, int64_t dim) {
    SmallVector<OpFoldResult> offsets(rankOf(x), b.getIndexAttr(0)),
        extents = steps.sizes(x), strides(rankOf(x), b.getIndexAttr(1));
    offsets[dim] = t;
    extents[dim] = b.getIndexAttr(1);
    return std::tuple(offsets, extents, strides);
  };
  auto extract = [&](Value x, int64_t dim) -> Value {
    auto [offsets, extents, strides] = rowAt(x, dim);
    return tensor::ExtractSliceOp::create(b, loc, x, offsets, extents, strides);
  };
  Value row = steps.map(
      transpose ? "bhji,bhjv->bhiv" : "bhij,bhjv->bhiv",
      {extract(getScores(), transpose ? 3 : 2), solved}, extract(solved, 2),
      [&](ImplicitLocOpBuilder &s, ValueRange args) -> Value {
        Value j = loopIndex(s, 4);
        Value keep = transpose ? less(s, t, j) : less(s, j, t);
        Value sum = add(s, args[2], mul(s, args[0], args[1]));
        return arith::SelectOp::create(s, keep, sum, args[2]);
      });
  if (gate) {
    Value factor = extract(gate, 2);
    row = steps.map(withFeatures("bhi", factor, 'v') + "->bhiv", factor, row,
                    [](ImplicitLocOpBuilder &s, ValueRange args) {
                      return mul(s, args[0], args[1]);
                    });
  }
  auto [offsets, extents, strides] = rowAt(solved, 2);
  scf::YieldOp::create(b, loc,
                       ValueRange{tensor::InsertSliceOp::create(
                           b, loc, row, solved, offsets, extents, strides)});
  return SmallVector<Value>(loop.getResults());
}

//===----------------------------------------------------------------------===//
// read, update
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Value>> ChunkReadOp::decomposeOperation(OpBuilder &b) {
  ChunkLinalg steps(b, *this, getOutput());
  bool adjoint = getAdjoint();
  Value decay = getDecay() ? steps.rowsOf(getDecay()) : Value(), between;
  Value sum = einsum(
      b, getLoc(), getTranspose() ? "bhik,bhvk->bhiv" : "bhik,bhkv->bhiv",
      getRows(), steps.rowsOf(getState()),
      decay ? steps.full(steps.sizes(getOutput()), 0.0) : getOutput());
  if (decay) {
    Value logs =
        steps.spans(decay, "bhi", 1, [&](ImplicitLocOpBuilder &s, Value token) {
          Value row = loopIndex(s, 2);
          return adjoint ? less(s, row, token)
                         : less(s, token, row, /*orEqual=*/true);
        });
    sum = steps.map("bhiv,bhiv->bhiv", {sum, logs}, getOutput(),
                    [](ImplicitLocOpBuilder &s, ValueRange args) {
                      return add(s, args[2], mul(s, args[0], exp(s, args[1])));
                    });
    between = steps.spans(
        decay, "bhij", 2, [&](ImplicitLocOpBuilder &s, Value token) {
          Value later = loopIndex(s, 2), earlier = loopIndex(s, 3);
          if (adjoint)
            std::swap(later, earlier);
          return both(s, less(s, earlier, token),
                      less(s, token, later, /*orEqual=*/true));
        });
  }
  for (auto [scores, values] : llvm::zip_equal(getScores(), getValues())) {
    SmallVector<Value> inputs{scores, steps.rowsOf(values)};
    std::string subscripts = adjoint ? "bhji,bhjv" : "bhij,bhjv";
    if (decay) {
      inputs.push_back(between);
      subscripts += ",bhijv";
    }
    sum =
        steps.map(subscripts + "->bhiv", inputs, sum,
                  [&](ImplicitLocOpBuilder &s, ValueRange args) -> Value {
                    Value own = loopIndex(s, 2), other = loopIndex(s, 4);
                    if (adjoint)
                      std::swap(own, other);
                    Value keep = less(s, other, own, /*orEqual=*/!getStrict());
                    Value value =
                        decay ? mul(s, args[1], exp(s, args[2])) : args[1];
                    Value next = add(s, args.back(), mul(s, args[0], value));
                    return arith::SelectOp::create(s, keep, next, args.back());
                  });
  }
  return SmallVector<Value>{sum};
}

/// e^x and its rounding residual, for slow decays. A fast decay forgets the
/// residual.
static std::pair<Value, Value> factorAndRest(ImplicitLocOpBuilder &b, Value x) {
  Value factor = exp(b, x);
  auto number = [&](double value) {
    return emitFloat(b, b.getLoc(), x.getType(), value);
  };
  Value rest =
      arith::SubFOp::create(b, math::ExpM1Op::create(b, x),
                            arith::SubFOp::create(b, factor, number(1.0)));
  Value isSlow =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OGE, factor, number(0.5));
  return {factor, arith::SelectOp::create(b, isSlow, rest, number(0.0))};
}

FailureOr<SmallVector<Value>> ChunkUpdateOp::decomposeOperation(OpBuilder &b) {
  ChunkLinalg steps(b, *this, getOutput());
  Value state = getOutput();
  bool withRest = steps.type.isF32();
  SmallVector<Value> logs;
  std::string subscripts;
  auto total = [&](Value decay, char feature) {
    if (!decay)
      return;
    SmallVector<OpFoldResult> shape{steps.size(decay, 0), steps.size(decay, 1)};
    if (rankOf(decay) == 4)
      shape.push_back(steps.size(decay, 3));
    std::string letters =
        rankOf(decay) == 4 ? std::string("bh") + feature : "bh";
    std::string tokens =
        rankOf(decay) == 4 ? std::string("bhs") + feature : "bhs";
    logs.push_back(steps.map(tokens + "->" + letters, decay,
                             steps.full(shape, 0.0),
                             [](ImplicitLocOpBuilder &s, ValueRange args) {
                               return add(s, args[1], args[0]);
                             }));
    subscripts += letters + ",";
  };
  total(getDecay(), 'k');
  total(getValueDecay(), 'v');
  // The residual of the state is added to the writes first: in a sum with the
  // decayed state it would be rounded away.
  Value writes = steps.full(steps.sizes(state), 0.0);
  for (auto [keys, values] : llvm::zip_equal(getKeys(), getValues()))
    writes = einsum(b, getLoc(), "bhsk,bhsv->bhkv", keys, values, writes);
  SmallVector<Value> inputs(logs);
  inputs.push_back(writes);
  Value result = steps.map(
      subscripts + "bhkv->bhkv", inputs, state,
      [&](ImplicitLocOpBuilder &s, ValueRange args) -> Value {
        Value sum = args[logs.size()], past = args.back(), factor, rest;
        for (Value log : args.take_front(logs.size())) {
          auto [next, left] = factorAndRest(s, log);
          rest =
              factor ? add(s, mul(s, rest, next), mul(s, factor, left)) : left;
          factor = factor ? mul(s, factor, next) : next;
        }
        if (!factor)
          return add(s, past, sum);
        if (withRest)
          sum = add(s, mul(s, past, rest), sum);
        return add(s, mul(s, past, factor), sum);
      });
  return SmallVector<Value>{result};
}
