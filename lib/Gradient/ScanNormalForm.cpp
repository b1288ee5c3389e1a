//===- ScanNormalForm.cpp - Scans as their gradient sees them -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Feature maps, masks, gates of the delta rule and the normalizer become ops
// before and after the recurrence, which have gradients of their own.
//
//===----------------------------------------------------------------------===//

#include "ScanNormalForm.h"
#include "GradientModel.h"
#include "RowRecurrences.h"
#include "SnapshotTokens.h"
#include "linattn/Dialect/FeatureMaps.h"
#include "linattn/Dialect/ScanTraits.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::linattn;

static FeatureMapKind kindOf(ScanOp op) {
  return cast<FeatureMappedOpInterface>(op.getOperation()).getFeatureMapKind();
}

LogicalResult mlir::linattn::checkKnownHeads(Operation *op, ValueRange values) {
  if (llvm::none_of(values, [](Value value) {
        return ShapedType::isDynamic(headsOf(value));
      }))
    return success();
  return emitNoGradient(op) << " for a dynamic number of heads";
}

static bool hasGroupedHeads(ScanOp op) {
  int64_t heads = headsOf(op.getOutput());
  return headsOf(op.getQuery()) != heads || headsOf(op.getKey()) != heads ||
         headsOf(op.getValue()) != heads;
}

LogicalResult mlir::linattn::checkScanGradient(ScanOp op) {
  if (op.getStateIndices())
    return emitNoGradient(op)
           << " for state_indices: their states are overwritten";
  if (op.getEvery() && op.getReverse())
    return emitNoGradient(op) << " for snapshots of a reversed scan";
  auto isWide = [](Value gate) {
    return gate && cast<ShapedType>(gate.getType()).getRank() == 4;
  };
  if (getRule(op).couplesColumns() && isWide(op.getDecay()))
    return emitNoGradient(op) << " for update(" << getRule(op).name
                              << ") with a decay of shape [B, H, T, K]";
  if (isWide(op.getBeta()) &&
      cast<ShapedType>(op.getValue().getType()).isDynamicDim(3))
    return emitNoGradient(op) << " for beta of shape [B, H, T, V] with a "
                                 "dynamic number of columns";
  return checkKnownHeads(op, {op.getQuery(), op.getKey(), op.getValue(),
                              op.getState(), op.getOutput()});
}

bool mlir::linattn::needsNormalForm(ScanOp op) {
  return kindOf(op) != FeatureMapKind::Identity || op.getMask() ||
         op.getNormalize() || getRule(op).correctsValues() ||
         getRule(op).couplesColumns() || op.getBeta() || op.getEvery() ||
         hasGroupedHeads(op) ||
         getElementTypeOrSelf(op.getQuery()) !=
             getElementTypeOrSelf(op.getState());
}

namespace {

class NormalForm {
public:
  NormalForm(ScanOp op, OpBuilder &b, bool keepsStates)
      : op(op), b(b), t(b, op.getLoc(), getElementTypeOrSelf(op.getState())),
        keepsStates(keepsStates) {}

  SmallVector<Value> build();

private:
  /// Results of one recurrence.
  struct Scanned {
    Value output, state, snapshots;
  };

  Value repeat(Value x, int64_t dim = 1);
  Value repeatGate(Value gate);
  Value takeGroups(Value state, int64_t dim = 1);
  Value times(Value tokens, Value gate);
  Value sumOfDecays(Value gate);
  void addMaxima();
  void addGates();
  void addDelta(Value mask);
  void addOja(Value mask);
  Scanned scan(Value value, Value state);
  Value keptMaxima();

  ScanOp op;
  OpBuilder &b;
  TensorBuilder t;
  bool keepsStates;
  Value q, k, v, a, e, decay, valueDecay;
  Value previous, current; ///< Running maxima [B, H, T].
  Value lastMaximum;
};

} // namespace

Value mlir::linattn::buildFeatures(TensorBuilder &t,
                                   FeatureMappedOpInterface op, Value tokens) {
  if (op.getFeatureMapKind() == FeatureMapKind::Identity)
    return t.convert(tokens);
  auto attr = op->getAttrOfType<FeatureMapAttr>("feature_map");
  auto map = FeatureMapOp::create(t.b, t.loc, tokens, ValueRange(), Value(),
                                  t.empty(t.sizes(tokens)), attr);
  IRMapping mapping;
  op.getFeatureMapRegion().cloneInto(&map.getPhi(), mapping);
  return map.getResult(0);
}

Value mlir::linattn::buildStabilised(TensorBuilder &t, Value tokens) {
  auto attr =
      FeatureMapAttr::get(t.b.getContext(), FeatureMapKind::SoftmaxKernel);
  Value wide = t.convert(tokens);
  return FeatureMapOp::create(t.b, t.loc, wide, ValueRange(), Value(),
                              t.empty(t.sizes(wide)), attr)
      .getResult(0);
}

Value mlir::linattn::buildQuotient(TensorBuilder &t, NormalizeAttr normalize,
                                   Type tokenType, Value numerator,
                                   Value denominator, Value runningMax) {
  SmallVector<Value> inputs{numerator, denominator};
  std::string subscripts = "bhtd,bht";
  if (runningMax) {
    inputs.push_back(runningMax);
    bool isOfToken = cast<ShapedType>(runningMax.getType()).getRank() == 3;
    subscripts += isOfToken ? ",bht" : ",bh";
  }
  return t.map(subscripts + "->bhtd", inputs,
               [&](OpBuilder &nested, Location at, ValueRange args) {
                 return emitNormalize(nested, at, normalize, tokenType, args[0],
                                      args[1], runningMax ? args[2] : Value());
               });
}

/// Every head as often as outputs have it, so that all have a state of their
/// own; heads are dimension `dim`. The gradient of this sums over the group in
/// the order of its heads.
Value NormalForm::repeat(Value x, int64_t dim) {
  return x ? t.repeated(x, dim, headsOf(op.getOutput())) : x;
}

Value NormalForm::repeatGate(Value gate) {
  bool isConstant = gate && cast<ShapedType>(gate.getType()).getRank() == 1;
  return repeat(gate, isConstant ? 0 : 1);
}

/// The state of the first output head of each group; all are the same.
Value NormalForm::takeGroups(Value state, int64_t dim) {
  int64_t heads = headsOf(op.getState());
  int64_t all = cast<ShapedType>(state.getType()).getDimSize(dim);
  if (heads == all)
    return state;
  SmallVector<OpFoldResult> sizes = t.sizes(state);
  SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  sizes[dim] = b.getIndexAttr(heads);
  strides[dim] = b.getIndexAttr(all / heads);
  return tensor::ExtractSliceOp::create(b, op.getLoc(), state, offsets, sizes,
                                        strides);
}

/// Tokens times a gate of a token or of each feature; null stands for one.
Value NormalForm::times(Value tokens, Value gate) {
  if (!gate)
    return tokens;
  return t.product("bhtd," + subscriptsOfGate(gate, 'd') + "->bhtd", tokens,
                   gate);
}

/// A gate of keys plus the decay of values, as one of values.
Value NormalForm::sumOfDecays(Value gate) {
  if (!gate || !valueDecay)
    return gate ? gate : valueDecay;
  return t.map("bhtv," + subscriptsOfGate(gate, 'v') + "->bhtv",
               {valueDecay, gate},
               [](OpBuilder &nested, Location at, ValueRange x) -> Value {
                 return arith::AddFOp::create(nested, at, x[0], x[1]);
               });
}

/// With a beta of its own every value column has a transition of its own: it
/// becomes a head with one column.
static SmallVector<Value> rewriteColumnsAsHeads(ScanOp op, OpBuilder &b) {
  Location loc = op.getLoc();
  auto type = cast<ShapedType>(op.getOutput().getType());
  int64_t heads = type.getDimSize(1), columns = type.getDimSize(3);
  auto split = [&](Value x) -> Value { // [B, H, T, V] to [B, HV, T, 1]
    if (!x)
      return x;
    TensorBuilder t(b, loc, getElementTypeOrSelf(x));
    x = t.map("bhtv->bhvt", t.repeated(x, 1, heads));
    return t.withUnitDim(t.withJoinedDims(x, 1), 3);
  };
  auto repeat = [&](Value gate) -> Value {
    if (!gate)
      return gate;
    TensorBuilder t(b, loc, getElementTypeOrSelf(gate));
    int64_t dim = cast<ShapedType>(gate.getType()).getRank() == 1 ? 0 : 1;
    return t.repeatedEach(t.repeated(gate, dim, heads), dim, columns);
  };
  TensorBuilder t(b, loc, getElementTypeOrSelf(op.getState()));
  Value beta = TensorBuilder(b, loc, getElementTypeOrSelf(op.getBeta()))
                   .withoutUnitDim(split(op.getBeta()), 3);
  Value state = t.transposed(t.repeated(op.getState(), 1, heads));
  state = t.withUnitDim(t.withJoinedDims(state, 1), 3);
  Value none, output = split(op.getOutput());
  auto built = ScanOp::create(
      b, loc, TypeRange{output.getType(), state.getType()}, op.getQuery(),
      op.getKey(), split(op.getValue()), repeat(op.getDecay()), none, beta,
      none, none, none, repeat(op.getErase()), split(op.getWrite()), none,
      op.getMask(), op.getCuSeqlens(), none, op.getScaleValue(), output, state,
      none, none, ValueRange(), op.getUpdate(), op.getReadout(),
      op.getTransition(), op.getReverse(), IntegerAttr(),
      op.getFeatureMapAttr(), NormalizeAttr(), op.getScaleAttr(), ConfigAttr());
  IRMapping mapping;
  op.getPhi().cloneInto(&built.getPhi(), mapping);
  TensorBuilder narrow(b, loc, getElementTypeOrSelf(output));
  auto join = [&](TensorBuilder &to, Value x, StringRef subscripts,
                  int64_t unit) {
    x = to.withSplitDim(to.withoutUnitDim(x, unit), 1, columns);
    return to.map(subscripts, x);
  };
  Value joined = t.firstOfEach(join(t, built.getResult(1), "bhvk->bhkv", 3), 1,
                               headsOf(op.getState()));
  return {join(narrow, built.getResult(0), "bhvt->bhtv", 3), joined};
}

//===----------------------------------------------------------------------===//
// Running maxima
//===----------------------------------------------------------------------===//

/// m of the input gate, or of the largest feature of each key.
void NormalForm::addMaxima() {
  int64_t heads = headsOf(op.getState());
  Value raised = op.getInputGate();
  if (!raised)
    raised = t.repeated(t.maximum("bhtd->bht", op.getKey()), 1, heads);
  SmallVector<Value> inputs{raised};
  if (op.getMask())
    inputs.push_back(op.getMask());
  MaxRecurrence max;
  max.input = t.map(op.getMask() ? "bht,bt->bth" : "bht->bth", inputs,
                    [&](OpBuilder &nested, Location at, ValueRange x) -> Value {
                      if (x.size() == 1)
                        return x[0];
                      return arith::SelectOp::create(
                          nested, at, x[1], x[0],
                          emitFloat(nested, at, t.type, kNoMaximum));
                    });
  if (op.getInputGate() && op.getDecay()) {
    bool isConstant = cast<ShapedType>(op.getDecay().getType()).getRank() == 1;
    max.gate = isConstant ? t.convert(op.getDecay())
                          : t.map("bht->bth", op.getDecay());
  }
  max.start = op.getRunningMax();
  max.offsets = op.getCuSeqlens();
  max.reverse = op.getReverse();
  RunningMaxima maxima = buildRunningMaxima(t, max);
  previous = repeat(t.map("bth->bht", maxima.previous));
  current = repeat(t.map("bth->bht", maxima.current));
  lastMaximum = maxima.last;
}

/// Keys and decays relative to the running maximum.
void NormalForm::addGates() {
  addMaxima();
  Value gate = repeatGate(op.getInputGate());
  SmallVector<Value> inputs{k, current};
  if (gate)
    inputs.push_back(gate);
  k = t.map(gate ? "bhtd,bht,bht->bhtd" : "bhtd,bht->bhtd", inputs,
            [&](OpBuilder &nested, Location at, ValueRange x) -> Value {
              if (!gate)
                return emitRelative(nested, at, x[0], x[1]);
              return arith::MulFOp::create(
                  nested, at, x[0], emitRelative(nested, at, x[2], x[1]));
            });
  SmallVector<Value> logs{previous, current};
  std::string subscripts = "bht,bht";
  if (gate && decay) {
    logs.push_back(decay);
    subscripts += "," + subscriptsOfGate(decay, 'd');
  }
  Value rescaling =
      t.map(subscripts + "->bht", logs,
            [&](OpBuilder &nested, Location at, ValueRange x) -> Value {
              return emitRescaling(nested, at, x[0], x[1],
                                   x.size() > 2 ? x[2] : Value());
            });
  if (gate || !decay) {
    decay = rescaling;
    return;
  }
  std::string wide =
      cast<ShapedType>(decay.getType()).getRank() == 4 ? "bhtd" : "bht";
  decay =
      t.map(subscriptsOfGate(decay, 'd') + ",bht->" + wide, {decay, rescaling},
            [](OpBuilder &nested, Location at, ValueRange x) -> Value {
              return arith::AddFOp::create(nested, at, x[0], x[1]);
            });
}

//===----------------------------------------------------------------------===//
// Updates
//===----------------------------------------------------------------------===//

void NormalForm::addDelta(Value mask) {
  a = arith::NegFOp::create(b, op.getLoc(),
                            times(k, repeatGate(op.getErase())));
  e = k = t.masked(times(k, repeatGate(op.getBeta())), mask);
}

/// Oja's rule writes k_t − Sd_t v_t, which the delta rule of the transposed
/// state knows as r_t: with it the update is additive.
void NormalForm::addOja(Value mask) {
  Value step = t.masked(times(v, repeatGate(op.getBeta())), mask);
  Value erased = arith::NegFOp::create(b, op.getLoc(), v);
  Value sum = sumOfDecays(decay), none;
  Value query = t.timesExp(erased, sum);
  Value output = t.empty(t.sizes(k));
  Value state = t.transposed(repeat(op.getState()));
  auto transposed = ScanOp::create(
      b, op.getLoc(), TypeRange{output.getType(), state.getType()}, query, step,
      k, sum, none, none, erased, step, none, none, none, none, none,
      op.getCuSeqlens(), none, none, output, state, none, none, ValueRange(),
      Update::Dplr, Readout::Exclusive, Transition::After, op.getReverse(),
      IntegerAttr(), FeatureMapAttr(), NormalizeAttr(), FloatAttr(),
      ConfigAttr());
  k = t.masked(t.add(k, transposed.getResult(0)), mask);
  v = step;
}

//===----------------------------------------------------------------------===//
// The recurrence
//===----------------------------------------------------------------------===//

NormalForm::Scanned NormalForm::scan(Value value, Value state) {
  std::optional<SnapshotTokens> groups;
  Value query = q, key = k, left = a, right = e;
  Value gate = decay, valueGate = valueDecay;
  if (keepsStates) {
    groups.emplace(t, op.getQuery(), *op.getEvery());
    query = groups->insertUnitRows(t.timesExp(q, Value(), Scale::of(op)));
    for (Value *tokens : {&key, &value, &left, &right, &gate, &valueGate})
      *tokens = groups->insertZeros(*tokens, t.dim(k, 3));
  }
  SmallVector<OpFoldResult> shape = t.sizes(query);
  shape[3] = t.dim(value, 3);
  Value none, output = t.empty(shape);
  auto built = ScanOp::create(
      b, op.getLoc(), TypeRange{output.getType(), state.getType()}, query, key,
      value, gate, valueGate, none, left, right, repeat(op.getBonus(), 0), none,
      none, none, none, op.getCuSeqlens(), none,
      groups ? Value() : op.getScaleValue(), output, state, none, none,
      ValueRange(), a ? Update::Dplr : Update::Add, op.getReadout(),
      op.getTransition(), op.getReverse(), IntegerAttr(), FeatureMapAttr(),
      NormalizeAttr(), groups ? FloatAttr() : op.getScaleAttr(),
      getRule(op).couplesColumns() ? ConfigAttr() : op.getConfigAttr());
  Scanned result{built.getResult(0), built.getResult(1), {}};
  if (groups)
    std::tie(result.output, result.snapshots) = groups->split(result.output);
  return result;
}

/// m after every so many tokens, [B, P, H].
Value NormalForm::keptMaxima() {
  int64_t every = *op.getEvery();
  Value maxima = takeGroups(current);
  SmallVector<OpFoldResult> sizes = t.sizes(maxima);
  SmallVector<OpFoldResult> offsets(3, b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(3, b.getIndexAttr(1));
  sizes[2] = t.dim(op.getSnapshots()[0], 1);
  offsets[2] = b.getIndexAttr(every - 1);
  strides[2] = b.getIndexAttr(every);
  Value kept = tensor::ExtractSliceOp::create(b, op.getLoc(), maxima, offsets,
                                              sizes, strides);
  return t.map("bhp->bph", kept);
}

SmallVector<Value> NormalForm::build() {
  Location loc = op.getLoc();
  Value mask = op.getMask();
  auto mapped = cast<FeatureMappedOpInterface>(op.getOperation());
  bool isStabilised = op.getRunningMax() && !op.getInputGate();
  decay = repeatGate(op.getDecay());
  valueDecay = repeatGate(op.getValueDecay());
  // Under a running maximum e^k is stabilised, and so is e^q by its own.
  q = repeat(isStabilised ? buildStabilised(t, op.getQuery())
                          : buildFeatures(t, mapped, op.getQuery()));
  k = repeat(isStabilised ? t.convert(op.getKey())
                          : buildFeatures(t, mapped, op.getKey()));
  if (op.getRunningMax())
    addGates();
  v = repeat(t.convert(op.getValue()));
  v = t.masked(times(v, repeatGate(op.getWrite())), mask);
  if (getRule(op).correctsValues()) {
    addDelta(mask);
  } else if (getRule(op).couplesColumns()) {
    addOja(mask);
  } else {
    k = t.masked(times(k, repeatGate(op.getBeta())), mask);
    if (getRule(op).isGiven) {
      a = t.convert(repeatGate(op.getA()));
      e = t.masked(t.convert(repeatGate(op.getB())), mask);
    }
  }

  Scanned numerator = scan(v, repeat(op.getState()));
  Value output = numerator.output;
  SmallVector<Value> results{output, takeGroups(numerator.state)}, kept;
  if (keepsStates)
    kept.push_back(takeGroups(numerator.snapshots, 2));
  if (op.getNormalize()) {
    // z is one more column of the state, whose values are one.
    SmallVector<OpFoldResult> sizes = t.sizes(v);
    sizes[3] = b.getIndexAttr(1);
    Value ones = t.masked(t.filled(sizes, 1.0), mask);
    Scanned sums = scan(ones, repeat(t.withUnitDim(op.getNormalizer(), 3)));
    output = buildQuotient(t, *op.getNormalize(),
                           getElementTypeOrSelf(op.getQuery()), output,
                           t.withoutUnitDim(sums.output, 3),
                           op.getInputGate() ? current : Value());
    results.push_back(t.withoutUnitDim(takeGroups(sums.state), 3));
    if (keepsStates)
      kept.push_back(t.withoutUnitDim(takeGroups(sums.snapshots, 2), 4));
  }
  if (op.getRunningMax()) {
    results.push_back(lastMaximum);
    if (keepsStates)
      kept.push_back(keptMaxima());
  }
  results[0] = TensorBuilder(b, loc, getElementTypeOrSelf(op.getOutput()))
                   .convert(output);
  if (!keepsStates)
    kept.resize(op.getSnapshots().size());
  results.append(kept);
  return results;
}

SmallVector<Value> mlir::linattn::buildNormalForm(ScanOp op, OpBuilder &b,
                                                  bool keepsStates) {
  if (op.getBeta() && cast<ShapedType>(op.getBeta().getType()).getRank() == 4)
    return rewriteColumnsAsHeads(op, b);
  return NormalForm(op, b, keepsStates).build();
}
