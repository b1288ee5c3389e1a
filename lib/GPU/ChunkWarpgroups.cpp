//===- ChunkWarpgroups.cpp - The chunk form by warpgroups -----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChunkKernel.h"
#include "linattn/GPU/Machine.h"

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// Warpgroups of the state
//===----------------------------------------------------------------------===//

/// S = e^(c_64) S + Keysᵀ V. Keys come through registers, where decays change
/// them. What one summand of them writes is summed over the chunk, of several
/// over 16 tokens, in a loop: both for registers.
ChunkKernel::Values ChunkKernel::addWritten(const Lane &lane, Value base,
                                            ValueRange state) {
  constexpr int64_t steps = chunkTokens / 16;
  int64_t together = keySummands() == 1 ? steps : 1;
  LanePointer keys(k, keyTile(), k.offset(base, keyOffset()), lane.state.key);
  Value values = k.offset(base, valueOffset()), total, one = k.f32(1);
  if (hasDecay())
    total = k.load(k.b.getF32Type(), k.offset(lane.sums, totalOffset()), 4);
  return k.loop(
      k.i32(steps / together), state, [&](Value number, ValueRange carried) {
        Values next(carried);
        Value tokens = k.mul(number, 16 * together), factor;
        if (hasDecay())
          factor = k.select(k.equal(number, 0), total, one);
        SmallVector<SmallVector<Values>> operands;
        for (int64_t step = 0; step < together; ++step) {
          Value from =
              k.offset(keys.at(16 * step, 0), k.mul(tokens, keyTile().pitch()));
          auto a = k.loadMatrices(from, /*transposed=*/true);
          operands.push_back(splitKeys(lane, a, k.add(tokens, 16 * step)));
        }
        Value rows = k.offset(values, k.mul(tokens, valueTile().pitch()));
        for (int64_t column = 0; column < slice();
             column += SharedTile::panelColumns)
          addPanel(rows, column, operands, factor, next);
        return next;
      });
}

/// Those of one panel, from `column` on: state = factor · state + Σ operands V,
/// with the rows of V from `rows` on.
void ChunkKernel::addPanel(Value rows, int64_t column,
                           ArrayRef<SmallVector<Values>> operands, Value factor,
                           Values &state) {
  int64_t columns = std::min(SharedTile::panelColumns, slice() - column);
  Value panel = k.offset(rows, valueTile().offsetOfColumn(column));
  WarpgroupOperand values(k, tile(chunkTokens, columns), panel,
                          /*byRows=*/true);
  WarpgroupProducts products(k, type());
  Values written;
  products.begin();
  for (auto [step, summands] : llvm::enumerate(operands))
    for (const Values &summand : llvm::reverse(summands))
      products.multiply(written, columns, summand, values, step);
  products.commit();
  products.await(written);
  auto part = MutableArrayRef(state).slice(column / 2, columns / 2);
  for (auto [x, y] : llvm::zip_equal(part, written))
    x = factor ? k.fma(x, factor, y) : k.addf(x, y);
}

/// A chunk's part of the state; leaves the next state to the outputs' warps.
ChunkKernel::Values ChunkKernel::advanceState(TilePipeline &tiles, Value number,
                                              ValueRange state) {
  Lane lane = placeThread(k.keepInLoop(block.thread));
  Value base = tiles.arrive(number);
  sumDecaysOfGroup(lane, number, tiles.stageOf(number), /*toEnd=*/true);
  Values next = addWritten(lane, base, state);
  spillState(lane, next, k.add(number, 1));
  k.fenceAsyncProxy();
  return next;
}

/// The first warp of each warpgroup sums decays for it.
void ChunkKernel::sumDecaysOfGroup(const Lane &lane, Value number, Value stage,
                                   bool toEnd) {
  if (!hasDecay())
    return;
  Value left = k.sub(block.here.count, k.mul(number, chunkTokens));
  k.ifThen(k.equal(lane.strip, 0), [&] {
    sumDecaysOfWarp(lane, left, stage, /*toToken=*/!toEnd, toEnd);
  });
  groupBarrier(lane);
}

/// A barrier of the lane's warpgroup.
void ChunkKernel::groupBarrier(const Lane &lane) {
  Value group = k.div(lane.thread, warpgroupWarps * warpSize);
  k.barrier(k.add(group, 1), warpgroupWarps * warpSize);
}

//===----------------------------------------------------------------------===//
// The warpgroup of the outputs
//===----------------------------------------------------------------------===//

/// O of the chunk but for its scale. Decays are summed and scores masked while
/// products run.
ChunkKernel::Values ChunkKernel::readWarpgroup(const Lane &lane, Value number,
                                               Value stage, Value base) {
  WarpgroupOperand queries(k, keyTile(), base, /*byRows=*/false);
  WarpgroupOperand keys(k, keyTile(), k.offset(base, keyOffset()),
                        /*byRows=*/false);
  WarpgroupOperand values(k, valueTile(), k.offset(base, valueOffset()),
                          /*byRows=*/true);
  Value states = sharedState(number);
  WarpgroupProducts products(k, type());
  int64_t steps = llvm::divideCeil(keySize(), 16);
  Values p, o;
  products.begin();
  for (int64_t step = 0; step < steps; ++step)
    products.multiply(p, chunkTokens, queries.at(step), keys, step);
  products.commit();
  for (int64_t s = readSummands(); s-- > 0;) {
    WarpgroupOperand state(k, stateTile(),
                           k.offset(states, s * stateTile().bytes()),
                           /*byRows=*/true);
    for (int64_t step = 0; step < steps; ++step)
      products.multiply(o, slice(), queries.at(step), state, step);
  }
  products.commit();
  sumDecaysOfGroup(lane, number, stage, /*toEnd=*/false);
  products.await(p, /*pending=*/1);
  maskScores(lane, p);
  SmallVector<Values> weights = splitScores(p);
  products.await(o);
  decayOutputs(lane, o);
  products.begin();
  for (const Values &summand : llvm::reverse(weights))
    for (int64_t step = 0; step < chunkTokens / 16; ++step)
      products.multiply(o, slice(), ValueRange(summand).slice(4 * step, 4),
                        values, step);
  products.commit();
  products.await(o);
  return o;
}

void ChunkKernel::makeOutputs(TilePipeline &tiles, Value number) {
  Lane lane = placeThread(k.keepInLoop(block.thread));
  Value base = tiles.arrive(number);
  Value stage = tiles.stageOf(number);
  writeOutput(lane, number, base, readWarpgroup(lane, number, stage, base));
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

/// Keys and values are copied by the warps of the state.
void ChunkKernel::runStates(const WrittenTokens &written) {
  TilePipeline tiles = makePipeline(block.thread, warpSize * stateWarps());
  copyWritten(tiles, written);
  tiles.begin();
  Lane lane = placeThread(block.thread);
  Values state = loadState(lane);
  spillState(lane, state, k.i32(0));
  k.fenceAsyncProxy();
  state = tiles.loop(state, [&](Value number, ValueRange carried) {
    return advanceState(tiles, number, carried);
  });
  tiles.drain();
  storeState(placeThread(block.thread), state);
}

/// Queries and decays are copied by the warps of the outputs.
void ChunkKernel::runOutputs() {
  TilePipeline tiles =
      makePipeline(k.sub(block.thread, k.i32(warpSize * stateWarps())),
                   warpSize * warpgroupWarps);
  copyQueries(tiles);
  tiles.begin();
  tiles.loop({}, [&](Value number, ValueRange) {
    makeOutputs(tiles, number);
    return Values();
  });
  tiles.drain();
}

/// Both loops meet at the same barriers of the block.
void ChunkKernel::runWarpgroups(const WrittenTokens &written) {
  // That of a lane, so that it is known to be the same in all of a warp.
  Value warp = k.shuffleFrom(k.shr(block.thread, 5), k.i32(0));
  Value hasState = k.less(warp, stateWarps());
  k.ifThen(hasState, [&] { runStates(written); });
  k.ifThen(k.negate(hasState), [&] { runOutputs(); });
}
