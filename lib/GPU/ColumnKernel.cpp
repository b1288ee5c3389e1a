//===- ColumnKernel.cpp - Chunks by columns: places and copies ------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ColumnKernel.h"
#include "linattn/GPU/Machine.h"

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// Code of all parts
//===----------------------------------------------------------------------===//

Value ColumnFrame::at(Place place, Value index, int64_t bytes) {
  return k.offset(k.offset(bases[place.area], k.mul(index, bytes)),
                  offsetOf(place));
}

Value ColumnFrame::loadFloat(Value address) {
  return k.load(k.b.getF32Type(), address, 4);
}

std::pair<Value, Value> ColumnFrame::loadPair(Value address) {
  Value x = k.load(VectorType::get({2}, k.b.getF32Type()), address, 8);
  return {k.element(x, 0), k.element(x, 1)};
}

Summands ColumnFrame::split(ValueRange matrix, int64_t count) {
  return linattn::split(k, summandType(), matrix, count);
}

Matrix ColumnFrame::join(const Summands &summands) {
  return linattn::join(k, summandType(), summands);
}

void ColumnFrame::multiply(MutableArrayRef<Value> c, const Summands &a,
                           const Summands &b, int64_t terms, int64_t halves) {
  auto add = isWide() || terms == allSummands ? addProduct : accumulate;
  add(k, summandType(), c, a, b, terms, halves);
}

Matrix ColumnFrame::product(const Summands &a, const Summands &b) {
  return linattn::product(k, summandType(), a, b, stateSummands());
}

Value ColumnFrame::approximateExp(Value c) {
  return k.exp2Approximate(hasBinaryDecays() ? c : k.mulf(c, k.f32(log2e)));
}

Value ColumnFrame::decayFactor(Value c) {
  return stateSummands() == 1 ? approximateExp(c) : k.exp(c);
}

void ColumnFrame::forEachChannel(function_ref<void(Value)> body) {
  int64_t threads = warps() * 32;
  for (int64_t done = 0; done < paddedKey(); done += threads) {
    Value channel = k.add(scan.thread, done);
    k.ifThen(done + threads <= paddedKey() ? Value()
                                           : k.less(channel, paddedKey()),
             [&] { body(channel); });
  }
}

//===----------------------------------------------------------------------===//
// Places and copies
//===----------------------------------------------------------------------===//

ColumnKernel::ColumnKernel(const ColumnShape &shape, KernelBuilder &k,
                           ScanLocator &locator, WrittenTokens &written)
    : ColumnFrame(shape, k, locator, written), lane(k.band(scan.thread, 31)),
      row(k.shr(lane, 2)), pair(k.band(lane, 3)) {
  scan.place(k, *this, locator);
  if (reads())
    bonus = locator.function.view(k, op.getBonus());
}

void ColumnKernel::findTokens() {
  arrays = scan.findTokens(k, *this, locator);
  written.place(k, locator, scan.here);
  headDecay = scan.loadHeadDecay(k, *this, locator.function);
}

/// Where scores are ahead the state still reads the chunk before.
TileStages ColumnKernel::stagesOf(Area area) {
  TileStages ring{areas[area].count, scan.shared, areas[area].bytes};
  ring.behind = ring.coming() - comingTiles();
  return ring;
}

/// Warps that are ahead have a second ring, of what they alone read.
StagePlace ColumnKernel::stagePlace(Place place) {
  return {offsetOf(place), place.area == ScoreStages};
}

/// The copies of `threads` threads, of which `thread` is one.
TilePipeline ColumnKernel::makePipeline(Area area, Value thread,
                                        int64_t threads) {
  return TilePipeline(k, stagesOf(area), {tokens(), scan.here.count},
                      TilePipeline::Engine::CpAsync, thread, threads);
}

/// Copies values, and gates per value column. Those of a transition are 0.
void ColumnKernel::copyValues(TilePipeline &tiles) {
  TilePipeline::Filter filter = written.filter(k);
  if (Value isTransition = scan.isTransition)
    filter = [this, isTransition, filter](Value number, Value exists) {
      exists = k.both(exists, k.negate(isTransition));
      return filter ? filter(number, exists) : exists;
    };
  Value firstNarrow;
  // Slices that divide the columns evenly hold nothing that does not exist.
  if (scan.firstColumn && isRagged())
    firstNarrow = k.div(k.mul(scan.firstColumn, elementBytes()), 2);
  tiles.add(stagePlace(arrived.value), valueTile(), arrays.value, valueSize(),
            type(), firstNarrow, filter);
  copyColumns(tiles, op.getWrite(), arrived.write, filter);
  // A masked token decays the state all the same.
  copyColumns(tiles, op.getValueDecay(), arrived.valueDecay, {});
}

/// Copies queries, keys, given vectors, erase gates, and decays and betas of
/// tokens and channels, the operands of scores.
void ColumnKernel::copyScored(TilePipeline &tiles) {
  TilePipeline::Filter filter = written.filter(k);
  if (reads())
    tiles.add(stagePlace(arrived.query), rawTile(), arrays.query, keySize(),
              type());
  tiles.add(stagePlace(arrived.key), rawTile(), arrays.key, keySize(), type(),
            {}, filter);
  auto rows = [&](Value gate) {
    return locator.rowsOf(k, scan.here, locator.function.view(k, gate),
                          scan.here.head);
  };
  Rows betas, decays;
  if (op.getBeta())
    betas = rows(op.getBeta());
  if (hasChannelDecay() || hasTokenDecay())
    decays = rows(op.getDecay());
  if (hasChannelDecay())
    tiles.add(stagePlace(arrived.decay), decayTile(), decays, keySize(),
              decayType());
  copyVectors(tiles, filter);
  tiles.alsoStart([=](const TilePipeline::Arrival &arrival) {
    k.ifThen(k.less(arrival.thread, this->tokens()), [&] {
      Value exists = k.less(arrival.thread, arrival.left);
      if (hasTokenDecay())
        copyScalars(arrival, decays, arrived.decay, decayType(), exists);
      if (!op.getBeta())
        return;
      if (filter)
        exists = filter(k.add(arrival.first, arrival.thread), exists);
      copyScalars(arrival, betas, arrived.beta, betaType(), exists);
    });
  });
}

/// Given vectors, and gates of the keys of a delta rule.
void ColumnKernel::copyVectors(TilePipeline &tiles,
                               const TilePipeline::Filter &filter) {
  auto add = [&](Value gate, Place place) {
    if (!gate)
      return;
    GlobalView view = locator.function.view(k, gate);
    tiles.add(stagePlace(place), gateTile(gate),
              locator.rowsOf(k, scan.here, view, scan.here.head), keySize(),
              typeOf(gate), {}, filter);
  };
  add(readerOperand(), arrived.reader);
  add(op.getB(), arrived.push);
}

/// A gate per value column, if there is one.
void ColumnKernel::copyColumns(TilePipeline &tiles, Value gate, Place place,
                               const TilePipeline::Filter &filter) {
  if (!gate)
    return;
  Type element = typeOf(gate);
  GlobalView view = locator.function.view(k, gate);
  Rows rows = locator.rowsOf(k, scan.here, view, scan.here.head);
  Value firstNarrow;
  if (scan.firstColumn) {
    rows.base = k.offset(rows.base, k.mul(scan.firstColumn, view.bytes()));
    if (isRagged())
      firstNarrow = k.mul(scan.firstColumn, view.bytes() / 2);
  }
  tiles.add(stagePlace(place), columnTile(element), rows, valueSize(), element,
            firstNarrow, filter);
}

void ColumnKernel::copyScalars(const TilePipeline::Arrival &arrival,
                               const Rows &gate, Place place, Type element,
                               Value exists) {
  Value token = k.extend(k.add(arrival.first, arrival.thread));
  StagePlace stage = stagePlace(place);
  Value to = k.offset(arrival.bases[stage.ring], k.mul(arrival.thread, 4));
  to = k.offset(to, stage.offset);
  copyGate(k, to, gate.at(k, token), element, exists);
}

//===----------------------------------------------------------------------===//
// State and normalizer
//===----------------------------------------------------------------------===//

/// Of the first of this lane's rows in a matrix of the state.
Value ColumnKernel::stateColumn() {
  Value column = k.add(k.mul(warp, blockSize), row);
  return scan.firstColumn ? k.add(column, scan.firstColumn) : column;
}

/// Of element `i` of this lane.
Value ColumnKernel::stateChannel(int64_t i) {
  return k.add(k.mul(pair, 2), i / 8 * blockSize + i / 4 % 2 * 8 + i % 2);
}

/// This lane's elements of the state: columns × channels, as matrices of 16
/// channels each.
void ColumnKernel::forEachState(
    const GlobalView &view, function_ref<void(int64_t, Value, Value)> body) {
  Value base = scan.here.stateIn(k, view, /*later=*/reads() ? 0 : 1);
  Value rowStride = view.strides.end()[-2], columns = k.i32(valueSize());
  bool isWhole = !isRagged();
  if (scan.isTransition) {
    GlobalView others =
        locator.function.view(k, segments.transitions, /*isWritten=*/true);
    auto choose = [&](Value x, Value y) {
      return k.select(scan.isTransition, x, y);
    };
    base = choose(scan.here.stateIn(k, others), base);
    rowStride = choose(others.strides.end()[-2], rowStride);
    columns = choose(k.i32(keySize()), columns);
    isWhole &= keySize() % slice() == 0;
  }
  Value column = stateColumn();
  Value rowBytes = k.mul(rowStride, k.i64(4));
  Value from = k.offset(base, k.mul(k.extend(column), k.i64(4)));
  std::array<Value, 2> columnExists;
  for (int64_t half = 0; half < 2 && !isWhole; ++half)
    columnExists[half] = k.less(k.add(column, 8 * half), columns);
  for (int64_t i = 0; i < 8 * steps(); ++i) {
    int64_t half = i / 2 % 2;
    Value channel = stateChannel(i);
    Value exists =
        keySize() < paddedKey() ? k.less(channel, keySize()) : Value();
    Value address = k.offset(from, k.mul(k.extend(channel), rowBytes));
    body(i, k.offset(address, 32 * half), k.both(exists, columnExists[half]));
  }
}

/// Columns of the identity, in the blocks of a transition.
ColumnKernel::Values ColumnKernel::makeIdentity() {
  Value column = stateColumn();
  Values state;
  for (int64_t i = 0; i < 8 * steps(); ++i) {
    Value apart = k.bxor(stateChannel(i), k.add(column, i / 2 % 2 * 8));
    Value isOne = k.both(scan.isTransition, k.equal(apart, 0));
    state.push_back(k.select(isOne, k.f32(1), k.f32(0)));
  }
  return state;
}

ColumnKernel::Values ColumnKernel::loadState() {
  if (scan.isTransition)
    return makeIdentity();
  Value zero = k.f32(0);
  Values state(8 * steps(), zero);
  state.append(factorCount(), k.f32(1));
  if (!stateIn())
    return state;
  forEachState(locator.function.view(k, stateIn()),
               [&](int64_t i, Value address, Value exists) {
                 state[i] =
                     k.ifElse(exists, [&] { return loadFloat(address); }, zero);
               });
  return state;
}

void ColumnKernel::storeState(ValueRange state) {
  k.ifThen(scan.isWriter(k, *this), [&] {
    forEachState(locator.function.view(k, stateOut(), /*isWritten=*/true),
                 [&](int64_t i, Value address, Value exists) {
                   k.ifThen(exists, [&] { k.store(state[i], address, 4); });
                 });
  });
  if (factorCount())
    k.ifThen(scan.firstColumn ? k.equal(scan.firstColumn, 0) : Value(),
             [&] { storeFactors(state.take_back(factorCount())); });
}

/// Stores the segment's total decay.
void ColumnKernel::storeFactors(ValueRange values) {
  GlobalView view = locator.function.view(k, segments.factors);
  SmallVector<Value> place{scan.here.segment, scan.here.sequence,
                           scan.here.head};
  if (!hasChannelDecay()) {
    k.ifThen(k.equal(scan.thread, 0),
             [&] { k.store(values[0], view.at(k, place), 4); });
    return;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    Value channel = k.add(scan.thread, i * warps() * 32);
    place.push_back(channel);
    k.ifThen(k.less(channel, keySize()),
             [&] { k.store(values[i], view.at(k, place), 4); });
    place.pop_back();
  }
}

/// The normalizer stands behind those of a chunk's blocks.
void ColumnKernel::loadNormalizer() {
  // Increments have none: they start from 0.
  GlobalView view = locator.function.view(k, segments.part == Segments::Whole
                                                 ? Value(op.getNormalizer())
                                                 : segments.normalizers);
  forEachChannel([&](Value channel) {
    Value exists =
        keySize() < paddedKey() ? k.less(channel, keySize()) : Value();
    Value z = k.f32(0);
    if (reads())
      z = k.ifElse(
          exists, [&] { return loadFloat(normalizerAt(view, channel)); }, z);
    k.store(z, at(layout.normalizers, k.add(channel, blocks() * paddedKey())),
            4);
  });
}

void ColumnKernel::storeNormalizer() {
  GlobalView view = locator.function.view(
      k, reads() ? Value(op.getNormalizer()) : segments.normalizers,
      /*isWritten=*/true);
  k.ifThen(scan.isWriter(k, *this), [&] {
    forEachChannel([&](Value channel) {
      Value exists =
          keySize() < paddedKey() ? k.less(channel, keySize()) : Value();
      k.ifThen(exists, [&] {
        Value z = loadFloat(
            at(layout.normalizers, k.add(channel, blocks() * paddedKey())));
        k.store(z, normalizerAt(view, channel), 4);
      });
    });
  });
}

/// In a view of normalizers, or in one of those of segments: of the segment
/// that is read, or of the one behind that which is summed.
Value ColumnKernel::normalizerAt(const GlobalView &view, Value channel) {
  if (view.strides.size() == 3)
    return view.at(k, {scan.here.slot, scan.here.head, channel});
  return view.at(k, {k.add(scan.here.segment, reads() ? 0 : 1),
                     scan.here.sequence, scan.here.head, channel, k.i32(0)});
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

/// The places of one half of the work would fill the registers of the other.
void ColumnKernel::makeScores(const ColumnFrame &frame, Value number) {
  Value left = k.sub(scan.here.count, k.mul(number, tokens()));
  ColumnScores(frame, left, k.keepInLoop(lane)).run();
}

ColumnKernel::Values ColumnKernel::advance(const ColumnFrame &frame,
                                           Value number, ValueRange state) {
  return ColumnSteps(frame, number, k.keepInLoop(lane)).run(state);
}

void ColumnKernel::runChunks() {
  TilePipeline tiles = makePipeline(TokenStages, scan.thread, threads());
  copyScored(tiles);
  copyValues(tiles);
  tiles.begin();
  Values state = loadState();
  if (normalizes())
    loadNormalizer();
  state = tiles.loop(state, [&](Value number, ValueRange carried) {
    bases[TokenStages] = tiles.arrive(number);
    makeScores(*this, number);
    return advance(*this, number, carried);
  });
  tiles.drain();
  storeState(state);
  if (normalizes())
    storeNormalizer();
}

//===----------------------------------------------------------------------===//
// Scores ahead of the state
//===----------------------------------------------------------------------===//

/// With the stages of a chunk, and the copy of its scores.
ColumnFrame ColumnKernel::frameOf(Value number) {
  ColumnFrame frame = *this;
  for (Area area : {TokenStages, ScoreStages, ValueStages}) {
    TileStages ring = stagesOf(area);
    frame.bases[area] = ring.baseOf(k, ring.stageOf(k, number));
  }
  frame.bases[Copied] =
      k.offset(scan.shared, k.mul(k.band(number, 1), areas[Copied].bytes));
  return frame;
}

/// Makes the scores of a chunk while the others advance by the one before.
void ColumnKernel::runScores() {
  TilePipeline tiles = makePipeline(
      TokenStages, k.sub(scan.thread, k.i32(warpSize * stateWarps())),
      warpSize * scoreWarps());
  tiles.addRing(stagesOf(ScoreStages));
  copyScored(tiles);
  tiles.begin();
  tiles.loop({}, [&](Value number, ValueRange) {
    tiles.arrive(number);
    ColumnFrame frame = frameOf(number);
    frame.warp = k.sub(warp, k.i32(stateWarps()));
    makeScores(frame, number);
    return Values();
  });
  tiles.arrive(tiles.tileCount());
  tiles.drain();
}

/// Advances by a chunk, once its scores are made.
void ColumnKernel::runStates() {
  TilePipeline tiles =
      makePipeline(ValueStages, scan.thread, warpSize * stateWarps());
  copyValues(tiles);
  tiles.begin();
  Values state = loadState();
  k.barrier(); // The others begin.
  state = tiles.loop(state, [&](Value number, ValueRange carried) {
    tiles.arrive(number);
    return advance(frameOf(number), number, carried);
  });
  tiles.drain();
  storeState(state);
}

/// Both loops meet at the same barriers of the block.
void ColumnKernel::runAhead() {
  Value hasState = k.less(warp, stateWarps());
  k.ifThen(hasState, [&] { runStates(); });
  k.ifThen(k.negate(hasState), [&] { runScores(); });
}

void ColumnKernel::run() {
  findTokens();
  auto run = [&] { isAhead() ? runAhead() : runChunks(); };
  auto clear = [&] {
    if (reads())
      clearRows(k, scan.thread, threads(), slice(), elementBytes(),
                {arrays.output.base, arrays.output.stride, valueSize(),
                 scan.here.count, granuleOf(valueSize(), type()),
                 scan.firstColumn});
  };
  scan.here.ifExists(k, run, clear);
}

LaunchOp mlir::linattn::buildColumnKernel(ScanOp op, ScheduleAttr schedule,
                                          const StateSource &source,
                                          const Segments &segments,
                                          ModuleOp module, StringRef name) {
  ColumnShape shape({{op, schedule}, source, segments});
  KernelFunction function;
  ScanLocator locator(op, function, schedule.getSplit(), shape.tokens());
  WrittenTokens written;
  bool isWhole = segments.part == Segments::Whole;
  shape.addTokens(function);
  function.addBuffer(op.getDecay(), Access::Read,
                     granuleOf(shape.hasChannelDecay() ? shape.keySize() : 1,
                               shape.decayType()));
  function.addBuffer(op.getBeta(), Access::Read,
                     granuleOf(1, shape.betaType()));
  for (Value gate : {shape.readerOperand(), Value(op.getB())})
    function.addBuffer(gate, Access::Read,
                       granuleOf(shape.keySize(), shape.typeOf(gate)));
  for (Value gate : {op.getWrite(), op.getValueDecay()})
    function.addBuffer(gate, Access::Read,
                       granuleOf(shape.valueSize(), shape.typeOf(gate)));
  if (shape.reads())
    function.addBuffer(op.getBonus(), Access::Read, 4);
  if (segments.part == Segments::Outputs)
    function.addBuffer(segments.normalizers, Access::Read, 4);
  function.addBuffer(shape.reads() ? Value(op.getNormalizer())
                                   : segments.normalizers,
                     isWhole ? Access::ReadWrite : Access::Write, 4);
  written.addBuffers(op, function);
  shape.addStates(function, /*align=*/4);
  if (!shape.reads())
    for (Value buffer : {segments.factors, segments.transitions})
      function.addBuffer(buffer, Access::Write, 4);
  function.emit(module, name, op.getLoc(), [&](KernelBuilder &k) {
    ColumnKernel(shape, k, locator, written).run();
  });
  return shape.launch(function, locator, shape.sharedBytes());
}
