//===- QuadraticKernel.cpp - Attention by tiles: places and copies --------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "QuadraticKernel.h"
#include "AttentionKernels.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::linattn;

QuadraticKernel::QuadraticKernel(QuadraticOp op, ScheduleAttr schedule)
    : op(op), schedule(schedule), keySize(staticSize(op.getKey(), 3)),
      valueSize(staticSize(op.getValue(), 3)),
      type(getElementTypeOrSelf(op.getQuery())),
      summandType(summandTypeOf(type)), isWide(type.isF32()) {
  factor = scaleOr1(op.getScale());
  if (isSoftmax())
    factor *= 1.44269504088896341;
}

int64_t QuadraticKernel::rowTiles() {
  int64_t count = staticSize(op.getQuery(), 2);
  bool isFew = !ShapedType::isDynamic(count) && count <= 16 * warps();
  // A warpgroup has operands in shared memory, not in fragments. Those of f32
  // are three times as many.
  bool isLarge = std::max(paddedKey(), paddedValue()) > (isWide ? 96 : 128);
  return isLarge || isFew || usesWarpgroups() ? 1 : 2;
}

//===----------------------------------------------------------------------===//
// Arguments and places
//===----------------------------------------------------------------------===//

/// Memory for the maps of every block: [blocks, maps, bytes of one].
void QuadraticKernel::allocateMaps() {
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto sizeOf = [&](unsigned dim) -> Value {
    return memref::DimOp::create(b, loc, op.getQuery(), dim);
  };
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value most =
      arith::AddIOp::create(b, loc, sizeOf(2), constant(queries() - 1));
  Value blocks = arith::DivSIOp::create(b, loc, most, constant(queries()));
  Value heads = arith::MulIOp::create(b, loc, sizeOf(0),
                                      constant(staticSize(op.getOutput(), 1)));
  blocks = arith::MulIOp::create(b, loc, blocks, heads);
  auto type = MemRefType::get(
      {ShapedType::kDynamic, numMaps, TensorMaps::globalBytes(1)},
      b.getI8Type());
  mapMemory = memref::AllocOp::create(b, loc, type, blocks);
}

void QuadraticKernel::declare() {
  int64_t keyAlign = granuleOf(keySize, type);
  int64_t valueAlign = granuleOf(valueSize, type);
  query = function.addBuffer(op.getQuery(), Access::Read, keyAlign);
  key = function.addBuffer(op.getKey(), Access::Read, keyAlign);
  value = function.addBuffer(op.getValue(), Access::Read, valueAlign);
  output = function.addBuffer(op.getOutput(), Access::Write, valueAlign);
  mask = function.addBuffer(op.getMask(), Access::Read, 1);
  prefix = function.addBuffer(op.getPrefix(), Access::Read, 4);
  if (usesTensorMaps()) {
    allocateMaps();
    maps = function.addBuffer(mapMemory, Access::ReadWrite,
                              TensorMaps::alignment());
  }
  function.addSize(op.getQuery(), 2);
  function.addSize(op.getKey(), 2);
}

void QuadraticKernel::place() {
  shared = function.sharedBase(k());
  thread = k().thread();
  lane = k().band(thread, 31);
  warpRow = k().mul(k().shr(thread, 5), warpRows());
  fragmentRow = k().shr(lane, 2);
  fragmentPair = k().band(lane, 3);
  queryCount = function.size(k(), op.getQuery(), 2);
  keyCount = function.size(k(), op.getKey(), 2);
  maskView = function.view(k(), mask);

  Value block = k().block(0);
  Value blocks = k().div(k().add(queryCount, queries() - 1), queries());
  Value number = k().rem(block, blocks), outer = k().div(block, blocks);
  // The last queries see the most: they begin first.
  if (op.getCausal())
    number = k().sub(k().add(blocks, -1), number);
  firstQuery = k().mul(number, queries());
  int64_t heads = staticSize(op.getOutput(), 1);
  head = k().rem(outer, heads);
  batch = k().div(outer, heads);

  if (isWide) {
    valuePlace =
        placeOfTurned(k(), valueTile(), fragmentRow, k().i32(0), fragmentPair);
    return;
  }
  if (!usesWarpgroups()) {
    Value low15 = k().band(lane, 15), high = k().shr(lane, 4);
    Value low7 = k().band(lane, 7), bit3 = k().band(k().shr(lane, 3), 1);
    Value paired = k().add(low7, k().mul(high, 8));
    queryPlace = queryTile().place(k(), k().add(warpRow, low15), high);
    keyPlace = keyTile().place(k(), low15, high);
    valuePlace = valueTile().place(k(), paired, bit3);
  }
  outputPlace = k().add(
      outputTile().place(k(), k().add(warpRow, fragmentRow), k().i32(0)),
      k().mul(fragmentPair, 4));
}

/// Keys before the one that query number `row` may not see: it sees the keys
/// j ≤ i + Tk − Tq and those of the prefix. All counts stay within 31 bits.
Value QuadraticKernel::limitOf(Value row) {
  if (!op.getCausal())
    return keyCount;
  auto most = [&](Value x, Value y) {
    return k().select(k().greaterSigned(x, y), x, y);
  };
  Value limit = k().add(k().add(row, 1), k().sub(keyCount, queryCount));
  if (prefixCount)
    limit = most(limit, prefixCount);
  limit = k().select(k().greaterSigned(limit, keyCount), keyCount, limit);
  return most(limit, k().i32(0));
}

void QuadraticKernel::findVisibleKeys() {
  if (GlobalView view = function.view(k(), prefix)) {
    prefixCount = k().load(view.element, view.at(k(), {batch}), view.bytes());
    if (!view.element.isInteger(32))
      prefixCount = arith::TruncIOp::create(k().b, k().loc, k().b.getI32Type(),
                                            prefixCount);
  }
  visible = limitOf(k().add(firstQuery, queries() - 1));
  tiles = k().div(k().add(visible, keys() - 1), keys());
  warpLimit = limitOf(k().add(firstQuery, warpRow));
}

void QuadraticKernel::prepareCopies() {
  int64_t heads = staticSize(op.getOutput(), 1);
  auto rows = [&](unsigned handle, Value buffer, Value row) {
    GlobalView view = function.view(k(), handle);
    // Head counts divide one another.
    Value mine = k().div(head, heads / staticSize(buffer, 1));
    return std::pair(view.at(k(), {batch, mine, row}),
                     k().mul(view.strides[2], k().i64(view.bytes())));
  };
  Value zero = k().i32(0);
  std::tie(queryBase, queryStride) = rows(query, op.getQuery(), firstQuery);
  std::tie(keyBase, keyStride) = rows(key, op.getKey(), zero);
  std::tie(valueBase, valueStride) = rows(value, op.getValue(), zero);
  std::tie(outputBase, outputStride) = rows(output, op.getOutput(), firstQuery);
  if (usesTensorMaps())
    return prepareMaps();
  auto copy = [&](SharedTile tile, Value stride, int64_t size) {
    // Tiles count columns of 16 bits.
    return TileCopy(k(), tile, warps() * 32, granuleOf(size, type), thread,
                    stride, size * elementBytes() / 2, Value());
  };
  copyQuery.emplace(copy(queryTile(), queryStride, keySize));
  copyKey.emplace(copy(keyTile(), keyStride, keySize));
  copyValue.emplace(copy(valueTile(), valueStride, valueSize));
}

/// The maps of a block begin at its own queries, its head's keys and values.
void QuadraticKernel::prepareMaps() {
  Value number = k().block(0), rest = k().i32(0);
  Value mine = function.view(k(), maps).at(k(), {number, rest, rest});
  tensorMaps.emplace(
      k(), thread, k().offset(shared, mapBegin()), mine,
      ArrayRef<TensorMaps::Matrix>{
          {queryBase, queryStride, k().sub(queryCount, firstQuery), keySize,
           queryTile()},
          {keyBase, keyStride, keyCount, keySize, keyTile()},
          {valueBase, valueStride, keyCount, valueSize, valueTile()}},
      barriers());
}

/// Queries, and the first keys where two stages hold them.
void QuadraticKernel::startFirst() {
  Value zero = k().i32(0);
  if (!usesTensorMaps()) {
    copyQuery->start(shared, queryBase, k().sub(queryCount, firstQuery));
    k().commitCopies();
    if (stages() == 2)
      startTile(zero, zero);
    return;
  }
  Value barrier = k().i32(stages());
  tensorMaps->start(barrier, {{0, shared, zero}});
  // Every copy that starts is awaited, so only existing tiles start one.
  if (stages() == 2)
    k().ifThen(k().less(zero, tiles), [&] { startTileByMap(zero, zero); });
  tensorMaps->await(barrier, zero);
}

//===----------------------------------------------------------------------===//
// Arrival of a tile
//===----------------------------------------------------------------------===//

Value QuadraticKernel::stageBase(Value stage) {
  Value first = k().offset(shared, stageBegin());
  return stages() == 1 ? first
                       : k().offset(first, k().mul(stage, stageBytes()));
}

void QuadraticKernel::startTile(Value number, Value stage) {
  Value first = k().mul(number, keys()), wide = k().extend(first);
  Value left = k().sub(keyCount, first), base = stageBase(stage);
  copyKey->start(base, k().offset(keyBase, k().mul(wide, keyStride)), left);
  copyValue->start(k().offset(base, keyTile().bytes()),
                   k().offset(valueBase, k().mul(wide, valueStride)), left);
  k().commitCopies();
}

void QuadraticKernel::startTileByMap(Value number, Value stage) {
  Value first = k().mul(number, keys()), base = stageBase(stage);
  tensorMaps->start(stage, {{1, base, first},
                            {2, k().offset(base, keyTile().bytes()), first}});
}

/// As `awaitTiles`, but one thread starts the copies and an mbarrier signals
/// their arrival.
void QuadraticKernel::arriveByMap(Value number, Value stage) {
  k().barrier(); // All have read the last ones.
  if (stages() == 1) {
    startTileByMap(number, stage);
  } else {
    Value next = k().add(number, 1);
    k().ifThen(k().less(next, tiles),
               [&] { startTileByMap(next, k().bxor(stage, 1)); });
  }
  Value round = stages() == 1 ? number : k().shr(number, 1);
  tensorMaps->await(stage, k().band(round, 1));
}

void QuadraticKernel::arrive(Value number, Value stage) {
  if (usesTensorMaps())
    return arriveByMap(number, stage);
  awaitTiles(
      k(), stages(), number, stage, tiles,
      [&](Value number, Value stage) { startTile(number, stage); },
      usesWarpgroups());
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

LaunchOp QuadraticKernel::build(ModuleOp module, StringRef name) {
  declare();
  function.create(module, name, op.getLoc());
  OpBuilder b = OpBuilder::atBlockEnd(function.body());
  builder.emplace(b, op.getLoc());
  place();
  findVisibleKeys();
  prepareCopies();
  startFirst();
  if (holdsQueries()) {
    k().waitForCopies(stages() - 1);
    k().barrier();
    LanePointer tile(k(), queryTile(), shared, queryPlace);
    for (int64_t step = 0; step < keySteps(); ++step)
      heldQueries.push_back(loadQueries(tile, step));
  }
  Values carried =
      k().loop(tiles, initialValues(), [&](Value number, ValueRange values) {
        return tile(number, values);
      });
  // Nothing may arrive in shared memory after the block has gone.
  if (!usesTensorMaps())
    k().waitForCopies(0);
  writeOutput(carried);
  LLVM::ReturnOp::create(b, op.getLoc(), ValueRange());

  AffineExpr one = getAffineConstantExpr(1, module.getContext());
  AffineExpr blocks = function.gridSize(op.getQuery(), 2).ceilDiv(queries());
  blocks = function.gridSize(op.getQuery(), 0) * blocks *
           staticSize(op.getOutput(), 1);
  function.finish({blocks, one, one}, warps() * 32, sharedBytes());
  OpBuilder host(op);
  LaunchOp launch = function.launch(host, op.getLoc());
  if (mapMemory)
    memref::DeallocOp::create(host, op.getLoc(), mapMemory);
  return launch;
}

LaunchOp mlir::linattn::buildKernel(QuadraticOp op, ScheduleAttr schedule,
                                    ModuleOp module, StringRef name) {
  return QuadraticKernel(op, schedule).build(module, name);
}
