//===- ChunkGradient.cpp - The gradient of a scan, chunk by chunk ---------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With a = −k, b = β k (b = k without a delta rule), q times the scale, rows
// decayed from the start of the chunk (Qd, Ad), to its end (Be, We), Γ the
// product of its decays, scores A = a bᵀ, P = q bᵀ and D = dO Wᵀ below the
// diagonal times the decays in between, a first loop goes through the states.
// It carries Sᵀ, which dq and da read as it is. Of an additive rule, whose W
// are the values, it keeps dq and D. Of a delta rule it keeps Sᵀ at the start
// of each chunk, W and A:
//
//   dq = dOd Sᵀ + D b                    later: without the token's own write
//   W  = (I − A)⁻¹ (V + Ad S)
//   S  ← Γ S + Beᵀ W
//
// A second one goes from the last chunk to the first, with H the cotangent of
// the state behind the chunk and N = U Wᵀ scores of the same kind:
//
//   dV = U = (I − Aᵀ)⁻¹ (Be H + Pᵀ dO)
//   dq as above, of a delta rule
//   da = Ud Sᵀ + N b
//   db = We Hᵀ + Dᵀ q + Nᵀ a
//   H  ← Γ H + Qdᵀ dO + Adᵀ U
//
// Under a decay per channel D and N have none: it is one of the columns that
// dq, da and db are read from. ChunkRows adds the token's own terms and goes
// from a and b to k and β. docs/Gradients.md derives the gradient of a decay.
//
//===----------------------------------------------------------------------===//

#include "ChunkGradient.h"
#include "ChunkRows.h"
#include "ChunkTensors.h"

#include "linattn/Dialect/Einsum.h"
#include "linattn/Dialect/LinAttnChunk.h"
#include "linattn/Dialect/ScanTraits.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// Where a task's tokens are: those of one head of one sequence.
struct Task {
  OpFoldResult batch, head, sequence;
  OpFoldResult begin, count;
};

class ChunkGradient : ChunkTensors {
public:
  ChunkGradient(ScanOp op, OpBuilder &b, Cotangents &c)
      : ChunkTensors(b, op.getLoc(), getElementTypeOrSelf(op.getState()),
                     c.chunks.tokens),
        op(op), c(c), isDelta(getRule(op).correctsValues()),
        scale(Scale::of(op)) {
    auto state = cast<ShapedType>(op.getState().getType());
    keySize = state.getDimSize(2);
    valueSize = state.getDimSize(3);
  }

  void build();

private:
  /// Results of the first loop for the second one.
  struct Kept {
    // Of a delta rule.
    Value states;  ///< [1, chunks, V, K]: Sᵀ at the start of each chunk.
    Value written; ///< [1, 1, T, V]: W.
    // Of an additive one.
    Value queries; ///< [1, 1, T, K]: dq, later.
    // Of either.
    Value scores; ///< [1, 1, T, C]: A of a delta rule, otherwise D.
    Value last;   ///< Sᵀ behind the last chunk.
  };

  void prepare();
  Value sumBehind(const Task &task);
  SmallVector<Value> emitTask(const Task &task, ValueRange outputs);
  void emitForward();
  void emitBackward(SmallVector<Value> &carried);
  void packKeys(ChunkRows &rows, Value position);
  SmallVector<Value> emitChunk(Value position, ValueRange carried);
  SmallVector<Value> emitWrites(Value position, ValueRange carried);
  SmallVector<Value> emitQueries(Value position, ValueRange carried);
  void emitReads(ChunkRows &rows, Value position, Value past, Value state);
  /// Gates per channel are those of columns that are read along the values;
  /// gates per token weigh scores and rows.
  Value columnGates(const ChunkRows &rows) {
    return rows.decaysChannels() ? rows.gates : Value();
  }

  Value stateOf(Value states, const Task &task) {
    return slice(states, {task.sequence, task.head}, {one(), one()});
  }

  ScanOp op;
  Cotangents &c;
  int64_t keySize, valueSize;
  bool isDelta;
  Scale scale;

  Value dO, dS, decay, beta;
  // Of the task.
  Value q, k, v, g, be, dOut, count, end, start;
  Kept kept;
};

} // namespace

//===----------------------------------------------------------------------===//
// Chunks
//===----------------------------------------------------------------------===//

/// Packs what both loops need.
void ChunkGradient::packKeys(ChunkRows &rows, Value position) {
  AffineExpr at, all;
  bindDims(b.getContext(), at, all);
  OpFoldResult size = affine::makeComposedFoldedAffineMin(
      b, loc,
      AffineMap::get(2, 0, {b.getAffineConstantExpr(chunk), all - at},
                     b.getContext()),
      {position, count});
  rows.count = getValueOrCreateConstantIndexOp(b, loc, size);
  auto take = [&](Value x) {
    return x ? pack(tokens(x, position, rows.count)) : Value();
  };
  rows.gates = take(g);
  if (!isDelta) {
    rows.b = take(k);
    return;
  }
  rows.beta = take(be);
  rows.a = pack(tokens(k, position, rows.count), -1.0);
  rows.b = pack(rows.a, -1.0, rows.beta);
}

/// From the first chunk to the last.
void ChunkGradient::emitForward() {
  OpFoldResult size = b.getIndexAttr(chunk), keyDim = b.getIndexAttr(keySize),
               valueDim = b.getIndexAttr(valueSize);
  SmallVector<Value> carried{
      transposed(start, t.empty({one(), one(), valueDim, keyDim}))};
  if (isDelta) {
    OpFoldResult chunks =
        arith::DivUIOp::create(b, loc, end, index(chunk)).getResult();
    carried.push_back(t.empty({one(), chunks, valueDim, keyDim}));
    carried.push_back(t.empty({one(), one(), end, valueDim}));
  } else {
    carried.push_back(t.empty({one(), one(), end, keyDim}));
  }
  carried.push_back(t.empty({one(), one(), end, size}));
  auto loop = scf::ForOp::create(b, loc, index(0), end, index(chunk), carried);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    scf::YieldOp::create(
        b, loc,
        isDelta
            ? emitWrites(loop.getInductionVar(), loop.getRegionIterArgs())
            : emitQueries(loop.getInductionVar(), loop.getRegionIterArgs()));
  }
  kept.last = loop.getResult(0);
  kept.scores = loop.getResults().back();
  if (isDelta) {
    kept.states = loop.getResult(1);
    kept.written = loop.getResult(2);
  } else {
    kept.queries = loop.getResult(1);
  }
}

/// One chunk of a delta rule's first loop: what it carries from chunk to chunk.
SmallVector<Value> ChunkGradient::emitWrites(Value position,
                                             ValueRange carried) {
  OpFoldResult size = b.getIndexAttr(chunk);
  Value state = carried[0];
  ChunkRows rows;
  packKeys(rows, position);
  OpFoldResult number =
      arith::DivUIOp::create(b, loc, position, index(chunk)).getResult();
  SmallVector<OpFoldResult> place{b.getIndexAttr(0), number};
  Value past = linalg::CopyOp::create(b, loc, state,
                                      slice(carried[1], place, {one(), one()}))
                   ->getResult(0);
  Value columns = columnGates(rows);
  Value own = scores(rows.a, rows.b, rows.gates, /*strict=*/true,
                     tokens(carried[3], position, size));
  Value written = pack(tokens(v, position, rows.count), {}, {},
                       tokens(carried[2], position, size));
  written = read(decayed(rows.a, rows.gates), state, {}, {}, valueSize,
                 /*strict=*/false, /*adjoint=*/false,
                 /*transpose=*/true, /*decay=*/Value(), written);
  written = ChunkSolveOp::create(b, loc, TypeRange{written.getType()}, own,
                                 Value(), written, /*transpose=*/false)
                ->getResult(0);
  return {update(written, decayed(rows.b, rows.gates, /*toEnd=*/true),
                 columns ? Value() : rows.gates, state, columns),
          insert(past, carried[1], place, {one(), one()}),
          insertTokens(written, carried[2], position, size),
          insertTokens(own, carried[3], position, size)};
}

/// The same of an additive rule. Nothing but dq needs its state, which is read
/// along the values alone.
SmallVector<Value> ChunkGradient::emitQueries(Value position,
                                              ValueRange carried) {
  OpFoldResult size = b.getIndexAttr(chunk);
  Value state = carried[0];
  ChunkRows r;
  packKeys(r, position);
  Value columns = columnGates(r), gates = columns ? Value() : r.gates;
  bool strict = bool(r.gates);
  r.dO = pack(tokens(dOut, position, r.count));
  r.written = pack(tokens(v, position, r.count));
  Value later = scores(r.dO, r.written, gates, strict,
                       tokens(carried[2], position, size));
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  Value query =
      linalg::FillOp::create(b, loc, zero, tokens(carried[1], position, size))
          .getResult(0);
  query = read(decayed(r.dO, gates), state, later, r.b, keySize, strict,
               /*adjoint=*/false, /*transpose=*/false, columns, query);
  return {update(r.written, decayed(r.b, r.gates, /*toEnd=*/true), gates, state,
                 columns),
          insertTokens(query, carried[1], position, size),
          insertTokens(later, carried[2], position, size)};
}

/// One chunk of the second loop, which carries H, the sum of a decay's
/// gradient, if there is one, and the outputs.
SmallVector<Value> ChunkGradient::emitChunk(Value position,
                                            ValueRange carried) {
  OpFoldResult size = b.getIndexAttr(chunk);
  Value state = carried[0], past;
  ChunkRows r;
  packKeys(r, position);
  // Ahead of all products, each of which may prefetch it.
  if (isDelta) {
    Value number = arith::DivUIOp::create(b, loc, position, index(chunk));
    past = slice(kept.states, {b.getIndexAttr(0), number}, {one(), one()});
  }
  r.q = pack(tokens(q, position, r.count), scale);
  r.dO = pack(tokens(dOut, position, r.count));
  r.written = isDelta ? tokens(kept.written, position, size)
                      : pack(tokens(v, position, r.count));

  Value queries = scores(r.q, r.b, r.gates, /*strict=*/false);
  r.solved =
      read(decayed(r.b, r.gates, /*toEnd=*/true), state, queries, r.dO,
           valueSize, /*strict=*/false, /*adjoint=*/true, /*transpose=*/false);
  if (isDelta)
    r.solved = ChunkSolveOp::create(b, loc, TypeRange{r.solved.getType()},
                                    tokens(kept.scores, position, size),
                                    Value(), r.solved, /*transpose=*/true)
                   ->getResult(0);
  emitReads(r, position, past, state);
  SmallVector<Value> keys{decayed(r.q, r.gates)}, values{r.dO};
  if (isDelta) {
    keys.push_back(decayed(r.a, r.gates));
    values.push_back(r.solved);
  }
  SmallVector<Value> next{update(keys, values, r.gates, state)};
  Value sum = decay ? carried[1] : Value();
  size_t first = decay ? 2 : 1;
  auto parts =
      llvm::map_to_vector(carried.drop_front(first), [&](Value output) {
        return tokens(output, position, r.count);
      });
  int64_t lanes = c.chunks.vectorBits / type.getIntOrFloatBitWidth();
  llvm::append_range(next,
                     emitRowGradients(b, loc, r, scale, lanes, parts, sum));
  if (decay) // The sum comes last.
    std::rotate(next.begin() + 1, next.end() - 1, next.end());
  for (size_t i = first; i < next.size(); ++i)
    next[i] = insertTokens(next[i], carried[i], position, r.count);
  return next;
}

/// Reads along the values: da and db, and dq of later tokens unless the first
/// loop kept it.
void ChunkGradient::emitReads(ChunkRows &r, Value position, Value past,
                              Value state) {
  OpFoldResult size = b.getIndexAttr(chunk);
  Value columns = columnGates(r), gates = columns ? Value() : r.gates;
  // A token's own write does not decay.
  bool strict = bool(r.gates);
  SmallVector<Value> later, readers{r.q};
  if (isDelta) {
    later = {scores(r.dO, r.written, gates, strict),
             scores(r.solved, r.written, gates, /*strict=*/true)};
    r.query = read(decayed(r.dO, gates), past, later[0], r.b, keySize, strict,
                   /*adjoint=*/false, /*transpose=*/false, columns);
    r.first =
        read(decayed(r.solved, gates), past, later[1], r.b, keySize,
             /*strict=*/true, /*adjoint=*/false, /*transpose=*/false, columns);
    readers.push_back(r.a);
  } else {
    later = {tokens(kept.scores, position, size)};
    r.query = tokens(kept.queries, position, size);
  }
  // Scores of N leave the diagonal out themselves.
  r.second =
      read(decayed(r.written, gates, /*toEnd=*/true), state, later, readers,
           keySize, strict, /*adjoint=*/true, /*transpose=*/true, columns);
}

/// From the last chunk to the first.
void ChunkGradient::emitBackward(SmallVector<Value> &carried) {
  Value last = arith::SubIOp::create(b, loc, end, index(chunk));
  auto loop = scf::ForOp::create(b, loc, index(0), end, index(chunk), carried);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value position =
        arith::SubIOp::create(b, loc, last, loop.getInductionVar());
    scf::YieldOp::create(b, loc, emitChunk(position, loop.getRegionIterArgs()));
  }
  carried.assign(loop.result_begin(), loop.result_end());
}

//===----------------------------------------------------------------------===//
// Tasks
//===----------------------------------------------------------------------===//

/// The contribution of the final state to the gradients of all decays, in f64:
/// a number, or [1, 1, K] under a decay per channel.
Value ChunkGradient::sumBehind(const Task &task) {
  TensorBuilder wide(b, loc, b.getF64Type());
  auto product = [&](StringRef sums) {
    return wide.product(("bhvk,bhkv->" + sums).str(), kept.last,
                        stateOf(dS, task));
  };
  if (rankOf(decay) == 4)
    return dS ? product("bhk")
              : wide.zeros({one(), one(), b.getIndexAttr(keySize)});
  if (!dS)
    return arith::ConstantOp::create(b, loc, b.getF64FloatAttr(0.0));
  return tensor::ExtractOp::create(b, loc, product("bh"),
                                   ValueRange{index(0), index(0)});
}

/// The task's part of each output, that of the state's cotangent first.
SmallVector<Value> ChunkGradient::emitTask(const Task &task,
                                           ValueRange outputs) {
  auto take = [&](Value x) {
    return x ? slice(x, {task.batch, task.head, task.begin},
                     {one(), one(), task.count})
             : Value();
  };
  q = take(op.getQuery());
  k = take(op.getKey());
  v = take(op.getValue());
  g = take(decay);
  be = take(beta);
  dOut = take(dO);
  start = stateOf(op.getState(), task);
  count = getValueOrCreateConstantIndexOp(b, loc, task.count);
  Value chunks = arith::CeilDivUIOp::create(b, loc, count, index(chunk));
  end = arith::MulIOp::create(b, loc, chunks, index(chunk));
  emitForward();
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  SmallVector<Value> carried{stateOf(outputs.front(), task)};
  Value &cotangent = carried.front();
  if (dS)
    cotangent = linalg::CopyOp::create(b, loc, stateOf(dS, task), cotangent)
                    ->getResult(0);
  else
    cotangent = linalg::FillOp::create(b, loc, zero, cotangent).getResult(0);
  if (decay) {
    carried.push_back(sumBehind(task));
  }
  for (Value output : outputs.drop_front())
    carried.push_back(take(output));
  emitBackward(carried);
  if (decay)
    carried.erase(carried.begin() + 1);
  return carried;
}

void ChunkGradient::prepare() {
  dO = c.get(op.getResult(0));
  dS = c.get(op.getResult(1));
  beta = isDelta ? op.getBeta() : Value();
  decay = op.getDecay();
}

void ChunkGradient::build() {
  prepare();
  SmallVector<OpFoldResult> numbers = t.sizes(op.getKey());
  numbers.pop_back();
  SmallVector<Value> outputs{
      t.empty(t.sizes(op.getState())), t.empty(t.sizes(op.getQuery())),
      t.empty(t.sizes(op.getKey())), t.empty(t.sizes(op.getValue()))};
  if (beta)
    outputs.push_back(t.empty(numbers));
  if (decay)
    outputs.push_back(TensorBuilder(b, loc, getElementTypeOrSelf(decay))
                          .empty(t.sizes(decay)));
  OpFoldResult zero = b.getIndexAttr(0);
  Value offsets = op.getCuSeqlens();
  auto loop = scf::ForallOp::create(
      b, loc, {zero, zero}, {t.dim(op.getState(), 0), t.dim(op.getState(), 1)},
      {one(), one()}, outputs, /*mapping=*/std::nullopt);
  b.setInsertionPoint(loop.getTerminator());
  Value sequence = loop.getInductionVar(0), head = loop.getInductionVar(1);
  Task task{sequence, head, sequence, zero, t.dim(op.getKey(), 2)};
  if (offsets) {
    auto offset = [&](Value i) -> Value {
      Value x = tensor::ExtractOp::create(b, loc, offsets, i);
      return arith::IndexCastOp::create(b, loc, b.getIndexType(), x);
    };
    Value begin = offset(sequence),
          next = offset(arith::AddIOp::create(b, loc, sequence, index(1)));
    task.batch = zero;
    task.begin = begin;
    task.count = arith::SubIOp::create(b, loc, next, begin).getResult();
  }
  SmallVector<Value> parts = emitTask(task, loop.getRegionIterArgs());
  b.setInsertionPointToEnd(loop.getTerminator().getBody());
  for (auto [i, part] : llvm::enumerate(parts)) {
    Value whole = loop.getRegionIterArgs()[i];
    SmallVector<OpFoldResult> at{task.sequence, task.head}, sizes{one(), one()},
        strides(rankOf(whole), one());
    if (i != 0) {
      at = {task.batch, task.head, task.begin};
      sizes.push_back(task.count);
    }
    at.resize(rankOf(whole), zero);
    auto shape = cast<ShapedType>(whole.getType()).getShape();
    for (int64_t size : shape.drop_front(sizes.size()))
      sizes.push_back(b.getIndexAttr(size));
    tensor::ParallelInsertSliceOp::create(b, loc, part, whole, at, sizes,
                                          strides);
  }
  b.setInsertionPointAfter(loop);
  c.add(b, op.getState(), loop.getResult(0));
  c.add(b, op.getQuery(), loop.getResult(1));
  c.add(b, op.getKey(), loop.getResult(2));
  c.add(b, op.getValue(), loop.getResult(3));
  if (beta)
    c.add(b, beta, loop.getResult(4));
  if (decay)
    c.add(b, decay, loop.getResults().back());
}

void mlir::linattn::buildChunkGradient(ScanOp op, OpBuilder &b, Cotangents &c) {
  ChunkGradient(op, b, c).build();
}
