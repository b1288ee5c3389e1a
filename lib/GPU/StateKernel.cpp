//===- StateKernel.cpp - Sums of keys and values --------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StateKernel.h"
#include "AttentionKernels.h"
#include "linattn/Dialect/FeatureMaps.h"

using namespace mlir;
using namespace mlir::linattn;

StateKernel::StateKernel(StateOp op, ScheduleAttr schedule)
    : op(op), schedule(schedule), keySize(staticSize(op.getState(), 2)),
      valueSize(staticSize(op.getState(), 3)),
      heads(staticSize(op.getState(), 1)),
      type(getElementTypeOrSelf(op.getKey())), summandType(summandTypeOf(type)),
      isWide(type.isF32()) {}

//===----------------------------------------------------------------------===//
// Arguments and places
//===----------------------------------------------------------------------===//

void StateKernel::declare(const StateSource &state,
                          const StateSource &normalizer) {
  key = function.addBuffer(op.getKey(), Access::Read, granuleOf(keySize, type));
  value = function.addBuffer(op.getValue(), Access::Read,
                             granuleOf(valueSize, type));
  mask = function.addBuffer(op.getMask(), Access::Read, 1);
  // Source and target may be the same memory.
  auto addBoth = [&](const StateSource &source, Value target, int64_t align) {
    bool copied = source.buffer && source.buffer != target;
    Access access = copied ? Access::MayAlias : Access::ReadWrite;
    unsigned out = function.addBuffer(target, access, align);
    unsigned in =
        copied ? function.addBuffer(source.buffer, access, align) : out;
    return std::pair(in, out);
  };
  std::tie(stateIn, stateOut) = addBoth(state, op.getState(), 8);
  std::tie(normalizerIn, normalizerOut) =
      addBoth(normalizer, op.getNormalizer(), 4);
  function.addSize(op.getKey(), 2);
}

void StateKernel::place() {
  shared = function.sharedBase(k());
  thread = k().thread();
  lane = k().band(thread, 31);
  row = k().shr(lane, 2);
  pair = k().band(lane, 3);
  tokenCount = function.size(k(), op.getKey(), 2);
  maskView = function.view(k(), mask);

  Value block = k().block(0);
  if (slices() > 1)
    firstColumn = k().mul(k().rem(block, slices()), slice());
  Value state = k().div(block, slices());
  head = k().rem(state, heads);
  batch = k().div(state, heads);

  Value warp = k().shr(thread, 5), strip = k().band(warp, groupWarps - 1);
  rowWarp = k().rem(strip, rowWarps());
  warpColumn =
      k().add(k().mul(k().div(warp, groupWarps), groupColumns()),
              k().mul(k().div(strip, rowWarps()), stateColumns() * 16));
  if (!isWide) {
    // Rows of four 8×8 matrices: tokens, turned on the way.
    Value bit3 = k().band(k().shr(lane, 3), 1);
    Value token = k().add(k().band(lane, 7), k().mul(k().shr(lane, 4), 8));
    keyPlace = keyTile().place(k(), token, k().add(k().mul(rowWarp, 2), bit3));
    valuePlace =
        valueTile().place(k(), token, k().add(k().div(warpColumn, 8), bit3));
    return;
  }
  keyPlace = placeOfTurned(k(), keyTile(), row, k().mul(rowWarp, 4), pair);
  valuePlace =
      placeOfTurned(k(), valueTile(), row, k().div(warpColumn, 4), pair);
}

void StateKernel::prepareCopies() {
  auto rows = [&](unsigned handle, Value buffer) {
    GlobalView view = function.view(k(), handle);
    Value mine = k().div(head, heads / staticSize(buffer, 1));
    return std::pair(view.at(k(), {batch, mine}),
                     k().mul(view.strides[2], k().i64(view.bytes())));
  };
  std::tie(keyBase, keyStride) = rows(key, op.getKey());
  std::tie(valueBase, valueStride) = rows(value, op.getValue());
  // Tiles count columns of 16 bits.
  int64_t narrow = elementBytes() / 2;
  Value firstNarrow;
  if (firstColumn) {
    valueBase = k().offset(valueBase, k().mul(firstColumn, elementBytes()));
    // Slices that divide the columns evenly hold nothing that does not exist.
    if (valueSize % slice())
      firstNarrow = k().mul(firstColumn, narrow);
  }
  int64_t threads = schedule.getWarps() * 32;
  copyKey.emplace(k(), keyTile(), threads, granuleOf(keySize, type), thread,
                  keyStride, keySize * narrow, Value());
  copyValue.emplace(k(), valueTile(), threads, granuleOf(valueSize, type),
                    thread, valueStride, valueSize * narrow, firstNarrow);
}

//===----------------------------------------------------------------------===//
// Arrival of a chunk
//===----------------------------------------------------------------------===//

Value StateKernel::stageBase(Value stage) {
  int64_t bytes = keyTile().bytes() + valueTile().bytes();
  return schedule.getStages() == 1 ? shared
                                   : k().offset(shared, k().mul(stage, bytes));
}

void StateKernel::startChunk(Value number, Value stage) {
  Value first = k().mul(number, tokens()), wide = k().extend(first);
  Value left = k().sub(tokenCount, first), base = stageBase(stage);
  copyKey->start(base, k().offset(keyBase, k().mul(wide, keyStride)), left);
  copyValue->start(k().offset(base, keyTile().bytes()),
                   k().offset(valueBase, k().mul(wide, valueStride)), left);
  k().commitCopies();
}

void StateKernel::arrive(Value number, Value stage) {
  Value count = k().div(k().add(tokenCount, tokens() - 1), tokens());
  awaitTiles(k(), schedule.getStages(), number, stage, count,
             [&](Value number, Value stage) { startChunk(number, stage); });
}

//===----------------------------------------------------------------------===//
// The state
//===----------------------------------------------------------------------===//

/// Pairs of columns of this lane's state.
void StateKernel::forEachState(const GlobalView &view,
                               function_ref<void(int64_t, Value, Value)> body) {
  Value base = view.at(k(), {batch, head});
  Value first = k().add(warpColumn, k().mul(pair, 2));
  if (firstColumn)
    first = k().add(first, firstColumn);
  Value rowBytes = k().mul(view.strides[2], k().i64(4));
  for (int64_t i = 0; i < stateRows(); ++i)
    for (int64_t lower = 0; lower < 2; ++lower) {
      Value number = k().add(k().add(k().mul(rowWarp, 16), row),
                             i * rowWarps() * 16 + lower * 8);
      Value start = k().offset(base, k().mul(k().extend(number), rowBytes));
      Value rowExists =
          keySize < paddedKey() ? k().less(number, keySize) : Value();
      for (int64_t n = 0; n < 2 * stateColumns(); ++n) {
        Value column = k().add(first, 8 * n);
        Value exists = valueSize % slice()
                           ? k().both(rowExists, k().less(column, valueSize))
                           : rowExists;
        body(stateAt(i, 0) + 4 * n + 2 * lower,
             k().offset(start, k().mul(k().extend(column), k().i64(4))),
             exists);
      }
    }
}

/// This lane's rows of the normalizer, of which four lanes have the same.
void StateKernel::forEachNormalizer(
    const GlobalView &view, function_ref<void(int64_t, Value, Value)> body) {
  for (int64_t i = 0; i < stateRows(); ++i)
    for (int64_t lower = 0; lower < 2; ++lower) {
      Value number = k().add(k().add(k().mul(rowWarp, 16), row),
                             i * rowWarps() * 16 + lower * 8);
      Value exists =
          keySize < paddedKey() ? k().less(number, keySize) : Value();
      body(normalizerAt(i) + 2 * lower, view.at(k(), {batch, head, number}),
           exists);
    }
}

StateKernel::Values StateKernel::loadState(bool fromState,
                                           bool fromNormalizer) {
  Value zero = k().f32(0);
  Values state(carriedValues(), zero);
  Value zeros = k().vectorOf({zero, zero});
  if (fromState)
    forEachState(function.view(k(), stateIn), [&](int64_t at, Value address,
                                                  Value exists) {
      Value x = k().ifElse(
          exists, [&] { return k().load(zeros.getType(), address, 8); }, zeros);
      state[at] = k().element(x, 0);
      state[at + 1] = k().element(x, 1);
    });
  if (fromNormalizer)
    forEachNormalizer(function.view(k(), normalizerIn), [&](int64_t at,
                                                            Value address,
                                                            Value exists) {
      state[at] = k().ifElse(
          exists, [&] { return k().load(zero.getType(), address, 4); }, zero);
    });
  return state;
}

void StateKernel::storeState(ValueRange state) {
  forEachState(function.view(k(), stateOut), [&](int64_t at, Value address,
                                                 Value exists) {
    k().ifThen(exists, [&] {
      k().store(k().vectorOf({state[at], state[at + 1]}), address, 8);
    });
  });
  if (!op.getNormalizer())
    return;
  // Of the blocks and warps that have the same rows one writes them.
  Value writes = k().both(k().equal(pair, 0), k().equal(warpColumn, 0));
  if (firstColumn)
    writes = k().both(writes, k().equal(firstColumn, 0));
  k().ifThen(writes, [&] {
    forEachNormalizer(function.view(k(), normalizerOut),
                      [&](int64_t at, Value address, Value exists) {
                        k().ifThen(exists,
                                   [&] { k().store(state[at], address, 4); });
                      });
  });
}

//===----------------------------------------------------------------------===//
// One chunk
//===----------------------------------------------------------------------===//

/// 16 columns of a tile × 16 tokens, as the summands that they are or make.
Summands StateKernel::loadFragment(SharedTile tile, Value base, Value place,
                                   int64_t column) {
  LanePointer pointer(k(), tile, base, place);
  if (!isWide)
    return {Values(k().loadMatrices(pointer.at(0, column / 8), true))};
  return split(k(), summandType, loadTurned(k(), pointer, 0, column),
               summands());
}

/// Which of this lane's tokens of a step count: a half of all ones for each, of
/// the first pair and of the one eight tokens on.
std::pair<Value, Value> StateKernel::keptTokens(Value first) {
  auto isKept = [&](Value token) {
    Value exists = k().less(token, tokenCount);
    if (!maskView)
      return exists;
    Value index = k().select(exists, token, k().i32(0));
    return k().both(exists, k().loadFlag(maskView.at(k(), {batch, index})));
  };
  auto word = [&](int64_t offset) {
    Value token = k().add(k().add(first, k().mul(pair, 2)), offset);
    Value zero = k().i32(0);
    return k().add(
        k().select(isKept(token), k().i32(0xffff), zero),
        k().select(isKept(k().add(token, 1)), k().i32(-0x10000), zero));
  };
  return {word(0), word(8)};
}

/// 16 tokens.
StateKernel::Values StateKernel::step(Value number, Value base, Value step,
                                      ValueRange state) {
  Values next(state);
  auto at = [&](SharedTile tile, Value start) {
    return k().offset(start, k().mul(step, 16 * tile.pitch()));
  };
  std::pair<Value, Value> kept;
  if (dropsKeys())
    kept = keptTokens(k().add(k().mul(number, tokens()), k().mul(step, 16)));
  auto map = cast<FeatureMappedOpInterface>(op.getOperation());
  SmallVector<Summands> keys;
  for (int64_t i = 0; i < stateRows(); ++i) {
    Summands fragment = loadFragment(keyTile(), at(keyTile(), base), keyPlace,
                                     16 * i * rowWarps());
    if (isMapped()) {
      Matrix matrix = join(k(), summandType, fragment);
      for (Value &x : matrix)
        x = emitFeatureMap(k().b, k().loc, map, x);
      fragment = split(k(), summandType, matrix, summands());
    }
    if (dropsKeys())
      for (Values &summand : fragment)
        for (int64_t j = 0; j < 4; ++j)
          summand[j] = k().band(summand[j], j / 2 ? kept.second : kept.first);
    keys.push_back(fragment);
  }
  Value values = k().offset(base, keyTile().bytes());
  for (int64_t n = 0; n < stateColumns(); ++n) {
    Summands fragment =
        loadFragment(valueTile(), at(valueTile(), values), valuePlace, 16 * n);
    for (int64_t i = 0; i < stateRows(); ++i)
      addProduct(k(), summandType,
                 MutableArrayRef(next).slice(stateAt(i, n), 8), keys[i],
                 fragment, summands());
  }
  if (!op.getNormalizer())
    return next;
  Summands ones = split(k(), summandType, Values(8, k().f32(1)), 1);
  for (int64_t i = 0; i < stateRows(); ++i)
    addProduct(k(), summandType,
               MutableArrayRef(next).slice(normalizerAt(i), 4), keys[i], ones,
               summands(), /*halves=*/1);
  return next;
}

StateKernel::Values StateKernel::chunk(Value number, ValueRange state) {
  Value stage = k().band(number, schedule.getStages() - 1);
  arrive(number, stage);
  Value base = stageBase(stage);
  return k().loop(k().i32(tokens() / 16), state,
                  [&](Value number16, ValueRange carried) {
                    return step(number, base, number16, carried);
                  });
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

LaunchOp StateKernel::build(const StateSource &state,
                            const StateSource &normalizer, ModuleOp module,
                            StringRef name) {
  declare(state, normalizer);
  function.create(module, name, op.getLoc());
  OpBuilder b = OpBuilder::atBlockEnd(function.body());
  builder.emplace(b, op.getLoc());
  place();
  prepareCopies();
  if (schedule.getStages() == 2)
    startChunk(k().i32(0), k().i32(0));
  Values carried =
      loadState(state.buffer != Value(), normalizer.buffer != Value());
  Value chunks = k().div(k().add(tokenCount, tokens() - 1), tokens());
  carried = k().loop(chunks, carried, [&](Value number, ValueRange values) {
    return chunk(number, values);
  });
  // Nothing may arrive in shared memory after the block has gone.
  k().waitForCopies(0);
  storeState(carried);
  LLVM::ReturnOp::create(b, op.getLoc(), ValueRange());

  AffineExpr one = getAffineConstantExpr(1, module.getContext());
  AffineExpr blocks = function.gridSize(op.getState(), 0) * (heads * slices());
  function.finish({blocks, one, one}, schedule.getWarps() * 32, sharedBytes());
  OpBuilder host(op);
  return function.launch(host, op.getLoc());
}

LaunchOp mlir::linattn::buildKernel(StateOp op, ScheduleAttr schedule,
                                    ModuleOp module, StringRef name) {
  StateSource state = findSource(op, op.getState()), normalizer;
  if (op.getNormalizer())
    normalizer = findSource(op, op.getNormalizer());
  LaunchOp launch =
      StateKernel(op, schedule).build(state, normalizer, module, name);
  for (Operation *replaced : {state.replaces, normalizer.replaces})
    if (replaced)
      replaced->erase();
  return launch;
}
