//===- TilePipeline.cpp - Tiles that arrive in stages ---------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TilePipeline.h"

using namespace mlir;
using namespace mlir::linattn;

Value TileStages::stageOf(KernelBuilder &k, Value number) const {
  return llvm::isPowerOf2_64(count) ? k.band(number, count - 1)
                                    : k.rem(number, count);
}

Value TileStages::baseOf(KernelBuilder &k, Value stage) const {
  Value first = k.offset(memory, begin);
  return count == 1 ? first : k.offset(first, k.mul(stage, bytes));
}

void TilePipeline::addRing(TileStages stages) {
  assert(stages.coming() == coming() && engine != Engine::TensorMaps);
  rings.push_back(stages);
}

void TilePipeline::add(StagePlace place, SharedTile tile, Rows rows,
                       int64_t size, Type element, Value firstColumn,
                       Filter filter) {
  // Tiles count columns of 16 bits.
  int64_t columns = size * element.getIntOrFloatBitWidth() / 16;
  operands.push_back({place, rows,
                      TileCopy(k, tile, threads, granuleOf(size, element),
                               thread, rows.stride, columns, firstColumn),
                      0, std::move(filter)});
}

void TilePipeline::addMap(int64_t offset, unsigned matrix) {
  operands.push_back({offset, {}, std::nullopt, matrix, {}});
}

Value TilePipeline::tileCount() {
  if (tokens.tiles)
    return tokens.tiles;
  return k.div(k.add(tokens.count, tokens.perTile - 1), tokens.perTile);
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void TilePipeline::start(Value number, Value stage, Value thread) {
  Value first = k.mul(number, tokens.perTile);
  if (engine == Engine::TensorMaps) {
    Value base = baseOf(stage);
    SmallVector<TensorMaps::Tile> tiles;
    for (const Operand &operand : operands)
      tiles.push_back(
          {operand.matrix, k.offset(base, operand.place.offset), first});
    return maps->start(stage, tiles);
  }
  Value wide = k.extend(first), left = k.sub(tokens.count, first);
  SmallVector<Value> bases{baseOf(stage)};
  for (const TileStages &ring : llvm::drop_begin(rings))
    bases.push_back(ring.baseOf(k, ring.stageOf(k, number)));
  for (Operand &operand : operands) {
    auto filter = [&](Value row, Value exists) {
      return operand.filter(k.add(first, row), exists);
    };
    Value target = k.offset(bases[operand.place.ring], operand.place.offset);
    Value source = operand.rows.at(k, wide);
    if (operand.filter)
      operand.copy->start(target, source, left, filter);
    else
      operand.copy->start(target, source, left);
  }
  if (also)
    also({first, left, stage, bases, thread ? thread : this->thread});
}

void TilePipeline::await(Value number, Value stage) {
  if (engine == Engine::TensorMaps) {
    // A barrier changes its parity from round to round of the stages.
    Value round = llvm::isPowerOf2_64(rings[0].count)
                      ? k.shr(number, llvm::Log2_64(rings[0].count))
                      : k.div(number, rings[0].count);
    return maps->await(stage, k.band(round, 1));
  }
  if (engine == Engine::Threads)
    return;
  // Each later tile that is on its way has a group of its own.
  k.waitForCopies(std::max<int64_t>(coming() - 1, 0));
  if (forWarpgroups)
    k.fenceAsyncProxy();
}

void TilePipeline::drain() {
  if (engine == Engine::CpAsync)
    k.waitForCopies(0);
}

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

void TilePipeline::begin() {
  if (engine == Engine::Threads)
    return;
  for (int64_t i = 0; i < coming(); ++i) {
    Value number = k.i32(i);
    // Zeros are copied in place of a tile 0 without tokens; every copy by a map
    // is awaited, so that only existing tiles start one.
    bool exists = i == 0 && engine == Engine::CpAsync;
    k.ifThen(exists ? Value() : k.less(number, tileCount()),
             [&] { start(number, number); });
    if (engine == Engine::CpAsync)
      k.commitCopies();
  }
}

TilePipeline::Values
TilePipeline::loop(ValueRange initial,
                   function_ref<Values(Value, ValueRange)> body) {
  return k.loop(tileCount(), initial, [&](Value number, ValueRange carried) {
    Values next = body(number, carried);
    if (engine == Engine::Threads && rings[0].count == 1)
      k.barrier(); // All have read this tile.
    return next;
  });
}

Value TilePipeline::arrive(Value number, function_ref<void()> meanwhile,
                           Value thread) {
  Value stage = stageOf(number);
  bool isAsync = engine == Engine::CpAsync;
  if (engine == Engine::Threads || coming() == 0) {
    if (engine != Engine::Threads)
      k.barrier(); // All have read the last tile.
    start(number, stage, thread);
    if (isAsync)
      k.commitCopies();
    if (meanwhile)
      meanwhile();
    await(number, stage);
    if (engine != Engine::TensorMaps)
      k.barrier();
    return baseOf(stage);
  }
  if (isAsync)
    await(number, stage);
  k.barrier(); // All have read the last tile, whose stage the next one takes.
  Value next = k.add(number, coming());
  bool isCounted = coming() > 1;
  k.ifThen(k.less(next, tileCount()), [&] {
    start(next, rings[0].count == 2 ? k.bxor(stage, 1) : stageOf(next), thread);
    if (isAsync && !isCounted)
      k.commitCopies();
  });
  // If groups are counted, an empty group stands for a tile after the last.
  if (isAsync && isCounted)
    k.commitCopies();
  if (meanwhile)
    meanwhile();
  if (engine == Engine::TensorMaps)
    await(number, stage);
  return baseOf(stage);
}
