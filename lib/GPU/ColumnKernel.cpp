//===- ColumnKernel.cpp - Chunks by columns: places and copies ------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ColumnKernel.h"

using namespace mlir;
using namespace mlir::linattn;

ColumnKernel::ColumnKernel(ScanOp op, ScheduleAttr schedule,
                           const StateSource &source, const Segments &segments)
    : op(op), schedule(schedule), source(source), segments(segments),
      locator(op, function, schedule.getSplit(), schedule.getChunk()) {
  summandType = summandTypeOf(type);
  layOut();
}

//===----------------------------------------------------------------------===//
// Arguments and places
//===----------------------------------------------------------------------===//

/// Gives every part of shared memory its offset.
void ColumnKernel::layOut() {
  int64_t next = 0;
  auto take = [&](int64_t bytes, bool wanted = true) {
    int64_t offset = next;
    // Tiles begin where the banks do.
    next += wanted ? llvm::alignTo(bytes, 128) : 0;
    return offset;
  };
  take(rawTile().bytes(), reads());
  keyOffset = take(rawTile().bytes());
  valueOffset = take(valueTile().bytes());
  decayOffset = take(hasChannelDecay() ? decayTile().bytes() : 4 * tokens(),
                     hasChannelDecay() || hasTokenDecay());
  betaOffset = take(4 * tokens(), op.getBeta() != Value());
  stageBytes = next;
  next *= schedule.getStages();

  bool made = !takesTokens();
  queryTiles = take(querySummands() * tokenTile().bytes(), made && reads());
  writeTiles = take(stateSummands() * tokenTile().bytes(), made);
  // Without decays per channel the keys that read are those that write.
  bool readsOthers = made && isDelta() && hasChannelDecay();
  readTiles =
      readsOthers ? take(stateSummands() * tokenTile().bytes()) : writeTiles;

  sharedScores = take(blocks() * sharesBytes(), reads());
  finalScores = take(blocks() * finalBytes(), reads());
  diagonals = take(blocks() * sharers() * blockSize * 4, hasDiagonal());
  queryFactors = take(4 * tokens(), hasScalarDecay() && reads());
  keyFactors = take(4 * tokens(), hasScalarDecay() && reads());
  writeFactors = take(4 * tokens(), hasScalarDecay());
  int64_t width = hasChannelDecay() ? paddedKey() : 1;
  totals = take(4 * blocks() * width, op.getDecay() != Value());
  keySums = take(4 * blocks() * paddedKey(), normalizes());
  normalizers = take(4 * (blocks() + 1) * paddedKey(), normalizes());
  outputOffset = take(outputTile().bytes(), !isWide && reads());
  allBytes = next;
}

void ColumnKernel::declare() {
  int64_t keyAlign = granuleOf(keySize, type);
  int64_t valueAlign = granuleOf(valueSize, type);
  if (reads())
    q = function.addBuffer(op.getQuery(), Access::Read, keyAlign);
  key = function.addBuffer(op.getKey(), Access::Read, keyAlign);
  v = function.addBuffer(op.getValue(), Access::Read, valueAlign);
  if (reads())
    o = function.addBuffer(op.getOutput(), Access::Write, valueAlign);
  decay =
      function.addBuffer(op.getDecay(), Access::Read,
                         granuleOf(hasChannelDecay() ? keySize : 1, decayType));
  beta = function.addBuffer(op.getBeta(), Access::Read, granuleOf(1, betaType));
  bonus = reads() ? function.addBuffer(op.getBonus(), Access::Read, 4)
                  : KernelFunction::none;
  bool isWhole = segments.part == Segments::Whole;
  normalizerIn = isWhole || !reads() ? KernelFunction::none
                                     : function.addBuffer(segments.normalizers,
                                                          Access::Read, 4);
  normalizerOut =
      function.addBuffer(reads() ? op.getNormalizer() : segments.normalizers,
                         isWhole ? Access::ReadWrite : Access::Write, 4);
  written.addBuffers(op, function);
  std::tie(stateIn, stateOut) =
      addStates(function, op, source, segments, /*align=*/4);
  if (!reads())
    factors = function.addBuffer(segments.factors, Access::Write, 4);
}

void ColumnKernel::place() {
  shared = function.sharedBase(k());
  thread = k().thread();
  warp = k().shr(thread, 5);
  lane = k().band(thread, 31);
  placeLane();

  Value block = k().block(0);
  if (slices() > 1)
    firstColumn = k().mul(k().rem(block, slices()), slice());
  Value head = k().div(block, slices());
  if (members > 1)
    member = k().rem(head, members);
  here = locator.locate(k(), k().div(head, members));
  bonusView = function.view(k(), bonus);
}

void ColumnKernel::placeLane() {
  row = k().shr(lane, 2);
  pair = k().band(lane, 3);
  // Rows of four 8×8 matrices: first below one another, or first side by side.
  Value low15 = k().band(lane, 15), high = k().shr(lane, 4);
  Value low7 = k().band(lane, 7), bit3 = k().band(k().shr(lane, 3), 1);
  Value paired = k().add(low7, k().mul(high, 8));
  tokenPlace = tokenTile().place(k(), low15, high);
  turnedPlace = tokenTile().place(k(), paired, bit3);
  if (!isWide) {
    valuePlace =
        valueTile().place(k(), paired, k().add(k().mul(warp, 2), bit3));
    return;
  }
  valuePlace = placeOfTurned(k(), valueTile(), row, k().mul(warp, 4), pair);
}

void ColumnKernel::prepareCopies() {
  Value outHead = k().mul(here.head, members);
  if (member)
    outHead = k().add(outHead, member);
  int64_t perQuery =
      staticSize(op.getOutput(), 1) / staticSize(op.getQuery(), 1);
  auto rows = [&](unsigned handle, Value head) {
    return locator.rowsOf(k(), here, function.view(k(), handle), head);
  };
  if (reads())
    std::tie(queryBase, queryStride) = rows(q, k().div(outHead, perQuery));
  std::tie(keyBase, keyStride) =
      rows(key, locator.headOf(k(), op.getKey(), here.head));
  std::tie(valueBase, valueStride) =
      rows(v, locator.headOf(k(), op.getValue(), here.head));
  if (reads())
    std::tie(outputBase, outputStride) = rows(o, outHead);
  Value firstNarrow;
  if (firstColumn) {
    Value bytes = k().mul(firstColumn, elementBytes());
    valueBase = k().offset(valueBase, bytes);
    if (reads())
      outputBase = k().offset(outputBase, bytes);
    // Slices that divide the columns evenly hold nothing that does not exist.
    if (valueSize % slice())
      firstNarrow = k().div(bytes, 2);
  }
  // Tiles count columns of 16 bits.
  auto copy = [&](SharedTile tile, Value stride, int64_t size, Type element,
                  Value first = {}) {
    return TileCopy(k(), tile, warps() * 32, granuleOf(size, element), thread,
                    stride, size * element.getIntOrFloatBitWidth() / 16, first);
  };
  if (reads())
    copyQuery.emplace(copy(rawTile(), queryStride, keySize, type));
  copyKey.emplace(copy(rawTile(), keyStride, keySize, type));
  copyValue.emplace(
      copy(valueTile(), valueStride, valueSize, type, firstNarrow));
  written.place(k(), locator, here);
  if (op.getBeta())
    std::tie(betaBase, betaStride) = rows(beta, here.head);
  if (hasChannelDecay() || hasTokenDecay())
    std::tie(decayBase, decayStride) = rows(decay, here.head);
  if (hasChannelDecay())
    copyDecay.emplace(copy(decayTile(), decayStride, keySize, decayType));
  else if (hasScalarDecay() && !hasTokenDecay()) {
    GlobalView view = function.view(k(), decay);
    headDecay = k().load(view.element, view.at(k(), {here.head}),
                         granuleOf(1, decayType));
    headDecay = k().convert(headDecay, k().b.getF32Type());
  }
}

//===----------------------------------------------------------------------===//
// Arrival of a chunk
//===----------------------------------------------------------------------===//

Value ColumnKernel::stageBase(Value stage) {
  return schedule.getStages() == 1
             ? shared
             : k().offset(shared, k().mul(stage, stageBytes));
}

void ColumnKernel::startChunk(Value number, Value stage) {
  Value first = k().mul(number, tokens());
  Value left = k().sub(here.count, first), wide = k().extend(first);
  Value base = stageBase(stage);
  auto rows = [&](Value start, Value stride) {
    return k().offset(start, k().mul(wide, stride));
  };
  if (copyQuery)
    copyQuery->start(base, rows(queryBase, queryStride), left);
  auto isWritten = written.from(k(), first);
  copyKey->start(k().offset(base, keyOffset), rows(keyBase, keyStride), left,
                 isWritten);
  copyValue->start(k().offset(base, valueOffset), rows(valueBase, valueStride),
                   left, isWritten);
  if (copyDecay)
    copyDecay->start(k().offset(base, decayOffset),
                     rows(decayBase, decayStride), left);
  k().ifThen(k().less(thread, tokens()), [&] {
    Value exists = k().less(thread, left);
    if (hasTokenDecay())
      copyScalars(decayBase, decayStride, decayOffset, decayType, first, exists,
                  base);
    if (betaBase)
      copyScalars(betaBase, betaStride, betaOffset, betaType, first,
                  isWritten(thread, exists), base);
  });
  k().commitCopies();
}

void ColumnKernel::copyScalars(Value from, Value stride, int64_t offset,
                               Type element, Value first, Value exists,
                               Value base) {
  Value token = k().extend(k().add(first, thread));
  Value to = k().offset(k().offset(base, k().mul(thread, 4)), offset);
  copyGate(k(), to, k().offset(from, k().mul(token, stride)), element, exists);
}

void ColumnKernel::arrive(Value number, Value stage) {
  Value count = k().div(k().add(here.count, tokens() - 1), tokens());
  awaitTiles(k(), schedule.getStages(), number, stage, count,
             [&](Value number, Value stage) { startChunk(number, stage); });
}

//===----------------------------------------------------------------------===//
// State and normalizer
//===----------------------------------------------------------------------===//

/// This lane's elements of the state: columns × channels, as matrices of 16
/// channels each.
void ColumnKernel::forEachState(
    const GlobalView &view, function_ref<void(int64_t, Value, Value)> body) {
  Value base = here.stateIn(k(), view, /*later=*/reads() ? 0 : 1);
  Value column = k().add(k().mul(warp, blockSize), row);
  if (firstColumn)
    column = k().add(column, firstColumn);
  Value rowBytes = k().mul(view.strides.end()[-2], k().i64(4));
  Value from = k().offset(base, k().mul(k().extend(column), k().i64(4)));
  std::array<Value, 2> columnExists;
  for (int64_t half = 0; half < 2 && valueSize % slice(); ++half)
    columnExists[half] = k().less(k().add(column, 8 * half), valueSize);
  for (int64_t i = 0; i < 8 * steps(); ++i) {
    int64_t half = i / 2 % 2;
    Value channel =
        k().add(k().mul(pair, 2), i / 8 * blockSize + i / 4 % 2 * 8 + i % 2);
    Value exists = keySize < paddedKey() ? k().less(channel, keySize) : Value();
    Value address = k().offset(from, k().mul(k().extend(channel), rowBytes));
    body(i, k().offset(address, 32 * half),
         k().both(exists, columnExists[half]));
  }
}

ColumnKernel::Values ColumnKernel::loadState() {
  Value zero = k().f32(0);
  Values state(8 * steps(), zero);
  state.append(factorCount(), k().f32(1));
  if (segments.part == Segments::Whole ? !source.buffer : !reads())
    return state;
  unsigned handle = stateIn == KernelFunction::none ? stateOut : stateIn;
  forEachState(
      function.view(k(), handle), [&](int64_t i, Value address, Value exists) {
        state[i] = k().ifElse(exists, [&] { return loadFloat(address); }, zero);
      });
  return state;
}

Value ColumnKernel::isWriter() {
  Value writer = member ? k().equal(member, 0) : Value();
  if (segments.part == Segments::Outputs)
    writer = k().both(writer, k().equal(here.segment, schedule.getSplit() - 1));
  return writer;
}

void ColumnKernel::storeState(ValueRange state) {
  k().ifThen(isWriter(), [&] {
    forEachState(function.view(k(), stateOut),
                 [&](int64_t i, Value address, Value exists) {
                   k().ifThen(exists, [&] { k().store(state[i], address, 4); });
                 });
  });
  if (factorCount())
    k().ifThen(firstColumn ? k().equal(firstColumn, 0) : Value(),
               [&] { storeFactors(state.take_back(factorCount())); });
}

/// Stores the segment's total decay.
void ColumnKernel::storeFactors(ValueRange values) {
  GlobalView view = function.view(k(), factors);
  SmallVector<Value> place{here.segment, here.sequence, here.head};
  if (!hasChannelDecay()) {
    k().ifThen(k().equal(thread, 0),
               [&] { k().store(values[0], view.at(k(), place), 4); });
    return;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    Value channel = k().add(thread, i * warps() * 32);
    place.push_back(channel);
    k().ifThen(k().less(channel, keySize),
               [&] { k().store(values[i], view.at(k(), place), 4); });
    place.pop_back();
  }
}

void ColumnKernel::forEachChannel(function_ref<void(Value)> body) {
  int64_t threads = warps() * 32;
  for (int64_t done = 0; done < paddedKey(); done += threads) {
    Value channel = k().add(thread, done);
    k().ifThen(done + threads <= paddedKey() ? Value()
                                             : k().less(channel, paddedKey()),
               [&] { body(channel); });
  }
}

/// The normalizer stands behind those of a chunk's blocks.
void ColumnKernel::loadNormalizer() {
  unsigned handle =
      normalizerIn == KernelFunction::none ? normalizerOut : normalizerIn;
  GlobalView view = function.view(k(), handle);
  forEachChannel([&](Value channel) {
    Value exists = keySize < paddedKey() ? k().less(channel, keySize) : Value();
    Value z = k().f32(0);
    if (reads())
      z = k().ifElse(
          exists, [&] { return loadFloat(normalizerAt(view, channel)); }, z);
    k().store(z, at(normalizers, k().add(channel, blocks() * paddedKey())), 4);
  });
}

void ColumnKernel::storeNormalizer() {
  GlobalView view = function.view(k(), normalizerOut);
  k().ifThen(isWriter(), [&] {
    forEachChannel([&](Value channel) {
      Value exists =
          keySize < paddedKey() ? k().less(channel, keySize) : Value();
      k().ifThen(exists, [&] {
        Value z = loadFloat(
            at(normalizers, k().add(channel, blocks() * paddedKey())));
        k().store(z, normalizerAt(view, channel), 4);
      });
    });
  });
}

/// In a view of normalizers, or in one of those of segments: of the segment
/// that is read, or of the one behind that which is summed.
Value ColumnKernel::normalizerAt(const GlobalView &view, Value channel) {
  if (view.strides.size() == 3)
    return view.at(k(), {here.slot, here.head, channel});
  return view.at(k(), {k().add(here.segment, reads() ? 0 : 1), here.sequence,
                       here.head, channel, k().i32(0)});
}

void ColumnKernel::run() {
  if (schedule.getStages() == 2)
    startChunk(k().i32(0), k().i32(0));
  Values state = loadState();
  if (normalizes())
    loadNormalizer();
  Value chunks = k().div(k().add(here.count, tokens() - 1), tokens());
  state = k().loop(chunks, state, [&](Value number, ValueRange carried) {
    return chunk(number, carried);
  });
  // Nothing may arrive in shared memory after the block has gone.
  k().waitForCopies(0);
  storeState(state);
  if (normalizes())
    storeNormalizer();
}

LaunchOp ColumnKernel::build(ModuleOp module, StringRef name) {
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
        clearRows(k(), thread, warps() * 32, slice(), elementBytes(),
                  {outputBase, outputStride, valueSize, here.count,
                   granuleOf(valueSize, type), firstColumn});
      });
  LLVM::ReturnOp::create(b, op.getLoc(), ValueRange());

  AffineExpr one = getAffineConstantExpr(1, module.getContext());
  AffineExpr grid = locator.gridStates() * (members * slices());
  // The last segment adds to no other one.
  int64_t parts = schedule.getSplit() - (reads() ? 0 : 1);
  function.finish({grid, one * parts, one}, warps() * 32, allBytes);
  OpBuilder host(op);
  return function.launch(host, op.getLoc());
}

LaunchOp mlir::linattn::buildColumnKernel(ScanOp op, ScheduleAttr schedule,
                                          const StateSource &source,
                                          const Segments &segments,
                                          ModuleOp module, StringRef name) {
  return ColumnKernel(op, schedule, source, segments).build(module, name);
}
