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

#include "linattn/Dialect/Einsum.h"
#include "linattn/Dialect/ScanTraits.h"
#include "linattn/Transforms/Transforms.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;
using namespace mlir::linattn;

/// Segments of the default length: at least `shortestSegment`
/// tokens, so that the states cost little beside them, and at most this many
/// segments.
static constexpr int64_t mostSegments = 64;
static constexpr int64_t segmentMultiple = 32;

namespace {

/// Rewrites one scan of batch size 1.
class SegmentedScan {
public:
  SegmentedScan(RewriterBase &b, ScanOp op)
      : b(b), loc(op.getLoc()), op(op),
        type(getElementTypeOrSelf(op.getState())), reverse(op.getReverse()),
        additive(getRule(op).isAdditive()) {}

  /// The values of the op's results.
  SmallVector<Value> emit();

private:
  using Sizes = SmallVector<OpFoldResult>;

  // Borders.
  void divide();
  Value createOffsets();

  // Step 1.
  void summarize();
  void copyAttributes(StateOp to);
  ScanOp cloneScan(Value query, Value value, Value output, Value state);
  Value localScan(Value value, Value state);
  Value identities();
  Value totalDecay(Value gate);
  Value factorsOfHeadDecay();
  void collectFactors();

  // Step 2.
  void merge();
  SmallVector<Value> step(ValueRange current, Value segment);
  Value mergeState(StringRef dims, Value current, Value local,
                   ArrayRef<std::pair<StringRef, Value>> factors, Value keepOld,
                   Value keepNew);
  Value insert(Value slice, Value into, Value segment);

  // Helpers.
  Value value(OpFoldResult size) {
    return getValueOrCreateConstantIndexOp(b, loc, size);
  }
  OpFoldResult dim(Value tensor, int64_t position) {
    return tensor::getMixedSize(b, loc, tensor, position);
  }
  OpFoldResult apply(AffineExpr expr, ArrayRef<OpFoldResult> operands) {
    return affine::makeComposedFoldedAffineApply(b, loc, expr, operands);
  }
  /// The sizes of a state-like tensor, one for each of `count` segments.
  Sizes perSegment(Value state, OpFoldResult count) {
    Sizes sizes = tensor::getMixedSizes(b, loc, state);
    sizes[0] = count;
    return sizes;
  }
  /// Entry `segment` of a tensor of all segments, with that dimension (size 1)
  /// or, reduced, without it and without other dimensions of size 1.
  Value entry(Value all, Value segment);
  Value reducedEntry(Value all, Value segment, ArrayRef<int64_t> kept);

  RewriterBase &b;
  Location loc;
  ScanOp op;
  Type type;
  bool reverse, additive;

  OpFoldResult tokens, length, count, summaries;
  /// The first segment that is summarized: all are but the last to run.
  int64_t first = 0;
  Value offsets, localOffsets;
  /// Per summarized segment: U, and for rank-1 transitions M.
  StateValues local;
  Value transitions;
  /// e^{ΣG}: `[n, H, 1, K]`, `[n, H, 1, 1]` or `[n, H]`, and `[n, H, 1, V]`.
  Value keyFactors, valueFactors;
  /// The states that come in.
  SmallVector<Value> incoming;
};

} // namespace

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
  int64_t asked = op.getConfig()->getSegment();
  if (asked)
    length = b.getIndexAttr(asked);
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
  // The schedule inside is chosen anew; what was written by hand stays.
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
    // One head of zeros will do where the keys have all heads.
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

/// The sum of a gate over the tokens of each segment is a state too: that of
/// the values `gate` under keys 1. `[n, H, 1, D]`.
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
// Step 2: the states that come in
//===----------------------------------------------------------------------===//

Value SegmentedScan::entry(Value all, Value segment) {
  Sizes sizes = perSegment(all, b.getIndexAttr(1));
  Sizes from(sizes.size(), b.getIndexAttr(0));
  from[0] = segment;
  Sizes strides(sizes.size(), b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(b, loc, all, from, sizes, strides);
}

Value SegmentedScan::reducedEntry(Value all, Value segment,
                                  ArrayRef<int64_t> kept) {
  auto from = cast<RankedTensorType>(all.getType());
  SmallVector<int64_t> shape;
  for (int64_t position : kept)
    shape.push_back(from.getDimSize(position));
  Sizes sizes = perSegment(all, b.getIndexAttr(1));
  Sizes starts(sizes.size(), b.getIndexAttr(0));
  starts[0] = segment;
  Sizes strides(sizes.size(), b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(
      b, loc, RankedTensorType::get(shape, from.getElementType()), all, starts,
      sizes, strides);
}

Value SegmentedScan::insert(Value slice, Value into, Value segment) {
  Sizes sizes = perSegment(into, b.getIndexAttr(1));
  Sizes from(sizes.size(), b.getIndexAttr(0));
  from[0] = segment;
  Sizes strides(sizes.size(), b.getIndexAttr(1));
  return tensor::InsertSliceOp::create(b, loc, slice, into, from, sizes,
                                       strides);
}

/// current · factors · keepOld + local · keepNew.
Value SegmentedScan::mergeState(StringRef dims, Value current, Value local,
                                ArrayRef<std::pair<StringRef, Value>> factors,
                                Value keepOld, Value keepNew) {
  std::string subscripts = dims.str();
  SmallVector<Value> inputs{local};
  for (auto [letters, factor] : factors) {
    subscripts += "," + letters.str();
    inputs.push_back(factor);
  }
  if (keepOld) {
    subscripts += ",ah,ah";
    inputs.append({keepOld, keepNew});
  }
  size_t numFactors = factors.size();
  return elementwise(
      b, loc, subscripts + "->" + dims.str(), inputs, current,
      [&](OpBuilder &nested, Location at, ValueRange args) -> Value {
        Value past = args.back(), fresh = args[0];
        auto times = [&](Value x, Value y) -> Value {
          return arith::MulFOp::create(nested, at, x, y);
        };
        for (size_t i = 0; i < numFactors; ++i)
          past = times(past, args[1 + i]);
        if (keepOld) {
          past = times(past, args[1 + numFactors]);
          fresh = times(fresh, args[2 + numFactors]);
        }
        return arith::AddFOp::create(nested, at, past, fresh);
      });
}

/// The state after a segment from the one before it.
SmallVector<Value> SegmentedScan::step(ValueRange current, Value segment) {
  if (!additive)
    return {einsum(b, loc, "ahij,ahje->ahie", entry(transitions, segment),
                   current[0], entry(local.state, segment))};

  Value keepOld, keepNew, best;
  if (local.runningMax) {
    Value fresh = entry(local.runningMax, segment), past = current[2];
    auto onMaxima = [&](Value x, Value y, auto body) {
      Value empty = tensor::EmptyOp::create(
          b, loc, tensor::getMixedSizes(b, loc, past), type);
      return elementwise(b, loc, "ah,ah->ah", {x, y}, empty, body);
    };
    best = onMaxima(
        past, fresh,
        [](OpBuilder &nested, Location at, ValueRange args) -> Value {
          return arith::MaximumFOp::create(nested, at, args[0], args[1]);
        });
    // e^{m − best}; −∞ − −∞, before the first key, is NaN.
    auto weight = [](OpBuilder &nested, Location at, ValueRange args) -> Value {
      Value same = arith::CmpFOp::create(nested, at, arith::CmpFPredicate::OEQ,
                                         args[0], args[1]);
      Value one = arith::ConstantOp::create(
          nested, at, nested.getFloatAttr(args[0].getType(), 1.0));
      Value log = arith::SubFOp::create(nested, at, args[0], args[1]);
      return arith::SelectOp::create(nested, at, same, one,
                                     math::ExpOp::create(nested, at, log));
    };
    keepOld = onMaxima(past, best, weight);
    keepNew = onMaxima(fresh, best, weight);
  }

  SmallVector<std::pair<StringRef, Value>> factors;
  if (keyFactors) {
    bool perChannel = op.getDecay() &&
                      cast<ShapedType>(op.getDecay().getType()).getRank() == 4;
    if (perChannel)
      factors.push_back({"hk", reducedEntry(keyFactors, segment, {1, 3})});
    else
      factors.push_back({"h", reducedEntry(keyFactors, segment, {1})});
  }
  SmallVector<Value> next;
  Value sums;
  if (local.normalizer)
    sums = mergeState("ahk", current[1], entry(local.normalizer, segment),
                      factors, keepOld, keepNew);
  if (valueFactors)
    factors.push_back({"hv", reducedEntry(valueFactors, segment, {1, 3})});
  next.push_back(mergeState("ahkv", current[0], entry(local.state, segment),
                            factors, keepOld, keepNew));
  if (sums)
    next.push_back(sums);
  if (best)
    next.push_back(best);
  return next;
}

void SegmentedScan::merge() {
  StateValues given{op.getState(), op.getNormalizer(), op.getRunningMax()};
  SmallVector<Value> carried = llvm::to_vector(ArrayRef(given.present()));
  size_t parts = carried.size();
  for (Value part : given.present())
    carried.push_back(
        tensor::EmptyOp::create(b, loc, perSegment(part, count), type));
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value steps = value(summaries);
  auto loop = scf::ForOp::create(b, loc, zero, steps, one, carried);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value position = loop.getInductionVar();
    // In the order of the recurrence; summaries are in that of the tokens.
    Value segment = position, summary = position;
    if (reverse) {
      segment = arith::SubIOp::create(b, loc, steps, position);
      summary = arith::SubIOp::create(b, loc, segment, one);
    }
    ValueRange current = loop.getRegionIterArgs().take_front(parts);
    SmallVector<Value> filled;
    for (auto [part, all] :
         llvm::zip_equal(current, loop.getRegionIterArgs().drop_front(parts)))
      filled.push_back(insert(part, all, segment));
    SmallVector<Value> next = step(current, summary);
    next.append(filled);
    scf::YieldOp::create(b, loc, next);
  }
  Value last = reverse ? zero : steps;
  for (size_t i = 0; i < parts; ++i)
    incoming.push_back(
        insert(loop.getResult(i), loop.getResult(parts + i), last));
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
