//===- SoftmaxGradientTile.cpp - The backward pass, block by block --------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As in the forward pass, panels of queries stay while the keys that they see
// stream past in blocks. Each block gives
//
//   s[j][:]  = Σ_d k[j,d] · qᵀ[d][:]      dp[j][:] = Σ_e v[j,e] · doᵀ[e][:]
//   p[j][:]  = e^(s − L)                  ds[j][:] = p (dp − D)
//   p and dp times the factors of dropout, dp before the difference
//   dv[j][:] += Σ_i p[j][i] · do[i][:]    dk[j][:] += Σ_i ds[j][i] · q[i][:]
//   dq[i][:] += Σ_j ds[j][i] · k[j][:]
//
// Five products for each pair of a query and a key (Dao, 2023). A task is a
// head and a segment of its queries, with sums of dk and dv of its own, which
// are added up in the order of the segments. How many segments there are
// depends on the number of queries alone: so do the bits.
//
//===----------------------------------------------------------------------===//

#include "QuadraticPanels.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

class SoftmaxGradientTile : public QuadraticPanels {
public:
  SoftmaxGradientTile(OpBuilder &b, QuadraticOp scores, TileShape shape,
                      SoftmaxGradientOp gradient)
      : QuadraticPanels(b, scores, shape, Dropout::of(gradient)),
        gradient(gradient) {}

  void emit();

private:
  void emitTask();
  void allocateScratch();
  void packQueries();
  void processBlock(Value count);
  std::pair<Value, Value> seenPanels(Value count);
  void multiplyPanel(Value panel, Value count);
  void weighPanel(Value panel, Value count);
  void weighKeys(Value panel, Value count, bool hides);
  void addToKeys(Value sums, Value weights, Value rows, Value from, Value to,
                 Value count);
  void addToQueries(Value from, Value to, Value count);
  void writeQueries();
  void addSegments(Value sums, Value output);
  Value allocateSums(Value like);

  /// The least queries of a segment, and the largest number of segments: each
  /// adds sums of dk and dv.
  static constexpr int64_t segmentQueries = 4096, mostSegments = 4;

  SoftmaxGradientOp gradient;
  Value segments, task;
  /// Sums of dk and dv: [segments · B · H, Tk, padded head size].
  struct {
    Value keys, values;
  } ofSegments;
  /// Tokens of the task's queries, as rows and as panels.
  struct Tokens {
    Value rows, panels;
  };
  Tokens queries, cotangents;
  Value keys, values, weights, scores, sums, distances;
};

} // namespace

//===----------------------------------------------------------------------===//
// Tasks
//===----------------------------------------------------------------------===//

void SoftmaxGradientTile::emit() {
  Value count = dim(op.getQuery(), 2);
  segments =
      max(min(ceilDiv(count, segmentQueries), index(mostSegments)), index(1));
  Value length = roundUp(div(sub(add(count, segments), index(1)), segments),
                         queriesOfTask());
  keySize = roundUp(dim(op.getKey(), 3), shape.lanes);
  valueSize = roundUp(dim(op.getValue(), 3), shape.lanes);
  ofSegments.keys = allocateSums(op.getKey());
  ofSegments.values = allocateSums(op.getValue());
  parallel(mul(batchHeads(), segments), [&](Value number) {
    task = number;
    locate(div(task, segments));
    allocateScratch();
    for (Value all : {ofSegments.keys, ofSegments.values})
      forEach(dim(all, 1), [&](Value j) {
        forEach(index(0), lastDim(all), shape.cols, [&](Value d) {
          storeVector(zeros(shape.cols), all, {task, j, d});
        });
      });
    Value first = mul(rem(task, segments), length);
    Value last = min(add(first, length), count);
    auto loop = scf::ForOp::create(b, loc, first, last, index(queriesOfTask()));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    setQueries(loop.getInductionVar());
    emitTask();
    b.setInsertionPointAfter(loop);
    freeScratch();
  });
  addSegments(ofSegments.keys, gradient.getKeyOutput());
  addSegments(ofSegments.values, gradient.getValueOutput());
  for (Value all : {ofSegments.keys, ofSegments.values})
    memref::DeallocOp::create(b, loc, all);
}

Value SoftmaxGradientTile::allocateSums(Value like) {
  SmallVector<OpFoldResult> sizes{
      getAsOpFoldResult(mul(batchHeads(), segments)),
      getAsOpFoldResult(dim(like, 2)),
      getAsOpFoldResult(roundUp(dim(like, 3), shape.cols))};
  SmallVector<int64_t> extents;
  SmallVector<Value> dynamic;
  dispatchIndexOpFoldResults(sizes, dynamic, extents);
  return memref::AllocOp::create(b, loc, MemRefType::get(extents, type),
                                 dynamic, b.getI64IntegerAttr(64));
}

void SoftmaxGradientTile::emitTask() {
  packQueries();
  forEachRange(visible.begin(range.firstQuery), range.keyLimit,
               [&](Value from, Value to) {
                 forEach(from, to, blockKeys(), [&](Value start) {
                   range.firstKey = start;
                   processBlock(min(sub(to, start), index(blockKeys())));
                 });
               });
  writeQueries();
}

void SoftmaxGradientTile::allocateScratch() {
  auto size = [&](int64_t n) -> OpFoldResult { return b.getIndexAttr(n); };
  auto padded = [&](Value x) {
    return getAsOpFoldResult(roundUp(dim(x, 3), shape.cols));
  };
  OpFoldResult panels = size(panelsPerTask()), cols = size(shape.cols),
               block = size(blockKeys()), count = size(queriesOfTask()),
               features = padded(op.getKey()), columns = padded(op.getValue());
  queries.panels = scratch({panels, features, cols});
  cotangents.panels = scratch({panels, columns, cols});
  queries.rows = scratch({count, features});
  cotangents.rows = scratch({count, columns});
  sums = scratch({count, features});
  keys = scratch({block, features});
  values = scratch({block, columns});
  weights = scratch({block, count});
  scores = scratch({block, count});
  if (slope)
    distances = scratch({count});
}

void SoftmaxGradientTile::packQueries() {
  packPanels(keySize, queries.rows, queries.panels,
             [&](Value i) { return queryRow(add(range.firstQuery, i)); });
  packPanels(valueSize, cotangents.rows, cotangents.panels, [&](Value i) {
    Row row;
    row.source = gradient.getCotangent();
    row.index = {batch, head, add(range.firstQuery, i)};
    row.mapped = false;
    return row;
  });
  Value all = mul(panelCount(), index(shape.cols));
  forEach(all, [&](Value i) {
    forEach(index(0), lastDim(sums), shape.cols,
            [&](Value d) { storeVector(zeros(shape.cols), sums, {i, d}); });
  });
  if (slope)
    forEach(index(0), all, shape.cols,
            [&](Value i) { storeVector(zeros(shape.cols), distances, {i}); });
}

//===----------------------------------------------------------------------===//
// One block of keys
//===----------------------------------------------------------------------===//

void SoftmaxGradientTile::processBlock(Value count) {
  packBlock(keys, values, count);
  auto [first, last] = seenPanels(count);
  forEach(first, last, 1, [&](Value panel) {
    multiplyPanel(panel, count);
    weighPanel(panel, count);
  });
  Value from = mul(first, index(shape.cols)), to = mul(last, index(shape.cols));
  addToKeys(ofSegments.values, weights, cotangents.rows, from, to, count);
  addToKeys(ofSegments.keys, scores, queries.rows, from, to, count);
  addToQueries(from, to, count);
}

/// The panels of which a query may see a key of the block: the first one, and
/// one past the last.
std::pair<Value, Value> SoftmaxGradientTile::seenPanels(Value count) {
  Value first = index(0), last = panelCount();
  Value at = visible.position(range.firstQuery);
  // The panel of the query at a position, which may lie before the first one.
  auto panelAt = [&](Value position) {
    return div(max(sub(position, at), index(0)), index(shape.cols));
  };
  if (op.getCausal() && !op.getPrefix())
    first = min(panelAt(range.firstKey), last);
  if (visible.reach() && !visible.globals()) {
    Value lastKey = sub(add(range.firstKey, count), index(1));
    Value reached = add(lastKey, index(visible.reach() - 1));
    last = min(last, add(panelAt(reached), index(1)));
  }
  return {first, last};
}

/// The scores and the cotangents of the weights, before either is weighed.
void SoftmaxGradientTile::multiplyPanel(Value panel, Value count) {
  Value column = mul(panel, index(shape.cols));
  forEach(index(0), count, shape.rows, [&](Value j) {
    auto multiply = [&](Value rows, Value panels, Value size, Value target) {
      Rows products = dotPanel(rows, panels, size, panel, j);
      for (auto [r, product] : llvm::enumerate(products))
        storeVector(product, target, {add(j, index(r)), column});
    };
    multiply(keys, queries.panels, keySize, weights);
    multiply(values, cotangents.panels, valueSize, scores);
  });
}

void SoftmaxGradientTile::weighPanel(Value panel, Value count) {
  Value hides = mayHide(panel, count);
  if (!hides) {
    weighKeys(panel, count, /*hides=*/false);
  } else if (getConstantIntValue(hides)) {
    weighKeys(panel, count, /*hides=*/true);
  } else {
    auto branch = scf::IfOp::create(b, loc, hides, /*withElse=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    weighKeys(panel, count, /*hides=*/true);
    b.setInsertionPointToStart(branch.elseBlock());
    weighKeys(panel, count, /*hides=*/false);
  }
  // The rest of the last tile of keys.
  Value column = mul(panel, index(shape.cols));
  forEach(count, roundUp(count, shape.rows), 1, [&](Value j) {
    storeVector(zeros(shape.cols), weights, {j, column});
    storeVector(zeros(shape.cols), scores, {j, column});
  });
}

/// p = e^(s − L), ds = p (dp − D), and the derivative of the softcap.
void SoftmaxGradientTile::weighKeys(Value panel, Value count, bool hides) {
  int64_t cols = shape.cols;
  Value column = mul(panel, index(cols));
  SmallVector<Value> row{batch, head, add(range.firstQuery, column)};
  Value logSum = readOperand(gradient.getLogSum(), row, cols);
  Value correction = readOperand(gradient.getCorrection(), row, cols);
  Value at = adjustsScores(op) ? positions(panel) : Value();
  SmallVector<Value> initial;
  if (slope)
    initial.push_back(loadVector(distances, {column}, cols));
  SmallVector<Value> total = reduce(
      index(0), count, 1, initial,
      [&](Value j, ValueRange carried) -> SmallVector<Value> {
        Value token = add(range.firstKey, j);
        Value product = loadVector(weights, {j, column}, cols);
        Value score = product;
        if (at)
          score = emitAdjustedScore(b, loc, op, product, slope, at, token);
        Value p = exp(subf(score, logSum));
        Value dp = loadVector(scores, {j, column}, cols);
        if (hides) {
          p = maskScores(p, panel, j, 0.0);
          dp = maskScores(dp, panel, j, 0.0);
        }
        Value kept = keptWeights(panel, j);
        if (kept)
          dp = mulf(dp, kept);
        Value ds = mulf(p, subf(dp, correction));
        SmallVector<Value> next;
        if (slope)
          next.push_back(subf(
              carried.front(),
              mulf(ds, emitDistance(b, loc, vectorType(cols), at, token))));
        if (Value factor = emitCapDerivative(b, loc, op, product))
          ds = mulf(ds, factor);
        storeVector(kept ? mulf(p, kept) : p, weights, {j, column});
        storeVector(ds, scores, {j, column});
        return next;
      });
  if (slope)
    storeVector(total.front(), distances, {column});
}

/// sums[j][:] += Σ_i weights[j][i] · rows[i][:], `rows` keys at a time.
void SoftmaxGradientTile::addToKeys(Value sums, Value weights, Value rows,
                                    Value from, Value to, Value count) {
  int64_t cols = shape.cols;
  forEach(index(0), lastDim(rows), cols, [&](Value column) {
    forEach(index(0), count, shape.rows, [&](Value j) {
      Rows total = accumulate(
          Rows(shape.rows, zeros(cols)), from, to,
          [&](int64_t r, Value i) {
            return load(weights, {add(j, index(r)), i});
          },
          [&](Value i) { return loadVector(rows, {i, column}, cols); });
      for (auto [r, sum] : llvm::enumerate(total)) {
        Value key = add(j, index(r)), term = sum;
        ifThen(compare(arith::CmpIPredicate::slt, key, count), [&] {
          SmallVector<Value> at{task, add(range.firstKey, key), column};
          storeVector(addf(loadVector(sums, at, cols), term), sums, at);
        });
      }
    });
  });
}

/// dq[i][:] += Σ_j ds[j][i] · k[j][:], `rows` queries at a time.
void SoftmaxGradientTile::addToQueries(Value from, Value to, Value count) {
  int64_t cols = shape.cols;
  Value whole = roundUp(count, shape.rows);
  forEach(index(0), lastDim(keys), cols, [&](Value column) {
    forEach(from, to, shape.rows, [&](Value i) {
      Rows initial;
      for (int64_t r = 0; r < shape.rows; ++r)
        initial.push_back(loadVector(sums, {add(i, index(r)), column}, cols));
      Rows total = accumulate(
          initial, index(0), whole,
          [&](int64_t r, Value j) {
            return load(scores, {j, add(i, index(r))});
          },
          [&](Value j) { return loadVector(keys, {j, column}, cols); });
      for (auto [r, sum] : llvm::enumerate(total))
        storeVector(sum, sums, {add(i, index(r)), column});
    });
  });
}

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

void SoftmaxGradientTile::writeQueries() {
  forEach(range.queryCount, [&](Value i) {
    Value query = add(range.firstQuery, i);
    forEach(index(0), dim(op.getQuery(), 3), shape.cols, [&](Value column) {
      Value dq = loadVector(sums, {i, column}, shape.cols);
      writeOperand(scale.apply(b, loc, dq), gradient.getQueryOutput(),
                   {batch, head, query, column});
    });
    if (slope)
      store(load(distances, {i}), gradient.getSlopeOutput(),
            {batch, head, query});
  });
}

/// Adds up the sums of the segments, in their order.
void SoftmaxGradientTile::addSegments(Value sums, Value output) {
  Value heads = dim(output, 1);
  parallelRows(output, [&](Value batch, Value head, Value token) {
    Value first = mul(add(mul(batch, heads), head), segments);
    forEach(index(0), dim(output, 3), shape.cols, [&](Value column) {
      Value sum = reduce(segments, zeros(shape.cols), [&](Value s, Value x) {
        return addf(
            x, loadVector(sums, {add(first, s), token, column}, shape.cols));
      });
      writeOperand(sum, output, {batch, head, token, column});
    });
  });
}

void mlir::linattn::lowerToQuadraticTile(OpBuilder &b, SoftmaxGradientOp op,
                                         TileShape shape) {
  QuadraticOp scores = op.createQuadratic(b);
  b.setInsertionPointAfter(scores);
  SoftmaxGradientTile(b, scores, shape, op).emit();
  scores.erase();
}
