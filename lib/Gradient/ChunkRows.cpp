//===- ChunkRows.cpp - The rows of a gradient's chunk ---------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChunkRows.h"

#include "linattn/Dialect/Einsum.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

class RowGradients {
public:
  RowGradients(OpBuilder &b, Location loc, const ChunkRows &rows,
               const Scale &scale, int64_t lanes)
      : b(b), loc(loc), r(rows), scale(scale),
        type(getElementTypeOrSelf(rows.q)), zero(index(0)),
        features(sizeOf(rows.q)),
        width(features % (2 * lanes) ? lanes : 2 * lanes) {}

  SmallVector<Value> emit(ValueRange outputs, Value sum);

private:
  /// The values that a row carries from one block of features to the next.
  struct Carried {
    Value query, key; ///< dq and dk.
    Value decay, sum; ///< dg of each channel, and the sums behind it.
    Value products;   ///< Of a decay per token.
    Value betas;      ///< Products of dβ.

    SmallVector<Value *> fields() {
      SmallVector<Value *> all;
      for (Value *x : {&query, &key, &decay, &sum, &products, &betas})
        if (*x)
          all.push_back(x);
      return all;
    }
    SmallVector<Value> values() {
      return llvm::map_to_vector(fields(), [](Value *x) { return *x; });
    }
    void assign(ValueRange values) {
      for (auto [x, value] : llvm::zip_equal(fields(), values))
        *x = value;
    }
  };

  void emitFeatures(Carried &carried, Value own);
  void emitBlock(Carried &carried, Value own);

  static int64_t sizeOf(Value x) {
    return cast<ShapedType>(x.getType()).getShape().back();
  }
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value zeros(Type type) {
    return arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  }
  VectorType vectorOf(int64_t size, Type element) {
    return VectorType::get(size, element);
  }
  /// `size` features of the current token, or of what all tokens share.
  Value read(Value x, Value from, int64_t size) {
    Type element = getElementTypeOrSelf(x);
    return vector::TransferReadOp::create(b, loc, vectorOf(size, element), x,
                                          placeOf(x, from), zeros(element),
                                          ArrayRef<bool>{true});
  }
  Value write(Value x, Value into, Value from) {
    x = convertFloat(b, loc, x, getElementTypeOrSelf(into));
    return vector::TransferWriteOp::create(b, loc, x, into, placeOf(into, from),
                                           ArrayRef<bool>{true})
        .getResult();
  }
  SmallVector<Value> placeOf(Value x, Value from) {
    if (cast<ShapedType>(x.getType()).getRank() == 3)
      return {zero, zero, from};
    return {zero, zero, token, from};
  }
  Value times(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  Value plus(Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }
  Value minus(Value x, Value y) { return arith::SubFOp::create(b, loc, x, y); }
  /// x y + z.
  Value addTo(Value z, Value x, Value y) {
    return vector::FMAOp::create(b, loc, x, y, z);
  }
  Value widen(Value x) { return convertFloat(b, loc, x, b.getF64Type()); }
  Value splat(Value x) {
    return vector::BroadcastOp::create(b, loc, vectorOf(width, x.getType()), x);
  }
  Value sumOf(Value x) {
    return vector::ReductionOp::create(b, loc, vector::CombiningKind::ADD, x,
                                       arith::FastMathFlags::reassoc);
  }
  Value number(Value x) {
    return tensor::ExtractOp::create(b, loc, x, ValueRange{zero, zero, token});
  }
  Value insert(Value x, Value into) {
    x = convertFloat(b, loc, x, getElementTypeOrSelf(into));
    return tensor::InsertOp::create(b, loc, x, into,
                                    ValueRange{zero, zero, token});
  }

  OpBuilder &b;
  Location loc;
  const ChunkRows &r;
  Scale scale;
  Type type;
  Value zero;
  int64_t features, width;
  /// Of the current row.
  Value token, column;
};

} // namespace

SmallVector<Value> RowGradients::emit(ValueRange outputs, Value sum) {
  Value last = arith::SubIOp::create(b, loc, r.count, index(1));
  SmallVector<Value> all(outputs);
  if (sum)
    all.push_back(sum);
  auto loop = scf::ForOp::create(b, loc, zero, r.count, index(1), all);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  token = arith::SubIOp::create(b, loc, last, loop.getInductionVar());
  all.assign(loop.getRegionIterArgs().begin(), loop.getRegionIterArgs().end());
  Carried carried{all[0], all[1], {}, {}, {}, {}};
  Value *decay = sum ? &all[all.size() - 2] : nullptr;
  if (r.decaysChannels()) {
    carried.decay = *decay;
    carried.sum = all.back();
  } else if (sum) {
    carried.products = zeros(vectorOf(width, type));
  }
  if (r.beta)
    carried.betas = zeros(vectorOf(width, type));
  Value own;
  if (sum) {
    int64_t columns = sizeOf(r.dO);
    own = splat(sumOf(
        times(read(r.dO, zero, columns), read(r.written, zero, columns))));
  }
  emitFeatures(carried, own);
  all[0] = carried.query;
  all[1] = carried.key;
  all[2] = write(read(r.solved, zero, sizeOf(r.solved)), all[2], zero);
  if (r.beta)
    all[3] =
        insert(arith::NegFOp::create(b, loc, sumOf(carried.betas)), all[3]);
  if (r.decaysChannels()) {
    *decay = carried.decay;
    all.back() = carried.sum;
  } else if (sum) {
    all.back() = plus(all.back(), sumOf(widen(carried.products)));
    *decay = insert(all.back(), *decay);
  }
  scf::YieldOp::create(b, loc, all);
  return SmallVector<Value>(loop.getResults());
}

void RowGradients::emitFeatures(Carried &carried, Value own) {
  auto loop = scf::ForOp::create(b, loc, zero, index(features), index(width),
                                 carried.values());
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    column = loop.getInductionVar();
    carried.assign(loop.getRegionIterArgs());
    emitBlock(carried, own);
    scf::YieldOp::create(b, loc, carried.values());
  }
  carried.assign(loop.getResults());
}

/// A block of features of a row, which writes them with the weight `own` itself
/// under a decay.
void RowGradients::emitBlock(Carried &carried, Value own) {
  auto block = [&](Value x) { return read(x, column, width); };
  Value query = block(r.query), second = block(r.second), keys = block(r.b);
  Value minusKey = r.a ? block(r.a) : Value();
  Value first = r.first ? block(r.first) : Value();
  if (own) {
    // The sum over all tokens nearly cancels. It is in f64, and under a decay
    // per channel so are its products, which are added to it at once.
    auto add = [&](Value sums, Value x, Value y) {
      return carried.sum ? addTo(sums, widen(x), widen(y)) : addTo(sums, x, y);
    };
    Value scaled = block(r.q);
    Value sums = carried.sum ? block(carried.sum) : carried.products;
    sums = add(sums, scaled, query);
    if (first)
      sums = add(sums, minusKey, first);
    sums = add(sums, arith::NegFOp::create(b, loc, keys), second);
    if (carried.sum) {
      carried.sum = write(sums, carried.sum, column);
      carried.decay = write(sums, carried.decay, column);
    } else {
      carried.products = sums;
    }
    query = addTo(query, own, keys);
    second = addTo(second, own, scaled);
  }
  carried.query = write(scale.apply(b, loc, query), carried.query, column);
  Value key = second;
  if (r.beta) {
    carried.betas = addTo(carried.betas, minusKey, second);
    key = times(splat(number(r.beta)), second);
  }
  if (first)
    key = minus(key, first);
  carried.key = write(key, carried.key, column);
}

SmallVector<Value>
mlir::linattn::emitRowGradients(OpBuilder &b, Location loc,
                                const ChunkRows &rows, const Scale &scale,
                                int64_t lanes, ValueRange outputs, Value sum) {
  return RowGradients(b, loc, rows, scale, lanes).emit(outputs, sum);
}
