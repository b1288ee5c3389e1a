//===- SegmentedScanMerge.cpp - The states that segments start from -------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Step 2 of SegmentedScan.cpp: S_in ← M S_in + U, segment after segment.
//
//===----------------------------------------------------------------------===//

#include "SegmentedScanSteps.h"

#include "linattn/Dialect/Einsum.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <limits>

using namespace mlir;
using namespace mlir::linattn;

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
