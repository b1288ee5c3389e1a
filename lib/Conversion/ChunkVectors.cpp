//===- ChunkVectors.cpp - The ops of a chunk in register tiles ------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChunkVectors.h"

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

void ChunkVectors::forEachBlock(int64_t size, int64_t step,
                                function_ref<void(Value, int64_t)> body) {
  int64_t whole = size / step * step;
  if (whole)
    forEach(index(0), index(whole), step, [&](Value i) { body(i, step); });
  if (whole < size)
    body(index(whole), size - whole);
}

void ChunkVectors::forEachRows(int64_t tokens,
                               function_ref<void(Value, int64_t)> body,
                               bool fromLast) {
  forEachBlock(tokens, rows, [&](Value row, int64_t height) {
    body(fromLast ? sub(index(tokens - height), row) : row, height);
  });
}

void ChunkVectors::forEachVector(int64_t width,
                                 function_ref<void(Value)> body) {
  if (isCompact())
    return forEach(index(0), index(width), lanes, body);
  for (int64_t d = 0; d < width; d += lanes)
    body(index(d));
}

void ChunkVectors::forEachTile(Value output,
                               function_ref<void(const Tile &)> body,
                               bool fromLast) {
  forEachBlock(sizeOf(output, 3), 2 * lanes, [&](Value column, int64_t width) {
    forEachRows(
        sizeOf(output, 2),
        [&](Value row, int64_t height) { body({row, column, height, width}); },
        fromLast);
  });
}

/// sums_r += Σ_k left(r, k) · right(k) for k < size, of any size.
ChunkVectors::Rows
ChunkVectors::product(Rows sums, int64_t size,
                      function_ref<Value(int64_t, Value)> left,
                      function_ref<Value(Value)> right) {
  int64_t whole = size / unroll * unroll;
  int64_t width = cast<VectorType>(sums.front().getType()).getNumElements();
  if (whole)
    sums = accumulate(sums, index(0), index(whole), left, right);
  for (int64_t k = whole; k < size; ++k) {
    Value line = right(index(k));
    for (auto [r, sum] : llvm::enumerate(sums))
      sum = fmaVector(splat(left(r, index(k)), width), line, sum);
  }
  return sums;
}

void ChunkVectors::prefetch(ArrayRef<Stream> streams, const Tile &tile,
                            Value token) {
  for (const Stream &stream : streams)
    prefetchRow(
        stream.source,
        {stream.batch, stream.head, min(add(stream.first, token), stream.last)},
        tile.column, index(tile.width), stream.isWritten);
}

void ChunkVectors::prefetchShare(ArrayRef<Stream> streams, const Tile &tile,
                                 int64_t stateRows) {
  int64_t blocks = llvm::divideCeil(stateRows, tile.height);
  for (const Stream &stream : streams) {
    int64_t each = llvm::divideCeil(stream.tokens, blocks);
    Value start = mul(div(tile.row, index(tile.height)), index(each));
    for (int64_t i = 0; i < each; ++i)
      prefetch(stream, tile, add(start, index(i)));
  }
}

void ChunkVectors::prefetchLines(ArrayRef<Stream> streams, Value step,
                                 int64_t steps) {
  for (const Stream &stream : streams) {
    int64_t line = std::min(elementsPerLine(stream.source), stream.width);
    int64_t lines = llvm::divideCeil(stream.width, line);
    int64_t locality = localityOf(stream.source);
    auto prefetch = [&](Value token, Value column) {
      Value row = min(add(stream.first, token), stream.last);
      prefetchLine(stream.source, {stream.batch, stream.head, row, column},
                   stream.isWritten, locality);
    };
    // Whole rows, or lines of one row.
    int64_t rows = stream.tokens / steps;
    if (rows > 0 && stream.tokens % steps == 0) {
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t d = 0; d < stream.width; d += line)
          prefetch(add(mul(step, index(rows)), index(i)), index(d));
      continue;
    }
    int64_t each = llvm::divideCeil(stream.tokens * lines, steps);
    for (int64_t i = 0; i < each; ++i) {
      Value n = add(mul(step, index(each)), index(i));
      Value token = div(n, index(lines));
      prefetch(token, mul(sub(n, mul(token, index(lines))), index(line)));
    }
  }
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

void ChunkVectors::clearRow(Value output, Value t) {
  if (rankOf(output) == 3)
    return store(constant(type, 0.0), output, at(t));
  for (int64_t d = 0; d < sizeOf(output, 3); d += lanes)
    writeOperand(zeros(lanes), output, at(t, index(d)));
}

void ChunkVectors::emit(ChunkPackOp op) {
  Value input = op.getInput(), output = op.getOutput();
  Scale scale = Scale::of(op);
  bool isRows = rankOf(output) == 4;
  Value tokens = dim(output, 2);
  if (op.getPadded()) {
    Value all = std::exchange(tokens, dim(input, 2));
    forEach(tokens, all, 1, [&](Value t) { clearRow(output, t); });
  }
  forEach(tokens, [&](Value t) {
    Value token = tokenOf(t, output, op.getReverse());
    Value keep = op.getMask() ? load(op.getMask(), {index(0), t}) : Value();
    double fill = op.getFill() ? op.getFill()->convertToDouble() : 0.0;
    auto finish = [&](Value x, Value gate) {
      if (gate)
        x = mulf(x, gate);
      x = scale.apply(b, loc, x);
      return keep ? select(keep, x, constant(x.getType(), fill)) : x;
    };
    auto number = [&](Value x, Value t) {
      return convert(rankOf(x) == 1 ? load(x, {index(0)}) : load(x, at(t)),
                     type);
    };
    Value gate = op.getGate();
    if (!isRows)
      return store(
          finish(number(input, token), gate ? number(gate, t) : Value()),
          output, at(t));
    forEachVector(sizeOf(output, 3), [&](Value d) {
      Value factor;
      if (gate)
        factor = rankOf(gate) == 4 ? readOperand(gate, at(t, d), lanes)
                                   : splat(number(gate, t), lanes);
      writeOperand(finish(readOperand(input, at(token, d), lanes), factor),
                   output, at(t, d));
    });
  });
}

void ChunkVectors::emit(ChunkUnpackOp op) {
  if (op.getNormalize())
    return emitDivided(op);
  Value output = op.getOutput();
  forEach(dim(output, 2), [&](Value t) {
    Value token = tokenOf(t, output, op.getReverse());
    for (int64_t d = 0; d < sizeOf(output, 3); d += lanes)
      writeOperand(readOperand(op.getRows(), at(t, index(d)), lanes), output,
                   at(token, index(d)));
  });
}

Value ChunkVectors::transposedKeys(Value keys) {
  int64_t tokens = sizeOf(keys, 2), features = sizeOf(keys, 3);
  Value target = scratch({b.getIndexAttr(llvm::divideCeil(tokens, lanes)),
                          b.getIndexAttr(features), b.getIndexAttr(lanes)});
  if (isCompact() && tokens % lanes == 0) {
    Value width = index(lanes);
    forEach(index(tokens), [&](Value t) {
      forEach(index(features), [&](Value d) {
        store(load(keys, at(t, d)), target, {div(t, width), d, rem(t, width)});
      });
    });
    return target;
  }
  forEachBlock(tokens, lanes, [&](Value token, int64_t count) {
    forEach(index(0), index(features), lanes, [&](Value d) {
      Rows lines(lanes, zeros(lanes));
      for (int64_t t = 0; t < count; ++t)
        lines[t] = loadVector(keys, at(add(token, index(t)), d), lanes);
      for (auto [i, line] : llvm::enumerate(transposed(lines)))
        storeVector(line, target,
                    {div(token, index(lanes)), add(d, index(i)), index(0)});
    });
  });
  return target;
}

//===----------------------------------------------------------------------===//
// Decays
//===----------------------------------------------------------------------===//

/// Logarithms are added up, from the start, from each token on within a block
/// of lanes, and from the end of each block on. A factor is the exponential of
/// one sum, or the product of two.
ChunkVectors::Factors ChunkVectors::factorsOf(Value decay) {
  if (rankOf(decay) == 4)
    return channelFactorsOf(decay);
  int64_t tokens = sizeOf(decay, 2), padded = llvm::alignTo(tokens, lanes);
  Factors factors;
  factors.between =
      scratch({b.getIndexAttr(tokens + 1), b.getIndexAttr(padded)});
  factors.start = scratch({b.getIndexAttr(padded + 1)});
  factors.residual = scratch({b.getIndexAttr(1)});
  store(constant(type, 1.0), factors.start, {index(0)});
  Value sum = forEachSum(decay, index(0), [&](Value t, Value logs) {
    storeVector(exp(logs), factors.start, {add(t, index(1))});
  });
  store(residualOf(sum, load(factors.start, {index(tokens)})), factors.residual,
        {index(0)});
  Value rest = scratch({b.getIndexAttr(lanes)});
  forEach(index(0), index(padded), lanes, [&](Value j) {
    storeVector(constant(vectorType(lanes), 1.0), factors.between,
                {index(0), j});
    decayFromBlock(decay, factors.between, rest, j);
  });
  return factors;
}

ChunkVectors::Factors ChunkVectors::selected(Value condition, const Factors &x,
                                             const Factors &y) {
  auto one = [&](Value Factors::*member) {
    return x.*member ? select(condition, x.*member, y.*member) : Value();
  };
  return {one(&Factors::between), one(&Factors::start), one(&Factors::gates),
          one(&Factors::total), one(&Factors::residual)};
}

/// Calls `body` with the sums of the logarithms from a token on up to each one,
/// vector by vector. Returns that of all.
Value ChunkVectors::forEachSum(Value decay, Value from,
                               function_ref<void(Value, Value)> body) {
  Value past = reduce(from, index(sizeOf(decay, 2)), lanes, zeros(lanes),
                      [&](Value t, ValueRange carried) -> SmallVector<Value> {
                        Value logs =
                            addf(prefixSums(readOperand(decay, at(t), lanes)),
                                 carried.front());
                        body(t, logs);
                        return {splat(lastLane(logs), lanes)};
                      })
                   .front();
  return lastLane(past);
}

/// The factors of `lanes` keys from j on until each later row; `rest` is memory
/// for one vector.
void ChunkVectors::decayFromBlock(Value decay, Value between, Value rest,
                                  Value j) {
  Value tokens = index(sizeOf(decay, 2)), zero = zeros(lanes);
  Value next = min(add(j, index(lanes)), tokens);
  reduce(j, next, 1, zero,
         [&](Value t, ValueRange carried) -> SmallVector<Value> {
           Value log = addf(carried.front(), splat(load(decay, at(t)), lanes));
           // j < t decays on, j = t starts.
           log = select(firstLanes(sub(t, j)), log, zero);
           storeVector(exp(log), between, {add(t, index(1)), j});
           return {log};
         });
  // To the end of the block, and from there to each row: both are at most 1.
  Value toEnd = loadVector(between, {next, j}, lanes);
  forEachSum(decay, next, [&](Value t, Value logs) {
    storeVector(exp(logs), rest, {index(0)});
    forEach(min(index(lanes), sub(tokens, t)), [&](Value i) {
      Value factor = splat(load(rest, {i}), lanes);
      storeVector(mulf(toEnd, factor), between, {add(add(t, index(1)), i), j});
    });
  });
}

/// The sum of the elements up to each one.
Value ChunkVectors::prefixSums(Value x) {
  for (int64_t step = 1; step < lanes; step *= 2)
    x = addf(x, delayed(x, zeros(lanes), step));
  return x;
}

Value ChunkVectors::factorOf(ChunkDecayOp op, const Factors &factors, Value t) {
  if (op.getToEnd())
    return load(factors.between, {dim(op.getOutput(), 2), t});
  return load(factors.start, {op.getBefore() ? t : add(t, index(1))});
}

void ChunkVectors::emit(ChunkDecayOp op, const Factors &factors) {
  Value output = op.getOutput();
  if (factors.gates)
    return decayBlock(
        {op.getRows(), factors.gates, output, op.getToEnd(), op.getBefore()},
        index(0), sizeOf(output, 2));
  forEach(dim(output, 2), [&](Value t) {
    Value factor = factorOf(op, factors, t);
    for (int64_t d = 0; d < sizeOf(output, 3); d += lanes)
      storeVector(mulf(loadVector(op.getRows(), at(t, index(d)), lanes),
                       splat(factor, lanes)),
                  output, at(t, index(d)));
  });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

Value ChunkVectors::weigh(ChunkScoresOp op, Value sums, Value t, Value j,
                          const Factors &factors) {
  Value next = add(t, index(1));
  if (factors.between)
    sums = mulf(sums, loadVector(factors.between,
                                 {op.getBefore() ? t : next, j}, lanes));
  Value seen = firstLanes(sub(op.getStrict() ? t : next, j));
  return select(seen, sums, zeros(lanes));
}

void ChunkVectors::emit(ChunkScoresOp op, Value keysT, const Factors &factors) {
  Value left = op.getRows(), output = op.getOutput();
  int64_t tokens = sizeOf(left, 2);
  auto writeBlock = [&](Value row, int64_t height, Value j) {
    Value block = div(j, index(lanes));
    Rows sums = product(
        Rows(height, zeros(lanes)), sizeOf(left, 3),
        [&](int64_t r, Value d) {
          return load(left, at(add(row, index(r)), d));
        },
        [&](Value d) {
          return loadVector(keysT, {block, d, index(0)}, lanes);
        });
    for (auto [r, score] : llvm::enumerate(sums)) {
      Value t = add(row, index(r));
      writeOperand(weigh(op, score, t, j, factors), output, at(t, j));
    }
  };
  // Twice the rows of a tile: one vector of keys leaves registers for them.
  forEachBlock(tokens, 2 * rows, [&](Value row, int64_t height) {
    forEachVector(tokens, [&](Value j) { writeBlock(row, height, j); });
  });
}

/// sums_t += Σ_j P_tj v_j over the tokens before the tile and, under
/// `diagonal`, over its own up to t, or before t if `strict`.
ChunkVectors::Rows ChunkVectors::addScores(Rows sums, Value scores,
                                           Value values, const Tile &tile,
                                           bool diagonal, bool strict) {
  auto score = [&](int64_t r, Value j) {
    return load(scores, at(add(tile.row, index(r)), j));
  };
  auto line = [&](Value j) {
    return loadVector(values, at(j, tile.column), tile.width);
  };
  // Rows of whole tiles: a multiple of the steps that are spelt out.
  sums = accumulate(sums, index(0), tile.row, score, line);
  if (!diagonal)
    return sums;
  for (int64_t x = 0; x < tile.height; ++x) {
    Value j = add(tile.row, index(x)), written = line(j);
    for (int64_t r = strict ? x + 1 : x; r < tile.height; ++r)
      sums[r] = fmaVector(splat(score(r, j), tile.width), written, sums[r]);
  }
  return sums;
}

/// The same with the scores of later tokens: Σ_j P_jt v_j.
ChunkVectors::Rows ChunkVectors::addLaterScores(Rows sums, Value scores,
                                                Value values, const Tile &tile,
                                                bool diagonal, bool strict) {
  auto score = [&](int64_t r, Value j) {
    return load(scores, at(j, add(tile.row, index(r))));
  };
  auto line = [&](Value j) {
    return loadVector(values, at(j, tile.column), tile.width);
  };
  // All tiles are whole: the rows behind one are, too.
  sums = accumulate(sums, add(tile.row, index(tile.height)), dim(values, 2),
                    score, line);
  for (int64_t x = 0; diagonal && x < tile.height; ++x) {
    Value j = add(tile.row, index(x)), written = line(j);
    for (int64_t r = 0; r < (strict ? x : x + 1); ++r)
      sums[r] = fmaVector(splat(score(r, j), tile.width), written, sums[r]);
  }
  return sums;
}

/// Rows of tiles that are solved come from memory, those of this one from
/// registers.
void ChunkVectors::emit(ChunkSolveOp op) {
  Value output = op.getOutput(), scores = op.getScores(), gate = op.getGate();
  bool transpose = op.getTranspose();
  auto solveTile = [&](const Tile &tile) {
    Rows sums;
    for (int64_t r = 0; r < tile.height; ++r)
      sums.push_back(loadVector(
          output, at(add(tile.row, index(r)), tile.column), tile.width));
    sums = transpose
               ? addLaterScores(sums, scores, output, tile, /*diagonal=*/false,
                                /*strict=*/true)
               : addScores(sums, scores, output, tile, /*diagonal=*/false,
                           /*strict=*/true);
    // A row that is solved goes to all others at once: they do not wait for
    // each other.
    for (int64_t step = 0; step < tile.height; ++step) {
      int64_t r = transpose ? tile.height - 1 - step : step;
      Value t = add(tile.row, index(r));
      if (gate)
        sums[r] =
            mulf(sums[r], rankOf(gate) == 4
                              ? loadVector(gate, at(t, tile.column), tile.width)
                              : splat(load(gate, at(t)), tile.width));
      storeVector(sums[r], output, at(t, tile.column));
      for (int64_t next = step + 1; next < tile.height; ++next) {
        int64_t x = transpose ? tile.height - 1 - next : next;
        Value other = add(tile.row, index(x));
        Value score = load(scores, transpose ? at(t, other) : at(other, t));
        sums[x] = fmaVector(splat(score, tile.width), sums[r], sums[x]);
      }
    }
  };
  forEachTile(output, solveTile, /*fromLast=*/transpose);
}
