//===- FeatureMapTile.cpp - Feature maps of whole tokens as vectors -------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Blocks of tokens are tasks of their own, since tokens are independent. A task
// packs its tokens and multiplies them with the map's matrices, which lie
// packed by columns of features, in tiles of registers; then each token's
// features are made of its row of products and written.
//
// Features lie side by side for any width of a vector, so that a vector
// may run past its part of a row. Parts are therefore written in rising order:
// what one spills into the next is overwritten, and what the last one spills is
// cut off by the bounds of the row.
//
//===----------------------------------------------------------------------===//

#include "TileBuilder.h"
#include "TokenFormulas.h"

#include "linattn/Dialect/MapParameters.h"

using namespace mlir;
using namespace mlir::linattn;

/// Tokens of one task: enough to use a packed matrix from cache many times.
static constexpr int64_t tokensPerTask = 64;
/// Tokens of one tile of registers; divides the above.
static constexpr int64_t tokensPerTile = 4;

namespace {

class FeatureTile : public VectorBuilder, private TokenRows {
public:
  FeatureTile(OpBuilder &b, FeatureMapOp op, int64_t lanes)
      : VectorBuilder(b, op.getLoc(),
                      getAccumulationType(getElementTypeOrSelf(op.getInput()))),
        op(op), map(*op.getFeatureMap()), lanes(lanes),
        d(dim(op.getInput(), 3)) {}

  void emit();

private:
  void packMatrices(VectorBuilder &outer);
  void packTokens(Value count);
  void project(size_t position, Value count);
  void packRolls();

  size_t countMatrices() {
    size_t count = 0;
    for (size_t i = 0; i < op.getParameters().size(); ++i)
      count += getMapParameters(map.getKind())[i].isMatrix();
    return count;
  }
  Value getBatch() final { return batch; }
  Value getTime() final { return add(firstToken, row); }
  Row getToken() final { return getRow(tokens); }
  Row getProduct(size_t position) final { return getRow(products[position]); }
  Element getParameter(size_t position) final {
    return [=](Value i) {
      SmallVector<Value> at{i};
      if (hasHeads(op, position))
        at.insert(at.begin(), head);
      return readOperand(op.getParameters()[position], at, lanes);
    };
  }
  Element getRolled(Value shift) final;
  Value toLanes(Value scalar) final { return splat(scalar, lanes); }
  Value sumOf(Value size, Element f) final {
    return reduceRow(vector::CombiningKind::ADD, size, 0.0, f);
  }
  Value largestOf(Value size, double start, Element f) final {
    return reduceRow(vector::CombiningKind::MAXIMUMF, size, start, f);
  }
  Row keep(Element f) final {
    forEach(index(0), d, lanes,
            [&](Value i) { storeVector(f(i), tokens, {row, i}); });
    return getToken();
  }
  void put(ArrayRef<Value> firsts, Value size,
           function_ref<SmallVector<Value>(Value)> f) final;

  /// The current row of a buffer [tokensPerTask, …].
  Row getRow(Value buffer) {
    return {[=](Value i) { return loadVector(buffer, {row, i}, lanes); },
            [=](Value i) { return toLanes(load(buffer, {row, i})); }};
  }
  /// Sums or maximizes f over [0, size); what lies past the end does not count.
  Value reduceRow(vector::CombiningKind kind, Value size, double neutral,
                  function_ref<Value(Value)> f) {
    Value start = constant(vectorType(lanes), neutral);
    Value total =
        reduce(index(0), size, lanes, start,
               [&](Value i, ValueRange carried) -> SmallVector<Value> {
                 Value inside = vector::CreateMaskOp::create(
                     b, loc, VectorType::get(lanes, b.getI1Type()),
                     ValueRange{sub(size, i)});
                 Value y = select(inside, f(i), start);
                 bool isSum = kind == vector::CombiningKind::ADD;
                 return {isSum ? addf(carried.front(), y)
                               : larger(carried.front(), y)};
               })
            .front();
    return reduceVector(kind, total);
  }

  FeatureMapOp op;
  FeatureMapAttr map;
  int64_t lanes;
  Value d, batch, head, firstToken, row;
  /// The tokens of the task, [tokensPerTask, d], and the products with each
  /// matrix, [tokensPerTask, m]; padded.
  Value tokens;
  SmallVector<Value> packed, products;
  /// relu([x, −x]) twice in a row for one token, so that a roll of it is a
  /// part.
  Value rolls;
};

} // namespace

//===----------------------------------------------------------------------===//
// Tasks
//===----------------------------------------------------------------------===//

void FeatureTile::emit() {
  VectorBuilder outer(b, loc, type);
  packMatrices(outer);
  Value heads = dim(op.getInput(), 1), length = dim(op.getInput(), 2);
  Value blocks = ceilDiv(length, tokensPerTask);
  Value perBatch = mul(heads, blocks);
  parallel(mul(dim(op.getInput(), 0), perBatch), [&](Value task) {
    batch = div(task, perBatch);
    Value rest = rem(task, perBatch);
    head = div(rest, blocks);
    firstToken = mul(rem(rest, blocks), index(tokensPerTask));
    Value count = min(sub(length, firstToken), index(tokensPerTask));
    packTokens(count);
    products.clear();
    for (size_t position = 0; position < packed.size(); ++position)
      project(position, count);
    if (getMapTraits(map.getKind()).has(FeatureMapTraits::Shifts))
      rolls =
          scratch({getAsOpFoldResult(add(mul(d, index(4)), index(2 * lanes)))});
    forEach(count, [&](Value token) {
      row = token;
      if (rolls)
        packRolls();
      emitTokenFeatures(*this, op, *this);
    });
    freeScratch();
  });
  outer.freeScratch();
}

/// Each matrix as [heads, d, m], m padded to whole tiles.
void FeatureTile::packMatrices(VectorBuilder &outer) {
  for (size_t position = 0; position < countMatrices(); ++position) {
    Value matrix = op.getParameters()[position];
    bool perHead = hasHeads(op, position);
    Value heads = perHead ? dim(matrix, 0) : index(1);
    Value m = dim(matrix, perHead), width = roundUp(m, 2 * lanes);
    Value buffer =
        outer.scratch({getAsOpFoldResult(heads), getAsOpFoldResult(d),
                       getAsOpFoldResult(width)});
    parallel(heads, [&](Value h) {
      forEach(d, [&](Value i) {
        forEach(m, [&](Value r) {
          SmallVector<Value> at{r, i};
          if (perHead)
            at.insert(at.begin(), h);
          store(convert(load(matrix, at), type), buffer, {h, i, r});
        });
        forEach(m, width, 1, [&](Value r) {
          store(constant(type, 0.0), buffer, {h, i, r});
        });
      });
    });
    packed.push_back(buffer);
  }
}

/// The tokens times the map's scale, followed by zeros to read past their ends.
void FeatureTile::packTokens(Value count) {
  Value width = add(roundUp(d, lanes), index(lanes));
  tokens = scratch({b.getIndexAttr(tokensPerTask), getAsOpFoldResult(width)});
  double scale = getMapScale(map);
  forEach(count, [&](Value t) {
    forEach(index(0), d, lanes, [&](Value i) {
      Value y = readOperand(op.getInput(), {batch, head, add(firstToken, t), i},
                            lanes);
      if (scale != 1.0)
        y = mulf(y, constant(vectorType(lanes), scale));
      storeVector(y, tokens, {t, i});
    });
    storeVector(zeros(lanes), tokens, {t, roundUp(d, lanes)});
  });
  // A tile may have more tokens than there are.
  forEach(count, roundUp(count, tokensPerTile), 1, [&](Value t) {
    forEach(index(0), width, lanes,
            [&](Value i) { storeVector(zeros(lanes), tokens, {t, i}); });
  });
}

/// products = tokens · Wᵀ in tiles of tokensPerTile × 2 registers.
void FeatureTile::project(size_t position, Value count) {
  Value matrix = packed[position];
  Value width = dim(matrix, 2), h = hasHeads(op, position) ? head : index(0);
  Value total = scratch({b.getIndexAttr(tokensPerTask),
                         getAsOpFoldResult(add(width, index(lanes)))});
  forEach(index(0), width, 2 * lanes, [&](Value r) {
    forEach(index(0), count, tokensPerTile, [&](Value t) {
      SmallVector<Value> start(tokensPerTile, zeros(2 * lanes));
      SmallVector<Value> sums =
          reduce(index(0), d, 1, start,
                 [&](Value i, ValueRange carried) -> SmallVector<Value> {
                   Value w = loadVector(matrix, {h, i, r}, 2 * lanes);
                   SmallVector<Value> next;
                   for (auto [n, sum] : llvm::enumerate(carried)) {
                     Value y = load(tokens, {add(t, index(n)), i});
                     next.push_back(fmaVector(splat(y, 2 * lanes), w, sum));
                   }
                   return next;
                 });
      for (auto [n, sum] : llvm::enumerate(sums))
        storeVector(sum, total, {add(t, index(n)), r});
    });
  });
  products.push_back(total);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

void FeatureTile::packRolls() {
  Element x = getToken().lanes;
  for (int64_t part = 0; part < 4; ++part)
    forEach(index(0), d, lanes, [&](Value i) {
      Value y = part % 2 ? negate(x(i)) : x(i);
      storeVector(maxf(y, zeros(lanes)), rolls, {add(mul(d, index(part)), i)});
    });
}

TokenRows::Element FeatureTile::getRolled(Value shift) {
  // Element i − shift of the first copy, or of the second where that is below
  // 0.
  Value start = sub(mul(d, index(2)), shift);
  return [=](Value i) { return loadVector(rolls, {add(start, i)}, lanes); };
}

/// A row at a time; see above.
void FeatureTile::put(ArrayRef<Value> firsts, Value size,
                      function_ref<SmallVector<Value>(Value)> f) {
  auto write = [&](size_t n, Value begin, Value end, bool inBounds) {
    forEach(begin, end, lanes, [&](Value i) {
      Value y = convert(f(i)[n], getElementTypeOrSelf(op.getOutput()));
      vector::TransferWriteOp::create(
          b, loc, y, op.getOutput(),
          ValueRange{batch, head, getTime(), add(firsts[n], i)},
          ArrayRef<bool>{inBounds});
    });
  };
  Value whole = mul(div(size, index(lanes)), index(lanes));
  auto known = getConstantIntValue(size);
  for (size_t n = 0; n < firsts.size(); ++n) {
    write(n, index(0), whole, /*inBounds=*/true);
    if (!known || *known % lanes != 0)
      write(n, whole, size, /*inBounds=*/false);
  }
}

void mlir::linattn::lowerToFeatureTile(OpBuilder &b, FeatureMapOp op,
                                       int64_t lanes) {
  FeatureTile(b, op, lanes).emit();
}
