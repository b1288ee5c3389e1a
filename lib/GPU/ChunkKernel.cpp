//===- ChunkKernel.cpp - The chunk form: places and copies ----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChunkKernel.h"

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// Places and copies
//===----------------------------------------------------------------------===//

ChunkKernel::Lane ChunkKernel::placeThread(Value thread) {
  Lane lane;
  lane.thread = thread;
  Value warp = k.shr(lane.thread, 5);
  lane.number = k.band(lane.thread, 31);
  lane.strip = k.band(warp, groupWarps - 1);
  lane.groupColumn = usesWarpgroups()
                         ? k.i32(0)
                         : k.mul(k.div(warp, groupWarps), groupColumns());
  lane.state.rowWarp = k.rem(usesWarpgroups() ? warp : lane.strip, rowWarps());
  lane.state.columnWarp = k.div(lane.strip, rowWarps());
  lane.sums = block.shared;
  if (usesWarpgroups())
    lane.sums =
        k.offset(lane.sums, k.mul(k.div(warp, warpgroupWarps), sumsBytes()));
  lane.row = k.shr(lane.number, 2);
  lane.pair = k.band(lane.number, 3);
  Value low15 = k.band(lane.number, 15), high = k.shr(lane.number, 4);
  Value low7 = k.band(lane.number, 7), bit3 = k.band(k.shr(lane.number, 3), 1);
  Value paired = k.add(low7, k.mul(high, 8));
  Value stripRow = k.mul(lane.strip, 16);
  Value groupUnit = k.div(lane.groupColumn, 8);
  Value stateUnit =
      k.add(groupUnit, k.mul(lane.state.columnWarp, stateColumns()));
  lane.read.query = keyTile().place(k, k.add(stripRow, low15), high);
  lane.read.key = keyTile().place(k, paired, bit3);
  lane.state.key =
      keyTile().place(k, paired, k.add(k.mul(lane.state.rowWarp, 2), bit3));
  lane.read.value = valueTile().place(k, low15, k.add(groupUnit, high));
  lane.state.value = valueTile().place(k, low15, k.add(stateUnit, high));
  Value inUnit = k.mul(lane.pair, 4);
  lane.state.copy =
      k.add(stateTile().place(k, k.add(k.mul(lane.state.rowWarp, 16), lane.row),
                              stateUnit),
            inUnit);
  lane.read.output = k.add(
      outputTile().place(k, k.add(stripRow, lane.row), groupUnit), inUnit);
  return lane;
}

void ChunkKernel::findTokens(WrittenTokens &written) {
  tokens = block.findTokens(k, *this, locator);
  written.place(k, locator, block.here);
  decays.head = block.loadHeadDecay(k, *this, locator.function);
  if (hasTokenDecay())
    decays.rows =
        locator.rowsOf(k, block.here, locator.function.view(k, op.getDecay()),
                       block.here.head);
}

/// The copies of `threads` threads, of which `thread` is one.
TilePipeline ChunkKernel::makePipeline(Value thread, int64_t threads) {
  TilePipeline tiles(k, {stages(), block.shared, stageBytes()},
                     {chunkTokens, block.here.count},
                     TilePipeline::Engine::CpAsync, thread, threads);
  tiles.setForWarpgroups(usesWarpgroups());
  return tiles;
}

void ChunkKernel::copyQueries(TilePipeline &tiles) {
  if (reads())
    tiles.add(0, keyTile(), tokens.query, keySize(), type());
  if (hasTokenDecay())
    tiles.alsoStart(
        [&](const TilePipeline::Arrival &arrival) { copyDecays(arrival); });
}

void ChunkKernel::copyWritten(TilePipeline &tiles,
                              const WrittenTokens &written) {
  TilePipeline::Filter filter = written.filter(k);
  tiles.add(keyOffset(), keyTile(), tokens.key, keySize(), type(), {}, filter);
  // Slices that divide the columns evenly hold nothing that does not exist.
  tiles.add(valueOffset(), valueTile(), tokens.value, valueSize(), type(),
            isRagged() ? block.firstColumn : Value(), filter);
}

void ChunkKernel::copyDecays(const TilePipeline::Arrival &arrival) {
  Value thread = arrival.thread;
  k.ifThen(k.less(thread, chunkTokens), [&] {
    Value from = decays.rows.at(k, k.extend(k.add(arrival.first, thread)));
    Value index = k.add(k.mul(arrival.stage, chunkTokens), thread);
    Value to = k.offset(k.offset(block.shared, k.mul(index, 4)), decayOffset());
    copyGate(k, to, from, decayType(), k.less(thread, arrival.left));
  });
}

//===----------------------------------------------------------------------===//
// The state
//===----------------------------------------------------------------------===//

/// Pairs of columns of this lane's state, in order.
void ChunkKernel::forEachStatePair(
    const Lane &lane, const GlobalView &view,
    function_ref<void(int64_t, Value, Value)> body) {
  Value base = block.here.stateIn(k, view, /*later=*/reads() ? 0 : 1);
  Value first =
      k.add(lane.groupColumn, k.mul(lane.state.columnWarp, stateColumns() * 8));
  if (block.firstColumn)
    first = k.add(first, block.firstColumn);
  first = k.add(first, k.mul(lane.pair, 2));
  Value rowBytes = k.mul(view.strides.end()[-2], k.i64(4));
  for (int64_t i = 0; i < stateRows(); ++i)
    for (int64_t half = 0; half < 2; ++half) {
      Value row = k.add(k.add(k.mul(lane.state.rowWarp, 16), lane.row),
                        i * rowWarps() * 16 + half * 8);
      Value start = k.offset(base, k.mul(k.extend(row), rowBytes));
      Value rowExists =
          keySize() < paddedKey() ? k.less(row, keySize()) : Value();
      for (int64_t j = 0; j < stateColumns(); ++j) {
        Value column = k.add(first, 8 * j);
        Value exists = isRagged()
                           ? k.both(rowExists, k.less(column, valueSize()))
                           : rowExists;
        body(stateAt(i, j) + 2 * half,
             k.offset(start, k.mul(k.extend(column), k.i64(4))), exists);
      }
    }
}

ChunkKernel::Values ChunkKernel::loadState(const Lane &lane) {
  Value zero = k.f32(0);
  Values state(stateAt(stateRows(), 0), zero);
  // The segment's total decay follows the state.
  if (!reads() && hasDecay())
    state.push_back(k.f32(1));
  if (!stateIn())
    return state;
  auto pair = VectorType::get({2}, k.b.getF32Type());
  Value zeros = k.vectorOf({zero, zero});
  GlobalView view = locator.function.view(k, stateIn());
  forEachStatePair(lane, view, [&](int64_t at, Value address, Value exists) {
    Value x = k.ifElse(exists, [&] { return k.load(pair, address, 8); }, zeros);
    state[at] = k.element(x, 0);
    state[at + 1] = k.element(x, 1);
  });
  return state;
}

void ChunkKernel::storeState(const Lane &lane, ValueRange state) {
  k.ifThen(block.isWriter(k, *this), [&] {
    forEachStatePair(
        lane, locator.function.view(k, stateOut(), /*isWritten=*/true),
        [&](int64_t at, Value address, Value exists) {
          k.ifThen(exists, [&] {
            k.store(k.vectorOf({state[at], state[at + 1]}), address, 8);
          });
        });
  });
  if (!reads() && hasDecay())
    storeFactor(state.back());
}

/// Stores the segment's total decay.
void ChunkKernel::storeFactor(Value factor) {
  const ScanPlace &here = block.here;
  Value first = block.firstColumn ? k.equal(block.firstColumn, 0) : Value();
  k.ifThen(k.both(first, k.equal(block.thread, 0)), [&] {
    GlobalView view = locator.function.view(k, segments.factors);
    k.store(factor, view.at(k, {here.segment, here.sequence, here.head}), 4);
  });
}

/// The copy of the state in shared memory that chunk `number` reads.
Value ChunkKernel::sharedState(Value number) {
  Value first = k.offset(block.shared, stateOffset());
  if (stateCopies() == 1)
    return first;
  return k.offset(first, k.mul(k.band(number, 1), stateBytes()));
}

/// The state as summands of 16 bits, for the products with the queries of chunk
/// `number`.
void ChunkKernel::spillState(const Lane &lane, ValueRange state, Value number) {
  LanePointer pointer(k, stateTile(), sharedState(number), lane.state.copy);
  for (int64_t i = 0; i < stateRows(); ++i)
    for (int64_t j = 0; j < stateColumns(); ++j)
      for (int64_t half = 0; half < 2; ++half) {
        int64_t at = stateAt(i, j) + 2 * half;
        Value to = pointer.at(i * rowWarps() * 16 + half * 8, j);
        for (auto [s, pair] : llvm::enumerate(splitPair(
                 k, type(), state[at], state[at + 1], readSummands())))
          k.store(pair, k.offset(to, s * stateTile().bytes()), 4);
      }
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

void ChunkKernel::runChunks(const WrittenTokens &written) {
  Lane lane = placeThread(block.thread);
  TilePipeline tiles = makePipeline(block.thread, threads());
  copyQueries(tiles);
  copyWritten(tiles, written);
  tiles.begin();
  Values state =
      tiles.loop(loadState(lane), [&](Value number, ValueRange carried) {
        return chunk(tiles, number, carried);
      });
  tiles.drain();
  // Anew: where nothing is loaded, no register of the loop holds the places.
  storeState(placeThread(block.thread), state);
}

void ChunkKernel::run(WrittenTokens &written) {
  findTokens(written);
  auto run = [&] {
    usesWarpgroups() ? runWarpgroups(written) : runChunks(written);
  };
  auto clear = [&] {
    if (reads())
      clearRows(k, block.thread, threads(), slice(), /*elementBytes=*/2,
                {tokens.output.base, tokens.output.stride, valueSize(),
                 block.here.count, granuleOf(valueSize(), type()),
                 block.firstColumn});
  };
  block.here.ifExists(k, run, clear);
}

LaunchOp mlir::linattn::buildRowKernel(ScanOp op, ScheduleAttr schedule,
                                       const StateSource &source,
                                       const Segments &segments,
                                       ModuleOp module, StringRef name) {
  ChunkShape shape{{{op, schedule}, source, segments}};
  KernelFunction function;
  ScanLocator locator(op, function, schedule.getSplit(), chunkTokens);
  WrittenTokens written;
  shape.addTokens(function);
  function.addBuffer(op.getDecay(), Access::Read,
                     granuleOf(1, shape.decayType()));
  written.addBuffers(op, function);
  shape.addStates(function, /*align=*/8);
  if (!shape.reads())
    function.addBuffer(segments.factors, Access::Write, 4);
  function.emit(module, name, op.getLoc(), [&](KernelBuilder &k) {
    ChunkKernel(shape, k, locator).run(written);
  });
  return shape.launch(function, locator, shape.allBytes());
}
