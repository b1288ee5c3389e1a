//===- ChunkVectorsColumn.cpp - The normaliser of a chunk in vectors ------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A normaliser is a state of one column, z. Its vectors run along features and
// keys: a denominator is a dot product, of as many tokens at a time as there
// are lanes, whose sums make one vector.
//
//===----------------------------------------------------------------------===//

#include "ChunkOps.h"
#include "ChunkVectors.h"

#include "linattn/Dialect/FeatureMaps.h"

using namespace mlir;
using namespace mlir::linattn;

/// [1, 1, N, 1] as [N].
static Value columnOf(ChunkVectors &v, Value x) {
  return memref::CollapseShapeOp::create(
      v.b, v.loc, x, ArrayRef<ReassociationIndices>{{0, 1, 2, 3}});
}

void ChunkVectors::emit(FeatureMapOp op) {
  Value output = op.getOutput();
  forEach(dim(output, 2), [&](Value t) {
    forEach(index(0), dim(output, 3), lanes, [&](Value d) {
      Value x = loadVector(op.getInput(), at(t, d), lanes);
      storeVector(emitFeatureMap(b, loc, op, x), output, at(t, d));
    });
  });
}

void ChunkVectors::emitColumn(ChunkReadOp op, const ReadRows &read,
                              bool fromZero) {
  int64_t tokens = sizeOf(op.getOutput(), 2);
  Value state = columnOf(*this, op.getState()),
        output = columnOf(*this, op.getOutput());
  forEachBlock(tokens, lanes, [&](Value token, int64_t count) {
    auto row = [&](int64_t i) { return add(token, index(i)); };
    Rows sums = reduce(
        index(0), index(sizeOf(read.rows, 3)), lanes, Rows(count, zeros(lanes)),
        [&](Value d, ValueRange carried) -> SmallVector<Value> {
          Rows next(carried);
          Value line = loadVector(state, {d}, lanes);
          for (auto [i, sum] : llvm::enumerate(next))
            sum = fmaVector(loadVector(read.rows, at(row(i), d), lanes), line,
                            sum);
          return next;
        });
    for (int64_t i = 0; read.decay && i < count; ++i)
      sums[i] = mulf(sums[i],
                     splat(factorOf(read.decay, read.factors, row(i)), lanes));
    for (auto [scores, values] :
         llvm::zip_equal(op.getScores(), op.getValues()))
      sums = addScoresOfColumn(sums, scores, columnOf(*this, values), token,
                               op.getStrict());
    sums.resize(lanes, zeros(lanes));
    Value all = sumVectors(sums);
    if (!fromZero)
      all = addf(readOperand(output, {token}, lanes), all);
    writeOperand(all, output, {token});
  });
}

/// Terms of rows from a token on, of keys up to their own.
ChunkVectors::Rows ChunkVectors::addScoresOfColumn(Rows sums, Value scores,
                                                   Value column, Value token,
                                                   bool strict) {
  return reduce(index(0), index(sizeOf(scores, 3)), lanes, sums,
                [&](Value j, ValueRange carried) -> SmallVector<Value> {
                  Rows next(carried);
                  Value line = readOperand(column, {j}, lanes);
                  for (auto [i, sum] : llvm::enumerate(next)) {
                    Value t = add(token, index(i));
                    Value term =
                        mulf(readOperand(scores, at(t, j), lanes), line);
                    Value seen = sub(strict ? t : add(t, index(1)), j);
                    sum =
                        addf(sum, select(firstLanes(seen), term, zeros(lanes)));
                  }
                  return next;
                });
}

void ChunkVectors::emitColumn(ChunkUpdateOp op, const Factors &factors) {
  Value state = columnOf(*this, op.getOutput());
  forEach(index(0), dim(state, 0), lanes, [&](Value d) {
    Value sum = zeros(lanes);
    for (auto [keys, values] : llvm::zip_equal(op.getKeys(), op.getValues())) {
      Value column = columnOf(*this, values);
      sum = reduce(index(sizeOf(keys, 2)), sum,
                   [&, keys = keys](Value j, Value sum) {
                     return fmaVector(loadVector(keys, at(j, d), lanes),
                                      splat(load(column, {j}), lanes), sum);
                   });
    }
    Memory memory = factors.total
                        ? Memory{loadVector(factors.total, {d}, lanes),
                                 loadVector(factors.residual, {d}, lanes)}
                        : memoryOf(op, factors, lanes);
    addToState(state, {d}, sum, memory);
  });
}

void ChunkVectors::emitDivided(ChunkUnpackOp op) {
  Value output = op.getOutput(),
        column = columnOf(*this, rowsOf(op.getDenominator()));
  forEach(dim(output, 2), [&](Value t) {
    Value token = tokenOf(t, output, op.getReverse());
    Value inverse =
        emitInverseDenominator(b, loc, *op.getNormalize(),
                               getElementTypeOrSelf(output), load(column, {t}));
    // Two vectors are rounded together.
    forEachBlock(sizeOf(output, 3), 2 * lanes, [&](Value d, int64_t width) {
      Value row = mulf(loadVector(op.getRows(), at(t, d), width),
                       splat(inverse, width));
      writeOperand(emitClamp(b, loc, *op.getNormalize(), row), output,
                   at(token, d));
    });
  });
}
