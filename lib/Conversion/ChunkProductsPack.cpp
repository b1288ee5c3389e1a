//===- ChunkProductsPack.cpp - Matrices of a chunk as tiles ---------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChunkProducts.h"

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// Summands
//===----------------------------------------------------------------------===//

/// Two vectors as one.
Value ChunkProducts::concat(Value low, Value high) {
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(step));
  return vector::ShuffleOp::create(v.b, v.loc, low, high, order);
}

/// The summands of two vectors, interleaved. Each summand is what those before
/// it left over, rounded. `probe` gets the first ones.
SmallVector<Value> ChunkProducts::split(Value low, Value high, int64_t summands,
                                        Value &probe) {
  SmallVector<Value> parts;
  auto narrow = [&](Value x) { return v.convert(x, v.b.getBF16Type()); };
  for (int64_t s = 0; s < summands; ++s) {
    Value pairs =
        vector::InterleaveOp::create(v.b, v.loc, narrow(low), narrow(high));
    parts.push_back(pairs);
    if (s == 0)
      enlarge(probe, pairs);
    if (s + 1 == summands)
      break;
    // Halves of pairs, which cost less than the rounded vectors.
    auto halves = vector::DeinterleaveOp::create(v.b, v.loc, pairs);
    Value first = v.convert(halves.getRes1(), v.type),
          second = v.convert(halves.getRes2(), v.type);
    low = v.subf(low, first);
    high = v.subf(high, second);
  }
  return parts;
}

/// The same of two vectors that stay one behind the other.
SmallVector<Value> ChunkProducts::splitNeighbours(Value low, Value high,
                                                  int64_t summands,
                                                  Value &probe) {
  SmallVector<Value> parts;
  Value halves[] = {low, high};
  for (int64_t s = 0; s < summands; ++s) {
    Value both = v.convert(concat(halves[0], halves[1]), v.b.getBF16Type());
    parts.push_back(both);
    if (s == 0)
      enlarge(probe, both);
    if (s + 1 == summands)
      break;
    for (auto [i, half] : llvm::enumerate(halves)) {
      Value part = vector::ExtractStridedSliceOp::create(
          v.b, v.loc, both, ArrayRef<int64_t>{int64_t(i) * lines},
          ArrayRef<int64_t>{lines}, ArrayRef<int64_t>{1});
      half = v.subf(half, v.convert(part, v.type));
    }
  }
  return parts;
}

/// A vector of integers as a constant of one value.
static Value splatOf(ChunkVectors &v, VectorType type, int64_t value) {
  return arith::ConstantOp::create(
      v.b, v.loc,
      DenseElementsAttr::get(
          type, v.b.getIntegerAttr(type.getElementType(),
                                   APInt(type.getElementTypeBitWidth(), value,
                                         /*isSigned=*/false,
                                         /*implicitTrunc=*/true))));
}

/// The exponent of a number that is not finite is all ones: a probe is the
/// largest magnitude so far, as an integer. Elements of a field are finite.
Value ChunkProducts::startProbe() {
  return splatOf(v, VectorType::get(step, v.b.getI16Type()), 0);
}

void ChunkProducts::enlarge(Value &probe, Value pairs) {
  if (!hasBits)
    return;
  auto bits = VectorType::get(step, v.b.getI16Type());
  Value magnitude = arith::AndIOp::create(
      v.b, v.loc, vector::BitCastOp::create(v.b, v.loc, bits, pairs),
      splatOf(v, bits, 0x7fff));
  probe = arith::MaxUIOp::create(v.b, v.loc, probe, magnitude);
}

/// Null if no number can be anything but finite.
Value ChunkProducts::finishProbe(Value probe) {
  if (!hasBits)
    return {};
  Value largest = v.reduceVector(vector::CombiningKind::MAXUI, probe);
  Value infinity = arith::ConstantOp::create(
      v.b, v.loc, v.b.getIntegerAttr(v.b.getI16Type(), 0x7f80));
  return arith::CmpIOp::create(v.b, v.loc, arith::CmpIPredicate::ult, largest,
                               infinity);
}

/// Leaves word of it in memory.
void ChunkProducts::storeProbe(Value probe, const PackedTiles &tiles) {
  if (!tiles.flag)
    return;
  if (Value isFinite = finishProbe(probe))
    v.store(isFinite, tiles.flag, {v.index(0)});
}

//===----------------------------------------------------------------------===//
// Of f32
//===----------------------------------------------------------------------===//

PackedTiles ChunkProducts::allocate(int64_t size, int64_t contracted,
                                    int64_t summands) {
  auto sizeAttr = [&](int64_t n) { return v.b.getIndexAttr(n); };
  Value memory = v.scratch({sizeAttr(summands), sizeAttr(size / lines),
                            sizeAttr(llvm::divideCeil(contracted, step)),
                            sizeAttr(lines), sizeAttr(step)},
                           v.b.getBF16Type());
  return {memory, summands, {}};
}

void ChunkProducts::storePairs(Value pairs, const PackedTiles &tiles,
                               int64_t summand, const Place &place) {
  v.storeVector(
      pairs, tiles.memory,
      {v.index(summand), place.tile, place.step, place.line, v.index(0)});
}

/// The steps of a contraction; the last one may be half.
void ChunkProducts::forEachStep(int64_t contracted,
                                function_ref<void(Value, bool)> body) {
  if (int64_t whole = contracted / step)
    v.forEach(v.index(whole), [&](Value k) { body(k, /*isHalf=*/false); });
  if (contracted % step)
    body(v.index(contracted / step), /*isHalf=*/true);
}

/// The same, carrying a value.
Value ChunkProducts::reduceSteps(int64_t contracted, Value carried,
                                 function_ref<Value(Value, bool, Value)> body) {
  if (int64_t whole = contracted / step)
    carried = v.reduce(v.index(whole), carried, [&](Value k, Value carried) {
      return body(k, /*isHalf=*/false, carried);
    });
  if (contracted % step)
    carried = body(v.index(contracted / step), /*isHalf=*/true, carried);
  return carried;
}

/// `at` gives the two vectors of a line: of 16 lines at a contracted index, or,
/// of a left operand, from a contracted index on. The last contracted indices
/// may be half a step.
PackedTiles
ChunkProducts::pack(int64_t size, int64_t contracted, int64_t summands,
                    bool pairsFeatures, bool isLeft,
                    function_ref<TwoVectors(const Place &, bool)> at,
                    const PackedTiles *into) {
  PackedTiles tiles = into ? *into : allocate(size, contracted, summands);
  auto packLine = [&](const Place &place, bool isHalf, Value probe) {
    auto [low, high] = at(place, isHalf);
    auto parts = pairsFeatures && isLeft
                     ? splitNeighbours(low, high, summands, probe)
                     : split(low, high, summands, probe);
    for (auto [s, pairs] : llvm::enumerate(parts))
      storePairs(pairs, tiles, s, place);
    return probe;
  };
  auto packTile = [&](Value tile, Value k, bool isHalf, Value probe) {
    // Half of the pairs of features, or one of each pair of tokens.
    int64_t filled = isHalf && pairsFeatures && !isLeft ? lines / 2 : lines;
    for (int64_t line = filled; line < lines; ++line)
      for (int64_t s = 0; s < summands; ++s)
        storePairs(v.constant(VectorType::get(step, v.b.getBF16Type()), 0.0),
                   tiles, s, {tile, k, v.index(line)});
    return v
        .reduce(v.index(0), v.index(filled), 1, probe,
                [&](Value line, ValueRange carried) -> SmallVector<Value> {
                  return {packLine({tile, k, line}, isHalf, carried.front())};
                })
        .front();
  };
  Value probe = v.reduce(
      v.index(size / lines), startProbe(), [&](Value tile, Value probe) {
        return reduceSteps(contracted, probe,
                           [&](Value k, bool isHalf, Value probe) {
                             return packTile(tile, k, isHalf, probe);
                           });
      });
  if (tiles.flag)
    storeProbe(probe, tiles);
  else
    tiles.isFinite = finishProbe(probe);
  return tiles;
}

PackedTiles ChunkProducts::packRows(Value rows, int64_t summands,
                                    const PackedTiles *into) {
  return pack(
      sizeOf(rows, 2), sizeOf(rows, 3), summands,
      /*pairsFeatures=*/true, /*isLeft=*/true,
      [&](const Place &place, bool isHalf) -> TwoVectors {
        Value t = element(place.tile, 0, place.line);
        Value d = v.mul(place.step, v.index(step));
        return {v.loadVector(rows, v.at(t, d), lines),
                isHalf ? v.zeros(lines)
                       : v.loadVector(rows, v.at(t, v.add(d, v.index(lines))),
                                      lines)};
      },
      into);
}

PackedTiles ChunkProducts::packScores(Value scores, bool strict,
                                      int64_t summands) {
  return pack(sizeOf(scores, 2), sizeOf(scores, 3), summands,
              /*pairsFeatures=*/false, /*isLeft=*/true,
              [&](const Place &place, bool isHalf) -> TwoVectors {
                Value t = element(place.tile, 0, place.line);
                auto seenFrom = [&](int64_t offset) -> Value {
                  Value j =
                      v.add(v.mul(place.step, v.index(step)), v.index(offset));
                  Value seen =
                      v.firstLanes(v.sub(strict ? t : v.add(t, v.index(1)), j));
                  return v.select(seen, v.loadVector(scores, v.at(t, j), lines),
                                  v.zeros(lines));
                };
                return {seenFrom(0), isHalf ? v.zeros(lines) : seenFrom(lines)};
              });
}

PackedTiles ChunkProducts::packValues(Value rows, int64_t summands) {
  return pack(
      sizeOf(rows, 3), sizeOf(rows, 2), summands, /*pairsFeatures=*/false,
      /*isLeft=*/false, [&](const Place &place, bool isHalf) -> TwoVectors {
        Value t = v.add(v.mul(place.step, v.index(step)), place.line);
        Value d = v.mul(place.tile, v.index(lines));
        return {v.loadVector(rows, v.at(t, d), lines),
                isHalf ? v.zeros(lines)
                       : v.loadVector(rows, v.at(v.add(t, v.index(lines)), d),
                                      lines)};
      });
}

PackedTiles ChunkProducts::packState(Value state, int64_t summands,
                                     const PackedTiles *into) {
  return pack(
      sizeOf(state, 3), sizeOf(state, 2), summands, /*pairsFeatures=*/true,
      /*isLeft=*/false,
      [&](const Place &place, bool) -> TwoVectors {
        Value row = v.add(v.mul(place.step, v.index(step)),
                          v.mul(place.line, v.index(2)));
        Value d = v.mul(place.tile, v.index(lines));
        return {v.loadVector(state, v.at(row, d), lines),
                v.loadVector(state, v.at(v.add(row, v.index(1)), d), lines)};
      },
      into);
}

PackedTiles ChunkProducts::packKeyRows(Value keysT, int64_t summands,
                                       const PackedTiles *into) {
  return pack(
      sizeOf(keysT, 1), sizeOf(keysT, 0) * lines, summands,
      /*pairsFeatures=*/false, /*isLeft=*/true,
      [&](const Place &place, bool isHalf) -> TwoVectors {
        Value d = element(place.tile, 0, place.line);
        auto tokens = [&](int64_t half) {
          Value block = v.add(v.mul(place.step, v.index(2)), v.index(half));
          return v.loadVector(keysT, {block, d, v.index(0)}, lines);
        };
        return {tokens(0), isHalf ? v.zeros(lines) : tokens(1)};
      },
      into);
}

PackedTiles ChunkProducts::packKeyColumns(Value keysT, int64_t blocks,
                                          int64_t summands,
                                          const PackedTiles *into) {
  return pack(
      blocks * lines, sizeOf(keysT, 1), summands,
      /*pairsFeatures=*/true, /*isLeft=*/false,
      [&](const Place &place, bool) -> TwoVectors {
        Value d = v.add(v.mul(place.step, v.index(step)),
                        v.mul(place.line, v.index(2)));
        auto feature = [&](Value d) {
          return v.loadVector(keysT, {place.tile, d, v.index(0)}, lines);
        };
        return {feature(d), feature(v.add(d, v.index(1)))};
      },
      into);
}

//===----------------------------------------------------------------------===//
// Of tokens in bf16
//===----------------------------------------------------------------------===//

/// 32 neighbours in a row of tokens, the upper half zero if `isHalf`.
Value ChunkProducts::loadPairs(Value tokens, Value t, Value d, bool isHalf) {
  auto load = [&](int64_t size) -> Value {
    auto type = VectorType::get(size, v.b.getBF16Type());
    Value pad = v.constant(v.b.getBF16Type(), 0.0);
    return vector::TransferReadOp::create(
        v.b, v.loc, type, tokens, v.at(t, d), pad,
        ArrayRef<bool>{sizeOf(tokens, 3) % lines == 0});
  };
  if (!isHalf)
    return load(step);
  return concat(load(lines),
                v.constant(VectorType::get(lines, v.b.getBF16Type()), 0.0));
}

/// By the sign bits: a CPU has no arithmetic of bf16.
Value ChunkProducts::negated(Value pairs) {
  auto bits = VectorType::get(step, v.b.getI16Type());
  Value flipped = arith::XOrIOp::create(
      v.b, v.loc, vector::BitCastOp::create(v.b, v.loc, bits, pairs),
      splatOf(v, bits, 0x8000));
  return vector::BitCastOp::create(v.b, v.loc, pairs.getType(), flipped);
}

PackedTiles ChunkProducts::packTokenRows(Value tokens, bool isNegated,
                                         const PackedTiles *into) {
  int64_t features = tiledFeatures(tokens);
  PackedTiles tiles = into ? *into : allocate(sizeOf(tokens, 2), features, 1);
  v.forEach(v.index(sizeOf(tokens, 2) / lines), [&](Value tile) {
    v.forEach(v.index(lines), [&](Value line) {
      for (int64_t k = 0; k < int64_t(llvm::divideCeil(features, step)); ++k) {
        Value pairs = loadPairs(tokens, element(tile, 0, line),
                                v.index(k * step), features < (k + 1) * step);
        storePairs(isNegated ? negated(pairs) : pairs, tiles, 0,
                   {tile, v.index(k), line});
      }
    });
  });
  return tiles;
}

/// A product with zero scores would spread a value that is not finite.
PackedTiles ChunkProducts::packTokenValues(Value tokens, bool isNegated) {
  int64_t columns = tiledFeatures(tokens);
  PackedTiles tiles = allocate(columns, sizeOf(tokens, 2), 1);
  auto wide = VectorType::get(lines, v.b.getI32Type());
  auto pairs = VectorType::get(step, v.b.getBF16Type());
  auto load = [&](Value t, int64_t d) -> Value {
    Value row = v.readElements(tokens, v.at(t, v.index(d)), lines);
    Value bits = vector::BitCastOp::create(
        v.b, v.loc, VectorType::get(lines, v.b.getI16Type()), row);
    return arith::ExtUIOp::create(v.b, v.loc, wide, bits);
  };
  auto packLine = [&](Value k, Value line, bool isHalf, Value probe) {
    Value t = v.add(v.mul(k, v.index(step)), line);
    for (int64_t d = 0; d < columns; d += lines) {
      Value both = load(t, d);
      if (!isHalf) {
        Value high =
            arith::ShLIOp::create(v.b, v.loc, load(v.add(t, v.index(lines)), d),
                                  splatOf(v, wide, 16));
        both = arith::OrIOp::create(v.b, v.loc, both, high);
      }
      both = vector::BitCastOp::create(v.b, v.loc, pairs, both);
      if (isNegated)
        both = negated(both);
      storePairs(both, tiles, 0, {v.index(d / lines), k, line});
      enlarge(probe, both);
    }
    return probe;
  };
  auto packStep = [&](Value k, bool isHalf, Value probe) {
    return v.reduce(v.index(lines), probe, [&](Value line, Value probe) {
      return packLine(k, line, isHalf, probe);
    });
  };
  tiles.isFinite =
      finishProbe(reduceSteps(sizeOf(tokens, 2), startProbe(), packStep));
  return tiles;
}

/// Pairs of features are words, and the tile is the transpose of words.
PackedTiles ChunkProducts::packTokenKeyColumns(Value tokens, bool isNegated,
                                               const PackedTiles *into) {
  PackedTiles tiles =
      into ? *into : allocate(sizeOf(tokens, 2), tiledFeatures(tokens), 1);
  auto pairs = VectorType::get(step, v.b.getBF16Type());
  v.forEach(v.index(sizeOf(tokens, 2) / lines), [&](Value tile) {
    forEachStep(tiledFeatures(tokens), [&](Value k, bool isHalf) {
      SmallVector<Value> rows;
      for (int64_t t = 0; t < lines; ++t) {
        Value row = loadPairs(tokens, element(tile, 0, v.index(t)),
                              v.mul(k, v.index(step)), isHalf);
        rows.push_back(vector::BitCastOp::create(
            v.b, v.loc, v.vectorType(lines), isNegated ? negated(row) : row));
      }
      for (auto [m, words] : llvm::enumerate(v.transposed(rows)))
        storePairs(vector::BitCastOp::create(v.b, v.loc, pairs, words), tiles,
                   0, {tile, k, v.index(m)});
    });
  });
  return tiles;
}

/// Words of two features of the tokens of two tiles as the lines of both
/// features, times a factor for each token, if given.
ChunkProducts::TwoLines ChunkProducts::splitWords(const TwoVectors &words,
                                                  const TwoVectors &factors,
                                                  int64_t summands,
                                                  Value &probe) {
  auto wide = VectorType::get(lines, v.b.getI32Type());
  auto upper = [&](Value x) -> Value {
    return arith::AndIOp::create(v.b, v.loc, x, splatOf(v, wide, 0xffff0000));
  };
  auto raised = [&](Value x) -> Value {
    return arith::ShLIOp::create(v.b, v.loc, x, splatOf(v, wide, 16));
  };
  auto dropped = [&](Value x) -> Value {
    return arith::ShRUIOp::create(v.b, v.loc, x, splatOf(v, wide, 16));
  };
  auto merged = [&](Value x, Value y) -> SmallVector<Value> {
    auto pairs = VectorType::get(step, v.b.getBF16Type());
    Value both = arith::OrIOp::create(v.b, v.loc, x, y);
    return {vector::BitCastOp::create(v.b, v.loc, pairs, both)};
  };
  auto [x, y] = words;
  if (!factors.first)
    return {merged(dropped(raised(x)), raised(y)),
            merged(dropped(x), upper(y))};
  auto number = [&](Value bits, Value factor) {
    auto type = v.vectorType(lines);
    return v.mulf(arith::BitcastOp::create(v.b, v.loc, type, bits), factor);
  };
  auto even = split(number(raised(x), factors.first),
                    number(raised(y), factors.second), summands, probe);
  auto odd = split(number(upper(x), factors.first),
                   number(upper(y), factors.second), summands, probe);
  return {even, odd};
}

PackedTiles ChunkProducts::packTokenKeyRows(const PackedTiles &columns,
                                            int64_t features,
                                            const TokenFactors &given,
                                            int64_t summands,
                                            const PackedTiles *into) {
  int64_t blocks = sizeOf(columns.memory, 1);
  PackedTiles tiles =
      into ? *into : allocate(features, blocks * lines, summands);
  auto wide = VectorType::get(lines, v.b.getI32Type());
  auto load = [&](int64_t block, Value k, Value m) -> Value {
    auto pairs = VectorType::get(step, v.b.getBF16Type());
    Value x = vector::LoadOp::create(
        v.b, v.loc, pairs, columns.memory,
        ValueRange{v.index(0), v.index(block), k, m, v.index(0)});
    return vector::BitCastOp::create(v.b, v.loc, wide, x);
  };
  auto factorAt = [&](int64_t block) {
    return v.loadVector(given.factors, {given.row, v.index(block * lines)},
                        lines);
  };
  Value probe = startProbe();
  for (int64_t n = 0; n < int64_t(llvm::divideCeil(blocks, 2)); ++n) {
    bool isHalf = 2 * n + 1 == blocks;
    TwoVectors own;
    if (given.factors)
      own = {factorAt(2 * n), isHalf ? v.zeros(lines) : factorAt(2 * n + 1)};
    auto packWords = [&](Value k, Value m, Value probe) {
      TwoVectors words{load(2 * n, k, m),
                       isHalf ? splatOf(v, wide, 0) : load(2 * n + 1, k, m)};
      auto [even, odd] = splitWords(words, own, summands, probe);
      if (tiles.flag && !given.factors)
        for (Value pairs : {even.front(), odd.front()})
          enlarge(probe, pairs);
      Value d = v.add(v.mul(k, v.index(step)), v.mul(m, v.index(2)));
      Value tile = v.div(d, v.index(lines)), line = v.rem(d, v.index(lines));
      Value next = v.add(line, v.index(1));
      for (auto [s, pairs] : llvm::enumerate(even))
        storePairs(pairs, tiles, s, {tile, v.index(n), line});
      for (auto [s, pairs] : llvm::enumerate(odd))
        storePairs(pairs, tiles, s, {tile, v.index(n), next});
      return probe;
    };
    auto packStep = [&](Value k, bool hasHalf, Value probe) {
      return v.reduce(
          v.index(hasHalf ? lines / 2 : lines), probe,
          [&](Value m, Value probe) { return packWords(k, m, probe); });
    };
    probe = reduceSteps(features, probe, packStep);
  }
  if (tiles.flag)
    storeProbe(probe, tiles);
  else if (given.factors)
    tiles.isFinite = finishProbe(probe);
  return tiles;
}
