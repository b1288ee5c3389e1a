//===- ChunkVectorsState.cpp - Ops of a chunk that take the state ---------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChunkVectors.h"

using namespace mlir;
using namespace mlir::linattn;

/// x Sᵀ in scratch memory, [C, K]. Numbers of S multiply vectors of tokens, so
/// many rows of S at a time that their sums are square blocks.
Value ChunkVectors::timesTransposed(ChunkReadOp op, Value rowsT,
                                    ArrayRef<Stream> streams) {
  Value state = op.getState();
  int64_t tokens = sizeOf(op.getRows(), 2), size = sizeOf(state, 2);
  Value products = scratch(
      {b.getIndexAttr(llvm::alignTo(tokens, lanes)), b.getIndexAttr(size)});
  forEach(index(0), index(size), lanes, [&](Value d) {
    for (int64_t t = 0; t < tokens; t += lanes) {
      Rows sums = accumulateInParts(
          Rows(lanes, zeros(lanes)), dim(state, 3),
          [&](int64_t r, Value v) {
            return load(state, at(add(d, index(r)), v));
          },
          [&](Value v) {
            return loadVector(rowsT, {index(t / lanes), v, index(0)}, lanes);
          },
          [&](Value r) {
            if (t == 0)
              prefetchLines(streams, add(d, r), size);
          });
      for (auto [i, line] : llvm::enumerate(transposed(sums)))
        storeVector(line, products, {index(t + i), d});
    }
  });
  return products;
}

/// sums + x S for a tile, or what `timesTransposed` made of it.
ChunkVectors::Rows ChunkVectors::timesState(ChunkReadOp op,
                                            const ReadRows &read,
                                            Value products, Rows sums,
                                            const Tile &tile,
                                            ArrayRef<Stream> streams) {
  if (!products)
    return accumulateInParts(
        sums, dim(read.rows, 3),
        [&](int64_t r, Value d) {
          return load(read.rows, at(add(tile.row, index(r)), d));
        },
        [&](Value d) {
          return loadVector(op.getState(), at(d, tile.column), tile.width);
        },
        [&](Value r) { prefetch(streams, tile, add(tile.row, r)); });
  for (auto [r, sum] : llvm::enumerate(sums))
    sum = addf(sum, loadVector(products, {add(tile.row, index(r)), tile.column},
                               tile.width));
  return sums;
}

void ChunkVectors::emit(ChunkReadOp op, const ReadRows &read, bool fromZero,
                        Value into, ArrayRef<Stream> streams) {
  Value output = op.getOutput(), products;
  if (op.getTranspose())
    products = timesTransposed(op, read.rowsT, streams);
  forEachTile(output, [&](const Tile &tile) {
    auto line = [&](int64_t r) {
      return at(add(tile.row, index(r)), tile.column);
    };
    // A decay multiplies the product alone.
    bool addsLast = !fromZero && read.decay;
    Rows sums;
    for (int64_t r = 0; r < tile.height; ++r)
      sums.push_back(fromZero || addsLast
                         ? zeros(tile.width)
                         : loadVector(output, line(r), tile.width));
    sums = timesState(op, read, products, sums, tile, streams);
    for (int64_t r = 0; read.decay && r < tile.height; ++r) {
      Value factor =
          splat(factorOf(read.decay, read.factors, add(tile.row, index(r))),
                tile.width);
      sums[r] = addsLast ? fmaVector(sums[r], factor,
                                     loadVector(output, line(r), tile.width))
                         : mulf(sums[r], factor);
    }
    for (auto [scores, values] :
         llvm::zip_equal(op.getScores(), op.getValues()))
      sums = op.getAdjoint() ? addLaterScores(sums, scores, values, tile,
                                              /*diagonal=*/true, op.getStrict())
                             : addScores(sums, scores, values, tile,
                                         /*diagonal=*/true, op.getStrict());
    for (auto [r, sum] : llvm::enumerate(sums))
      writeOperand(scaledBy(read.scaled, sum), into, line(r));
  });
}

ChunkVectors::Memory ChunkVectors::memoryOf(ChunkUpdateOp op,
                                            const Factors &factors,
                                            int64_t width, Value row,
                                            Value column) {
  auto factorAt = [&](Value memref, Value i) {
    return splat(load(memref, {i}), width);
  };
  if (row && op.getValueDecay())
    return {loadVector(factors.total, {column}, width),
            loadVector(factors.residual, {column}, width)};
  if (row && factors.total)
    return {factorAt(factors.total, row), factorAt(factors.residual, row)};
  if (!factors.start)
    return {};
  return {factorAt(factors.start, index(sizeOf(op.getDecay(), 2))),
          factorAt(factors.residual, index(0))};
}

Value ChunkVectors::addToState(Value state, ValueRange place, Value sum,
                               const Memory &memory) {
  int64_t width = cast<VectorType>(sum.getType()).getNumElements();
  Value past = loadVector(state, place, width);
  if (memory.residual)
    sum = fmaVector(past, memory.residual, sum);
  Value next =
      memory.factor ? fmaVector(past, memory.factor, sum) : addf(past, sum);
  storeVector(next, state, place);
  return next;
}

/// A chunk's writes are summed from zero: the state is rounded once per chunk.
void ChunkVectors::emit(ChunkUpdateOp op, const Factors &factors,
                        ArrayRef<Stream> streams) {
  Value state = op.getOutput();
  forEachTile(state, [&](const Tile &tile) {
    // The blocks of rows divide the tokens of the next chunk.
    prefetchShare(streams, {tile.row, tile.column, rows, tile.width},
                  sizeOf(state, 2));
    Rows sums(tile.height, zeros(tile.width));
    for (auto [keys, values] : llvm::zip_equal(op.getKeys(), op.getValues()))
      sums = product(
          sums, sizeOf(keys, 2),
          [&, keys = keys](int64_t r, Value j) {
            return load(keys, at(j, add(tile.row, index(r))));
          },
          [&, values = values](Value j) {
            return loadVector(values, at(j, tile.column), tile.width);
          });
    Memory memory = memoryOf(op, factors, tile.width);
    for (auto [r, sum] : llvm::enumerate(sums)) {
      Value d = add(tile.row, index(r));
      if (factors.total)
        memory = memoryOf(op, factors, tile.width, d, tile.column);
      addToState(state, at(d, tile.column), sum, memory);
    }
  });
}
