//===- QuadraticPanels.cpp - Panels of queries against keys ---------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "QuadraticPanels.h"

using namespace mlir;
using namespace mlir::linattn;

void QuadraticPanels::setQueries(Value first) {
  range.firstQuery = first;
  range.queryCount =
      min(sub(dim(op.getQuery(), 2), first), index(queriesOfTask()));
  // Of all queries: a global one may see more keys than a later one.
  range.keyLimit = max(visibleEnd(first),
                       visibleEnd(sub(add(first, range.queryCount), index(1))));
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

// Rows of a whole vector are fetched side by side: they lie far apart in
// memory, and one that waits for the one before it takes several times as long.
void QuadraticPanels::packPanels(Value size, Value rows, Value panels,
                                 function_ref<Row(Value)> rowOf) {
  int64_t lanes = shape.lanes;
  bool keepsRows = cast<MemRefType>(rows.getType()).getDimSize(0) > lanes;
  Value all = mul(panelCount(), index(shape.cols));
  forEach(index(0), all, lanes, [&](Value first) {
    Value place = keepsRows ? first : index(0);
    Value count =
        max(min(sub(range.queryCount, first), index(lanes)), index(0));
    forEach(count, [&](Value i) {
      packRow(rowOf(add(first, i)), rows, add(place, i));
    });
    forEach(count, index(lanes), 1, [&](Value i) {
      forEach(index(0), lastDim(rows), lanes, [&](Value d) {
        storeVector(zeros(lanes), rows, {add(place, i), d});
      });
    });
    Value panel = div(first, index(shape.cols)),
          lane = rem(first, index(shape.cols));
    forEach(index(0), size, lanes, [&](Value d) {
      SmallVector<Value> lines;
      for (int64_t i = 0; i < lanes; ++i)
        lines.push_back(loadVector(rows, {add(place, index(i)), d}, lanes));
      for (auto [i, line] : llvm::enumerate(VectorBuilder::transposed(lines)))
        storeVector(line, panels, {panel, add(d, index(i)), lane});
    });
  });
}

void QuadraticPanels::packBlock(Value keys, Value values, Value count) {
  auto pad = [&](Value rows, Value j) {
    forEach(index(0), lastDim(rows), shape.lanes,
            [&](Value d) { storeVector(zeros(shape.lanes), rows, {j, d}); });
  };
  forEach(count, roundUp(count, shape.rows), 1, [&](Value j) {
    pad(keys, j);
    pad(values, j);
  });
  forEach(count, [&](Value j) {
    Value token = add(range.firstKey, j);
    Row packed = keyRow(token);
    packRow(packed, keys, j);

    Row packedValue;
    packedValue.source = op.getValue();
    packedValue.index = {batch, valueHead, token};
    packedValue.mapped = false;
    packedValue.keep = packed.keep;
    packRow(packedValue, values, j);
  });
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

VectorBuilder::Rows QuadraticPanels::dotPanel(Value rows, Value panels,
                                              Value size, Value panel,
                                              Value j) {
  return accumulate(
      Rows(shape.rows, zeros(shape.cols)), index(0), size,
      [&](int64_t r, Value d) { return load(rows, {add(j, index(r)), d}); },
      [&](Value d) {
        return loadVector(panels, {panel, d, index(0)}, shape.cols);
      });
}

//===----------------------------------------------------------------------===//
// Visible keys
//===----------------------------------------------------------------------===//

Value QuadraticPanels::countFrom(Value first) {
  auto type = VectorType::get(shape.cols, b.getIndexType());
  return arith::AddIOp::create(b, loc,
                               vector::BroadcastOp::create(b, loc, type, first),
                               vector::StepOp::create(b, loc, type));
}

Value QuadraticPanels::positions(Value panel) {
  return countFrom(visible.position(firstOfPanel(panel)));
}

Value QuadraticPanels::keptWeights(Value panel, Value j) {
  if (!dropout)
    return {};
  Value queries = countFrom(firstOfPanel(panel));
  return emitKept(b, loc, vectorType(shape.cols), *dropout, batch, head,
                  queries, add(range.firstKey, j));
}

Value QuadraticPanels::mayHide(Value panel, Value count) {
  if (op.getMask() || visible.isDilated())
    return arith::ConstantIntOp::create(b, loc, 1, 1);
  if (!op.getCausal() && !visible.isLimited())
    return {};
  Value first = visible.position(firstOfPanel(panel));
  Value last = add(first, index(shape.cols - 1));
  Value lastKey = sub(add(range.firstKey, count), index(1));
  auto isFurther = [&](Value x, Value y) {
    return compare(arith::CmpIPredicate::sgt, x, y);
  };
  Value hides = op.getCausal() ? isFurther(lastKey, first) : Value();
  auto hide = [&](Value condition) {
    hides = hides ? Value(arith::OrIOp::create(b, loc, hides, condition))
                  : condition;
  };
  if (Value reach = visible.reach() ? index(visible.reach() - 1) : Value()) {
    hide(isFurther(sub(last, range.firstKey), reach));
    if (!op.getCausal())
      hide(isFurther(sub(lastKey, first), reach));
  }
  return hides;
}

Value QuadraticPanels::maskScores(Value s, Value panel, Value j,
                                  double otherwise) {
  Value other = constant(vectorType(shape.cols), otherwise);
  Value token = add(range.firstKey, j);
  if (op.getMask())
    s = select(load(op.getMask(), {batch, token}), s, other);
  if (visible.isLimited())
    s = select(visible.sees(positions(panel), token), s, other);
  if (!op.getCausal())
    return s;
  // Lane i sees the key if token ≤ firstQuery + panel·cols + i + Tk − Tq: the
  // lanes from token − (…) on do.
  Value firstLane = sub(sub(token, firstOfPanel(panel)),
                        sub(dim(op.getKey(), 2), dim(op.getQuery(), 2)));
  if (op.getPrefix()) {
    Value inPrefix = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                           token, visible.prefix(batch));
    firstLane = select(inPrefix, index(0), firstLane);
  }
  Value hidden = vector::CreateMaskOp::create(
      b, loc, VectorType::get(shape.cols, b.getI1Type()),
      ValueRange{max(firstLane, index(0))});
  return select(hidden, other, s);
}
