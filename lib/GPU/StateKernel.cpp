//===- StateKernel.cpp - Sums of keys and values --------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StateKernel.h"
#include "AttentionKernels.h"

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// Places and copies
//===----------------------------------------------------------------------===//

StateKernel::StateKernel(const StateShape &shape, KernelBuilder &k,
                         KernelFunction &function)
    : StateShape(shape), k(k), function(function) {
  here.shared = function.sharedBase(k);
  here.thread = k.thread();
  lane.number = k.band(here.thread, 31);
  lane.row = k.shr(lane.number, 2);
  lane.pair = k.band(lane.number, 3);
  here.tokens = function.size(k, op.getKey(), 2);
  here.mask = function.view(k, op.getMask());

  Value block = k.block(0);
  if (slices() > 1)
    here.firstColumn = k.mul(k.rem(block, slices()), slice());
  Value state = k.div(block, slices());
  here.head = k.rem(state, heads());
  here.batch = k.div(state, heads());
  placeFragments();
}

void StateKernel::placeFragments() {
  Value warp = k.shr(here.thread, 5), strip = k.band(warp, groupWarps - 1);
  lane.rowWarp = k.rem(strip, rowWarps());
  lane.column = k.add(k.mul(k.div(warp, groupWarps), groupColumns()),
                      k.mul(k.div(strip, rowWarps()), stateColumns() * 16));
  if (isWide()) {
    lane.key = transposedOffset(k, keyTile(), lane.row, k.mul(lane.rowWarp, 4),
                                lane.pair);
    lane.value = transposedOffset(k, valueTile(), lane.row,
                                  k.div(lane.column, 4), lane.pair);
    return;
  }
  // Rows of four 8×8 matrices: tokens, transposed on the way.
  Value bit3 = k.band(k.shr(lane.number, 3), 1);
  Value token = k.add(k.band(lane.number, 7), k.mul(k.shr(lane.number, 4), 8));
  lane.key = keyTile().place(k, token, k.add(k.mul(lane.rowWarp, 2), bit3));
  lane.value = valueTile().place(k, token, k.add(k.div(lane.column, 8), bit3));
}

TilePipeline StateKernel::prepareCopies() {
  auto rows = [&](Value buffer) {
    GlobalView view = function.view(k, buffer);
    Value mine = k.div(here.head, heads() / staticSize(buffer, 1));
    return Rows{view.at(k, {here.batch, mine}),
                k.mul(view.strides[2], k.i64(view.bytes()))};
  };
  Rows keys = rows(op.getKey()), values = rows(op.getValue());
  Value firstNarrow;
  if (here.firstColumn) {
    values.base =
        k.offset(values.base, k.mul(here.firstColumn, elementBytes()));
    // Slices that divide the columns evenly hold nothing that does not exist.
    if (isRagged())
      firstNarrow = k.mul(here.firstColumn, elementBytes() / 2);
  }
  TilePipeline tiles(k, {stages(), here.shared, stageBytes()},
                     {tokens(), here.tokens}, TilePipeline::Engine::CpAsync,
                     here.thread, threads());
  tiles.add(0, keyTile(), keys, keySize(), type());
  tiles.add(keyTile().bytes(), valueTile(), values, valueSize(), type(),
            firstNarrow);
  return tiles;
}

//===----------------------------------------------------------------------===//
// The state
//===----------------------------------------------------------------------===//

/// Pairs of columns of this lane's state.
void StateKernel::forEachState(const GlobalView &view, Visitor body) {
  Value base = view.at(k, {here.batch, here.head});
  Value first = k.add(lane.column, k.mul(lane.pair, 2));
  if (here.firstColumn)
    first = k.add(first, here.firstColumn);
  Value rowBytes = k.mul(view.strides[2], k.i64(4));
  for (int64_t i = 0; i < stateRows(); ++i)
    for (int64_t lower = 0; lower < 2; ++lower) {
      Value number = k.add(k.add(k.mul(lane.rowWarp, 16), lane.row),
                           i * rowWarps() * 16 + lower * 8);
      Value start = k.offset(base, k.mul(k.extend(number), rowBytes));
      Value rowExists =
          keySize() < paddedKey() ? k.less(number, keySize()) : Value();
      for (int64_t n = 0; n < 2 * stateColumns(); ++n) {
        Value column = k.add(first, 8 * n);
        Value exists = isRagged()
                           ? k.both(rowExists, k.less(column, valueSize()))
                           : rowExists;
        body(stateAt(i, 0) + 4 * n + 2 * lower,
             k.offset(start, k.mul(k.extend(column), k.i64(4))), exists);
      }
    }
}

/// This lane's rows of the normalizer, of which four lanes have the same.
void StateKernel::forEachNormalizer(const GlobalView &view, Visitor body) {
  for (int64_t i = 0; i < stateRows(); ++i)
    for (int64_t lower = 0; lower < 2; ++lower) {
      Value number = k.add(k.add(k.mul(lane.rowWarp, 16), lane.row),
                           i * rowWarps() * 16 + lower * 8);
      Value exists =
          keySize() < paddedKey() ? k.less(number, keySize()) : Value();
      body(normalizerAt(i) + 2 * lower,
           view.at(k, {here.batch, here.head, number}), exists);
    }
}

StateKernel::Values StateKernel::loadState(const GlobalView &from,
                                           const GlobalView &normalizer) {
  Value zero = k.f32(0);
  Values state(carriedValues(), zero);
  Value zeros = k.vectorOf({zero, zero});
  if (from)
    forEachState(from, [&](int64_t at, Value address, Value exists) {
      Value x = k.ifElse(
          exists, [&] { return k.load(zeros.getType(), address, 8); }, zeros);
      state[at] = k.element(x, 0);
      state[at + 1] = k.element(x, 1);
    });
  if (normalizer)
    forEachNormalizer(normalizer, [&](int64_t at, Value address, Value exists) {
      state[at] = k.ifElse(
          exists, [&] { return k.load(zero.getType(), address, 4); }, zero);
    });
  return state;
}

void StateKernel::storeState(ValueRange state) {
  forEachState(function.view(k, op.getState()),
               [&](int64_t at, Value address, Value exists) {
                 k.ifThen(exists, [&] {
                   k.store(k.vectorOf({state[at], state[at + 1]}), address, 8);
                 });
               });
  if (!op.getNormalizer())
    return;
  // Of the blocks and warps that have the same rows one writes them.
  Value writes = k.both(k.equal(lane.pair, 0), k.equal(lane.column, 0));
  if (here.firstColumn)
    writes = k.both(writes, k.equal(here.firstColumn, 0));
  k.ifThen(writes, [&] {
    forEachNormalizer(function.view(k, op.getNormalizer()),
                      [&](int64_t at, Value address, Value exists) {
                        k.ifThen(exists,
                                 [&] { k.store(state[at], address, 4); });
                      });
  });
}

//===----------------------------------------------------------------------===//
// One chunk
//===----------------------------------------------------------------------===//

/// 16 columns of a tile × 16 tokens, as the summands that they are or make.
Summands StateKernel::loadFragment(SharedTile tile, Value base, Value place,
                                   int64_t column) {
  LanePointer pointer(k, tile, base, place);
  if (!isWide())
    return {Values(k.loadMatrices(pointer.at(0, column / 8), true))};
  return split(k, summandType(), loadTransposed(k, pointer, 0, column),
               summands());
}

/// Which of this lane's tokens of a step count: a half of all ones for each, of
/// the first pair and of the one eight tokens on.
std::pair<Value, Value> StateKernel::keptTokens(Value first) {
  auto isKept = [&](Value token) {
    Value exists = k.less(token, here.tokens);
    if (!here.mask)
      return exists;
    Value index = k.select(exists, token, k.i32(0));
    return k.both(exists, k.loadFlag(here.mask.at(k, {here.batch, index})));
  };
  auto word = [&](int64_t offset) {
    Value token = k.add(k.add(first, k.mul(lane.pair, 2)), offset);
    Value zero = k.i32(0);
    return k.add(k.select(isKept(token), k.i32(0xffff), zero),
                 k.select(isKept(k.add(token, 1)), k.i32(-0x10000), zero));
  };
  return {word(0), word(8)};
}

/// 16 tokens.
StateKernel::Values StateKernel::step(Value number, Value base, Value step,
                                      ValueRange state) {
  Values next(state);
  auto at = [&](SharedTile tile, Value start) {
    return k.offset(start, k.mul(step, 16 * tile.pitch()));
  };
  std::pair<Value, Value> kept;
  if (dropsKeys())
    kept = keptTokens(k.add(k.mul(number, tokens()), k.mul(step, 16)));
  SmallVector<Summands> keys;
  for (int64_t i = 0; i < stateRows(); ++i) {
    Summands fragment = loadFragment(keyTile(), at(keyTile(), base), lane.key,
                                     16 * i * rowWarps());
    if (isMapped()) {
      Matrix matrix = join(k, summandType(), fragment);
      for (Value &x : matrix)
        x = emitMap(k, x);
      fragment = split(k, summandType(), matrix, summands());
    }
    if (dropsKeys())
      for (Values &summand : fragment)
        for (int64_t j = 0; j < 4; ++j)
          summand[j] = k.band(summand[j], j / 2 ? kept.second : kept.first);
    keys.push_back(fragment);
  }
  Value values = k.offset(base, keyTile().bytes());
  for (int64_t n = 0; n < stateColumns(); ++n) {
    Summands fragment =
        loadFragment(valueTile(), at(valueTile(), values), lane.value, 16 * n);
    for (int64_t i = 0; i < stateRows(); ++i)
      addProduct(k, summandType(),
                 MutableArrayRef(next).slice(stateAt(i, n), 8), keys[i],
                 fragment, summands());
  }
  if (!op.getNormalizer())
    return next;
  Summands ones = split(k, summandType(), Values(8, k.f32(1)), 1);
  for (int64_t i = 0; i < stateRows(); ++i)
    addProduct(k, summandType(),
               MutableArrayRef(next).slice(normalizerAt(i), 4), keys[i], ones,
               summands(), /*halves=*/1);
  return next;
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

void StateKernel::run(Value state, Value normalizer) {
  TilePipeline tiles = prepareCopies();
  tiles.begin();
  Values carried =
      loadState(function.view(k, state), function.view(k, normalizer));
  carried = tiles.loop(carried, [&](Value number, ValueRange values) {
    Value base = tiles.arrive(number);
    return k.loop(k.i32(tokens() / 16), values,
                  [&](Value number16, ValueRange inner) {
                    return step(number, base, number16, inner);
                  });
  });
  tiles.drain();
  storeState(carried);
}

LaunchOp mlir::linattn::buildKernel(StateOp op, ScheduleAttr schedule,
                                    ModuleOp module, StringRef name) {
  StateShape shape{{op, schedule}};
  StateSource state = findSource(op, op.getState()), normalizer;
  if (op.getNormalizer())
    normalizer = findSource(op, op.getNormalizer());
  KernelFunction function;
  function.addBuffer(op.getKey(), Access::Read,
                     granuleOf(shape.keySize(), shape.type()));
  function.addBuffer(op.getValue(), Access::Read,
                     granuleOf(shape.valueSize(), shape.type()));
  function.addBuffer(op.getMask(), Access::Read, 1);
  // Source and target may be the same memory.
  auto addBoth = [&](const StateSource &source, Value target, int64_t align) {
    bool copied = source.buffer && source.buffer != target;
    Access access = copied ? Access::MayAlias : Access::ReadWrite;
    function.addBuffer(target, access, align);
    if (copied)
      function.addBuffer(source.buffer, access, align);
  };
  addBoth(state, op.getState(), 8);
  addBoth(normalizer, op.getNormalizer(), 4);
  function.addSize(op.getKey(), 2);
  function.emit(module, name, op.getLoc(), [&](KernelBuilder &k) {
    StateKernel(shape, k, function).run(state.buffer, normalizer.buffer);
  });
  AffineExpr blocks =
      function.gridSize(op.getState(), 0) * (shape.heads() * shape.slices());
  LaunchOp launch =
      function.launch(op, blocks, shape.threads(), shape.sharedBytes());
  for (Operation *replaced : {state.replaces, normalizer.replaces})
    if (replaced)
      replaced->erase();
  return launch;
}
