//===- SweepSelective.cpp - linattn.sweep_selective as loops --------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Vectors run over channels. A task is one sequence and `strips` times `width`
// channels of one group; it walks the tokens twice:
//
//   forward   the states at the start of every block of tokens, which are kept
//   backward  block by block from the last one on, for each few states: the
//             block's states and factors again, forward, into scratch memory;
//             then their cotangents, backward, in registers
//
// Gradients of b and c are sums over channels: over a task's strips in vectors,
// over their lanes at the end of a block, over tasks when all are done, in this
// order for any number of threads. So are those of a over sequences.
//
//===----------------------------------------------------------------------===//

#include "ChannelTasks.h"
#include "linattn/Dialect/LinAttnSweep.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

class SweepSelective : public ChannelTasks {
public:
  SweepSelective(OpBuilder &b, SweepSelectiveOp op, int64_t width)
      : ChannelTasks(b, op, width), op(op) {}

  void emit();

private:
  /// States at a time: each takes its cotangent, a and the sum of da.
  static constexpr int64_t rows = 2;
  /// Vectors of channels whose sums for b and c are added in vectors.
  static constexpr int64_t strips = 4;

  void allocateSums();
  void allocate();
  void forEachStrip(function_ref<void()> body);
  void loadStates();
  void walkForward();
  void walkBackward();
  void packBlock(Value first, Value tokens);
  void keepStates(Value chunk, Value state, Value tokens);
  void sweepStates(Value chunk, Value state, Value tokens);
  void repeatForward(Value chunk, ArrayRef<Value> at, ArrayRef<Value> factors,
                     Value tokens);
  void goBackward(ArrayRef<Value> at, ArrayRef<Value> factors, Value tokens);
  void addLanes(Value first, Value state, Value tokens);
  void finishBlock(Value first, Value tokens);
  void storeResults();
  void addProjections();
  void addDecays();

  /// `width` channels of scratch memory, a scalar where that is one.
  Value row(Value buffer, ValueRange at) {
    SmallVector<Value> indices(at);
    indices.push_back(index(0));
    return width == 1 ? load(buffer, indices)
                      : loadVector(buffer, indices, width);
  }
  void setRow(Value value, Value buffer, ValueRange at) {
    SmallVector<Value> indices(at);
    indices.push_back(index(0));
    if (width == 1)
      store(value, buffer, indices);
    else
      storeVector(value, buffer, indices);
  }
  void addRow(Value x, Value y, Value buffer, Value at) {
    setRow(fma(x, y, row(buffer, at)), buffer, at);
  }
  /// The row of a token of the current strip, and of a state.
  Value tokenRow(Value t) { return add(mul(strip, index(blockTokens)), t); }
  Value stateRow(Value n) { return add(mul(strip, padded), n); }
  /// The row of one of a few states of a token of the block.
  Value pairRow(Value t, int64_t r) {
    return add(mul(t, index(rows)), index(r));
  }
  Value projection(Value packed, Value t, Value state) {
    return broadcast(load(packed, {t, state}));
  }
  SmallVector<Value> rowsFrom(Value state) {
    SmallVector<Value> at;
    for (int64_t r = 0; r < rows; ++r)
      at.push_back(add(state, index(r)));
    return at;
  }
  SmallVector<Value> loadRows(Value buffer, ArrayRef<Value> at) {
    SmallVector<Value> values;
    for (Value n : at)
      values.push_back(row(buffer, stateRow(n)));
    return values;
  }

  SweepSelectiveOp op;
  // Sums of tasks: [tasks of a sequence, B, T, N] and [sequences, C, N].
  Value bSums, cSums, aSums;
  Value groups, perGroup, blocks;
  // The current task, its number in its sequence, and its strip.
  Value inSlot, firstChannel, remaining, chunks, strip;
  // Scratch by strips, states and channels; `kept` by blocks of tokens first.
  Value as, carried, aGradients, kept;
  // Scratch by strips, tokens and channels. The sums over states are of b G and
  // of a p h.
  Value us, deltas, inputs, cotangents, bReads, aReads;
  // Scratch by tokens and states.
  Value bs, cs;
  // Scratch by tokens, a few states and channels.
  Value powers, before, bParts, cParts;
};

} // namespace

//===----------------------------------------------------------------------===//
// Tasks
//===----------------------------------------------------------------------===//

void SweepSelective::allocateSums() {
  Value tasks = mul(groups, blocks);
  auto allocate = [&](ArrayRef<Value> sizes) -> Value {
    auto memref = MemRefType::get(
        SmallVector<int64_t>(sizes.size(), ShapedType::kDynamic), type);
    return memref::AllocOp::create(b, loc, memref, sizes,
                                   b.getI64IntegerAttr(64));
  };
  SmallVector<Value> sizes{tasks, dim(op.getInput(), 0), dim(op.getInput(), 1),
                           padded};
  bSums = allocate(sizes);
  cSums = allocate(sizes);
  aSums = allocate({dim(op.getState(), 0), dim(op.getInput(), 2), states});
}

void SweepSelective::allocate() {
  OpFoldResult lanes = b.getIndexAttr(width),
               tokens = b.getIndexAttr(blockTokens),
               stateRows = getAsOpFoldResult(mul(index(strips), padded));
  for (Value *buffer : {&as, &carried, &aGradients}) {
    *buffer = scratch({stateRows, lanes});
    clear(*buffer);
  }
  kept = scratch({getAsOpFoldResult(chunks), stateRows, lanes});
  for (Value *buffer : {&us, &deltas, &inputs, &cotangents, &bReads, &aReads}) {
    *buffer = scratch({b.getIndexAttr(strips * blockTokens), lanes});
    // Channels that are not there stay numbers.
    clear(*buffer);
  }
  for (Value *buffer : {&bs, &cs}) {
    *buffer = scratch({tokens, getAsOpFoldResult(padded)});
    clear(*buffer);
  }
  for (Value *buffer : {&powers, &before, &bParts, &cParts})
    *buffer = scratch({b.getIndexAttr(rows * blockTokens), lanes});
}

/// Runs `body` for `width` channels of the task after the others.
void SweepSelective::forEachStrip(function_ref<void()> body) {
  forEach(ceilDiv(remaining, width), [&](Value number) {
    strip = number;
    Value begin = mul(number, index(width));
    channel = add(firstChannel, begin);
    count = min(sub(remaining, begin), index(width));
    body();
  });
}

void SweepSelective::emit() {
  Value channels = dim(op.getInput(), 2);
  groups = rankOf(op.getB()) == 4 ? dim(op.getB(), 1) : index(1);
  grouped = getConstantIntValue(groups) != 1;
  states = dim(op.getA(), 1);
  padded = roundUp(states, rows);
  // No groups, no tasks; but the division is made before any.
  perGroup = div(channels, max(groups, index(1)));
  blocks = ceilDiv(perGroup, strips * width);
  allocateSums();
  Value perSlot = mul(groups, blocks);
  parallel(mul(dim(op.getState(), 0), perSlot), [&](Value task) {
    enterSequence(div(task, perSlot));
    inSlot = rem(task, perSlot);
    group = div(inSlot, blocks);
    Value inGroup = mul(rem(inSlot, blocks), index(strips * width));
    firstChannel = add(mul(group, perGroup), inGroup);
    remaining = min(sub(perGroup, inGroup), index(strips * width));
    chunks = ceilDiv(sub(end, begin), blockTokens);
    allocate();
    walkForward();
    walkBackward();
    storeResults();
    freeScratch();
  });
  addProjections();
  addDecays();
  for (Value sums : {bSums, cSums, aSums})
    memref::DeallocOp::create(b, loc, sums);
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

/// The steps of a block, and what they write for b = 1.
void SweepSelective::packBlock(Value first, Value tokens) {
  Value begin = tokenRow(index(0));
  packTokens(op.getInput(), first, tokens, us, begin);
  packTokens(op.getDelta(), first, tokens, deltas, begin);
  forEach(tokens, [&](Value t) {
    Value at = tokenRow(t);
    setRow(mulf(row(deltas, at), row(us, at)), inputs, at);
  });
}

/// Keeps a few states before a block, and carries them through it.
void SweepSelective::keepStates(Value chunk, Value state, Value tokens) {
  SmallVector<Value> at = rowsFrom(state), a = loadRows(as, at),
                     initial = loadRows(carried, at);
  for (auto [n, h] : llvm::zip(at, initial))
    setRow(h, kept, {chunk, stateRow(n)});
  SmallVector<Value> last =
      reduce(index(0), tokens, 1, initial, [&](Value t, ValueRange h) {
        Value delta = row(deltas, tokenRow(t)), x = row(inputs, tokenRow(t));
        SmallVector<Value> next;
        for (auto [n, log, now] : llvm::zip(at, a, h))
          next.push_back(
              fma(exp(mulf(delta, log)), now, mulf(x, projection(bs, t, n))));
        return next;
      });
  for (auto [n, h] : llvm::zip(at, last))
    setRow(h, carried, stateRow(n));
}

void SweepSelective::walkForward() {
  forEachStrip([&] {
    packStates(op.getA(), {}, as, stateRow(index(0)));
    packStates(op.getStart(), {slot}, carried, stateRow(index(0)));
  });
  forEach(chunks, [&](Value chunk) {
    Value first = add(begin, mul(chunk, index(blockTokens)));
    Value tokens = min(sub(end, first), index(blockTokens));
    packProjection(op.getB(), first, tokens, bs);
    forEachStrip([&] {
      packBlock(first, tokens);
      forEach(index(0), padded, rows,
              [&](Value state) { keepStates(chunk, state, tokens); });
    });
  });
}

//===----------------------------------------------------------------------===//
// Backward
//===----------------------------------------------------------------------===//

void SweepSelective::walkBackward() {
  forEachStrip(
      [&] { packStates(op.getState(), {slot}, carried, stateRow(index(0))); });
  forEach(chunks, [&](Value done) {
    Value chunk = sub(sub(chunks, index(1)), done);
    Value first = add(begin, mul(chunk, index(blockTokens)));
    Value tokens = min(sub(end, first), index(blockTokens));
    packProjection(op.getB(), first, tokens, bs);
    packProjection(op.getC(), first, tokens, cs);
    forEachStrip([&] {
      packBlock(first, tokens);
      packTokens(op.getCotangent(), first, tokens, cotangents,
                 tokenRow(index(0)));
      for (Value sums : {bReads, aReads})
        clear(sums, tokenRow(index(0)), tokens);
    });
    forEach(index(0), padded, rows, [&](Value state) {
      for (Value parts : {bParts, cParts})
        clear(parts);
      forEachStrip([&] { sweepStates(chunk, state, tokens); });
      addLanes(first, state, tokens);
    });
    forEachStrip([&] { finishBlock(first, tokens); });
  });
}

void SweepSelective::sweepStates(Value chunk, Value state, Value tokens) {
  SmallVector<Value> at = rowsFrom(state), a = loadRows(as, at);
  repeatForward(chunk, at, a, tokens);
  goBackward(at, a, tokens);
}

/// The states before each token and the factors that they meet; c's gradient.
void SweepSelective::repeatForward(Value chunk, ArrayRef<Value> at,
                                   ArrayRef<Value> a, Value tokens) {
  SmallVector<Value> initial;
  for (Value n : at)
    initial.push_back(row(kept, {chunk, stateRow(n)}));
  reduce(index(0), tokens, 1, initial, [&](Value t, ValueRange h) {
    Value delta = row(deltas, tokenRow(t)), x = row(inputs, tokenRow(t)),
          dy = row(cotangents, tokenRow(t));
    SmallVector<Value> next;
    for (int64_t r = 0; r < rows; ++r) {
      Value factor = exp(mulf(delta, a[r])), pair = pairRow(t, r);
      setRow(factor, powers, pair);
      setRow(h[r], before, pair);
      Value now = fma(factor, h[r], mulf(x, projection(bs, t, at[r])));
      addRow(dy, now, cParts, pair);
      next.push_back(now);
    }
    return next;
  });
}

/// Cotangents of the states, and what they are multiplied with.
void SweepSelective::goBackward(ArrayRef<Value> at, ArrayRef<Value> a,
                                Value tokens) {
  SmallVector<Value> initial = loadRows(carried, at);
  initial.append(loadRows(aGradients, at));
  SmallVector<Value> last =
      reduce(index(0), tokens, 1, initial, [&](Value done, ValueRange values) {
        Value t = sub(sub(tokens, index(1)), done), here = tokenRow(t);
        Value delta = row(deltas, here), x = row(inputs, here),
              dy = row(cotangents, here);
        Value bRead = row(bReads, here), aRead = row(aReads, here);
        SmallVector<Value> passed, da;
        for (int64_t r = 0; r < rows; ++r) {
          Value pair = pairRow(t, r);
          Value g = fma(dy, projection(cs, t, at[r]), values[r]);
          addRow(g, x, bParts, pair);
          bRead = fma(g, projection(bs, t, at[r]), bRead);
          passed.push_back(mulf(row(powers, pair), g));
          Value product = mulf(passed.back(), row(before, pair));
          aRead = fma(a[r], product, aRead);
          da.push_back(fma(delta, product, values[rows + r]));
        }
        setRow(bRead, bReads, here);
        setRow(aRead, aReads, here);
        passed.append(da);
        return passed;
      });
  for (int64_t r = 0; r < rows; ++r) {
    setRow(last[r], carried, stateRow(at[r]));
    setRow(last[rows + r], aGradients, stateRow(at[r]));
  }
}

/// The task's sums for a few states of b and c, over its channels.
void SweepSelective::addLanes(Value first, Value state, Value tokens) {
  forEach(tokens, [&](Value t) {
    Value token = tokenAt(add(first, t));
    for (auto [parts, sums] :
         {std::pair(bParts, bSums), std::pair(cParts, cSums)})
      for (int64_t r = 0; r < rows; ++r) {
        Value sum = row(parts, pairRow(t, r));
        // A tree of the target's; its shape depends on the width alone.
        if (width > 1)
          sum = vector::ReductionOp::create(b, loc, vector::CombiningKind::ADD,
                                            sum, arith::FastMathFlags::reassoc);
        store(sum, sums, {inSlot, batch, token, add(state, index(r))});
      }
  });
}

void SweepSelective::finishBlock(Value first, Value tokens) {
  forEach(tokens, [&](Value t) {
    Value at = tokenRow(t), read = row(bReads, at);
    setRow(fma(row(us, at), read, row(aReads, at)), aReads, at);
    setRow(mulf(row(deltas, at), read), bReads, at);
  });
  writeTokens(bReads, tokenRow(index(0)), first, tokens, op.getOutput());
  writeTokens(aReads, tokenRow(index(0)), first, tokens, op.getDeltaOutput());
}

void SweepSelective::storeResults() {
  forEachStrip([&] {
    storeStates(carried, stateRow(index(0)), op.getState(), {slot});
    storeStates(aGradients, stateRow(index(0)), aSums, {slot});
  });
}

//===----------------------------------------------------------------------===//
// Sums over tasks
//===----------------------------------------------------------------------===//

void SweepSelective::addProjections() {
  Value length = dim(op.getInput(), 1), perBatch = ceilDiv(length, blockTokens);
  parallel(mul(dim(op.getInput(), 0), perBatch), [&](Value task) {
    batch = div(task, perBatch);
    Value first = mul(rem(task, perBatch), index(blockTokens));
    Value last = min(add(first, index(blockTokens)), length);
    forEach(groups, [&](Value number) {
      group = number;
      forEach(first, last, 1, [&](Value token) {
        for (auto [sums, output] : {std::pair(bSums, op.getBOutput()),
                                    std::pair(cSums, op.getCOutput())}) {
          SmallVector<Value> at = projectionRow(output, token);
          at.push_back(Value());
          forEach(states, [&, sums = sums, output = output](Value n) {
            at.back() = n;
            Value sum = reduce(
                blocks, constant(type, 0.0), [&](Value block, Value partial) {
                  Value from = add(mul(group, blocks), block);
                  return addf(partial, load(sums, {from, batch, token, n}));
                });
            store(sum, output, at);
          });
        }
      });
    });
  });
}

void SweepSelective::addDecays() {
  Value sequences = dim(op.getState(), 0);
  forEach(dim(op.getInput(), 2), [&](Value c) {
    forEach(states, [&](Value n) {
      Value sum = reduce(sequences, constant(type, 0.0),
                         [&](Value sequence, Value partial) {
                           return addf(partial, load(aSums, {sequence, c, n}));
                         });
      store(sum, op.getAOutput(), {c, n});
    });
  });
}

void mlir::linattn::lowerRecurrence(OpBuilder &b, SweepSelectiveOp op,
                                    int64_t width) {
  SweepSelective(b, op, width).emit();
}
