//===- TileBuilder.cpp - Emitting vector tiles ----------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileBuilder.h"

#include <limits>

using namespace mlir;
using namespace mlir::linattn;

/// The indices `start`, row and column.
static SmallVector<Value> join(ArrayRef<Value> start, Value row, Value column) {
  SmallVector<Value> all(start);
  all.append({row, column});
  return all;
}

Value TileBuilder::rowMaximum(Value memref, ArrayRef<Value> row) {
  double lowest = -std::numeric_limits<double>::infinity();
  int64_t lanes = shape.lanes;
  Value best = reduce(index(0), lastDim(memref), lanes,
                      constant(vectorType(lanes), lowest),
                      [&](Value d, ValueRange carried) -> SmallVector<Value> {
                        SmallVector<Value> at(row);
                        at.push_back(d);
                        return {larger(carried.front(),
                                       readOperand(memref, at, lanes, lowest))};
                      })
                   .front();
  return reduceVector(vector::CombiningKind::MAXIMUMF, best);
}

void TileBuilder::loadPanel(Value state, ArrayRef<Value> place, Value column,
                            Value target, ArrayRef<Value> at) {
  Value size = dim(state, 2);
  if (!isTransposed(state))
    return forEach(size, [&](Value d) {
      storeVector(readOperand(state, join(place, d, column), shape.cols),
                  target, join(at, d, index(0)));
    });
  int64_t lanes = shape.lanes;
  forEach(index(0), size, lanes, [&](Value d) {
    for (int64_t c = 0; c < shape.cols; c += lanes) {
      Rows lines = readTransposed(
          state, {to_vector(place), d, add(column, index(c)), shape.cols},
          lanes);
      for (auto [i, line] : llvm::enumerate(lines))
        storeVector(line, target, join(at, add(d, index(i)), index(c)));
    }
  });
}

void TileBuilder::storePanel(Value state, ArrayRef<Value> place, Value column,
                             Value target, ArrayRef<Value> at,
                             ArrayRef<Value> nextPlace, Value nextColumn) {
  Value size = dim(state, 2);
  if (!isTransposed(state))
    return forEach(size, [&](Value d) {
      if (nextColumn)
        prefetchState(state, join(nextPlace, d, nextColumn), shape.cols);
      writeOperand(loadVector(target, join(at, d, index(0)), shape.cols), state,
                   join(place, d, column));
    });
  int64_t lanes = shape.lanes;
  forEach(index(0), size, lanes, [&](Value d) {
    for (int64_t c = 0; c < shape.cols; c += lanes) {
      if (nextColumn)
        prefetchBlock(state, nextPlace, d, add(nextColumn, index(c)));
      Rows lines;
      for (int64_t i = 0; i < lanes; ++i)
        lines.push_back(
            loadVector(target, join(at, add(d, index(i)), index(c)), lanes));
      writeTransposed(lines, state,
                      {to_vector(place), d, add(column, index(c)), shape.cols});
    }
  });
}

void TileBuilder::prefetchBlock(Value state, ArrayRef<Value> place, Value row,
                                Value column) {
  Value flipped = flip(state);
  for (int64_t i = 0; i < shape.lanes; ++i)
    prefetchLine(flipped, join(place, add(column, index(i)), row),
                 /*isWritten=*/true);
}

Value TileBuilder::chooseSpan(Value rows, Value state, int64_t multiple) {
  int64_t spanTokens = llvm::alignTo(256, multiple);
  auto memref = cast<MemRefType>(rows.getType());
  int64_t count = memref.getDimSize(2);
  // The state must not be rounded.
  if (memref.getDimSize(1) == 1 || getElementTypeOrSelf(state) != type ||
      (!ShapedType::isDynamic(count) && count <= spanTokens))
    return Value();
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(memref.getStridesAndOffset(strides, offset)))
    return Value();
  if (!ShapedType::isDynamic(strides[2]) &&
      !ShapedType::isDynamic(memref.getDimSize(3)))
    return strides[2] > 2 * memref.getDimSize(3) ? index(spanTokens) : Value();
  Value tokens = dim(rows, 2), widest = mul(dim(rows, 3), index(2));
  Value stride =
      memref::ExtractStridedMetadataOp::create(b, loc, rows).getStrides()[2];
  Value isScattered =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, stride, widest);
  // At least one token, for the division.
  return select(isScattered, index(spanTokens), max(tokens, index(1)));
}

void TileBuilder::forEachSpan(Value span, Value tokens,
                              function_ref<void(Value, Value)> body) {
  if (!span)
    return body(index(0), tokens);
  // Without tokens a state of zeros is still to be written.
  Value spans = max(div(sub(add(tokens, span), index(1)), span), index(1));
  forEach(spans, [&](Value i) {
    Value from = mul(i, span);
    body(from, min(add(from, span), tokens));
  });
}

void TileBuilder::ifInRange(Value tokens, function_ref<void()> body) {
  if (lengths.isAll())
    return body();
  Value inside;
  if (lengths.isBounded())
    inside = compare(arith::CmpIPredicate::sle, tokens, index(lengths.to));
  if (lengths.from > 0) {
    Value enough =
        compare(arith::CmpIPredicate::sge, tokens, index(lengths.from));
    inside = inside ? arith::AndIOp::create(b, loc, inside, enough) : enough;
  }
  ifThen(inside, body);
}

/// The number of vectors that a map is applied to at once. A map is a long
/// chain of dependent operations; interleaving several vectors hides their
/// latency. The number fits the registers and divides a row.
int64_t TileBuilder::mapLanes(Value operand) {
  int64_t lanes = shape.lanes,
          longest = lanes * std::max<int64_t>(lanes / 4, 1);
  if (op.getFeatureMapKind() == FeatureMapKind::Identity)
    return lanes;
  auto type = cast<MemRefType>(operand.getType());
  while (2 * lanes <= longest && dividesLastDim(type, 2 * lanes))
    lanes *= 2;
  return lanes;
}

void TileBuilder::packRow(const Row &row, Value target,
                          ArrayRef<Value> position) {
  int64_t lanes = row.mapped ? mapLanes(row.source) : shape.lanes;
  Value size = lastDim(row.source);
  bool hasTail = !dividesLastDim(cast<MemRefType>(row.source.getType()), lanes);
  forEach(index(0), size, lanes, [&](Value d) {
    SmallVector<Value> from(row.index), to(position);
    from.push_back(d);
    to.push_back(d);
    Value x = readOperand(row.source, from, lanes);
    if (row.shift)
      x = subf(x, splat(row.shift, lanes));
    if (row.mapped)
      x = emitFeatureMap(b, loc, op, x);
    x = row.scale.apply(b, loc, x);
    if (row.gain)
      x = mulf(x, splat(row.gain, lanes));
    // φ(0) need not be 0: the padding has to be cleared after the map.
    if (hasTail && row.mapped) {
      Value inside = vector::CreateMaskOp::create(
          b, loc, VectorType::get(lanes, b.getI1Type()),
          ValueRange{sub(size, d)});
      x = select(inside, x, zeros(lanes));
    }
    if (row.keep)
      x = select(row.keep, x, zeros(lanes));
    storeVector(x, target, to);
  });
  // The target may be padded further, to whole tiles.
  Value width = lastDim(target);
  forEach(roundUp(size, lanes), width, lanes, [&](Value d) {
    SmallVector<Value> to(position);
    to.push_back(d);
    storeVector(zeros(lanes), target, to);
  });
}

//===----------------------------------------------------------------------===//
// Gates of one state
//===----------------------------------------------------------------------===//

Value TileBuilder::loadGate(Value gate, ArrayRef<Value> token) {
  bool isPerHead = cast<MemRefType>(gate.getType()).getRank() == 1;
  return convert(load(gate, isPerHead ? token.slice(1, 1) : token), type);
}

Value TileBuilder::raiseRunningMax(Value maximum, ArrayRef<Value> place,
                                   Value keyRowMax, Value keep) {
  Value old = load(maximum, place);
  Value best = maxf(old, keyRowMax);
  if (keep)
    best = select(keep, best, old);
  store(best, maximum, place);
  // −∞ − −∞, before the first key, is NaN.
  return exp(subf(maxf(old, lowest(type)), maxf(best, lowest(type))));
}

Value TileBuilder::openInputGate(Value maximum, ArrayRef<Value> place,
                                 Value decay, Value inputGate,
                                 ArrayRef<Value> token, Row &row) {
  Value old = load(maximum, place);
  Value log = decay ? loadGate(decay, token) : constant(type, 0.0);
  Value opened = loadGate(inputGate, token);
  Value faded = addf(old, log), best = maxf(faded, opened);
  if (row.keep)
    best = select(row.keep, best, faded);
  store(best, maximum, place);
  Value to = maxf(best, lowest(type));
  row.gain = exp(subf(opened, to));
  // In this order the rounding of m_t is made up for.
  return exp(addf(subf(maxf(old, lowest(type)), to), log));
}
