//===- OutputNorm.cpp - Loops of linattn.output_norm ----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// One row, the features of one token and head, at a time. The vector form reads
// a row once into scratch memory in the first cache and computes the statistics
// there. Lanes of partial sums are features, so results do not depend on
// neighbouring rows.
//===----------------------------------------------------------------------===//

#include "OutputNorm.h"

#include "Activations.h"
#include "linattn/Transforms/Forms.h"

using namespace mlir;
using namespace mlir::linattn;

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
static Value countOf(LoopBuilder &loops, OutputNormOp op, Type type) {
  Value size = arith::IndexCastOp::create(
      loops.b, loops.loc, loops.b.getI64Type(), loops.dim(op.getInput(), 3));
  return arith::SIToFPOp::create(loops.b, loops.loc, type, size);
}

/// The index of the weights of a head's feature.
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

void mlir::linattn::lowerToNaiveLoops(OpBuilder &b, OutputNormOp op,
                                      bool lanes) {
  LoopBuilder loops(b, op.getLoc());
  loops.forThreads = lanes;
  Type tokenType = getElementTypeOrSelf(op.getOutput());
  Type type = getAccumulationType(tokenType);
  double eps = op.getEps().convertToDouble();
  Value size = loops.dim(op.getInput(), 3);
  Value count = countOf(loops, op, type);
  loops.parallelRows(op.getInput(), [&](Value batch, Value head, Value t) {
    auto load = [&](Value memref, ValueRange at) {
      return loops.convert(loops.load(memref, at), type);
    };
    auto gate = [&](Value d) {
      return emitActivation(loops, op.getActivation(),
                            load(op.getGate(), {batch, head, t, d}), tokenType);
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
      Value sum = loops.sumLanes(size, type, input);
      mean = arith::DivFOp::create(b, loops.loc, sum, count);
    }
    auto centred = [&](Value d) {
      return mean ? loops.subf(input(d), mean) : input(d);
    };
    Value inverse;
    if (op.getKind() != NormKind::None) {
      Value squares = loops.sumLanes(size, type, [&](Value d) {
        Value x = centred(d);
        return loops.mulf(x, x);
      });
      inverse = inverseRoot(loops, squares, count, eps);
    }
    loops.forLanes(size, [&](Value d) {
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

NormRow::NormRow(OpBuilder &b, OutputNormOp op, int64_t lanes, bool isEpilogue)
    : VectorBuilder(b, op.getLoc(),
                    getAccumulationType(getElementTypeOrSelf(op.getOutput()))),
      norm(op), element(getElementTypeOrSelf(op.getOutput())), lanes(lanes),
      parts(isEpilogue || getElementTypeOrSelf(op.getInput()) != element
                ? 1
                : countParts(element, lanes)),
      steps(countSteps()), size(dim(op.getInput(), 3)),
      count(countOf(*this, op, type)),
      row(scratch({getAsOpFoldResult(roundUp(size, span()))})) {}

int64_t NormRow::countSteps() {
  int64_t features = cast<ShapedType>(norm.getInput().getType()).getDimSize(3);
  int64_t steps = 1;
  while (steps * parts < 4 && !ShapedType::isDynamic(features) &&
         features % (2 * steps * span()) == 0)
    steps *= 2;
  return steps;
}

NormRow::Vectors NormRow::gate(const Place &place, Value d) {
  Type gateType = getElementTypeOrSelf(norm.getGate());
  return each({load(place, norm.getGate(), d)}, [&](ArrayRef<Value> x) {
    return emitActivation(*this, norm.getActivation(), x[0], element,
                          gateType.getIntOrFloatBitWidth() == 16);
  });
}

NormRow::Vectors NormRow::affine(const Place &place, Value weights, Value d) {
  return read(weights, affineIndex(weights, place.head, d));
}

NormRow::Vectors NormRow::each(ArrayRef<Vectors> operands,
                               function_ref<Value(ArrayRef<Value>)> apply) {
  Vectors results;
  for (int64_t part = 0; part < parts; ++part)
    results.push_back(apply(llvm::map_to_vector<3>(
        operands, [&](const Vectors &operand) { return operand[part]; })));
  return results;
}

NormRow::Vectors NormRow::kept(Value d) {
  Vectors x;
  for (int64_t part = 0; part < parts; ++part)
    x.push_back(loadVector(row, {add(d, index(part * lanes))}, lanes));
  return x;
}

void NormRow::keep(const Vectors &x, Value d) {
  for (auto [part, vector] : llvm::enumerate(x))
    storeVector(vector, row, {add(d, index(int64_t(part) * lanes))});
}

NormRow::Vectors NormRow::read(Value memref, ValueRange at) {
  if (parts == 1)
    return {readOperand(memref, at, lanes)};
  // Pairs of bf16 are taken apart in their words, other numbers are shuffled.
  auto source = cast<MemRefType>(memref.getType());
  Type type = source.getElementType();
  Value pad = arith::ConstantOp::create(b, loc, b.getFloatAttr(type, 0.0));
  return splitPairs(*this,
                    vector::TransferReadOp::create(
                        b, loc, VectorType::get(span(), type), memref, at, pad,
                        ArrayRef<bool>{dividesLastDim(source, span())}),
                    this->type);
}

NormRow::Vectors NormRow::input(const Place &place, Value d) {
  Vectors x;
  if (place.source) {
    SmallVector<Value> at(place.sourceIndex);
    at.push_back(d);
    x = {loadVector(place.source, at, lanes)};
    if (!dividesLastDim(cast<MemRefType>(norm.getInput().getType()), lanes))
      x = inside(x, d);
  } else {
    x = load(place, norm.getInput(), d);
  }
  if (norm.getSkip())
    x = sum(x, product(load(place, norm.getSkip(), d),
                       affine(place, norm.getSkipWeight(), d)));
  return norm.getGateFirst() ? product(x, gate(place, d)) : x;
}

void NormRow::finish(const Place &place, Vectors y, Value d) {
  if (norm.getWeight())
    y = product(
        y, each({affine(place, norm.getWeight(), d)}, [&](ArrayRef<Value> w) {
          return offsetWeight(*this, norm, w[0]);
        }));
  if (norm.getBias())
    y = sum(y, affine(place, norm.getBias(), d));
  if (norm.getGate() && !norm.getGateFirst())
    y = product(y, gate(place, d));
  SmallVector<Value> at{place.batch, place.head, place.t, d};
  if (parts == 1)
    return writeOperand(y.front(), norm.getOutput(), at);
  auto target = cast<MemRefType>(norm.getOutput().getType());
  vector::TransferWriteOp::create(
      b, loc, joinPairs(*this, y, element), norm.getOutput(), at,
      ArrayRef<bool>{dividesLastDim(target, span())});
}

Value NormRow::total(function_ref<Vectors(Value)> term) {
  SmallVector<Value> start(steps * parts, zeros(lanes));
  SmallVector<Value> partial =
      reduce(index(0), size, steps * span(), start,
             [&](Value d, ValueRange carried) -> SmallVector<Value> {
               SmallVector<Value> next;
               for (int64_t i = 0; i < steps; ++i)
                 for (Value x : term(i ? add(d, index(i * span())) : d))
                   next.push_back(addf(carried[next.size()], x));
               return next;
             });
  for (size_t width = partial.size(); width > 1; width /= 2)
    for (size_t i = 0; i < width / 2; ++i)
      partial[i] = addf(partial[i], partial[i + width / 2]);
  return reduceVector(vector::CombiningKind::ADD, partial.front());
}

NormRow::Vectors NormRow::inside(const Vectors &x, Value d) {
  Vectors results;
  for (auto [part, vector] : llvm::enumerate(x)) {
    Value left = sub(size, add(d, index(int64_t(part))));
    Value mask = vector::CreateMaskOp::create(
        b, loc, VectorType::get(lanes, b.getI1Type()),
        ValueRange{parts == 1 ? left : ceilDiv(left, parts)});
    results.push_back(select(mask, vector, zeros(lanes)));
  }
  return results;
}

void NormRow::emit(const Place &place) {
  if (norm.getKind() == NormKind::None)
    return forEach(index(0), size, span(),
                   [&](Value d) { finish(place, input(place, d), d); });
  // Lanes past the last feature are read as 0 and add nothing to a sum.
  auto keepInput = [&](Value d) {
    Vectors x = input(place, d);
    keep(x, d);
    return x;
  };
  Value squares;
  if (norm.getKind() == NormKind::Layer) {
    Value sum = total(keepInput);
    Value mean = splat(arith::DivFOp::create(b, loc, sum, count), lanes);
    squares = total([&](Value d) {
      // Lanes past the last feature have no distance from the mean either.
      Vectors x = inside(
          each({kept(d)}, [&](ArrayRef<Value> x) { return subf(x[0], mean); }),
          d);
      keep(x, d);
      return product(x, x);
    });
  } else {
    squares = total([&](Value d) {
      Vectors x = keepInput(d);
      return product(x, x);
    });
  }
  Value inverse =
      splat(inverseRoot(*this, squares, count, norm.getEps().convertToDouble()),
            lanes);
  forEach(index(0), size, span(), [&](Value d) {
    finish(
        place,
        each({kept(d)}, [&](ArrayRef<Value> x) { return mulf(x[0], inverse); }),
        d);
  });
}

void mlir::linattn::lowerOutputNormToVector(OpBuilder &b, OutputNormOp op,
                                            int64_t lanes) {
  // Rows of one task.
  constexpr int64_t blockRows = 64;
  LoopBuilder loops(b, op.getLoc());
  Value input = op.getInput();
  Value heads = loops.dim(input, 1), tokens = loops.dim(input, 2);
  // Rows in the order of memory: whichever of heads and tokens are neighbours
  // run inside.
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loops.loc, input);
  Value headsInside =
      loops.compare(arith::CmpIPredicate::slt, metadata.getStrides()[1],
                    metadata.getStrides()[2]);
  Value inner = loops.select(headsInside, heads, tokens);
  Value perBatch = loops.mul(heads, tokens);
  Value blocks = loops.ceilDiv(perBatch, blockRows);
  Value tasks = loops.mul(loops.dim(input, 0), blocks);
  loops.parallelIfLarge(input, tasks, [&](Value task) {
    Value batch = loops.div(task, blocks);
    NormRow row(b, op, lanes);
    Value first = loops.mul(loops.rem(task, blocks), loops.index(blockRows));
    Value last = loops.min(loops.add(first, loops.index(blockRows)), perBatch);
    SmallVector<Value> at{loops.div(first, inner), loops.rem(first, inner)};
    loops.reduce(
        first, last, 1, at,
        [&](Value, ValueRange carried) -> SmallVector<Value> {
          Value outside = carried[0], inside = carried[1];
          row.emit({batch,
                    loops.select(headsInside, inside, outside),
                    loops.select(headsInside, outside, inside),
                    {},
                    {}});
          Value next = loops.add(inside, loops.index(1));
          Value isLast = loops.compare(arith::CmpIPredicate::eq, next, inner);
          return {
              loops.select(isLast, loops.add(outside, loops.index(1)), outside),
              loops.select(isLast, loops.index(0), next)};
        });
    row.freeScratch();
  });
}
