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

double QuadraticShape::factor() {
  double scale = scaleOr1(op.getScale());
  return isSoftmax() ? scale * 1.44269504088896341 : scale;
}

int64_t QuadraticShape::rowTiles() {
  int64_t count = staticSize(op.getQuery(), 2);
  bool isFew = !ShapedType::isDynamic(count) && count <= 16 * warps();
  // A warpgroup has operands in shared memory, not in fragments. Those of f32
  // are three times as many.
  bool isLarge = std::max(paddedKey(), paddedValue()) > (isWide() ? 96 : 128);
  return isLarge || isFew || usesWarpgroups() ? 1 : 2;
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

QuadraticKernel::QuadraticKernel(const QuadraticShape &shape, KernelBuilder &k,
                                 KernelFunction &function)
    : QuadraticShape(shape), k(k), function(function) {
  here.shared = function.sharedBase(k);
  here.thread = k.thread();
  lane.number = k.band(here.thread, 31);
  lane.warpRow = k.mul(k.shr(here.thread, 5), warpRows());
  lane.row = k.shr(lane.number, 2);
  lane.pair = k.band(lane.number, 3);
  place();
  placeLane();
  findVisibleKeys();
}

void QuadraticKernel::place() {
  here.queryCount = function.size(k, op.getQuery(), 2);
  here.keyCount = function.size(k, op.getKey(), 2);
  here.mask = function.view(k, op.getMask());

  Value block = k.block(0);
  Value blocks = k.div(k.add(here.queryCount, queries() - 1), queries());
  Value number = k.rem(block, blocks), outer = k.div(block, blocks);
  // The last queries see the most keys, so their blocks begin first.
  if (op.getCausal())
    number = k.sub(k.add(blocks, -1), number);
  here.firstQuery = k.mul(number, queries());
  int64_t heads = staticSize(op.getOutput(), 1);
  here.head = k.rem(outer, heads);
  here.batch = k.div(outer, heads);
}

void QuadraticKernel::placeLane() {
  if (isWide()) {
    lane.value =
        transposedOffset(k, valueTile(), lane.row, k.i32(0), lane.pair);
    return;
  }
  if (!usesWarpgroups()) {
    Value low15 = k.band(lane.number, 15), high = k.shr(lane.number, 4);
    Value low7 = k.band(lane.number, 7);
    Value bit3 = k.band(k.shr(lane.number, 3), 1);
    Value paired = k.add(low7, k.mul(high, 8));
    lane.query = queryTile().place(k, k.add(lane.warpRow, low15), high);
    lane.key = keyTile().place(k, low15, high);
    lane.value = valueTile().place(k, paired, bit3);
  }
  lane.output =
      k.add(outputTile().place(k, k.add(lane.warpRow, lane.row), k.i32(0)),
            k.mul(lane.pair, 4));
}

/// Keys before the one that query number `row` may not see: it sees the keys
/// j ≤ i + Tk − Tq and those of the prefix. All counts stay within 31 bits.
Value QuadraticKernel::limitOf(Value row) {
  if (!op.getCausal())
    return here.keyCount;
  auto most = [&](Value x, Value y) {
    return k.select(k.greaterSigned(x, y), x, y);
  };
  Value limit = k.add(k.add(row, 1), k.sub(here.keyCount, here.queryCount));
  if (here.prefixCount)
    limit = most(limit, here.prefixCount);
  limit = k.select(k.greaterSigned(limit, here.keyCount), here.keyCount, limit);
  return most(limit, k.i32(0));
}

void QuadraticKernel::findVisibleKeys() {
  if (GlobalView view = function.view(k, op.getPrefix())) {
    here.prefixCount =
        k.load(view.element, view.at(k, {here.batch}), view.bytes());
    if (!view.element.isInteger(32))
      here.prefixCount = arith::TruncIOp::create(k.b, k.loc, k.b.getI32Type(),
                                                 here.prefixCount);
  }
  Value visible = limitOf(k.add(here.firstQuery, queries() - 1));
  here.tiles = k.div(k.add(visible, keys() - 1), keys());
  here.warpLimit = limitOf(k.add(here.firstQuery, lane.warpRow));
}

QuadraticKernel::Tokens QuadraticKernel::findTokens() {
  int64_t heads = staticSize(op.getOutput(), 1);
  auto rows = [&](Value buffer, Value row, bool isWritten = false) {
    GlobalView view = function.view(k, buffer, isWritten);
    // Head counts divide one another.
    Value mine = k.div(here.head, heads / staticSize(buffer, 1));
    return Rows{view.at(k, {here.batch, mine, row}),
                k.mul(view.strides[2], k.i64(view.bytes()))};
  };
  Value zero = k.i32(0);
  return {rows(op.getQuery(), here.firstQuery), rows(op.getKey(), zero),
          rows(op.getValue(), zero),
          rows(op.getOutput(), here.firstQuery, /*isWritten=*/true)};
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// The maps of a block begin at its own queries, its head's keys and values.
TensorMaps QuadraticKernel::makeMaps(const Tokens &tokens, Value memory) {
  Value number = k.block(0), rest = k.i32(0);
  Value mine = function.view(k, memory).at(k, {number, rest, rest});
  return TensorMaps(k, here.thread, k.offset(here.shared, mapBegin()), mine,
                    {{tokens.query, k.sub(here.queryCount, here.firstQuery),
                      keySize(), queryTile()},
                     {tokens.key, here.keyCount, keySize(), keyTile()},
                     {tokens.value, here.keyCount, valueSize(), valueTile()}},
                    barriers());
}

TileCopy QuadraticKernel::prepareQueries(const Rows &rows) {
  // Tiles count columns of 16 bits.
  return TileCopy(k, queryTile(), threads(), granuleOf(keySize(), type()),
                  here.thread, rows.stride, keySize() * elementBytes() / 2,
                  Value());
}

TilePipeline QuadraticKernel::prepareTiles(const Tokens &tokens,
                                           TensorMaps *maps) {
  using Engine = TilePipeline::Engine;
  TilePipeline pipeline(k, {stages(), here.shared, stageBytes(), stageBegin()},
                        {keys(), here.keyCount, here.tiles},
                        maps ? Engine::TensorMaps : Engine::CpAsync,
                        here.thread, threads());
  pipeline.setForWarpgroups(usesWarpgroups());
  if (maps) {
    pipeline.useMaps(maps);
    pipeline.addMap(0, 1);
    pipeline.addMap(keyTile().bytes(), 2);
    return pipeline;
  }
  pipeline.add(0, keyTile(), tokens.key, keySize(), type());
  pipeline.add(keyTile().bytes(), valueTile(), tokens.value, valueSize(),
               type());
  return pipeline;
}

void QuadraticKernel::holdQueries() {
  // They are the oldest group; the tiles on their way are younger.
  k.waitForCopies(stages() - 1);
  k.barrier();
  LanePointer tile(k, queryTile(), here.shared, lane.query);
  for (int64_t step = 0; step < keySteps(); ++step)
    heldQueries.push_back(loadQueries(tile, step));
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

void QuadraticKernel::run(Value memory) {
  Tokens tokens = findTokens();
  std::optional<TensorMaps> maps;
  std::optional<TileCopy> queries;
  if (memory)
    maps.emplace(makeMaps(tokens, memory));
  else
    queries.emplace(prepareQueries(tokens.query));
  TilePipeline pipeline = prepareTiles(tokens, maps ? &*maps : nullptr);
  Value zero = k.i32(0), barrier = k.i32(stages());
  if (maps) {
    maps->start(barrier, {{0, here.shared, zero}});
    pipeline.begin();
    maps->await(barrier, zero);
  } else {
    queries->start(here.shared, tokens.query.base,
                   k.sub(here.queryCount, here.firstQuery));
    k.commitCopies();
    pipeline.begin();
  }
  if (holdsQueries())
    holdQueries();
  Values carried =
      pipeline.loop(initialValues(), [&](Value number, ValueRange values) {
        return tile(number, pipeline.arrive(number), values);
      });
  pipeline.drain();
  writeOutput(tokens.output, carried);
}

/// Memory for the maps of every block: [blocks, maps, bytes of one].
static Value allocateMaps(QuadraticShape shape) {
  QuadraticOp op = shape.op;
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto sizeOf = [&](unsigned dim) -> Value {
    return memref::DimOp::create(b, loc, op.getQuery(), dim);
  };
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value most =
      arith::AddIOp::create(b, loc, sizeOf(2), constant(shape.queries() - 1));
  Value blocks =
      arith::DivSIOp::create(b, loc, most, constant(shape.queries()));
  Value heads = arith::MulIOp::create(b, loc, sizeOf(0),
                                      constant(staticSize(op.getOutput(), 1)));
  blocks = arith::MulIOp::create(b, loc, blocks, heads);
  auto type = MemRefType::get({ShapedType::kDynamic, QuadraticShape::numMaps,
                               TensorMaps::globalBytes(1)},
                              b.getI8Type());
  return memref::AllocOp::create(b, loc, type, blocks);
}

LaunchOp mlir::linattn::buildKernel(QuadraticOp op, ScheduleAttr schedule,
                                    ModuleOp module, StringRef name) {
  QuadraticShape shape{{op, schedule}};
  int64_t keyAlign = granuleOf(shape.keySize(), shape.type());
  int64_t valueAlign = granuleOf(shape.valueSize(), shape.type());
  KernelFunction function;
  function.addBuffer(op.getQuery(), Access::Read, keyAlign);
  function.addBuffer(op.getKey(), Access::Read, keyAlign);
  function.addBuffer(op.getValue(), Access::Read, valueAlign);
  function.addBuffer(op.getOutput(), Access::Write, valueAlign);
  function.addBuffer(op.getMask(), Access::Read, 1);
  function.addBuffer(op.getPrefix(), Access::Read, 4);
  Value maps;
  if (shape.usesTensorMaps()) {
    maps = allocateMaps(shape);
    function.addBuffer(maps, Access::ReadWrite, TensorMaps::alignment());
  }
  function.addSize(op.getQuery(), 2);
  function.addSize(op.getKey(), 2);
  function.emit(module, name, op.getLoc(), [&](KernelBuilder &k) {
    QuadraticKernel(shape, k, function).run(maps);
  });
  AffineExpr blocks =
      function.gridSize(op.getQuery(), 2).ceilDiv(shape.queries());
  blocks = function.gridSize(op.getQuery(), 0) * blocks *
           staticSize(op.getOutput(), 1);
  LaunchOp launch =
      function.launch(op, blocks, shape.threads(), shape.sharedBytes());
  if (maps) {
    OpBuilder host(op);
    memref::DeallocOp::create(host, op.getLoc(), maps);
  }
  return launch;
}
