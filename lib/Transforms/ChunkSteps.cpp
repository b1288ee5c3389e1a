//===- ChunkSteps.cpp - The steps of one chunk ----------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With operands decayed from the start of the chunk (Qd, Ad), keys decayed to
// its end (Ke, Be), the product Γ of its decays and the scores P^xy:
//
//   R   = (I − P^ab)⁻¹ (Ad S + P^ak V)
//   O   = Qd S + P^qk V + P^qb R
//   S  ← Γ S + Keᵀ V + Beᵀ R
//
// The delta rule writes b ∥ k: δ = (I − β P^ak)⁻¹ β (w V + Ad S) takes the
// place of V and the terms with b vanish. An additive update has no R. A
// normaliser is a state of one column that is written with ones.
//
//===----------------------------------------------------------------------===//

#include "ChunkSteps.h"

#include "linattn/Dialect/Einsum.h"
#include "linattn/Dialect/FeatureMaps.h"
#include "linattn/Dialect/ScanTraits.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// Carried values
//===----------------------------------------------------------------------===//

SmallVector<Value> CarriedValues::present() const {
  SmallVector<Value> values;
  for (Value value : {output, state, normalizer, runningMax})
    if (value)
      values.push_back(value);
  return values;
}

CarriedValues CarriedValues::with(ValueRange values) const {
  CarriedValues taken;
  size_t next = 0;
  auto take = [&](Value old) { return old ? values[next++] : Value(); };
  taken.output = take(output);
  taken.state = take(state);
  taken.normalizer = take(normalizer);
  taken.runningMax = take(runningMax);
  return taken;
}

static SmallVector<ReassociationIndices> oneColumn() {
  return {{0}, {1}, {2, 3}};
}

Value mlir::linattn::expandColumn(OpBuilder &b, Location loc,
                                  Value normalizer) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, normalizer);
  sizes.push_back(b.getIndexAttr(1));
  auto type = cast<RankedTensorType>(normalizer.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.push_back(1);
  return tensor::ExpandShapeOp::create(b, loc, type.clone(shape), normalizer,
                                       oneColumn(), sizes);
}

Value mlir::linattn::collapseColumn(OpBuilder &b, Location loc, Value state) {
  return tensor::CollapseShapeOp::create(b, loc, state, oneColumn());
}

//===----------------------------------------------------------------------===//
// Destinations
//===----------------------------------------------------------------------===//

OpFoldResult ChunkSteps::size(Value x, int64_t dim) {
  return tensor::getMixedSize(b, loc, x, dim);
}

OpFoldResult ChunkSteps::tokens() {
  return rowCount ? b.getIndexAttr(rowCount) : size(r.rows(), 2);
}

Value ChunkSteps::empty(ArrayRef<OpFoldResult> sizes) {
  return tensor::EmptyOp::create(b, loc, sizes, type);
}

Value ChunkSteps::zeros(ArrayRef<OpFoldResult> sizes) {
  return filled(b, loc, sizes, type, 0.0);
}

/// A destination for one number per token and state.
Value ChunkSteps::numbers(Value x) {
  return empty({size(carried.state, 0), heads(), tokens()});
}

Value ChunkSteps::rows(OpFoldResult heads, OpFoldResult width) {
  return empty({size(carried.state, 0), heads, tokens(), width});
}

Value ChunkSteps::square(Value rows) {
  return empty({size(rows, 0), size(rows, 1), size(rows, 2), size(rows, 2)});
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

Value ChunkSteps::decayed(Value rows, bool before, bool toEnd) {
  if (!decay)
    return rows;
  Value into = empty(tensor::getMixedSizes(b, loc, rows));
  return ChunkDecayOp::create(b, loc, TypeRange{into.getType()}, rows, decay,
                              into, before, toEnd)
      ->getResult(0);
}

Value ChunkSteps::scores(Value rows, Value keys, bool strict, bool before,
                         Value bonus) {
  Value into = square(rows);
  return ChunkScoresOp::create(b, loc, TypeRange{into.getType()}, rows, keys,
                               decay, bonus, into, strict, before && decay,
                               /*summands=*/DenseI64ArrayAttr())
      ->getResult(0);
}

Value ChunkSteps::read(Value rows, Value state, ArrayRef<Value> scores,
                       ArrayRef<Value> values, Value into, bool strict,
                       bool transpose) {
  return ChunkReadOp::create(b, loc, TypeRange{into.getType()}, rows, state,
                             scores, values, /*decay=*/Value(), into, strict,
                             transpose,
                             /*adjoint=*/false,
                             /*summands=*/DenseI64ArrayAttr())
      ->getResult(0);
}

Value ChunkSteps::update(ArrayRef<Write> writes, Value decay, Value valueDecay,
                         Value into) {
  SmallVector<Value> keys, values;
  for (const Write &write : writes) {
    keys.push_back(write.keys);
    values.push_back(write.values);
  }
  return ChunkUpdateOp::create(b, loc, TypeRange{into.getType()}, keys, values,
                               decay, valueDecay, into,
                               /*summands=*/DenseI64ArrayAttr())
      ->getResult(0);
}

Value ChunkSteps::solve(Value scores, Value gate, Value into) {
  return ChunkSolveOp::create(b, loc, TypeRange{into.getType()}, scores, gate,
                              into, /*transpose=*/false)
      ->getResult(0);
}

/// The output's rows, if queries were packed without the scale.
Value ChunkSteps::scaled(Value rows) {
  if (!scalesOutputs || r.scale.isOne())
    return rows;
  Value into = empty(tensor::getMixedSizes(b, loc, rows));
  return pack(rows, into, {}, {}, {}, r.scale);
}

Value ChunkSteps::unpack(Value rows, Value denominator) {
  bool moves = r.normalize && r.normalize->getAbsFloor() && maxima;
  rows = firstPart(rows, r.output);
  if (denominator)
    denominator = firstPart(denominator);
  // The kernel of a task writes such rows where they belong.
  if (headByHead && !rowCount && rows.getType() == r.output.getType() &&
      !denominator && !r.reverse)
    return rows;
  return ChunkUnpackOp::create(b, loc, TypeRange{r.output.getType()}, rows,
                               denominator, moves ? maxima : Value(), r.output,
                               denominator ? *r.normalize : NormalizeAttr(),
                               r.reverse)
      ->getResult(0);
}

/// The mask in the order of the rows.
Value ChunkSteps::mirrored(Value mask) {
  Value empty = tensor::EmptyOp::create(
      b, loc, tensor::getMixedSizes(b, loc, mask), b.getI1Type());
  Value last = arith::SubIOp::create(
      b, loc, getValueOrCreateConstantIndexOp(b, loc, size(mask, 1)),
      arith::ConstantIndexOp::create(b, loc, 1));
  return elementwise(b, loc, "->bt", {}, empty,
                     [&](OpBuilder &nested, Location at, ValueRange) -> Value {
                       Value batch = linalg::IndexOp::create(nested, at, 0);
                       Value token = linalg::IndexOp::create(nested, at, 1);
                       token = arith::SubIOp::create(nested, at, last, token);
                       return tensor::ExtractOp::create(
                           nested, at, mask, ValueRange{batch, token});
                     });
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void ChunkSteps::packGates() {
  mask = r.mask && r.reverse ? mirrored(r.mask) : r.mask;
  decay = packGate(r.decay, keySize());
  valueDecay = packGate(r.valueDecay, valueSize());
  beta = packGate(r.beta, valueSize(), mask);
  if (r.isStabilised())
    stabilize();
}

/// The decay times that of the running maximum, and the shift of the keys.
void ChunkSteps::stabilize() {
  constexpr double none = -std::numeric_limits<double>::infinity();
  Value magnitude = r.inputGate ? packGate(r.inputGate, keySize(), mask, none)
                                : pack(r.key, rows(heads(), keySize()), {}, {},
                                       mask, 1.0, none, r.reverse);
  Value fade = decay && rankOf(decay) == 4 ? rows(heads(), keySize())
                                           : numbers(carried.state);
  Value into = numbers(carried.state);
  auto op = ChunkStabilizeOp::create(
      b, loc,
      TypeRange{fade.getType(), into.getType(), carried.runningMax.getType()},
      magnitude, decay, fade, into, carried.runningMax,
      /*steady=*/!r.inputGate);
  decay = op->getResult(0);
  maxima = op->getResult(1);
  carried.runningMax = op->getResult(2);
  if (!r.inputGate) {
    keyShift = maxima;
    return;
  }
  Value exponent = pack(magnitude, numbers(magnitude), maxima);
  keyFactor = math::ExpOp::create(b, loc, exponent);
}

void ChunkSteps::packTokenRows() {
  FeatureMapKind kind = r.op.getFeatureMapKind();
  keys = features(r.key, rows(heads(), keySize()), kind, keyShift, keyFactor,
                  mask, 1.0);
  values = packTokens(r.value, rows(heads(), valueSize()),
                      r.write ? packGate(r.write, valueSize()) : Value(), mask);
  if (r.query && !headByHead)
    packQueries();
}

/// The stabilised exponential of a query is relative to the query's own largest
/// feature. The factor cancels in the quotient.
void ChunkSteps::packQueries() {
  FeatureMapKind kind = r.op.getFeatureMapKind();
  if (kind == FeatureMapKind::Exp && r.normalize)
    kind = FeatureMapKind::SoftmaxKernel;
  queries = features(r.query, rows(readers(), keySize()), kind, {}, {}, {},
                     scalesOutputs ? Scale() : r.scale);
}

/// The writes of the chunk: keys and values, with δ in place of the values for
/// the delta rule, and b and R beside them for dplr.
SmallVector<ChunkSteps::Write> ChunkSteps::transition() {
  if (getRule(r.update).isAdditive())
    return {{keys, values}};
  Value into = rows(heads(), keySize());
  if (getRule(r.update).correctsValues()) {
    Value erase = r.erase ? packGate(r.erase, keySize()) : Value();
    Value a = pack(keys, into, {}, erase, {}, -1.0);
    Value own = scores(a, keys, /*strict=*/true, r.before);
    Value error = read(decayed(a, r.before), carried.state, {}, {}, values);
    return {{keys, solve(own, beta, error)}};
  }
  Value a = packTokens(r.a, into, {}, mask);
  Value second = packTokens(r.b, rows(heads(), keySize()), {}, mask);
  Value fromKeys = scores(a, keys, /*strict=*/true, r.before);
  Value own = scores(a, second, /*strict=*/true, r.before);
  Value start = zeros({size(carried.state, 0), heads(), tokens(), valueSize()});
  Value sum = read(decayed(a, r.before), carried.state, fromKeys, values, start,
                   /*strict=*/true);
  return {{keys, values}, {second, solve(own, Value(), sum)}};
}

void ChunkSteps::readOut(ArrayRef<Write> writes) {
  if (!r.query)
    return;
  if (!headByHead)
    return readHead(writes);
  if (readers() != heads())
    return readHeads(writes);
  packQueries();
  readHead(writes);
}

/// One head of a tensor; of a tensor that has but one, that one.
Value ChunkSteps::headOf(Value x, Value head) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, x),
                            offsets(sizes.size(), b.getIndexAttr(0)),
                            strides(sizes.size(), b.getIndexAttr(1));
  if (sizes[1] == OpFoldResult(b.getIndexAttr(1)))
    return x;
  offsets[1] = head;
  sizes[1] = b.getIndexAttr(1);
  return tensor::ExtractSliceOp::create(b, loc, x, offsets, sizes, strides);
}

/// The heads of queries that read one state, in a loop.
void ChunkSteps::readHeads(ArrayRef<Write> writes) {
  Value query = r.query, output = r.output;
  auto bound = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  auto loop = scf::ForOp::create(
      b, loc, bound(0), getValueOrCreateConstantIndexOp(b, loc, readers()),
      bound(1), output);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value all = loop.getRegionIterArg(0);
  r.query = headOf(query, loop.getInductionVar());
  r.output = headOf(all, loop.getInductionVar());
  packQueries();
  readHead(writes);
  scf::YieldOp::create(b, loc, insertBack(b, carried.output, r.output, all));
  r.query = query;
  r.output = output;
  carried.output = loop.getResult(0);
}

void ChunkSteps::readHead(ArrayRef<Write> writes) {
  // A bonus is the diagonal of the first scores.
  bool strict = r.exclusive, leaveOut = strict && !r.bonus;
  SmallVector<Value> weights, written;
  for (const Write &write : writes) {
    weights.push_back(scores(queries, write.keys, strict, strict,
                             written.empty() ? r.bonus : Value()));
    written.push_back(write.values);
  }
  Value rows = decayed(queries, /*before=*/strict);
  SmallVector<OpFoldResult> shape{size(queries, 0), readers(), tokens(),
                                  valueSize()};
  Value o = read(rows, carried.state, weights, written, zeros(shape), leaveOut);
  Value denominator;
  if (carried.normalizer) {
    shape[3] = b.getIndexAttr(1);
    Value ones =
        filled(b, loc, {shape[0], heads(), shape[2], shape[3]}, type, 1.0);
    SmallVector<Value> columns(weights.size(), ones);
    denominator = read(rows, carried.normalizer, weights, columns, zeros(shape),
                       leaveOut);
  }
  carried.output = unpack(scaled(o), denominator);
}

void ChunkSteps::updateStates(ArrayRef<Write> writes) {
  SmallVector<Write> last;
  for (const Write &write : writes)
    last.push_back(
        {decayed(write.keys, /*before=*/false, /*toEnd=*/true), write.values});
  carried.state = update(last, decay, {}, carried.state);
  if (!carried.normalizer)
    return;
  SmallVector<OpFoldResult> column{size(carried.state, 0), heads(), tokens(),
                                   b.getIndexAttr(1)};
  Value ones = filled(b, loc, column, type, 1.0);
  // A feature map may make features of the zeros behind the last token.
  if (rowCount)
    ones = pack(firstPart(ones), empty(column));
  carried.normalizer =
      update({{last.front().keys, ones}}, decay, {}, carried.normalizer);
}

CarriedValues ChunkSteps::emitProducts() {
  packGates();
  packTokenRows();
  SmallVector<Write> writes = transition();
  readOut(writes);
  updateStates(writes);
  return carried;
}

CarriedValues ChunkSteps::emitToken() {
  packGates();
  packTokenRows();
  Value past = carried.state, next;
  if (getRule(r.update).couplesColumns()) {
    // The delta rule on Sᵀ: δ = β (k − Sd v) under the values.
    Value faded = update({}, decay, valueDecay, past);
    Value minus = pack(values, rows(heads(), valueSize()), {}, {}, {}, -1.0);
    Value error = read(minus, faded, {}, {}, keys, /*strict=*/false,
                       /*transpose=*/true);
    Value delta = pack(error, rows(heads(), keySize()), {}, beta);
    next = update({{delta, values}}, {}, {}, faded);
  } else {
    next = update({{keys, values}}, decay, valueDecay, past);
  }
  carried.state = next;
  if (!r.query)
    return carried;
  SmallVector<Value> own, written;
  if (r.exclusive && r.bonus) {
    Value unfaded = std::exchange(decay, Value());
    own.push_back(
        scores(queries, keys, /*strict=*/true, /*before=*/false, r.bonus));
    decay = unfaded;
    written.push_back(values);
  }
  Value start = zeros({size(queries, 0), readers(), tokens(), valueSize()});
  Value o = read(queries, r.exclusive ? past : next, own, written, start);
  carried.output = unpack(scaled(o), {});
  return carried;
}

Value ChunkSteps::emitRead() {
  if (carried.runningMax)
    maxima = elementwise(
        b, loc, "bh->bht", carried.runningMax, numbers(carried.state),
        [](OpBuilder &, Location, ValueRange args) { return args[0]; });
  if (!headByHead)
    packQueries();
  readOut({});
  return carried.output;
}

CarriedValues ChunkSteps::emitQueries() {
  emitRead();
  return carried;
}
