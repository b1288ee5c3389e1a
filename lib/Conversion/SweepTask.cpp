//===- SweepTask.cpp - A task of linattn.sweep_selective ------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SweepSelective.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// Scratch memory of a task by strips, states and channels; `kept` by blocks of
/// tokens first.
struct SweepStates {
  Value as, carried, aGradients, kept;
};

/// By strips, tokens and channels. The sums over states are of b G and of
/// a p h.
struct SweepTokens {
  Value us, deltas, inputs, cotangents, bReads, aReads;
};

/// By tokens and states; by tokens, a few states and channels.
struct SweepPairs {
  Value bs, cs;
  Value powers, before, bParts, cParts;
};

/// The scope of a task.
class SweepTask : public SweepSelective {
public:
  /// The task `inSlot` of a sequence.
  SweepTask(const SweepSelective &sweep, Value sequence, Value inSlot);

  void emit();

private:
  /// `width` channels of the task, and their number.
  struct Strip {
    Value number;
    Channels channels;
  };
  /// A block of tokens: its number, first position and how many.
  struct Block {
    Value number, first, tokens;
  };

  Channels locate();
  void allocate();
  void forEachStrip(function_ref<void(const Strip &)> body);
  Block blockAt(Value number);
  void walkForward();
  void walkBackward();
  void packBlock(const Strip &strip, const Block &block);
  void keepStates(const Strip &strip, const Block &block, Value state);
  void sweepStates(const Strip &strip, const Block &block, Value state);
  void repeatForward(const Strip &strip, const Block &block, ArrayRef<Value> at,
                     ArrayRef<Value> factors);
  void goBackward(const Strip &strip, const Block &block, ArrayRef<Value> at,
                  ArrayRef<Value> factors);
  void addLanes(const Block &block, Value state);
  void finishBlock(const Strip &strip, const Block &block);
  void storeResults();

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
  /// The row of a token of a strip, and of a state.
  Value tokenRow(const Strip &strip, Value t) {
    return add(mul(strip.number, index(blockTokens)), t);
  }
  Value stateRow(const Strip &strip, Value n) {
    return add(mul(strip.number, padded), n);
  }
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
  SmallVector<Value> loadRows(Value buffer, const Strip &strip,
                              ArrayRef<Value> at) {
    SmallVector<Value> values;
    for (Value n : at)
      values.push_back(row(buffer, stateRow(strip, n)));
    return values;
  }

  const Value inSlot;
  const Channels channels;
  SweepStates held;
  SweepTokens packed;
  SweepPairs pairs;
  Value chunks;
};

} // namespace

//===----------------------------------------------------------------------===//
// Tasks
//===----------------------------------------------------------------------===//

void SweepTask::allocate() {
  OpFoldResult lanes = b.getIndexAttr(width),
               tokens = b.getIndexAttr(blockTokens),
               stateRows = getAsOpFoldResult(mul(index(strips), padded));
  for (Value *buffer : {&held.as, &held.carried, &held.aGradients}) {
    *buffer = scratch({stateRows, lanes});
    clear(*buffer);
  }
  held.kept = scratch({getAsOpFoldResult(chunks), stateRows, lanes});
  for (Value *buffer : {&packed.us, &packed.deltas, &packed.inputs,
                        &packed.cotangents, &packed.bReads, &packed.aReads}) {
    *buffer = scratch({b.getIndexAttr(strips * blockTokens), lanes});
    // Channels that are not there stay numbers.
    clear(*buffer);
  }
  for (Value *buffer : {&pairs.bs, &pairs.cs}) {
    *buffer = scratch({tokens, getAsOpFoldResult(padded)});
    clear(*buffer);
  }
  for (Value *buffer :
       {&pairs.powers, &pairs.before, &pairs.bParts, &pairs.cParts})
    *buffer = scratch({b.getIndexAttr(rows * blockTokens), lanes});
}

/// Runs `body` for `width` channels of the task after the others.
void SweepTask::forEachStrip(function_ref<void(const Strip &)> body) {
  forEach(ceilDiv(channels.count, width), [&](Value number) {
    Value from = mul(number, index(width));
    body({number,
          {add(channels.first, from),
           min(sub(channels.count, from), index(width)), channels.group}});
  });
}

SweepTask::Block SweepTask::blockAt(Value number) {
  Value first = add(begin, mul(number, index(blockTokens)));
  return {number, first, min(sub(end, first), index(blockTokens))};
}

SweepTask::SweepTask(const SweepSelective &sweep, Value sequence, Value inSlot)
    : SweepSelective(sweep), inSlot(inSlot), channels(locate()) {
  enterSequence(sequence);
  chunks = ceilDiv(sub(end, begin), blockTokens);
  allocate();
}

ChannelTasks::Channels SweepTask::locate() {
  Value group = div(inSlot, blocks);
  Value inGroup = mul(rem(inSlot, blocks), index(strips * width));
  return {add(mul(group, perGroup), inGroup),
          min(sub(perGroup, inGroup), index(strips * width)), group};
}

void SweepTask::emit() {
  walkForward();
  walkBackward();
  storeResults();
  freeScratch();
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

/// The steps of a block, and their writes for b = 1.
void SweepTask::packBlock(const Strip &strip, const Block &block) {
  Value begin = tokenRow(strip, index(0));
  packTokens(strip.channels, op.getInput(), block.first, block.tokens,
             packed.us, begin);
  packTokens(strip.channels, op.getDelta(), block.first, block.tokens,
             packed.deltas, begin);
  forEach(block.tokens, [&](Value t) {
    Value at = tokenRow(strip, t);
    setRow(mulf(row(packed.deltas, at), row(packed.us, at)), packed.inputs, at);
  });
}

/// Keeps a few states before a block, and carries them through it.
void SweepTask::keepStates(const Strip &strip, const Block &block,
                           Value state) {
  SmallVector<Value> at = rowsFrom(state), a = loadRows(held.as, strip, at),
                     initial = loadRows(held.carried, strip, at);
  for (auto [n, h] : llvm::zip(at, initial))
    setRow(h, held.kept, {block.number, stateRow(strip, n)});
  SmallVector<Value> last =
      reduce(index(0), block.tokens, 1, initial, [&](Value t, ValueRange h) {
        Value delta = row(packed.deltas, tokenRow(strip, t)),
              x = row(packed.inputs, tokenRow(strip, t));
        SmallVector<Value> next;
        for (auto [n, log, now] : llvm::zip(at, a, h))
          next.push_back(fma(exp(mulf(delta, log)), now,
                             mulf(x, projection(pairs.bs, t, n))));
        return next;
      });
  for (auto [n, h] : llvm::zip(at, last))
    setRow(h, held.carried, stateRow(strip, n));
}

void SweepTask::walkForward() {
  forEachStrip([&](const Strip &strip) {
    Value first = stateRow(strip, index(0));
    packStates(strip.channels, op.getA(), {}, held.as, first);
    packStates(strip.channels, op.getStart(), {slot}, held.carried, first);
  });
  forEach(chunks, [&](Value number) {
    Block block = blockAt(number);
    packProjection(op.getB(), channels.group, block.first, block.tokens,
                   pairs.bs);
    forEachStrip([&](const Strip &strip) {
      packBlock(strip, block);
      forEach(index(0), padded, rows,
              [&](Value state) { keepStates(strip, block, state); });
    });
  });
}

//===----------------------------------------------------------------------===//
// Backward
//===----------------------------------------------------------------------===//

void SweepTask::walkBackward() {
  forEachStrip([&](const Strip &strip) {
    packStates(strip.channels, op.getState(), {slot}, held.carried,
               stateRow(strip, index(0)));
  });
  forEach(chunks, [&](Value done) {
    Block block = blockAt(sub(sub(chunks, index(1)), done));
    packProjection(op.getB(), channels.group, block.first, block.tokens,
                   pairs.bs);
    packProjection(op.getC(), channels.group, block.first, block.tokens,
                   pairs.cs);
    forEachStrip([&](const Strip &strip) {
      packBlock(strip, block);
      packTokens(strip.channels, op.getCotangent(), block.first, block.tokens,
                 packed.cotangents, tokenRow(strip, index(0)));
      for (Value sums : {packed.bReads, packed.aReads})
        clear(sums, tokenRow(strip, index(0)), block.tokens);
    });
    forEach(index(0), padded, rows, [&](Value state) {
      for (Value parts : {pairs.bParts, pairs.cParts})
        clear(parts);
      forEachStrip(
          [&](const Strip &strip) { sweepStates(strip, block, state); });
      addLanes(block, state);
    });
    forEachStrip([&](const Strip &strip) { finishBlock(strip, block); });
  });
}

void SweepTask::sweepStates(const Strip &strip, const Block &block,
                            Value state) {
  SmallVector<Value> at = rowsFrom(state), a = loadRows(held.as, strip, at);
  repeatForward(strip, block, at, a);
  goBackward(strip, block, at, a);
}

/// The states before each token and the factors that they meet; c's gradient.
void SweepTask::repeatForward(const Strip &strip, const Block &block,
                              ArrayRef<Value> at, ArrayRef<Value> a) {
  SmallVector<Value> initial;
  for (Value n : at)
    initial.push_back(row(held.kept, {block.number, stateRow(strip, n)}));
  reduce(index(0), block.tokens, 1, initial, [&](Value t, ValueRange h) {
    Value delta = row(packed.deltas, tokenRow(strip, t)),
          x = row(packed.inputs, tokenRow(strip, t)),
          dy = row(packed.cotangents, tokenRow(strip, t));
    SmallVector<Value> next;
    for (int64_t r = 0; r < rows; ++r) {
      Value factor = exp(mulf(delta, a[r])), pair = pairRow(t, r);
      setRow(factor, pairs.powers, pair);
      setRow(h[r], pairs.before, pair);
      Value now = fma(factor, h[r], mulf(x, projection(pairs.bs, t, at[r])));
      addRow(dy, now, pairs.cParts, pair);
      next.push_back(now);
    }
    return next;
  });
}

/// Cotangents of the states, and their factors.
void SweepTask::goBackward(const Strip &strip, const Block &block,
                           ArrayRef<Value> at, ArrayRef<Value> a) {
  SmallVector<Value> initial = loadRows(held.carried, strip, at);
  initial.append(loadRows(held.aGradients, strip, at));
  SmallVector<Value> last = reduce(
      index(0), block.tokens, 1, initial, [&](Value done, ValueRange values) {
        Value t = sub(sub(block.tokens, index(1)), done),
              here = tokenRow(strip, t);
        Value delta = row(packed.deltas, here), x = row(packed.inputs, here),
              dy = row(packed.cotangents, here);
        Value bRead = row(packed.bReads, here),
              aRead = row(packed.aReads, here);
        SmallVector<Value> passed, da;
        for (int64_t r = 0; r < rows; ++r) {
          Value pair = pairRow(t, r);
          Value g = fma(dy, projection(pairs.cs, t, at[r]), values[r]);
          addRow(g, x, pairs.bParts, pair);
          bRead = fma(g, projection(pairs.bs, t, at[r]), bRead);
          passed.push_back(mulf(row(pairs.powers, pair), g));
          Value product = mulf(passed.back(), row(pairs.before, pair));
          aRead = fma(a[r], product, aRead);
          da.push_back(fma(delta, product, values[rows + r]));
        }
        setRow(bRead, packed.bReads, here);
        setRow(aRead, packed.aReads, here);
        passed.append(da);
        return passed;
      });
  for (int64_t r = 0; r < rows; ++r) {
    setRow(last[r], held.carried, stateRow(strip, at[r]));
    setRow(last[rows + r], held.aGradients, stateRow(strip, at[r]));
  }
}

/// The task's sums for a few states of b and c, over its channels.
void SweepTask::addLanes(const Block &block, Value state) {
  forEach(block.tokens, [&](Value t) {
    Value token = tokenAt(add(block.first, t));
    for (auto [parts, sums] :
         {std::pair(pairs.bParts, bSums), std::pair(pairs.cParts, cSums)})
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

void SweepTask::finishBlock(const Strip &strip, const Block &block) {
  forEach(block.tokens, [&](Value t) {
    Value at = tokenRow(strip, t), read = row(packed.bReads, at);
    setRow(fma(row(packed.us, at), read, row(packed.aReads, at)), packed.aReads,
           at);
    setRow(mulf(row(packed.deltas, at), read), packed.bReads, at);
  });
  writeTokens(strip.channels, packed.bReads, tokenRow(strip, index(0)),
              block.first, block.tokens, op.getOutput());
  writeTokens(strip.channels, packed.aReads, tokenRow(strip, index(0)),
              block.first, block.tokens, op.getDeltaOutput());
}

void SweepTask::storeResults() {
  forEachStrip([&](const Strip &strip) {
    storeStates(strip.channels, held.carried, stateRow(strip, index(0)),
                op.getState(), {slot});
    storeStates(strip.channels, held.aGradients, stateRow(strip, index(0)),
                aSums, {slot});
  });
}

void mlir::linattn::emitSweepTask(const SweepSelective &sweep, Value sequence,
                                  Value inSlot) {
  SweepTask(sweep, sequence, inSlot).emit();
}
