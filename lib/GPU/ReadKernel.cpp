//===- ReadKernel.cpp - Queries that read a state -------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReadKernel.h"
#include "AttentionKernels.h"

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

ReadKernel::ReadKernel(const ReadShape &shape, KernelBuilder &k,
                       KernelFunction &function)
    : ReadShape(shape), k(k), function(function) {
  here.shared = function.sharedBase(k);
  here.thread = k.thread();
  lane.number = k.band(here.thread, 31);
  lane.row = k.shr(lane.number, 2);
  lane.pair = k.band(lane.number, 3);
  lane.warpRow = k.mul(k.shr(here.thread, 5), 16);
  place();
  placeLane();
}

void ReadKernel::place() {
  constexpr int64_t blockQueries = tileQueries * blockTiles;
  here.queryCount = function.size(k, op.getQuery(), 2);
  Value outer = k.block(0);
  if (slices() > 1) {
    here.firstColumn = k.mul(k.rem(outer, slices()), slice());
    outer = k.div(outer, slices());
  }
  Value blocks = k.div(k.add(here.queryCount, blockQueries - 1), blockQueries);
  here.firstQuery = k.mul(k.rem(outer, blocks), blockQueries);
  outer = k.div(outer, blocks);
  int64_t heads = staticSize(op.getOutput(), 1);
  here.head = k.rem(outer, heads);
  here.batch = k.div(outer, heads);
  here.stateHead = k.div(here.head, heads / staticSize(op.getState(), 1));
  Value left = k.sub(here.queryCount, here.firstQuery);
  left = k.div(k.add(left, tileQueries - 1), tileQueries);
  here.tiles = k.select(k.less(left, blockTiles), left, k.i32(blockTiles));
}

void ReadKernel::placeLane() {
  Value low15 = k.band(lane.number, 15), high = k.shr(lane.number, 4);
  Value bit3 = k.band(k.shr(lane.number, 3), 1);
  Value paired = k.add(k.band(lane.number, 7), k.mul(high, 8));
  Value row = k.add(lane.warpRow, lane.row);
  lane.query = isWide()
                   ? pairOffset(k, queryTile(), row, k.i32(0), lane.pair)
                   : queryTile().place(k, k.add(lane.warpRow, low15), high);
  lane.state = stateTile().place(k, paired, bit3);
  lane.output =
      k.add(outputTile().place(k, row, k.i32(0)), k.mul(lane.pair, 4));
}

/// Begins at the first query of the block.
Rows ReadKernel::rowsOf(Value buffer, bool isWritten, Value head) {
  GlobalView view = function.view(k, buffer, isWritten);
  return {view.at(k, {here.batch, head, here.firstQuery}),
          k.mul(view.strides[2], k.i64(view.bytes()))};
}

//===----------------------------------------------------------------------===//
// The state
//===----------------------------------------------------------------------===//

/// Puts the summands of the block's slice into shared memory: a pair of columns
/// per thread, some on their way at once.
void ReadKernel::loadState() {
  constexpr int64_t threads = blockWarps * 32, atOnce = 16;
  GlobalView view = function.view(k, op.getState());
  Value base = view.at(k, {here.batch, here.stateHead}), zero = k.f32(0);
  Value rowBytes = k.mul(view.strides[2], k.i64(4));
  Value zeros = k.vectorOf({zero, zero});
  int64_t pairs = slice() / 2, total = paddedKey() * pairs;
  Value rounds = k.i32(llvm::divideCeil(total, threads * atOnce));
  bool isWhole = total % (threads * atOnce) == 0;
  k.loop(rounds, {}, [&](Value round, ValueRange) {
    Value first = k.add(k.mul(round, threads * atOnce), here.thread);
    Values rows, units, numbers, exists;
    for (int64_t i = 0; i < atOnce; ++i) {
      Value index = k.add(first, i * threads);
      Value channel = k.div(index, pairs), inRow = k.rem(index, pairs);
      Value column = k.mul(inRow, 2);
      exists.push_back(isWhole ? Value() : k.less(index, total));
      Value isThere = keySize() < paddedKey() || !isWhole
                          ? k.less(channel, keySize())
                          : Value();
      if (here.firstColumn)
        column = k.add(column, here.firstColumn);
      if (isRagged())
        isThere = k.both(isThere, k.less(column, valueSize()));
      Value from = k.offset(base, k.mul(k.extend(channel), rowBytes));
      from = k.offset(from, k.mul(k.extend(column), k.i64(4)));
      numbers.push_back(k.ifElse(
          isThere, [&] { return k.load(zeros.getType(), from, 8); }, zeros));
      rows.push_back(channel);
      units.push_back(inRow);
    }
    for (int64_t i = 0; i < atOnce; ++i) {
      Value x = k.element(numbers[i], 0), y = k.element(numbers[i], 1);
      Value place = k.add(stateTile().place(k, rows[i], k.div(units[i], 4)),
                          k.mul(k.rem(units[i], 4), 4));
      k.ifThen(exists[i], [&] {
        for (auto [s, pair] :
             llvm::enumerate(splitPair(k, summandType(), x, y, summands())))
          k.store(
              pair,
              k.offset(k.offset(here.shared, place), s * stateTile().bytes()),
              4);
      });
    }
    return Values();
  });
}

void ReadKernel::loadNormalizer() {
  GlobalView view = function.view(k, op.getNormalizer());
  Value channel = k.mul(here.thread, 2), zero = k.f32(0);
  k.ifThen(k.less(channel, paddedKey()), [&] {
    Values z;
    for (int64_t i = 0; i < 2; ++i) {
      Value mine = k.add(channel, i);
      z.push_back(k.ifElse(
          k.less(mine, keySize()),
          [&] {
            return k.load(view.element,
                          view.at(k, {here.batch, here.stateHead, mine}), 4);
          },
          zero));
    }
    Value to = k.offset(k.offset(here.shared, k.mul(here.thread, 4)),
                        normalizerBegin());
    for (auto [s, pair] :
         llvm::enumerate(splitPair(k, summandType(), z[0], z[1], summands())))
      k.store(pair, k.offset(to, s * paddedKey() * 2), 4);
  });
}

//===----------------------------------------------------------------------===//
// One tile
//===----------------------------------------------------------------------===//

/// 16 channels of the warp's queries.
Summands ReadKernel::loadQueries(Value base, int64_t step) {
  LanePointer pointer(k, queryTile(), base, lane.query);
  Matrix matrix;
  if (isWide()) {
    matrix = loadPairs(k, pointer, 0, 16 * step);
  } else {
    Values fragment(k.loadMatrices(pointer.at(0, 2 * step), false));
    if (!isMapped())
      return {fragment};
    matrix = join(k, summandType(), {fragment});
  }
  // Channels that do not exist meet rows of zeros.
  for (Value &x : matrix)
    x = emitMap(k, x);
  return split(k, summandType(), matrix, summands());
}

void ReadKernel::tile(Value number, Value base) {
  Value zero = k.f32(0);
  Values o(slice() / 2, zero), denominators(4, zero);
  SmallVector<LanePointer> states;
  for (int64_t s = 0; s < summands(); ++s)
    states.emplace_back(k, stateTile(),
                        k.offset(here.shared, s * stateTile().bytes()),
                        lane.state);
  Value sums =
      k.offset(k.offset(here.shared, k.mul(lane.pair, 4)), normalizerBegin());
  for (int64_t step = 0; step < paddedKey() / 16; ++step) {
    Summands q = loadQueries(base, step);
    for (int64_t n = 0; n < slice() / 16; ++n) {
      Summands fragments;
      for (LanePointer &pointer : states)
        fragments.push_back(
            Values(k.loadMatrices(pointer.at(16 * step, 2 * n), true)));
      // The sums of one tile are short; longer ones would fill the registers.
      accumulate(k, summandType(), MutableArrayRef(o).slice(8 * n, 8), q,
                 fragments, summands());
    }
    if (!op.getNormalizer())
      continue;
    // The normalizer as every column of a matrix.
    Summands z;
    for (int64_t s = 0; s < summands(); ++s) {
      Values words;
      for (int64_t half : {0, 8})
        words.push_back(k.load(
            k.b.getI32Type(),
            k.offset(sums, s * paddedKey() * 2 + (16 * step + half) * 2), 4));
      z.push_back({words[0], words[0], words[1], words[1]});
    }
    accumulate(k, summandType(), denominators, q, z, summands(), /*halves=*/1);
  }
  writeOutput(number, o, denominators);
}

void ReadKernel::writeOutput(Value number, Values o, ValueRange denominators) {
  Value scale = k.f32(scaleOr1(op.getScale()));
  Value first = k.mul(number, tileQueries);
  Value left = k.sub(k.sub(here.queryCount, here.firstQuery), first);
  NormalizeAttr normalize = op.getNormalizeAttr();
  std::array<Value, 2> inverse;
  for (int64_t lower = 0; lower < 2 && normalize; ++lower)
    inverse[lower] = emitInverseDenominator(
        k.b, k.loc, normalize, type(), k.mulf(denominators[2 * lower], scale));
  for (size_t i = 0; i < o.size(); ++i) {
    o[i] = k.mulf(o[i], scale);
    if (normalize)
      o[i] = emitClamp(k.b, k.loc, normalize, k.mulf(o[i], inverse[i / 2 % 2]));
  }
  Value target = output.at(k, k.extend(first));
  Value ragged = isRagged() ? here.firstColumn : Value();
  if (!isWide()) {
    Value base = k.offset(here.shared, outputBegin());
    LanePointer pointer(k, outputTile(), base, lane.output);
    for (int64_t i = 0; i < slice() / 4; ++i)
      k.store(k.pack(type(), o[2 * i], o[2 * i + 1]),
              pointer.at(i % 2 * 8, i / 2), 4);
    k.warpBarrier();
    // Values that depend on the lane alone would occupy registers of the loop.
    storeTileRows(k, outputTile(), base, k.keepInLoop(lane.number),
                  lane.warpRow, 16,
                  {target, output.stride, valueSize(), left,
                   granuleOf(valueSize(), type()), ragged});
    return k.warpBarrier(); // Before the next rows come.
  }
  storePairs(k, o, lane.warpRow, lane.row, lane.pair,
             {target, output.stride, valueSize(), left,
              granuleOf(valueSize(), type()), ragged});
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

void ReadKernel::run() {
  int64_t perQuery =
      staticSize(op.getOutput(), 1) / staticSize(op.getQuery(), 1);
  Rows queries =
      rowsOf(op.getQuery(), /*isWritten=*/false, k.div(here.head, perQuery));
  output = rowsOf(op.getOutput(), /*isWritten=*/true, here.head);
  if (here.firstColumn)
    output.base =
        k.offset(output.base, k.mul(here.firstColumn, elementBytes()));
  TilePipeline tiles(
      k, {stages(), here.shared, queryTile().bytes(), stageBegin()},
      {tileQueries, k.sub(here.queryCount, here.firstQuery), here.tiles},
      TilePipeline::Engine::CpAsync, here.thread, threads());
  tiles.add(0, queryTile(), queries, keySize(), type());
  tiles.begin();
  loadState();
  if (op.getNormalizer())
    loadNormalizer();
  // The barrier before the first tile is the one for the state. All copies are
  // awaited: every block has a tile.
  tiles.loop({}, [&](Value number, ValueRange) {
    tile(number, tiles.arrive(number));
    return Values();
  });
}

LaunchOp mlir::linattn::buildKernel(ReadOp op, ScheduleAttr schedule,
                                    ModuleOp module, StringRef name) {
  ReadShape shape{{op, schedule}};
  KernelFunction function;
  function.addBuffer(op.getQuery(), Access::Read,
                     granuleOf(shape.keySize(), shape.type()));
  function.addBuffer(op.getState(), Access::Read, 8);
  function.addBuffer(op.getNormalizer(), Access::Read, 4);
  function.addBuffer(op.getOutput(), Access::Write,
                     granuleOf(shape.valueSize(), shape.type()));
  function.addSize(op.getQuery(), 2);
  function.emit(module, name, op.getLoc(), [&](KernelBuilder &k) {
    ReadKernel(shape, k, function).run();
  });
  AffineExpr blocks =
      function.gridSize(op.getQuery(), 2)
          .ceilDiv(ReadShape::tileQueries * ReadShape::blockTiles);
  blocks = function.gridSize(op.getQuery(), 0) * blocks *
           (staticSize(op.getOutput(), 1) * shape.slices());
  return function.launch(op, blocks, shape.threads(), shape.sharedBytes());
}
