//===- TokenKernel.cpp - The token form: places and staging ---------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenKernel.h"
#include "linattn/Dialect/FeatureMaps.h"

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// Arguments and places
//===----------------------------------------------------------------------===//

void TokenKernel::declare() {
  auto add = [&](Value buffer, Access access) {
    return buffer
               ? function.addBuffer(
                     buffer, access,
                     std::max<int64_t>(
                         1,
                         getElementTypeOrSelf(buffer).getIntOrFloatBitWidth() /
                             8))
               : KernelFunction::none;
  };
  q = add(op.getQuery(), Access::Read);
  key = add(op.getKey(), Access::Read);
  v = add(op.getValue(), Access::Read);
  int64_t outputBytes =
      getElementTypeOrSelf(op.getOutput()).getIntOrFloatBitWidth() / 8;
  o = function.addBuffer(op.getOutput(), Access::Write,
                         wholeVectors ? laneColumns * outputBytes
                                      : outputBytes);
  int64_t align = wholeVectors ? 4 * laneColumns : 4;
  bool copied = source.buffer && source.buffer != op.getState();
  Access access = copied ? Access::MayAlias : Access::ReadWrite;
  stateIn = copied ? function.addBuffer(source.buffer, access, align)
                   : KernelFunction::none;
  stateOut = function.addBuffer(op.getState(), access, align);
  normalizer = add(op.getNormalizer(), Access::ReadWrite);
  mask = add(op.getMask(), Access::Read);
  decays = add(op.getDecay(), Access::Read);
  valueDecays = add(op.getValueDecay(), Access::Read);
  betas = add(op.getBeta(), Access::Read);
  as = add(op.getA(), Access::Read);
  bs = add(op.getB(), Access::Read);
  bonuses = add(op.getBonus(), Access::Read);
  erases = add(op.getErase(), Access::Read);
  writes = add(op.getWrite(), Access::Read);
}

void TokenKernel::place() {
  shared = function.sharedBase(k());
  thread = k().thread();
  warp = k().shr(thread, 5);
  Value lane = k().band(thread, 31);
  rowGroup = k().shr(lane, 2);
  slice = k().block(1);
  firstColumn = k().mul(slice, schedule.getValueSlice());
  Value inBlock = k().add(k().mul(warp, warpColumns),
                          k().mul(k().band(lane, 3), laneColumns));
  column = k().add(firstColumn, inBlock);
  here = locator.locate(k(), k().block(0));
  output = function.view(k(), o);
  stateOutView = function.view(k(), stateOut);
  stateInView = stateIn == KernelFunction::none ? stateOutView
                                                : function.view(k(), stateIn);
  maskView = function.view(k(), mask);
  normalizerView = function.view(k(), normalizer);
}

Staged TokenKernel::stage(unsigned handle, Value buffer, Value head) {
  Staged operand;
  operand.view = function.view(k(), handle);
  if (!operand.view)
    return operand;
  operand.head = head;
  operand.size = operand.width = 1;
  bool hasRows = rankOf(buffer) == 4 || buffer == op.getBonus();
  bool onValues = buffer == op.getValue() || buffer == op.getValueDecay() ||
                  buffer == op.getWrite() || buffer == op.getBeta();
  if (hasRows) {
    operand.size = onValues ? valueSize : keySize;
    operand.width = onValues ? schedule.getValueSlice() : rows() * rowStep;
    operand.firstColumn = onValues ? firstColumn : Value();
  }
  operand.offset = sharedFloats;
  // Vectors of four floats are read from every row.
  sharedFloats += llvm::alignTo(schedule.getChunk() * operand.width, 4);
  return operand;
}

void TokenKernel::stageOperands() {
  auto headOf = [&](Value buffer) {
    return locator.headOf(k(), buffer, here.head);
  };
  // The members of a group follow one another, as rows of one token.
  query = stage(q, op.getQuery(), Value());
  query.copies = members;
  sharedFloats += (members - 1) * schedule.getChunk() * query.width;
  query.kind = Staged::Mapped;
  keys = stage(key, op.getKey(), headOf(op.getKey()));
  keys.kind = Staged::Mapped;
  values = stage(v, op.getValue(), headOf(op.getValue()));
  if (op.getDecay() && rankOf(op.getDecay()) == 1) {
    GlobalView view = function.view(k(), decays);
    Value g = k().load(view.element, view.at(k(), {here.head}), view.bytes());
    headDecay = k().exp(k().convert(g, k().b.getF32Type()));
  } else {
    gate = stage(decays, op.getDecay(), here.head);
    gate.kind = Staged::Decay;
  }
  valueGate = stage(valueDecays, op.getValueDecay(), here.head);
  valueGate.kind = Staged::Decay;
  beta = stage(betas, op.getBeta(), here.head);
  a = stage(as, op.getA(), here.head);
  b = stage(bs, op.getB(), here.head);
  erase = stage(erases, op.getErase(), here.head);
  writeGate = stage(writes, op.getWrite(), here.head);
  bonus = stage(bonuses, op.getBonus(), here.head);
  for (Staged *operand : {&keys, &values, &beta, &a, &b, &erase, &writeGate})
    operand->masked = true;
}

//===----------------------------------------------------------------------===//
// Staging
//===----------------------------------------------------------------------===//

Value TokenKernel::transform(const Staged &operand, Value x) {
  x = k().convert(x, k().b.getF32Type());
  if (operand.kind == Staged::Decay)
    return k().exp(x);
  if (operand.kind == Staged::Mapped)
    return emitFeatureMap(k().b, k().loc,
                          cast<FeatureMappedOpInterface>(op.getOperation()), x);
  return x;
}

/// The address of an element of a token, or of the bonus, which has none.
/// `copy`: which query of the group.
Value TokenKernel::addressOf(const Staged &operand, Value token, Value copy,
                             Value element) {
  if (!token)
    return operand.view.at(k(), {operand.head, element});
  Value head = operand.head;
  if (!head) {
    int64_t perQuery =
        staticSize(op.getOutput(), 1) / staticSize(op.getQuery(), 1);
    head = k().div(k().add(k().mul(here.head, members), copy), perQuery);
  }
  Values indices{here.batch, head, token};
  if (operand.view.strides.size() == 4)
    indices.push_back(element);
  return operand.view.at(k(), indices);
}

Value TokenKernel::tokenAt(Value number) {
  if (op.getReverse())
    number = k().sub(k().sub(here.count, k().i32(1)), number);
  Value token = k().extend(number);
  return here.begin ? k().add(token, here.begin) : token;
}

Value TokenKernel::isWritten(Value token) {
  return k().loadFlag(maskView.at(k(), {here.batch, token}));
}

/// Brings one element to its place, 0 where there is none.
void TokenKernel::fillElement(const Staged &operand, Value index, Value first,
                              Value left) {
  int64_t perCopy = schedule.getChunk() * operand.width;
  Value rest = operand.copies > 1 ? k().rem(index, perCopy) : index;
  Value copy = operand.copies > 1 ? k().div(index, perCopy) : k().i32(0);
  Value number = k().div(rest, operand.width);
  Value element = k().rem(rest, operand.width), exists;
  if (operand.firstColumn)
    element = k().add(operand.firstColumn, element);
  if (first)
    exists = k().less(number, left);
  if (operand.size < operand.width || operand.firstColumn)
    exists = k().both(exists, k().less(element, operand.size));
  // An absent element is read from a valid address, then dropped.
  auto orZero = [&](Value x) {
    return exists ? k().select(exists, x, k().i32(0)) : x;
  };
  Value token = first ? tokenAt(k().add(first, orZero(number))) : Value();
  Value address = addressOf(operand, token, copy, orZero(element));
  Value x = transform(
      operand, k().load(operand.view.element, address, operand.view.bytes()));
  if (maskView && operand.masked)
    exists = k().both(exists, isWritten(token));
  if (exists)
    x = k().select(exists, x, k().f32(0));
  Value to = k().offset(shared, k().mul(index, 4));
  k().store(x, k().offset(to, operand.offset * 4), 4);
}

/// Brings `left` tokens (at most a chunk) from `first` on into shared memory;
/// without `first` the row that serves all of them.
void TokenKernel::fillStage(const Staged &operand, Value first, Value left) {
  if (!operand.view)
    return;
  int64_t tokens = first ? schedule.getChunk() : 1;
  int64_t total = operand.copies * tokens * operand.width;
  int64_t threads = schedule.getWarps() * 32;
  for (int64_t done = 0; done < total; done += threads) {
    Value index = k().add(thread, done);
    k().ifThen(done + threads <= total ? Value() : k().less(index, total),
               [&] { fillElement(operand, index, first, left); });
  }
}

//===----------------------------------------------------------------------===//
// The state
//===----------------------------------------------------------------------===//

Value TokenKernel::rowOf(int64_t i, int64_t e) {
  return k().add(k().mul(rowGroup, 4), rowStep * i + e);
}

/// Null if it always does.
Value TokenKernel::rowExists(int64_t i, int64_t e) {
  return rowStep * (i + 1) <= keySize ? Value()
                                      : k().less(rowOf(i, e), keySize);
}

Value TokenKernel::columnExists(int64_t j) {
  return valueSize % schedule.getValueSlice() == 0
             ? Value()
             : k().less(k().add(column, j), valueSize);
}

TokenKernel::Values TokenKernel::loadState() {
  Value zero = k().f32(0);
  Values state(stateCount(), zero);
  if (!source.buffer)
    return state;
  auto vectorType = VectorType::get({laneColumns}, k().b.getF32Type());
  Value zeros = k().vectorOf(Values(laneColumns, zero));
  for (int64_t i = 0; i < rows(); ++i)
    for (int64_t e = 0; e < 4; ++e) {
      Value address =
          stateInView.at(k(), {here.slot, here.head, rowOf(i, e), column});
      if (wholeVectors) {
        Value exists = k().both(rowExists(i, e), columnExists(0));
        Value loaded = k().ifElse(
            exists, [&] { return k().load(vectorType, address, 16); }, zeros);
        for (int64_t j = 0; j < laneColumns; ++j)
          state[at(i, e, j)] = k().element(loaded, j);
        continue;
      }
      for (int64_t j = 0; j < laneColumns; ++j)
        state[at(i, e, j)] = k().ifElse(
            k().both(rowExists(i, e), columnExists(j)),
            [&] {
              return k().load(k().b.getF32Type(), k().offset(address, 4 * j),
                              4);
            },
            zero);
    }
  return state;
}

void TokenKernel::storeState(ValueRange state) {
  for (int64_t i = 0; i < rows(); ++i)
    for (int64_t e = 0; e < 4; ++e) {
      Value address =
          stateOutView.at(k(), {here.slot, here.head, rowOf(i, e), column});
      Values row;
      for (int64_t j = 0; j < laneColumns; ++j)
        row.push_back(state[at(i, e, j)]);
      if (wholeVectors) {
        k().ifThen(k().both(rowExists(i, e), columnExists(0)),
                   [&] { k().store(k().vectorOf(row), address, 16); });
        continue;
      }
      for (int64_t j = 0; j < laneColumns; ++j)
        k().ifThen(k().both(rowExists(i, e), columnExists(j)),
                   [&] { k().store(row[j], k().offset(address, 4 * j), 4); });
    }
  if (!normalizerView)
    return;
  // Every thread of a row group holds the same sums: one of them writes.
  Value writer = k().equal(k().add(k().mul(warp, 4), k().band(thread, 3)), 0);
  k().ifThen(writer, [&] {
    for (int64_t i = 0; i < rows(); ++i)
      for (int64_t e = 0; e < 4; ++e)
        k().ifThen(rowExists(i, e), [&] {
          k().store(state[zAt(i, e)],
                    normalizerView.at(k(), {here.slot, here.head, rowOf(i, e)}),
                    4);
        });
  });
}

Value TokenKernel::loadNormalizer(int64_t i, int64_t e) {
  return k().ifElse(
      rowExists(i, e),
      [&] {
        return k().load(
            k().b.getF32Type(),
            normalizerView.at(k(), {here.slot, here.head, rowOf(i, e)}), 4);
      },
      k().f32(0));
}

TokenKernel::Values TokenKernel::chunk(Value chunkNumber, ValueRange carried) {
  Value first = k().mul(chunkNumber, schedule.getChunk());
  Value left = k().sub(here.count, first);
  Value size = k().i32(schedule.getChunk());
  Value n = k().select(k().less(left, size), left, size);
  for (const Staged *operand : {&query, &keys, &values, &gate, &valueGate,
                                &beta, &a, &b, &erase, &writeGate})
    fillStage(*operand, first, n);
  k().barrier();
  Values state = k().loop(n, carried, [&](Value number, ValueRange inner) {
    return token(number, first, inner);
  });
  k().barrier();
  return state;
}

LaunchOp TokenKernel::build(ModuleOp module, StringRef name) {
  declare();
  function.create(module, name, op.getLoc());
  OpBuilder b = OpBuilder::atBlockEnd(function.body());
  builder.emplace(b, op.getLoc());
  place();
  here.ifExists(k(), [&] { run(); }, [&] { clearOutput(); });
  LLVM::ReturnOp::create(b, op.getLoc(), ValueRange());

  MLIRContext *context = module.getContext();
  AffineExpr slices = getAffineConstantExpr(
      llvm::divideCeil(valueSize, schedule.getValueSlice()), context);
  function.finish(
      {locator.gridStates(), slices, getAffineConstantExpr(1, context)},
      schedule.getWarps() * 32, sharedFloats * 4);
  OpBuilder host(op);
  return function.launch(host, op.getLoc());
}

/// The outputs of a sequence without a state are 0.
void TokenKernel::clearOutput() {
  Values zeros(laneColumns, k().f32(0));
  k().loop(here.count, {}, [&](Value number, ValueRange) -> Values {
    for (int64_t member = 0; member < members; ++member)
      writeOutput(number, k().i32(0), member, zeros, Value());
    return {};
  });
}

void TokenKernel::run() {
  stageOperands();
  Values state = loadState();
  if (normalizerView)
    for (int64_t i = 0; i < rows(); ++i)
      for (int64_t e = 0; e < 4; ++e)
        state.push_back(loadNormalizer(i, e));
  // The barrier of the first chunk covers it.
  if (bonus.view)
    fillStage(bonus, Value(), Value());
  int64_t size = schedule.getChunk();
  Value chunks = k().div(k().add(here.count, size - 1), size);
  state = k().loop(chunks, state, [&](Value number, ValueRange carried) {
    return chunk(number, carried);
  });
  storeState(state);
}

LaunchOp mlir::linattn::buildTokenKernel(ScanOp op, ScheduleAttr schedule,
                                         const StateSource &source,
                                         ModuleOp module, StringRef name) {
  return TokenKernel(op, schedule, source).build(module, name);
}
