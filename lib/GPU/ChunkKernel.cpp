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
// Arguments and places
//===----------------------------------------------------------------------===//

void ChunkKernel::declare() {
  int64_t keyAlign = granuleOf(keySize, type);
  int64_t valueAlign = granuleOf(valueSize, type);
  if (reads())
    q = function.addBuffer(op.getQuery(), Access::Read, keyAlign);
  key = function.addBuffer(op.getKey(), Access::Read, keyAlign);
  v = function.addBuffer(op.getValue(), Access::Read, valueAlign);
  if (reads())
    o = function.addBuffer(op.getOutput(), Access::Write, valueAlign);
  decay =
      function.addBuffer(op.getDecay(), Access::Read, granuleOf(1, decayType));
  written.addBuffers(op, function);
  std::tie(stateIn, stateOut) =
      addStates(function, op, source, segments, /*align=*/8);
  if (!reads())
    factors = function.addBuffer(segments.factors, Access::Write, 4);
}

void ChunkKernel::place() {
  shared = function.sharedBase(k());
  thread = k().thread();
  Value block = k().block(0);
  if (slices() > 1)
    firstColumn = k().mul(k().rem(block, slices()), slice());
  Value head = k().div(block, slices());
  if (members > 1)
    member = k().rem(head, members);
  here = locator.locate(k(), k().div(head, members));

  placeThread();
}

void ChunkKernel::placeThread() {
  Value warp = k().shr(thread, 5);
  lane = k().band(thread, 31);
  strip = k().band(warp, groupWarps - 1);
  groupColumn = k().mul(k().div(warp, groupWarps), groupColumns());
  stateRowWarp = k().rem(strip, rowWarps());
  stateColumnWarp = k().div(strip, rowWarps());
  fragmentRow = k().shr(lane, 2);
  fragmentPair = k().band(lane, 3);
  Value low15 = k().band(lane, 15), high = k().shr(lane, 4);
  Value low7 = k().band(lane, 7), bit3 = k().band(k().shr(lane, 3), 1);
  Value paired = k().add(low7, k().mul(high, 8));
  Value stripRow = k().mul(strip, 16);
  Value groupUnit = k().div(groupColumn, 8);
  Value stateUnit =
      k().add(groupUnit, k().mul(stateColumnWarp, stateColumns()));
  queryPlace = keyTile().place(k(), k().add(stripRow, low15), high);
  keyPlace = keyTile().place(k(), paired, bit3);
  keyColumnPlace =
      keyTile().place(k(), paired, k().add(k().mul(stateRowWarp, 2), bit3));
  valuePlace = valueTile().place(k(), low15, k().add(groupUnit, high));
  valueStatePlace = valueTile().place(k(), low15, k().add(stateUnit, high));
  Value inUnit = k().mul(fragmentPair, 4);
  spillPlace = k().add(
      stateTile().place(k(), k().add(k().mul(stateRowWarp, 16), fragmentRow),
                        stateUnit),
      inUnit);
  outputPlace = k().add(
      outputTile().place(k(), k().add(stripRow, fragmentRow), groupUnit),
      inUnit);
}

void ChunkKernel::prepareCopies() {
  Value outHead = k().mul(here.head, members);
  if (member)
    outHead = k().add(outHead, member);
  int64_t perQuery =
      staticSize(op.getOutput(), 1) / staticSize(op.getQuery(), 1);
  if (reads())
    std::tie(queryBase, queryStride) = locator.rowsOf(
        k(), here, function.view(k(), q), k().div(outHead, perQuery));
  std::tie(keyBase, keyStride) =
      locator.rowsOf(k(), here, function.view(k(), key),
                     locator.headOf(k(), op.getKey(), here.head));
  std::tie(valueBase, valueStride) =
      locator.rowsOf(k(), here, function.view(k(), v),
                     locator.headOf(k(), op.getValue(), here.head));
  if (reads())
    std::tie(outputBase, outputStride) =
        locator.rowsOf(k(), here, function.view(k(), o), outHead);
  if (firstColumn) {
    valueBase = k().offset(valueBase, k().mul(firstColumn, 2));
    if (reads())
      outputBase = k().offset(outputBase, k().mul(firstColumn, 2));
  }
  int64_t threads = schedule.getWarps() * 32;
  auto copy = [&](SharedTile tile, Value stride, int64_t size, Value first) {
    return TileCopy(k(), tile, threads, granuleOf(size, type), thread, stride,
                    size, first);
  };
  // Slices that divide the columns evenly hold nothing that does not exist.
  bool ragged = valueSize % slice() != 0;
  if (reads())
    copyQuery.emplace(copy(keyTile(), queryStride, keySize, {}));
  copyKey.emplace(copy(keyTile(), keyStride, keySize, {}));
  copyValue.emplace(copy(valueTile(), valueStride, valueSize,
                         ragged ? firstColumn : Value()));
  written.place(k(), locator, here);
  if (hasTokenDecay())
    std::tie(decayBase, decayStride) =
        locator.rowsOf(k(), here, function.view(k(), decay), here.head);
  else if (hasDecay) {
    GlobalView view = function.view(k(), decay);
    headDecay = k().load(view.element, view.at(k(), {here.head}),
                         granuleOf(1, decayType));
    headDecay = k().convert(headDecay, k().b.getF32Type());
  }
}

//===----------------------------------------------------------------------===//
// Arrival of a chunk
//===----------------------------------------------------------------------===//

Value ChunkKernel::stageBase(Value stage) {
  return schedule.getStages() == 1
             ? shared
             : k().offset(shared, k().mul(stage, stageBytes()));
}

void ChunkKernel::startChunk(Value number, Value stage) {
  Value first = k().mul(number, chunkTokens);
  Value left = k().sub(here.count, first), wide = k().extend(first);
  Value base = stageBase(stage);
  auto rows = [&](Value start, Value stride) {
    return k().offset(start, k().mul(wide, stride));
  };
  if (copyQuery)
    copyQuery->start(base, rows(queryBase, queryStride), left);
  auto isWritten = written.from(k(), first);
  copyKey->start(k().offset(base, keyOffset()), rows(keyBase, keyStride), left,
                 isWritten);
  copyValue->start(k().offset(base, valueOffset()),
                   rows(valueBase, valueStride), left, isWritten);
  if (hasTokenDecay())
    copyDecays(first, left, stage);
  k().commitCopies();
}

void ChunkKernel::copyDecays(Value first, Value left, Value stage) {
  k().ifThen(k().less(thread, chunkTokens), [&] {
    Value token = k().extend(k().add(first, thread));
    Value from = k().offset(decayBase, k().mul(token, decayStride));
    Value index = k().add(k().mul(stage, chunkTokens), thread);
    Value to = k().offset(k().offset(shared, k().mul(index, 4)), decayOffset());
    copyGate(k(), to, from, decayType, k().less(thread, left));
  });
}

//===----------------------------------------------------------------------===//
// The state
//===----------------------------------------------------------------------===//

/// Pairs of columns of this lane's state, in order.
void ChunkKernel::forEachStatePair(
    const GlobalView &view, function_ref<void(int64_t, Value, Value)> body) {
  Value base = here.stateIn(k(), view, /*later=*/reads() ? 0 : 1);
  Value first =
      k().add(groupColumn, k().mul(stateColumnWarp, stateColumns() * 8));
  if (firstColumn)
    first = k().add(first, firstColumn);
  first = k().add(first, k().mul(fragmentPair, 2));
  Value rowBytes = k().mul(view.strides.end()[-2], k().i64(4));
  for (int64_t i = 0; i < stateRows(); ++i)
    for (int64_t half = 0; half < 2; ++half) {
      Value row = k().add(k().add(k().mul(stateRowWarp, 16), fragmentRow),
                          i * rowWarps() * 16 + half * 8);
      Value start = k().offset(base, k().mul(k().extend(row), rowBytes));
      Value rowExists =
          keySize < paddedKey() ? k().less(row, keySize) : Value();
      for (int64_t j = 0; j < stateColumns(); ++j) {
        Value column = k().add(first, 8 * j);
        Value exists = valueSize % slice()
                           ? k().both(rowExists, k().less(column, valueSize))
                           : rowExists;
        body(stateAt(i, j) + 2 * half,
             k().offset(start, k().mul(k().extend(column), k().i64(4))),
             exists);
      }
    }
}

ChunkKernel::Values ChunkKernel::loadState() {
  Value zero = k().f32(0);
  Values state(stateAt(stateRows(), 0), zero);
  // The segment's total decay follows the state.
  if (!reads() && hasDecay)
    state.push_back(k().f32(1));
  if (segments.part == Segments::Whole ? !source.buffer : !reads())
    return state;
  auto pair = VectorType::get({2}, k().b.getF32Type());
  Value zeros = k().vectorOf({zero, zero});
  GlobalView view =
      function.view(k(), stateIn == KernelFunction::none ? stateOut : stateIn);
  forEachStatePair(view, [&](int64_t at, Value address, Value exists) {
    Value x =
        k().ifElse(exists, [&] { return k().load(pair, address, 8); }, zeros);
    state[at] = k().element(x, 0);
    state[at + 1] = k().element(x, 1);
  });
  return state;
}

void ChunkKernel::storeState(ValueRange state) {
  // Of the blocks that share a state one writes it.
  Value writer = member ? k().equal(member, 0) : Value();
  if (segments.part == Segments::Outputs)
    writer = k().both(writer, k().equal(here.segment, schedule.getSplit() - 1));
  k().ifThen(writer, [&] {
    forEachStatePair(function.view(k(), stateOut),
                     [&](int64_t at, Value address, Value exists) {
                       k().ifThen(exists, [&] {
                         k().store(k().vectorOf({state[at], state[at + 1]}),
                                   address, 8);
                       });
                     });
  });
  if (reads() || !hasDecay)
    return;
  Value first = firstColumn ? k().equal(firstColumn, 0) : Value();
  k().ifThen(k().both(first, k().equal(thread, 0)), [&] {
    GlobalView view = function.view(k(), factors);
    k().store(state.back(),
              view.at(k(), {here.segment, here.sequence, here.head}), 4);
  });
}

/// The state as summands of 16 bits, for the products with the queries.
void ChunkKernel::spillState(ValueRange state) {
  LanePointer pointer(k(), stateTile(), k().offset(shared, stateOffset()),
                      spillPlace);
  for (int64_t i = 0; i < stateRows(); ++i)
    for (int64_t j = 0; j < stateColumns(); ++j)
      for (int64_t half = 0; half < 2; ++half) {
        int64_t at = stateAt(i, j) + 2 * half;
        Value to = pointer.at(i * rowWarps() * 16 + half * 8, j);
        for (auto [s, pair] : llvm::enumerate(splitPair(
                 k(), type, state[at], state[at + 1], readSummands())))
          k().store(pair, k().offset(to, s * stateTile().bytes()), 4);
      }
}

void ChunkKernel::run() {
  if (schedule.getStages() == 2)
    startChunk(k().i32(0), k().i32(0));
  Values state = loadState();
  Value chunks = k().div(k().add(here.count, chunkTokens - 1), chunkTokens);
  state = k().loop(chunks, state, [&](Value number, ValueRange carried) {
    return chunk(number, carried);
  });
  placeThread(); // Those of the loop are gone.
  // Nothing may arrive in shared memory after the block has gone.
  k().waitForCopies(0);
  storeState(state);
}

LaunchOp ChunkKernel::build(ModuleOp module, StringRef name) {
  declare();
  function.create(module, name, op.getLoc());
  OpBuilder b = OpBuilder::atBlockEnd(function.body());
  builder.emplace(b, op.getLoc());
  place();
  prepareCopies();
  here.ifExists(
      k(), [&] { run(); },
      [&] {
        if (!reads())
          return;
        clearRows(k(), thread, schedule.getWarps() * 32, slice(),
                  /*elementBytes=*/2,
                  {outputBase, outputStride, valueSize, here.count,
                   granuleOf(valueSize, type), firstColumn});
      });
  LLVM::ReturnOp::create(b, op.getLoc(), ValueRange());

  AffineExpr one = getAffineConstantExpr(1, module.getContext());
  AffineExpr blocks = locator.gridStates() * (members * slices());
  // The last segment adds to no other one.
  int64_t parts = schedule.getSplit() - (reads() ? 0 : 1);
  function.finish({blocks, one * parts, one}, schedule.getWarps() * 32,
                  allBytes());
  OpBuilder host(op);
  return function.launch(host, op.getLoc());
}

int64_t ChunkKernel::sharedBytes(ScanOp op, ScheduleAttr schedule) {
  return ChunkKernel(op, schedule, {}, {}).allBytes();
}

LaunchOp mlir::linattn::buildRowKernel(ScanOp op, ScheduleAttr schedule,
                                       const StateSource &source,
                                       const Segments &segments,
                                       ModuleOp module, StringRef name) {
  return ChunkKernel(op, schedule, source, segments).build(module, name);
}
