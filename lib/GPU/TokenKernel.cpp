//===- TokenKernel.cpp - The token form: places and staging ---------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenKernel.h"

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

TokenKernel::TokenKernel(const TokenShape &shape, KernelBuilder &k,
                         ScanLocator &locator)
    : TokenShape(shape), k(k), locator(locator) {
  const KernelFunction &function = locator.function;
  here.shared = function.sharedBase(k);
  here.thread = k.thread();
  here.warp = k.shr(here.thread, 5);
  Value lane = k.band(here.thread, 31);
  here.rowGroup = k.shr(lane, 2);
  here.firstColumn = k.mul(k.block(1), slice());
  Value inBlock =
      k.add(k.mul(here.warp, warpColumns), k.mul(k.band(lane, 3), laneColumns));
  here.column = k.add(here.firstColumn, inBlock);
  here.scan = locator.locate(k, k.block(0));
  views.output = function.view(k, op.getOutput(), /*isWritten=*/true);
  views.stateOut = function.view(k, op.getState());
  views.stateIn = function.view(k, source.buffer);
  views.mask = function.view(k, op.getMask());
  views.normalizer = function.view(k, op.getNormalizer());
}

Staged TokenKernel::stage(Value buffer, Value head) {
  Staged operand;
  operand.view = locator.function.view(k, buffer);
  if (!operand.view)
    return operand;
  operand.head = head;
  operand.size = operand.width = 1;
  bool hasRows = rankOf(buffer) == 4 || buffer == op.getBonus();
  bool onValues = buffer == op.getValue() || buffer == op.getValueDecay() ||
                  buffer == op.getWrite() || buffer == op.getBeta();
  if (hasRows) {
    operand.size = onValues ? valueSize() : keySize();
    operand.width = onValues ? schedule.getValueSlice() : rows() * rowStep;
    operand.firstColumn = onValues ? here.firstColumn : Value();
  }
  operand.offset = operands.floats;
  // Vectors of four floats are read from every row.
  operands.floats += llvm::alignTo(tokens() * operand.width, 4);
  return operand;
}

void TokenKernel::stageOperands() {
  auto headOf = [&](Value buffer) {
    return locator.headOf(k, buffer, here.scan.head);
  };
  // The heads of a group follow one another, as rows of one token.
  operands.query = stage(op.getQuery(), Value());
  operands.query.copies = groupSize();
  operands.floats += (groupSize() - 1) * tokens() * operands.query.width;
  operands.query.kind = Staged::Mapped;
  operands.keys = stage(op.getKey(), headOf(op.getKey()));
  operands.keys.kind = Staged::Mapped;
  operands.values = stage(op.getValue(), headOf(op.getValue()));
  if (op.getDecay() && rankOf(op.getDecay()) == 1) {
    GlobalView view = locator.function.view(k, op.getDecay());
    Value g = k.load(view.element, view.at(k, {here.scan.head}), view.bytes());
    headDecay = k.exp(k.convert(g, k.b.getF32Type()));
  } else {
    operands.gate = stage(op.getDecay(), here.scan.head);
    operands.gate.kind = Staged::Decay;
  }
  operands.valueGate = stage(op.getValueDecay(), here.scan.head);
  operands.valueGate.kind = Staged::Decay;
  operands.beta = stage(op.getBeta(), here.scan.head);
  operands.a = stage(op.getA(), here.scan.head);
  operands.b = stage(op.getB(), here.scan.head);
  operands.erase = stage(op.getErase(), here.scan.head);
  operands.write = stage(op.getWrite(), here.scan.head);
  operands.bonus = stage(op.getBonus(), here.scan.head);
  for (Staged *operand :
       {&operands.keys, &operands.values, &operands.beta, &operands.a,
        &operands.b, &operands.erase, &operands.write})
    operand->masked = true;
}

//===----------------------------------------------------------------------===//
// Staging
//===----------------------------------------------------------------------===//

Value TokenKernel::transform(const Staged &operand, Value x) {
  x = k.convert(x, k.b.getF32Type());
  if (operand.kind == Staged::Decay)
    return k.exp(x);
  if (operand.kind == Staged::Mapped)
    return emitMap(k, x);
  return x;
}

/// The address of an element of a token; the bonus has no token. `copy`: the
/// query's number in the group.
Value TokenKernel::addressOf(const Staged &operand, Value token, Value copy,
                             Value element) {
  if (!token)
    return operand.view.at(k, {operand.head, element});
  Value head = operand.head;
  if (!head) {
    int64_t perQuery =
        staticSize(op.getOutput(), 1) / staticSize(op.getQuery(), 1);
    head = k.div(k.add(k.mul(here.scan.head, groupSize()), copy), perQuery);
  }
  Values indices{here.scan.batch, head, token};
  if (operand.view.strides.size() == 4)
    indices.push_back(element);
  return operand.view.at(k, indices);
}

Value TokenKernel::tokenAt(Value number) {
  if (op.getReverse())
    number = k.sub(k.sub(here.scan.count, k.i32(1)), number);
  Value token = k.extend(number);
  return here.scan.begin ? k.add(token, here.scan.begin) : token;
}

Value TokenKernel::isWritten(Value token) {
  return k.loadFlag(views.mask.at(k, {here.scan.batch, token}));
}

/// Brings one element to its place, 0 where there is none.
void TokenKernel::fillElement(const Staged &operand, Value index, Value first,
                              Value left) {
  int64_t perCopy = tokens() * operand.width;
  Value rest = operand.copies > 1 ? k.rem(index, perCopy) : index;
  Value copy = operand.copies > 1 ? k.div(index, perCopy) : k.i32(0);
  Value number = k.div(rest, operand.width);
  Value element = k.rem(rest, operand.width), exists;
  if (operand.firstColumn)
    element = k.add(operand.firstColumn, element);
  if (first)
    exists = k.less(number, left);
  if (operand.size < operand.width || operand.firstColumn)
    exists = k.both(exists, k.less(element, operand.size));
  // An absent element is read from a valid address, then dropped.
  auto orZero = [&](Value x) {
    return exists ? k.select(exists, x, k.i32(0)) : x;
  };
  Value token = first ? tokenAt(k.add(first, orZero(number))) : Value();
  Value address = addressOf(operand, token, copy, orZero(element));
  Value x = transform(
      operand, k.load(operand.view.element, address, operand.view.bytes()));
  if (views.mask && operand.masked)
    exists = k.both(exists, isWritten(token));
  if (exists)
    x = k.select(exists, x, k.f32(0));
  Value to = k.offset(here.shared, k.mul(index, 4));
  k.store(x, k.offset(to, operand.offset * 4), 4);
}

/// Brings `left` tokens (at most a chunk) from `first` on into shared memory;
/// without `first` the row that serves all of them.
void TokenKernel::fillStage(const Staged &operand, Value first, Value left) {
  if (!operand.view)
    return;
  int64_t count = first ? tokens() : 1;
  int64_t total = operand.copies * count * operand.width;
  int64_t threads = schedule.getWarps() * 32;
  for (int64_t done = 0; done < total; done += threads) {
    Value index = k.add(here.thread, done);
    k.ifThen(done + threads <= total ? Value() : k.less(index, total),
             [&] { fillElement(operand, index, first, left); });
  }
}

//===----------------------------------------------------------------------===//
// The state
//===----------------------------------------------------------------------===//

Value TokenKernel::rowOf(int64_t i, int64_t e) {
  return k.add(k.mul(here.rowGroup, 4), rowStep * i + e);
}

/// Null if it always does.
Value TokenKernel::rowExists(int64_t i, int64_t e) {
  return rowStep * (i + 1) <= keySize() ? Value()
                                        : k.less(rowOf(i, e), keySize());
}

Value TokenKernel::columnExists(int64_t j) {
  return !isRagged() ? Value() : k.less(k.add(here.column, j), valueSize());
}

TokenKernel::Values TokenKernel::loadState() {
  Value zero = k.f32(0);
  Values state(stateCount(), zero);
  if (!source.buffer)
    return state;
  auto vectorType = VectorType::get({laneColumns}, k.b.getF32Type());
  Value zeros = k.vectorOf(Values(laneColumns, zero));
  for (int64_t i = 0; i < rows(); ++i)
    for (int64_t e = 0; e < 4; ++e) {
      Value address = views.stateIn.at(
          k, {here.scan.slot, here.scan.head, rowOf(i, e), here.column});
      if (isWholeVectors()) {
        Value exists = k.both(rowExists(i, e), columnExists(0));
        Value loaded = k.ifElse(
            exists, [&] { return k.load(vectorType, address, 16); }, zeros);
        for (int64_t j = 0; j < laneColumns; ++j)
          state[at(i, e, j)] = k.element(loaded, j);
        continue;
      }
      for (int64_t j = 0; j < laneColumns; ++j)
        state[at(i, e, j)] = k.ifElse(
            k.both(rowExists(i, e), columnExists(j)),
            [&] {
              return k.load(k.b.getF32Type(), k.offset(address, 4 * j), 4);
            },
            zero);
    }
  return state;
}

void TokenKernel::storeState(ValueRange state) {
  for (int64_t i = 0; i < rows(); ++i)
    for (int64_t e = 0; e < 4; ++e) {
      Value address = views.stateOut.at(
          k, {here.scan.slot, here.scan.head, rowOf(i, e), here.column});
      Values row;
      for (int64_t j = 0; j < laneColumns; ++j)
        row.push_back(state[at(i, e, j)]);
      if (isWholeVectors()) {
        k.ifThen(k.both(rowExists(i, e), columnExists(0)),
                 [&] { k.store(k.vectorOf(row), address, 16); });
        continue;
      }
      for (int64_t j = 0; j < laneColumns; ++j)
        k.ifThen(k.both(rowExists(i, e), columnExists(j)),
                 [&] { k.store(row[j], k.offset(address, 4 * j), 4); });
    }
  if (!views.normalizer)
    return;
  // Every thread of a row group holds the same sums: one of them writes.
  Value writer = k.equal(k.add(k.mul(here.warp, 4), k.band(here.thread, 3)), 0);
  k.ifThen(writer, [&] {
    for (int64_t i = 0; i < rows(); ++i)
      for (int64_t e = 0; e < 4; ++e)
        k.ifThen(rowExists(i, e), [&] {
          k.store(state[zAt(i, e)],
                  views.normalizer.at(
                      k, {here.scan.slot, here.scan.head, rowOf(i, e)}),
                  4);
        });
  });
}

Value TokenKernel::loadNormalizer(int64_t i, int64_t e) {
  return k.ifElse(
      rowExists(i, e),
      [&] {
        return k.load(k.b.getF32Type(),
                      views.normalizer.at(
                          k, {here.scan.slot, here.scan.head, rowOf(i, e)}),
                      4);
      },
      k.f32(0));
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

/// Tokens of a chunk, of which `left` are left.
Value TokenKernel::tokensOf(Value left) {
  Value size = k.i32(tokens());
  return k.select(k.less(left, size), left, size);
}

void TokenKernel::fillStages(const TilePipeline::Arrival &arrival) {
  Value count = tokensOf(arrival.left);
  Operands &all = operands;
  for (const Staged *operand :
       {&all.query, &all.keys, &all.values, &all.gate, &all.valueGate,
        &all.beta, &all.a, &all.b, &all.erase, &all.write})
    fillStage(*operand, arrival.first, count);
}

TokenKernel::Values TokenKernel::chunk(Value number, ValueRange carried) {
  Value first = k.mul(number, tokens());
  Value count = tokensOf(k.sub(here.scan.count, first));
  return k.loop(count, carried, [&](Value inChunk, ValueRange inner) {
    return token(inChunk, first, inner);
  });
}

/// The outputs of a sequence without a state are 0.
void TokenKernel::clearOutput() {
  Values zeros(laneColumns, k.f32(0));
  k.loop(here.scan.count, {}, [&](Value number, ValueRange) -> Values {
    for (int64_t member = 0; member < groupSize(); ++member)
      writeOutput(number, k.i32(0), member, zeros, Value());
    return {};
  });
}

void TokenKernel::run() {
  here.scan.ifExists(
      k,
      [&] {
        stageOperands();
        Values state = loadState();
        if (views.normalizer)
          for (int64_t i = 0; i < rows(); ++i)
            for (int64_t e = 0; e < 4; ++e)
              state.push_back(loadNormalizer(i, e));
        // The barrier of the first chunk covers it.
        if (operands.bonus.view)
          fillStage(operands.bonus, Value(), Value());
        TilePipeline tiles(k, {stages(), here.shared, /*bytes=*/0},
                           {tokens(), here.scan.count},
                           TilePipeline::Engine::Threads, here.thread,
                           threads());
        tiles.alsoStart(
            [&](const TilePipeline::Arrival &arrival) { fillStages(arrival); });
        state = tiles.loop(state, [&](Value number, ValueRange carried) {
          tiles.arrive(number);
          return chunk(number, carried);
        });
        storeState(state);
      },
      [&] { clearOutput(); });
}

LaunchOp mlir::linattn::buildTokenKernel(ScanOp op, ScheduleAttr schedule,
                                         const StateSource &source,
                                         ModuleOp module, StringRef name) {
  TokenShape shape{{op, schedule}, source};
  KernelFunction function;
  ScanLocator locator(op, function);
  auto bytesOf = [](Value buffer) -> int64_t {
    return llvm::divideCeil(
        getElementTypeOrSelf(buffer).getIntOrFloatBitWidth(), 8);
  };
  auto add = [&](Value buffer, Access access = Access::Read) {
    if (buffer)
      function.addBuffer(buffer, access, bytesOf(buffer));
  };
  int64_t vector = shape.isWholeVectors() ? laneColumns : 1;
  for (Value tokens : {op.getQuery(), op.getKey(), op.getValue()})
    add(tokens);
  function.addBuffer(op.getOutput(), Access::Write,
                     vector * bytesOf(op.getOutput()));
  bool copied = source.buffer && source.buffer != op.getState();
  Access access = copied ? Access::MayAlias : Access::ReadWrite;
  if (copied)
    function.addBuffer(source.buffer, access, 4 * vector);
  function.addBuffer(op.getState(), access, 4 * vector);
  add(op.getNormalizer(), Access::ReadWrite);
  for (Value gate :
       {op.getMask(), op.getDecay(), op.getValueDecay(), op.getBeta(),
        op.getA(), op.getB(), op.getBonus(), op.getErase(), op.getWrite()})
    add(gate);
  int64_t shared = 0;
  function.emit(module, name, op.getLoc(), [&](KernelBuilder &k) {
    TokenKernel kernel(shape, k, locator);
    kernel.run();
    shared = kernel.sharedBytes();
  });
  AffineExpr slices =
      getAffineConstantExpr(shape.slices(), module.getContext());
  return function.launch(op, {locator.gridStates(), slices}, shape.threads(),
                         shared);
}
