//===- OutputNorm.cpp - Loops of linattn.output_norm ----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One row, the features of one token and head, at a time. The vector form reads
// a row once into scratch memory that stays in the first cache, and takes the
// statistics from there; the lanes of a partial sum are those of the features,
// whatever runs beside the row.
//
//===----------------------------------------------------------------------===//

#include "OutputNorm.h"

#include "linattn/Transforms/Forms.h"

using namespace mlir;
using namespace mlir::linattn;

/// silu or sigmoid of a scalar or a vector.
static Value activate(LoopBuilder &loops, Activation activation, Value gate) {
  Value one = loops.constant(gate.getType(), 1.0);
  Value divisor = loops.addf(one, loops.exp(loops.negate(gate)));
  Value sigmoid = arith::DivFOp::create(loops.b, loops.loc, one, divisor);
  return activation == Activation::Silu ? loops.mulf(gate, sigmoid) : sigmoid;
}

/// 1/√(sum/size + eps) of a scalar sum.
static Value inverseRoot(LoopBuilder &loops, Value sum, Value size,
                         double eps) {
  Value mean = arith::DivFOp::create(loops.b, loops.loc, sum, size);
  Value root = math::SqrtOp::create(
      loops.b, loops.loc, loops.addf(mean, loops.constant(sum.getType(), eps)));
  return arith::DivFOp::create(loops.b, loops.loc,
                               loops.constant(sum.getType(), 1.0), root);
}

/// The number of features as a float.
static Value sizeOf(LoopBuilder &loops, OutputNormOp op, Type type) {
  Value size = arith::IndexCastOp::create(
      loops.b, loops.loc, loops.b.getI64Type(), loops.dim(op.getInput(), 3));
  return arith::SIToFPOp::create(loops.b, loops.loc, type, size);
}

/// Where the weights of a head's feature are.
static SmallVector<Value> affineIndex(Value weights, Value head, Value d) {
  if (cast<ShapedType>(weights.getType()).getRank() == 1)
    return {d};
  return {head, d};
}

/// weight + weight_offset.
static Value offsetWeight(LoopBuilder &loops, OutputNormOp op, Value weight) {
  double offset = op.getWeightOffset().convertToDouble();
  if (offset == 0)
    return weight;
  return loops.addf(weight, loops.constant(weight.getType(), offset));
}

//===----------------------------------------------------------------------===//
// Scalar loops
//===----------------------------------------------------------------------===//

void mlir::linattn::lowerToNaiveLoops(OpBuilder &b, OutputNormOp op) {
  LoopBuilder loops(b, op.getLoc());
  Type tokenType = getElementTypeOrSelf(op.getInput());
  Type type = getAccumulationType(tokenType);
  double eps = op.getEps().convertToDouble();
  Value heads = loops.dim(op.getInput(), 1), size = loops.dim(op.getInput(), 3);
  Value count = sizeOf(loops, op, type), zero = loops.constant(type, 0.0);
  Value rows = loops.mul(loops.dim(op.getInput(), 0), heads);
  loops.parallel(rows, [&](Value task) {
    Value batch = loops.div(task, heads), head = loops.rem(task, heads);
    loops.forEach(loops.dim(op.getInput(), 2), [&](Value t) {
      auto load = [&](Value memref, ValueRange at) {
        return loops.convert(loops.load(memref, at), type);
      };
      auto gate = [&](Value d) {
        return activate(loops, op.getActivation(),
                        load(op.getGate(), {batch, head, t, d}));
      };
      auto affine = [&](Value weights, Value d) {
        return load(weights, affineIndex(weights, head, d));
      };
      auto input = [&](Value d) {
        Value x = load(op.getInput(), {batch, head, t, d});
        if (op.getSkip())
          x = loops.addf(x, loops.mulf(load(op.getSkip(), {batch, head, t, d}),
                                       affine(op.getSkipWeight(), d)));
        return op.getGateFirst() ? loops.mulf(x, gate(d)) : x;
      };
      Value mean;
      if (op.getKind() == NormKind::Layer) {
        Value sum = loops.reduce(size, zero, [&](Value d, Value partial) {
          return loops.addf(partial, input(d));
        });
        mean = arith::DivFOp::create(b, loops.loc, sum, count);
      }
      auto centred = [&](Value d) {
        return mean ? loops.subf(input(d), mean) : input(d);
      };
      Value inverse;
      if (op.getKind() != NormKind::None) {
        Value squares = loops.reduce(size, zero, [&](Value d, Value partial) {
          Value x = centred(d);
          return loops.addf(partial, loops.mulf(x, x));
        });
        inverse = inverseRoot(loops, squares, count, eps);
      }
      loops.forEach(size, [&](Value d) {
        Value y = inverse ? loops.mulf(centred(d), inverse) : input(d);
        if (op.getWeight())
          y = loops.mulf(y, offsetWeight(loops, op, affine(op.getWeight(), d)));
        if (op.getBias())
          y = loops.addf(y, affine(op.getBias(), d));
        if (op.getGate() && !op.getGateFirst())
          y = loops.mulf(y, gate(d));
        loops.store(loops.convert(y, tokenType), op.getOutput(),
                    {batch, head, t, d});
      });
    });
  });
}

//===----------------------------------------------------------------------===//
// Vector loops
//===----------------------------------------------------------------------===//

OutputNormOp mlir::linattn::findEpilogue(ScanOp scan) {
  if (!scan->hasAttr(kEpilogueAttrName))
    return {};
  auto norm = dyn_cast_or_null<OutputNormOp>(scan->getNextNode());
  return norm && norm->hasAttr(kEpilogueAttrName) ? norm : OutputNormOp();
}

void NormRow::allocate() {
  size = dim(norm.getInput(), 3);
  int64_t known = cast<ShapedType>(norm.getInput().getType()).getDimSize(3);
  while (sums < 4 && !ShapedType::isDynamic(known) &&
         known % (2 * sums * lanes) == 0)
    sums *= 2;
  count = sizeOf(*this, norm, type);
  row = scratch({getAsOpFoldResult(roundUp(size, lanes))});
}

Value NormRow::gate(Value d) {
  return activate(*this, norm.getActivation(), load(norm.getGate(), d));
}

Value NormRow::affine(Value weights, Value d) {
  return readOperand(weights, affineIndex(weights, head, d), lanes);
}

Value NormRow::total(function_ref<Value(Value)> term) {
  SmallVector<Value> start(sums, zeros(lanes));
  SmallVector<Value> partial = reduce(
      index(0), size, sums * lanes, start,
      [&](Value d, ValueRange carried) -> SmallVector<Value> {
        SmallVector<Value> next;
        for (auto [i, sum] : llvm::enumerate(carried))
          next.push_back(addf(sum, term(i ? add(d, index(i * lanes)) : d)));
        return next;
      });
  for (size_t width = partial.size(); width > 1; width /= 2)
    for (size_t i = 0; i < width / 2; ++i)
      partial[i] = addf(partial[i], partial[i + width / 2]);
  return reduceVector(vector::CombiningKind::ADD, partial.front());
}

Value NormRow::inside(Value x, Value d) {
  Value mask = vector::CreateMaskOp::create(
      b, loc, VectorType::get(lanes, b.getI1Type()), ValueRange{sub(size, d)});
  return select(mask, x, zeros(lanes));
}

Value NormRow::input(Value d) {
  Value x;
  if (source) {
    SmallVector<Value> at(sourceIndex);
    at.push_back(d);
    x = loadVector(source, at, lanes);
    if (!dividesLastDim(cast<MemRefType>(norm.getInput().getType()), lanes))
      x = inside(x, d);
  } else {
    x = load(norm.getInput(), d);
  }
  if (norm.getSkip())
    x = addf(x, mulf(load(norm.getSkip(), d), affine(norm.getSkipWeight(), d)));
  return norm.getGateFirst() ? mulf(x, gate(d)) : x;
}

void NormRow::finish(Value y, Value d) {
  if (norm.getWeight())
    y = mulf(y, offsetWeight(*this, norm, affine(norm.getWeight(), d)));
  if (norm.getBias())
    y = addf(y, affine(norm.getBias(), d));
  if (norm.getGate() && !norm.getGateFirst())
    y = mulf(y, gate(d));
  writeOperand(y, norm.getOutput(), {batch, head, t, d});
}

void NormRow::emit(ArrayRef<Value> position, Value memref,
                   ArrayRef<Value> sourcePosition) {
  batch = position[0];
  head = position[1];
  t = position[2];
  source = memref;
  sourceIndex.assign(sourcePosition.begin(), sourcePosition.end());
  if (norm.getKind() == NormKind::None)
    return forEach(index(0), size, lanes,
                   [&](Value d) { finish(input(d), d); });
  // What lies past the last feature is read as 0 and adds nothing to a sum.
  auto keep = [&](Value d) {
    Value x = input(d);
    storeVector(x, row, {d});
    return x;
  };
  bool layer = norm.getKind() == NormKind::Layer;
  Value mean, squares;
  if (layer) {
    Value sum = total(keep);
    mean = splat(arith::DivFOp::create(b, loc, sum, count), lanes);
    squares = total([&](Value d) {
      // Past the last feature there is no distance from the mean either.
      Value x = inside(subf(loadVector(row, {d}, lanes), mean), d);
      storeVector(x, row, {d});
      return mulf(x, x);
    });
  } else {
    squares = total([&](Value d) {
      Value x = keep(d);
      return mulf(x, x);
    });
  }
  Value inverse =
      splat(inverseRoot(*this, squares, count, norm.getEps().convertToDouble()),
            lanes);
  forEach(index(0), size, lanes, [&](Value d) {
    finish(mulf(loadVector(row, {d}, lanes), inverse), d);
  });
}

void mlir::linattn::lowerOutputNormToVector(OpBuilder &b, OutputNormOp op,
                                            int64_t lanes) {
  // Tokens of one task.
  constexpr int64_t blockTokens = 64;
  NormRow row(b, op, lanes);
  Value heads = row.dim(op.getInput(), 1), tokens = row.dim(op.getInput(), 2);
  Value blocks = row.ceilDiv(tokens, blockTokens);
  Value rows = row.mul(row.dim(op.getInput(), 0), heads);
  row.parallelIfLarge(op.getInput(), row.mul(rows, blocks), [&](Value task) {
    Value block = row.rem(task, blocks), pair = row.div(task, blocks);
    Value batch = row.div(pair, heads), head = row.rem(pair, heads);
    row.allocate();
    Value first = row.mul(block, row.index(blockTokens));
    Value last = row.min(row.add(first, row.index(blockTokens)), tokens);
    row.forEach(first, last, 1,
                [&](Value token) { row.emit({batch, head, token}); });
    row.freeScratch();
  });
}
