//===- SegmentedScan.cpp - One scan as segments and their merge -----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A segment maps the state it is given affinely to the state it leaves behind,
// S_out = M S_in + U. U is what it leaves behind of a zero state; M is e^{ΣG}
// for diagonal decays, and for rank-1 transitions what the segment makes of the
// identity matrix while it writes nothing. So:
//
//   1. U and M of every segment but the last, all in parallel
//   2. the states that come in, S_in ← M S_in + U, segment after segment
//   3. the scan of every segment from its own state, all in parallel
//
// Segments are packed sequences: the scans are the same op with cu_seqlens.
// Their borders follow from the number of tokens, never from that of threads.
//
//===----------------------------------------------------------------------===//

#include "SegmentedScan.h"
#include "SegmentedScanSteps.h"

#include "linattn/Dialect/Einsum.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <limits>

using namespace mlir;
using namespace mlir::linattn;

/// Segments of the default length: at least `shortestSegment`
/// tokens, so that the states cost little beside them, and at most this many
/// segments.
static constexpr int64_t mostSegments = 64;
static constexpr int64_t segmentMultiple = 32;

//===----------------------------------------------------------------------===//
// Borders
//===----------------------------------------------------------------------===//

void SegmentedScan::divide() {
  AffineExpr d0, d1;
  bindDims(b.getContext(), d0, d1);
  AffineExpr one = b.getAffineConstantExpr(1);
  auto largest = [&](AffineExpr x, AffineExpr y,
                     ArrayRef<OpFoldResult> operands) {
    return affine::makeComposedFoldedAffineMax(
        b, loc, AffineMap::get(operands.size(), 0, {x, y}, b.getContext()),
        operands);
  };
  tokens = dim(op.getKey(), 2);
  int64_t given = op.getConfig()->getSegment();
  if (given)
    length = b.getIndexAttr(given);
  else
    length = largest(
        b.getAffineConstantExpr(shortestSegment),
        d0.ceilDiv(mostSegments * segmentMultiple) * segmentMultiple, {tokens});
  // Even no token is a segment, which returns the state it is given. A division
  // by a symbol is not affine.
  if (auto size = getConstantIntValue(length)) {
    count = largest(d0.ceilDiv(*size), one, {tokens});
  } else {
    Value segments =
        arith::CeilDivSIOp::create(b, loc, value(tokens), value(length));
    count = arith::MaxSIOp::create(b, loc, segments,
                                   arith::ConstantIndexOp::create(b, loc, 1))
                .getResult();
  }
  summaries = apply(d0 - 1, {count});
  first = reverse ? 1 : 0;
  offsets = createOffsets();
  localOffsets = tensor::ExtractSliceOp::create(
      b, loc, offsets, {b.getIndexAttr(first)}, {count}, {b.getIndexAttr(1)});
}

/// 0, length, 2·length, …, tokens.
Value SegmentedScan::createOffsets() {
  AffineExpr d0 = b.getAffineDimExpr(0);
  Type i64 = b.getI64Type();
  Value empty = tensor::EmptyOp::create(b, loc, {apply(d0 + 1, {count})}, i64);
  Value step = value(length), end = value(tokens);
  AffineMap map = b.getMultiDimIdentityMap(1);
  return linalg::GenericOp::create(
             b, loc, empty.getType(), ValueRange(), empty, map,
             utils::IteratorType::parallel,
             [&](OpBuilder &nested, Location at, ValueRange) {
               Value border = arith::MulIOp::create(
                   nested, at, linalg::IndexOp::create(nested, at, 0), step);
               border = arith::MinSIOp::create(nested, at, border, end);
               border = arith::IndexCastOp::create(nested, at,
                                                   nested.getI64Type(), border);
               linalg::YieldOp::create(nested, at, border);
             })
      .getResult(0);
}

//===----------------------------------------------------------------------===//
// Step 1: what each segment does to a state
//===----------------------------------------------------------------------===//

void SegmentedScan::copyAttributes(StateOp to) {
  to.setReverse(reverse);
  to.setFeatureMapAttr(op.getFeatureMapAttr());
  if (!op.getPhi().empty())
    b.cloneRegionBefore(op.getPhi(), to.getPhi(), to.getPhi().end());
}

void SegmentedScan::summarize() {
  local.state = filled(b, loc, perSegment(op.getState(), summaries), type, 0.0);
  if (op.getNormalizer())
    local.normalizer =
        filled(b, loc, perSegment(op.getNormalizer(), summaries), type, 0.0);
  if (op.getRunningMax())
    local.runningMax = filled(b, loc, perSegment(op.getRunningMax(), summaries),
                              type, -std::numeric_limits<double>::infinity());
  if (!additive) {
    local.state = localScan(op.getValue(), local.state);
    transitions = localScan(Value(), identities());
    return;
  }
  auto state =
      StateOp::create(b, loc, op.getKey(), op.getValue(), op.getDecay(),
                      op.getValueDecay(), op.getMask(), localOffsets, local);
  copyAttributes(state);
  local.state = state.getResults()[0];
  if (local.normalizer)
    local.normalizer = state.getResults()[1];
  if (local.runningMax)
    local.runningMax = state.getResults()[2];
  collectFactors();
}

/// The op on other operands; its results are typed by its destinations.
ScanOp SegmentedScan::cloneScan(Value query, Value value, Value output,
                                Value state) {
  SmallVector<Value> operands(op->getOperands());
  operands[op.getQueryMutable().getOperandNumber()] = query;
  operands[op.getValueMutable().getOperandNumber()] = value;
  operands[op.getOutputMutable().getOperandNumber()] = output;
  operands[op.getStateMutable().getOperandNumber()] = state;
  SmallVector<Type> types(op->getResultTypes());
  types[0] = output.getType();
  types[1] = state.getType();
  auto scan = cast<ScanOp>(cloneStructured(b, op, types, operands));
  // The inner schedule is chosen anew, except for the parts written by hand.
  ConfigAttr config = *op.getConfig();
  scan.setConfigAttr(ConfigAttr::get(b.getContext(), Form::Auto,
                                     config.getChunk(), config.getRows(),
                                     config.getCols(), config.getBlock()));
  return scan;
}

/// The states that scans from `state` leave behind, with no value written if
/// there is none. The outputs are not read: keys stand in for the queries.
Value SegmentedScan::localScan(Value written, Value state) {
  OpFoldResult heads = dim(op.getState(), 1), columns = dim(state, 3);
  Type tokenType = getElementTypeOrSelf(op.getKey());
  OpFoldResult batch = dim(op.getKey(), 0);
  bool zeros = !written;
  if (zeros) {
    // One head of zeros suffices if the keys have all heads.
    auto keyHeads = getConstantIntValue(dim(op.getKey(), 1));
    auto all = getConstantIntValue(heads);
    OpFoldResult zeroHeads =
        keyHeads && all && *keyHeads == *all ? b.getIndexAttr(1) : heads;
    written =
        filled(b, loc, {batch, zeroHeads, tokens, columns}, tokenType, 0.0);
  }
  Value output = tensor::EmptyOp::create(
      b, loc, {batch, heads, tokens, columns}, tokenType);
  ScanOp scan = cloneScan(op.getKey(), written, output, state);
  scan.getCuSeqlensMutable().assign(localOffsets);
  scan.setReadout(Readout::Inclusive);
  scan.getBonusMutable().clear();
  if (zeros)
    scan.getWriteMutable().clear();
  return scan.getResults()[1];
}

/// `[n, H, K, K]`: where the transitions of the segments start.
Value SegmentedScan::identities() {
  Sizes sizes = perSegment(op.getState(), summaries);
  sizes[3] = sizes[2];
  Value empty = tensor::EmptyOp::create(b, loc, sizes, type);
  SmallVector<utils::IteratorType> parallel(4, utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             b, loc, empty.getType(), ValueRange(), empty,
             b.getMultiDimIdentityMap(4), parallel,
             [&](OpBuilder &nested, Location at, ValueRange) {
               Value isDiagonal = arith::CmpIOp::create(
                   nested, at, arith::CmpIPredicate::eq,
                   linalg::IndexOp::create(nested, at, 2),
                   linalg::IndexOp::create(nested, at, 3));
               auto constant = [&](double x) -> Value {
                 return arith::ConstantOp::create(nested, at,
                                                  nested.getFloatAttr(type, x));
               };
               Value element = arith::SelectOp::create(
                   nested, at, isDiagonal, constant(1.0), constant(0.0));
               linalg::YieldOp::create(nested, at, element);
             })
      .getResult(0);
}

/// The sum of a gate over the tokens of each segment is also a state: the
/// gate's values under keys of 1. `[n, H, 1, D]`.
Value SegmentedScan::totalDecay(Value gate) {
  Type gateType = getElementTypeOrSelf(gate);
  if (cast<ShapedType>(gate.getType()).getRank() == 3) {
    auto shape = llvm::to_vector(cast<ShapedType>(gate.getType()).getShape());
    shape.push_back(1);
    SmallVector<ReassociationIndices> groups{{0}, {1}, {2, 3}};
    gate = tensor::ExpandShapeOp::create(
        b, loc, RankedTensorType::get(shape, gateType), gate, groups);
  }
  if (getAccumulationType(gateType) != type) {
    // Sums of logarithms are as exact as the states they are for.
    Type wide = type.isF64() ? type : getAccumulationType(gateType);
    Value empty = tensor::EmptyOp::create(
        b, loc, tensor::getMixedSizes(b, loc, gate), wide);
    gate = elementwise(b, loc, "bhtd->bhtd", gate, empty,
                       [&](OpBuilder &nested, Location at, ValueRange args) {
                         return convertFloat(nested, at, args[0], wide);
                       });
    gateType = wide;
  }
  OpFoldResult one = b.getIndexAttr(1);
  Value ones = filled(b, loc, {one, one, tokens, one}, gateType, 1.0);
  Value zeros =
      filled(b, loc, {summaries, dim(op.getState(), 1), one, dim(gate, 3)},
             getAccumulationType(gateType), 0.0);
  auto sum =
      StateOp::create(b, loc, ones, gate, Value(), Value(), Value(),
                      localOffsets, StateValues{zeros, Value(), Value()});
  Value total = sum.getResults()[0];
  Value empty = tensor::EmptyOp::create(
      b, loc, tensor::getMixedSizes(b, loc, total), type);
  return elementwise(
      b, loc, "nhod->nhod", total, empty,
      [&](OpBuilder &nested, Location at, ValueRange args) -> Value {
        return math::ExpOp::create(nested, at,
                                   convertFloat(nested, at, args[0], type));
      });
}

/// e^{tokens · decay}, `[n, H]`.
Value SegmentedScan::factorsOfHeadDecay() {
  Value empty =
      tensor::EmptyOp::create(b, loc, {summaries, dim(op.getState(), 1)}, type);
  Value step = value(length), end = value(tokens);
  Value shift = arith::ConstantIndexOp::create(b, loc, first);
  return elementwise(
      b, loc, "h->nh", op.getDecay(), empty,
      [&](OpBuilder &nested, Location at, ValueRange args) -> Value {
        Value segment = arith::AddIOp::create(
            nested, at, linalg::IndexOp::create(nested, at, 0), shift);
        Value begin = arith::MulIOp::create(nested, at, segment, step);
        Value left = arith::SubIOp::create(nested, at, end, begin);
        Value size = arith::MinSIOp::create(nested, at, left, step);
        size =
            arith::IndexCastOp::create(nested, at, nested.getI64Type(), size);
        Value factor = arith::SIToFPOp::create(nested, at, type, size);
        Value log = convertFloat(nested, at, args[0], type);
        return math::ExpOp::create(
            nested, at, arith::MulFOp::create(nested, at, log, factor));
      });
}

void SegmentedScan::collectFactors() {
  if (Value decay = op.getDecay())
    keyFactors = cast<ShapedType>(decay.getType()).getRank() == 1
                     ? factorsOfHeadDecay()
                     : totalDecay(decay);
  if (op.getValueDecay())
    valueFactors = totalDecay(op.getValueDecay());
}

//===----------------------------------------------------------------------===//
// Step 3
//===----------------------------------------------------------------------===//

SmallVector<Value> SegmentedScan::emit() {
  b.setInsertionPoint(op);
  divide();
  summarize();
  merge();

  ScanOp scan =
      cloneScan(op.getQuery(), op.getValue(), op.getOutput(), incoming[0]);
  scan.getCuSeqlensMutable().assign(offsets);
  for (size_t i = 1; i < incoming.size(); ++i) {
    (i == 1 ? scan.getNormalizerMutable() : scan.getRunningMaxMutable())
        .assign(incoming[i]);
    scan->getResult(1 + i).setType(incoming[i].getType());
  }
  Value last = reverse ? arith::ConstantIndexOp::create(b, loc, 0).getResult()
                       : value(summaries);
  SmallVector<Value> results{scan.getResults()[0]};
  for (size_t i = 0; i < incoming.size(); ++i)
    results.push_back(entry(scan.getResults()[1 + i], last));
  return results;
}

SmallVector<Value> mlir::linattn::emitSegmentedScan(RewriterBase &b,
                                                    ScanOp op) {
  return SegmentedScan(b, op).emit();
}
