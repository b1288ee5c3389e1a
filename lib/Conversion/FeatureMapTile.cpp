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
// Features lie side by side whatever the width of a vector, so that a vector
// may run past its part of a row. Parts are therefore written in rising order:
// what one spills into the next is overwritten, and what the last one spills is
// cut off by the bounds of the row.
//
//===----------------------------------------------------------------------===//

#include "TileBuilder.h"

#include "linattn/Dialect/MapParameters.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::linattn;

/// Tokens of one task: enough to use a packed matrix from cache many times.
static constexpr int64_t tokensPerTask = 64;
/// Tokens of one tile of registers; divides the above.
static constexpr int64_t tokensPerTile = 4;

namespace {

class FeatureTile : public VectorBuilder {
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
  void emitRow();
  void emitFavor();
  void emitRandomFourier();
  void emitHedgehog();
  void emitSoftmax();
  void emitCosformer();
  void emitDpfp();
  void emitTaylor();
  void emitRebased();
  void emitOuterProduct();
  /// c x_i x_j at the features from `first` on, j < i, or of all j.
  void emitPairs(Value first, Value factor, bool all);

  bool hasHeads(size_t position) {
    return isPerHead(getMapParameters(map.getKind())[position],
                     op.getParameters()[position]);
  }
  size_t countMatrices() {
    size_t count = 0;
    for (size_t i = 0; i < op.getParameters().size(); ++i)
      count += getMapParameters(map.getKind())[i].isMatrix();
    return count;
  }
  Value rows() { return dim(op.getParameters()[0], hasHeads(0)); }

  // Scalars.
  Value number(double value) { return constant(type, value); }
  Value toFloat(Value integer) {
    if (integer.getType().isIndex())
      integer = arith::IndexCastOp::create(b, loc, b.getI64Type(), integer);
    return arith::SIToFPOp::create(b, loc, type, integer);
  }
  Value divide(Value x, Value y) { return arith::DivFOp::create(b, loc, x, y); }
  Value sqrt(Value x) { return math::SqrtOp::create(b, loc, x); }

  // Vectors of one register.
  Value vec(Value scalar) { return splat(scalar, lanes); }
  Value relu(Value x) { return maxf(x, zeros(lanes)); }
  /// Elements of the token, and of its product with a matrix.
  Value x(Value i) { return loadVector(tokens, {row, i}, lanes); }
  Value z(size_t position, Value r) {
    return loadVector(products[position], {row, r}, lanes);
  }
  /// A parameter that is a vector.
  Value parameter(size_t position, Value i) {
    SmallVector<Value> at{i};
    if (hasHeads(position))
      at.insert(at.begin(), head);
    return readOperand(op.getParameters()[position], at, lanes);
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
  Value sumRow(Value size, function_ref<Value(Value)> f) {
    return reduceRow(vector::CombiningKind::ADD, size, 0.0, f);
  }
  Value sumOfSquares() {
    return sumRow(d, [&](Value i) { return mulf(x(i), x(i)); });
  }

  /// Writes f over [0, size) at the features from `first` on; see above.
  void put(Value first, Value size, function_ref<Value(Value)> f) {
    auto write = [&](Value begin, Value end, bool inBounds) {
      forEach(begin, end, lanes, [&](Value i) {
        Value y = convert(f(i), getElementTypeOrSelf(op.getOutput()));
        vector::TransferWriteOp::create(
            b, loc, y, op.getOutput(),
            ValueRange{batch, head, add(firstToken, row), add(first, i)},
            ArrayRef<bool>{inBounds});
      });
    };
    Value whole = mul(div(size, index(lanes)), index(lanes));
    write(index(0), whole, /*inBounds=*/true);
    auto known = getConstantIntValue(size);
    if (!known || *known % lanes != 0)
      write(whole, size, /*inBounds=*/false);
  }

  FeatureMapOp op;
  FeatureMapAttr map;
  int64_t lanes;
  Value d, batch, head, firstToken, row;
  /// The tokens of the task, [tokensPerTask, d], and the products with each
  /// matrix, [tokensPerTask, m]; padded.
  Value tokens;
  SmallVector<Value> packed, products;
  Value rolls; ///< What DPFP multiplies, for one token.
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
    if (map.getKind() == FeatureMapKind::Dpfp)
      rolls =
          scratch({getAsOpFoldResult(add(mul(d, index(4)), index(2 * lanes)))});
    forEach(count, [&](Value token) {
      row = token;
      emitRow();
    });
    freeScratch();
  });
  outer.freeScratch();
}

/// Each matrix as [heads, d, m], m padded to whole tiles.
void FeatureTile::packMatrices(VectorBuilder &outer) {
  for (size_t position = 0; position < countMatrices(); ++position) {
    Value matrix = op.getParameters()[position];
    bool perHead = hasHeads(position);
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
        forEach(m, width, 1,
                [&](Value r) { store(number(0), buffer, {h, i, r}); });
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
  Value width = dim(matrix, 2), h = hasHeads(position) ? head : index(0);
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

void FeatureTile::emitRow() {
  switch (map.getKind()) {
  case FeatureMapKind::Softmax:
    return emitSoftmax();
  case FeatureMapKind::L2norm: {
    Value norm = vec(sqrt(addf(sumOfSquares(), number(getMapEps(map)))));
    return put(index(0), d, [&](Value i) { return divide(x(i), norm); });
  }
  case FeatureMapKind::SumNorm: {
    Value sum = sumRow(d, [&](Value i) { return x(i); });
    Value total = vec(addf(sum, number(getMapEps(map))));
    return put(index(0), d, [&](Value i) { return divide(x(i), total); });
  }
  case FeatureMapKind::Favor:
  case FeatureMapKind::FavorHyperbolic:
    return emitFavor();
  case FeatureMapKind::RandomFourier:
  case FeatureMapKind::RandomFourierExp:
    return emitRandomFourier();
  case FeatureMapKind::T2r:
    return put(index(0), rows(), [&](Value r) {
      Value y = z(0, r);
      return relu(op.getParameters().size() > 1 ? addf(y, parameter(1, r)) : y);
    });
  case FeatureMapKind::Hadamard:
    return put(index(0), rows(),
               [&](Value r) { return mulf(z(0, r), z(1, r)); });
  case FeatureMapKind::Cosformer:
    return emitCosformer();
  case FeatureMapKind::Hedgehog:
  case FeatureMapKind::HedgehogExp:
    return emitHedgehog();
  case FeatureMapKind::Dpfp:
    return emitDpfp();
  case FeatureMapKind::Taylor:
  case FeatureMapKind::TaylorFull:
    return emitTaylor();
  case FeatureMapKind::Rebased:
    return emitRebased();
  case FeatureMapKind::OuterProduct:
    return emitOuterProduct();
  default:
    llvm_unreachable("a map of one element");
  }
}

void FeatureTile::emitSoftmax() {
  double lowest = -std::numeric_limits<double>::infinity();
  Value most = vec(reduceRow(vector::CombiningKind::MAXIMUMF, d, lowest,
                             [&](Value i) { return x(i); }));
  forEach(index(0), d, lanes, [&](Value i) {
    storeVector(exp(subf(x(i), most)), tokens, {row, i});
  });
  Value total = vec(sumRow(d, [&](Value i) { return x(i); }));
  put(index(0), d, [&](Value i) { return divide(x(i), total); });
}

void FeatureTile::emitFavor() {
  bool isHyperbolic = map.getKind() == FeatureMapKind::FavorHyperbolic;
  Value m = rows();
  Value count = toFloat(isHyperbolic ? mul(m, index(2)) : m);
  // x·x/2 + ln(m)/2
  Value shift = vec(mulf(
      addf(sumOfSquares(), math::LogOp::create(b, loc, count)), number(0.5)));
  auto finish = [&](Value y) {
    y = subf(y, shift);
    return map.getLog() ? y : exp(y);
  };
  put(index(0), m, [&](Value r) { return finish(z(0, r)); });
  if (isHyperbolic)
    put(m, m, [&](Value r) { return finish(negate(z(0, r))); });
}

void FeatureTile::emitRandomFourier() {
  Value m = rows();
  Value factor = divide(number(1), sqrt(toFloat(m)));
  if (map.getKind() == FeatureMapKind::RandomFourierExp)
    factor = mulf(factor, exp(mulf(sumOfSquares(), number(0.5))));
  factor = vec(factor);
  put(index(0), m, [&](Value r) {
    return mulf(math::SinOp::create(b, loc, z(0, r)), factor);
  });
  put(m, m, [&](Value r) {
    return mulf(math::CosOp::create(b, loc, z(0, r)), factor);
  });
}

void FeatureTile::emitHedgehog() {
  Value m = rows(), most = zeros(lanes), total;
  bool isSoftmax = map.getKind() == FeatureMapKind::Hedgehog;
  if (isSoftmax) {
    most = vec(reduceRow(vector::CombiningKind::MAXIMUMF, m, 0.0, [&](Value r) {
      return maxf(z(0, r), negate(z(0, r)));
    }));
    total = vec(sumRow(m, [&](Value r) {
      Value y = z(0, r);
      return addf(exp(subf(y, most)), exp(subf(negate(y), most)));
    }));
  }
  auto finish = [&](Value y) {
    y = subf(y, most);
    y = map.getLog() ? y : exp(y);
    return isSoftmax ? divide(y, total) : y;
  };
  put(index(0), m, [&](Value r) { return finish(z(0, r)); });
  put(m, m, [&](Value r) { return finish(negate(z(0, r))); });
}

void FeatureTile::emitCosformer() {
  Value positions = op.getPositions(), t = add(firstToken, row);
  bool perBatch = cast<ShapedType>(positions.getType()).getRank() == 2;
  Value position =
      perBatch ? load(positions, {batch, t}) : load(positions, {t});
  double step = M_PI / 2 / double(map.getMaxLength());
  Value angle = mulf(toFloat(position), number(step));
  Value cosine = vec(math::CosOp::create(b, loc, angle));
  Value sine = vec(math::SinOp::create(b, loc, angle));
  put(index(0), d, [&](Value i) { return mulf(relu(x(i)), cosine); });
  put(d, d, [&](Value i) { return mulf(relu(x(i)), sine); });
}

void FeatureTile::emitDpfp() {
  // r = relu([x, −x]) twice in a row, so that every roll of it is a part.
  Value twice = mul(d, index(2));
  for (int64_t part = 0; part < 4; ++part)
    forEach(index(0), d, lanes, [&](Value i) {
      Value y = part % 2 ? negate(x(i)) : x(i);
      storeVector(relu(y), rolls, {add(mul(d, index(part)), i)});
    });
  auto r = [&](Value i) { return loadVector(rolls, {i}, lanes); };
  forEach(index(map.getShifts()), [&](Value shift) {
    // roll(r, j)_i = r_{i − j}, j counted from 1.
    Value start = sub(twice, rem(add(shift, index(1)), twice));
    put(mul(shift, twice), twice,
        [&](Value i) { return mulf(r(i), r(add(start, i))); });
  });
}

void FeatureTile::emitPairs(Value first, Value factor, bool all) {
  factor = vec(factor);
  forEach(d, [&](Value i) {
    Value xi = vec(load(tokens, {row, i}));
    Value before = all ? mul(i, d) : div(mul(i, sub(i, index(1))), index(2));
    put(add(first, before), all ? d : i,
        [&](Value j) { return mulf(mulf(xi, x(j)), factor); });
  });
}

void FeatureTile::emitTaylor() {
  Value size = toFloat(d), root = sqrt(size);
  Value linear = vec(divide(number(1), sqrt(root)));
  Value diagonal = divide(number(1), sqrt(mulf(size, number(2))));
  put(index(0), index(1), [&](Value) { return vec(number(1)); });
  put(index(1), d, [&](Value i) { return mulf(x(i), linear); });
  Value first = add(d, index(1));
  if (map.getKind() == FeatureMapKind::TaylorFull)
    return emitPairs(first, diagonal, /*all=*/true);
  Value half = vec(diagonal);
  put(first, d, [&](Value i) { return mulf(mulf(x(i), x(i)), half); });
  emitPairs(add(first, d), divide(number(1), root), /*all=*/false);
}

void FeatureTile::emitRebased() {
  Value size = toFloat(d);
  Value sum = sumRow(d, [&](Value i) { return x(i); });
  Value mean = vec(divide(sum, size));
  Value squares = sumRow(d, [&](Value i) {
    Value centred = subf(x(i), mean);
    return mulf(centred, centred);
  });
  Value eps = number(getMapEps(map));
  Value deviation = vec(sqrt(addf(divide(squares, size), eps)));
  forEach(index(0), d, lanes, [&](Value i) {
    Value y = divide(subf(x(i), mean), deviation);
    y = addf(mulf(y, parameter(0, i)), parameter(1, i));
    storeVector(y, tokens, {row, i});
  });
  Value factor = divide(number(1), sqrt(size)), diagonal = vec(factor);
  put(index(0), d, [&](Value i) { return mulf(mulf(x(i), x(i)), diagonal); });
  emitPairs(d, mulf(factor, number(std::sqrt(2.0))), /*all=*/false);
}

void FeatureTile::emitOuterProduct() {
  forEach(d, [&](Value i) {
    // Rows 0 to i − 1 hold d + (d − 1) + … = i (2d − i + 1) / 2 products.
    Value before =
        div(mul(i, add(sub(mul(index(2), d), i), index(1))), index(2));
    Value y = vec(load(products[0], {row, i}));
    put(before, sub(d, i), [&](Value j) { return mulf(y, z(1, add(i, j))); });
  });
}

void mlir::linattn::lowerToFeatureTile(OpBuilder &b, FeatureMapOp op,
                                       int64_t lanes) {
  FeatureTile(b, op, lanes).emit();
}
