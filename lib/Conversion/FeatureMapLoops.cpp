//===- FeatureMapLoops.cpp - Feature maps as scalar loops -----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One feature a step. Nothing is kept between two features: a maximum or a norm
// is computed for the token beforehand, elements where they are read.
//
//===----------------------------------------------------------------------===//

#include "NaiveLoops.h"
#include "TokenFormulas.h"

#include "linattn/Dialect/MapParameters.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

class FeatureLoops : public LoopBuilder, private TokenRows {
public:
  FeatureLoops(OpBuilder &b, FeatureMapOp op, bool lanes)
      : LoopBuilder(b, op.getLoc()), op(op),
        type(getAccumulationType(getElementTypeOrSelf(op.getInput()))),
        d(dim(op.getInput(), 3)) {
    forThreads = lanes;
  }

  void emit() {
    parallelRows(op.getInput(), [&](Value ofBatch, Value ofHead, Value token) {
      batch = ofBatch;
      head = ofHead;
      t = token;
      emitTokenFeatures(*this, op, *this);
    });
  }

private:
  /// A parameter's element; its last index is the last of `indices`.
  Value parameter(size_t position, SmallVector<Value> indices) {
    if (hasHeads(op, position))
      indices.insert(indices.begin(), head);
    return convert(load(op.getParameters()[position], indices), type);
  }

  Value getBatch() final { return batch; }
  Value getTime() final { return t; }
  Row getToken() final {
    return keep([this](Value i) {
      Value x = convert(load(op.getInput(), {batch, head, t, i}), type);
      double scale = getMapScale(*op.getFeatureMap());
      return scale == 1.0 ? x : mulf(x, constant(type, scale));
    });
  }
  Row getProduct(size_t position) final {
    return keep([=](Value r) {
      Element x = getToken().lanes;
      return reduce(d, constant(type, 0.0), [&](Value i, Value sum) {
        return addf(sum, mulf(parameter(position, {r, i}), x(i)));
      });
    });
  }
  Element getParameter(size_t position) final {
    return [=](Value i) { return parameter(position, {i}); };
  }
  Element getRolled(Value shift) final {
    return [=](Value i) {
      Value from = sub(i, shift);
      Value isBelow = compare(arith::CmpIPredicate::slt, from, index(0));
      from = select(isBelow, add(from, mul(d, index(2))), from);
      Value isFirst = compare(arith::CmpIPredicate::slt, from, d);
      Value x = getToken().lanes(select(isFirst, from, sub(from, d)));
      return maxf(select(isFirst, x, negate(x)), constant(type, 0.0));
    };
  }
  Value toLanes(Value scalar) final { return scalar; }
  Value sumOf(Value size, Element f) final { return sumLanes(size, type, f); }
  Value largestOf(Value size, double start, Element f) final {
    return maxLanes(size, constant(type, start), f);
  }
  Row keep(Element f) final { return {f, f}; }
  void put(ArrayRef<Value> firsts, Value size,
           function_ref<SmallVector<Value>(Value)> f) final {
    forLanes(size, [&](Value i) {
      for (auto [first, y] : llvm::zip_equal(firsts, f(i)))
        store(convert(y, getElementTypeOrSelf(op.getOutput())), op.getOutput(),
              {batch, head, t, add(first, i)});
    });
  }

  FeatureMapOp op;
  Type type;
  Value d, batch, head, t;
};

} // namespace

/// A map of one element, or of elements below their maximum.
static void lowerElementMap(OpBuilder &b, FeatureMapOp op, bool lanes) {
  NaiveOp naive(b, cast<FeatureMappedOpInterface>(op.getOperation()),
                op.getInput(), Scale(), /*stabilised=*/false);
  naive.forThreads = lanes;
  Value size = naive.dim(op.getInput(), 3);
  naive.parallelRows(op.getInput(), [&](Value batch, Value head, Value t) {
    Value shift;
    if (naive.rowMax)
      shift = naive.maxLanes(size, naive.lowestStart(), [&](Value d) {
        return naive.loadAs(op.getInput(), {batch, head, t, d});
      });
    naive.forLanes(size, [&](Value d) {
      Value y = naive.feature(op.getInput(), {batch, head, t, d}, shift);
      naive.store(naive.convert(y, getElementTypeOrSelf(op.getOutput())),
                  op.getOutput(), {batch, head, t, d});
    });
  });
}

void mlir::linattn::lowerToNaiveLoops(OpBuilder &b, FeatureMapOp op,
                                      bool lanes) {
  auto mapped = cast<FeatureMappedOpInterface>(op.getOperation());
  if (needsWholeToken(mapped.getFeatureMapKind()))
    return FeatureLoops(b, op, lanes).emit();
  lowerElementMap(b, op, lanes);
}
