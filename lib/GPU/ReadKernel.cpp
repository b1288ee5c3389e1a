//===- ReadKernel.cpp - Queries that read a state -------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReadKernel.h"
#include "AttentionKernels.h"
#include "linattn/Dialect/FeatureMaps.h"

using namespace mlir;
using namespace mlir::linattn;

ReadKernel::ReadKernel(ReadOp op, ScheduleAttr schedule)
    : op(op), schedule(schedule), keySize(staticSize(op.getState(), 2)),
      valueSize(staticSize(op.getState(), 3)),
      type(getElementTypeOrSelf(op.getQuery())),
      summandType(summandTypeOf(type)), isWide(type.isF32()) {}

//===----------------------------------------------------------------------===//
// Arguments and places
//===----------------------------------------------------------------------===//

void ReadKernel::declare() {
  query =
      function.addBuffer(op.getQuery(), Access::Read, granuleOf(keySize, type));
  state = function.addBuffer(op.getState(), Access::Read, 8);
  normalizer = function.addBuffer(op.getNormalizer(), Access::Read, 4);
  output = function.addBuffer(op.getOutput(), Access::Write,
                              granuleOf(valueSize, type));
  function.addSize(op.getQuery(), 2);
}

void ReadKernel::place() {
  shared = function.sharedBase(k());
  thread = k().thread();
  lane = k().band(thread, 31);
  row = k().shr(lane, 2);
  pair = k().band(lane, 3);
  warpRow = k().mul(k().shr(thread, 5), 16);
  queryCount = function.size(k(), op.getQuery(), 2);

  constexpr int64_t blockQueries = tileQueries * blockTiles;
  Value outer = k().block(0);
  if (slices() > 1) {
    firstColumn = k().mul(k().rem(outer, slices()), slice());
    outer = k().div(outer, slices());
  }
  Value blocks = k().div(k().add(queryCount, blockQueries - 1), blockQueries);
  firstQuery = k().mul(k().rem(outer, blocks), blockQueries);
  outer = k().div(outer, blocks);
  int64_t heads = staticSize(op.getOutput(), 1);
  head = k().rem(outer, heads);
  batch = k().div(outer, heads);
  stateHead = k().div(head, heads / staticSize(op.getState(), 1));
  Value left = k().div(
      k().add(k().sub(queryCount, firstQuery), tileQueries - 1), tileQueries);
  tiles = k().select(k().less(left, blockTiles), left, k().i32(blockTiles));

  Value low15 = k().band(lane, 15), high = k().shr(lane, 4);
  Value bit3 = k().band(k().shr(lane, 3), 1);
  Value paired = k().add(k().band(lane, 7), k().mul(high, 8));
  queryPlace = isWide ? placeOfPairs(k(), queryTile(), k().add(warpRow, row),
                                     k().i32(0), pair)
                      : queryTile().place(k(), k().add(warpRow, low15), high);
  statePlace = stateTile().place(k(), paired, bit3);
  outputPlace =
      k().add(outputTile().place(k(), k().add(warpRow, row), k().i32(0)),
              k().mul(pair, 4));
}

void ReadKernel::prepareCopies() {
  GlobalView queries = function.view(k(), query);
  int64_t perQuery =
      staticSize(op.getOutput(), 1) / staticSize(op.getQuery(), 1);
  queryBase = queries.at(k(), {batch, k().div(head, perQuery), firstQuery});
  queryStride = k().mul(queries.strides[2], k().i64(queries.bytes()));
  GlobalView outputs = function.view(k(), output);
  outputBase = outputs.at(k(), {batch, head, firstQuery});
  outputStride = k().mul(outputs.strides[2], k().i64(outputs.bytes()));
  if (firstColumn)
    outputBase = k().offset(outputBase, k().mul(firstColumn, elementBytes()));
  copyQuery.emplace(k(), queryTile(), warps * 32, granuleOf(keySize, type),
                    thread, queryStride, keySize * elementBytes() / 2, Value());
}

//===----------------------------------------------------------------------===//
// Arrival of a tile
//===----------------------------------------------------------------------===//

Value ReadKernel::stageBase(Value stage) {
  Value first = k().offset(shared, stageBegin());
  return schedule.getStages() == 1
             ? first
             : k().offset(first, k().mul(stage, queryTile().bytes()));
}

void ReadKernel::startTile(Value number, Value stage) {
  Value first = k().mul(number, tileQueries);
  Value left = k().sub(k().sub(queryCount, firstQuery), first);
  copyQuery->start(
      stageBase(stage),
      k().offset(queryBase, k().mul(k().extend(first), queryStride)), left);
  k().commitCopies();
}

void ReadKernel::arrive(Value number, Value stage) {
  awaitTiles(k(), schedule.getStages(), number, stage, tiles,
             [&](Value number, Value stage) { startTile(number, stage); });
}

//===----------------------------------------------------------------------===//
// The state
//===----------------------------------------------------------------------===//

/// Puts the summands of the block's slice into shared memory: a pair of columns
/// per thread, some on their way at once.
void ReadKernel::loadState() {
  constexpr int64_t threads = warps * 32, atOnce = 16;
  GlobalView view = function.view(k(), state);
  Value base = view.at(k(), {batch, stateHead}), zero = k().f32(0);
  Value rowBytes = k().mul(view.strides[2], k().i64(4));
  Value zeros = k().vectorOf({zero, zero});
  int64_t pairs = slice() / 2, total = paddedKey() * pairs;
  Value rounds = k().i32(llvm::divideCeil(total, threads * atOnce));
  bool isWhole = total % (threads * atOnce) == 0;
  k().loop(rounds, {}, [&](Value round, ValueRange) {
    Value first = k().add(k().mul(round, threads * atOnce), thread);
    Values rows, units, numbers, exists;
    for (int64_t i = 0; i < atOnce; ++i) {
      Value index = k().add(first, i * threads);
      Value channel = k().div(index, pairs), inRow = k().rem(index, pairs);
      Value column = k().mul(inRow, 2);
      exists.push_back(isWhole ? Value() : k().less(index, total));
      Value isThere = keySize < paddedKey() || !isWhole
                          ? k().less(channel, keySize)
                          : Value();
      if (firstColumn)
        column = k().add(column, firstColumn);
      if (valueSize % slice())
        isThere = k().both(isThere, k().less(column, valueSize));
      Value from = k().offset(base, k().mul(k().extend(channel), rowBytes));
      from = k().offset(from, k().mul(k().extend(column), k().i64(4)));
      numbers.push_back(k().ifElse(
          isThere, [&] { return k().load(zeros.getType(), from, 8); }, zeros));
      rows.push_back(channel);
      units.push_back(inRow);
    }
    for (int64_t i = 0; i < atOnce; ++i) {
      Value x = k().element(numbers[i], 0), y = k().element(numbers[i], 1);
      Value place =
          k().add(stateTile().place(k(), rows[i], k().div(units[i], 4)),
                  k().mul(k().rem(units[i], 4), 4));
      k().ifThen(exists[i], [&] {
        for (auto [s, pair] :
             llvm::enumerate(splitPair(k(), summandType, x, y, summands())))
          k().store(
              pair,
              k().offset(k().offset(shared, place), s * stateTile().bytes()),
              4);
      });
    }
    return Values();
  });
}

void ReadKernel::loadNormalizer() {
  GlobalView view = function.view(k(), normalizer);
  Value channel = k().mul(thread, 2), zero = k().f32(0);
  k().ifThen(k().less(channel, paddedKey()), [&] {
    Values z;
    for (int64_t i = 0; i < 2; ++i) {
      Value mine = k().add(channel, i);
      z.push_back(k().ifElse(
          k().less(mine, keySize),
          [&] {
            return k().load(view.element,
                            view.at(k(), {batch, stateHead, mine}), 4);
          },
          zero));
    }
    Value to =
        k().offset(k().offset(shared, k().mul(thread, 4)), normalizerBegin());
    for (auto [s, pair] :
         llvm::enumerate(splitPair(k(), summandType, z[0], z[1], summands())))
      k().store(pair, k().offset(to, s * paddedKey() * 2), 4);
  });
}

//===----------------------------------------------------------------------===//
// One tile
//===----------------------------------------------------------------------===//

/// 16 channels of the warp's queries.
Summands ReadKernel::loadQueries(Value base, int64_t step) {
  LanePointer pointer(k(), queryTile(), base, queryPlace);
  Matrix matrix;
  if (isWide) {
    matrix = loadPairs(k(), pointer, 0, 16 * step);
  } else {
    Values fragment(k().loadMatrices(pointer.at(0, 2 * step), false));
    if (!isMapped())
      return {fragment};
    matrix = join(k(), summandType, {fragment});
  }
  // Channels that do not exist meet rows of zeros.
  auto map = cast<FeatureMappedOpInterface>(op.getOperation());
  for (Value &x : matrix)
    x = emitFeatureMap(k().b, k().loc, map, x);
  return split(k(), summandType, matrix, summands());
}

void ReadKernel::tile(Value number) {
  Value stage = k().band(number, schedule.getStages() - 1);
  arrive(number, stage);
  Value base = stageBase(stage), zero = k().f32(0);
  Values o(slice() / 2, zero), denominators(4, zero);
  SmallVector<LanePointer> states;
  for (int64_t s = 0; s < summands(); ++s)
    states.emplace_back(k(), stateTile(),
                        k().offset(shared, s * stateTile().bytes()),
                        statePlace);
  Value sums =
      k().offset(k().offset(shared, k().mul(pair, 4)), normalizerBegin());
  for (int64_t step = 0; step < paddedKey() / 16; ++step) {
    Summands q = loadQueries(base, step);
    for (int64_t n = 0; n < slice() / 16; ++n) {
      Summands fragments;
      for (LanePointer &pointer : states)
        fragments.push_back(
            Values(k().loadMatrices(pointer.at(16 * step, 2 * n), true)));
      // The sums of one tile are short, and others would fill the registers.
      accumulate(k(), summandType, MutableArrayRef(o).slice(8 * n, 8), q,
                 fragments, summands());
    }
    if (!op.getNormalizer())
      continue;
    // The normalizer as every column of a matrix.
    Summands z;
    for (int64_t s = 0; s < summands(); ++s) {
      Values words;
      for (int64_t half : {0, 8})
        words.push_back(k().load(
            k().b.getI32Type(),
            k().offset(sums, s * paddedKey() * 2 + (16 * step + half) * 2), 4));
      z.push_back({words[0], words[0], words[1], words[1]});
    }
    accumulate(k(), summandType, denominators, q, z, summands(), /*halves=*/1);
  }
  writeOutput(number, o, denominators);
}

void ReadKernel::writeOutput(Value number, Values o, ValueRange denominators) {
  Value scale = k().f32(scaleOr1(op.getScale()));
  Value first = k().mul(number, tileQueries);
  Value left = k().sub(k().sub(queryCount, firstQuery), first);
  NormalizeAttr normalize = op.getNormalizeAttr();
  std::array<Value, 2> inverse;
  for (int64_t lower = 0; lower < 2 && normalize; ++lower)
    inverse[lower] =
        emitInverseDenominator(k().b, k().loc, normalize, type,
                               k().mulf(denominators[2 * lower], scale));
  for (size_t i = 0; i < o.size(); ++i) {
    o[i] = k().mulf(o[i], scale);
    if (normalize)
      o[i] = emitClamp(k().b, k().loc, normalize,
                       k().mulf(o[i], inverse[i / 2 % 2]));
  }
  Value target =
      k().offset(outputBase, k().mul(k().extend(first), outputStride));
  Value ragged = valueSize % slice() ? firstColumn : Value();
  if (!isWide) {
    Value base = k().offset(shared, outputBegin());
    LanePointer pointer(k(), outputTile(), base, outputPlace);
    for (int64_t i = 0; i < slice() / 4; ++i)
      k().store(k().pack(type, o[2 * i], o[2 * i + 1]),
                pointer.at(i % 2 * 8, i / 2), 4);
    k().warpBarrier();
    // Values that depend on the lane alone would occupy registers of the loop.
    storeTileRows(k(), outputTile(), base, k().keepInLoop(lane), warpRow, 16,
                  {target, outputStride, valueSize, left,
                   granuleOf(valueSize, type), ragged});
    return k().warpBarrier(); // Before the next rows come.
  }
  storePairs(k(), o, warpRow, row, pair,
             {target, outputStride, valueSize, left, granuleOf(valueSize, type),
              ragged});
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

LaunchOp ReadKernel::build(ModuleOp module, StringRef name) {
  declare();
  function.create(module, name, op.getLoc());
  OpBuilder b = OpBuilder::atBlockEnd(function.body());
  builder.emplace(b, op.getLoc());
  place();
  prepareCopies();
  if (schedule.getStages() == 2)
    startTile(k().i32(0), k().i32(0));
  loadState();
  if (op.getNormalizer())
    loadNormalizer();
  // The barrier before the first tile is the one for the state.
  k().loop(tiles, {}, [&](Value number, ValueRange) {
    tile(number);
    return Values();
  });
  LLVM::ReturnOp::create(b, op.getLoc(), ValueRange());

  AffineExpr one = getAffineConstantExpr(1, module.getContext());
  AffineExpr blocks =
      function.gridSize(op.getQuery(), 2).ceilDiv(tileQueries * blockTiles);
  blocks = function.gridSize(op.getQuery(), 0) * blocks *
           (staticSize(op.getOutput(), 1) * slices());
  function.finish({blocks, one, one}, warps * 32, sharedBytes());
  OpBuilder host(op);
  return function.launch(host, op.getLoc());
}

LaunchOp mlir::linattn::buildKernel(ReadOp op, ScheduleAttr schedule,
                                    ModuleOp module, StringRef name) {
  return ReadKernel(op, schedule).build(module, name);
}
