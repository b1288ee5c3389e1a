//===- ScanKernel.cpp - Base of a scan's kernels --------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScanKernel.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::linattn;

/// Whether `op` or an op in its regions has `buffer` as an operand.
static bool mentions(Operation *op, Value buffer) {
  WalkResult result = op->walk([&](Operation *nested) {
    return llvm::is_contained(nested->getOperands(), buffer)
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  return result.wasInterrupted();
}

/// The value that `op` copies into `buffer`, unconditionally or only where the
/// two are different memory.
static Value getCopied(Operation *op, Value buffer) {
  if (auto branch = dyn_cast<scf::IfOp>(op);
      branch && !branch.elseBlock() &&
      llvm::hasSingleElement(branch.thenBlock()->without_terminator()))
    op = &branch.thenBlock()->front();
  if (auto copy = dyn_cast<memref::CopyOp>(op))
    return copy.getTarget() == buffer ? copy.getSource() : Value();
  auto copy = dyn_cast<linalg::CopyOp>(op);
  return copy && copy.getOutputs().front() == buffer ? copy.getInputs().front()
                                                     : Value();
}

/// Whether an op between the copy and the scan may change the copy's source.
static bool mayWrite(Operation *op, Value buffer) {
  return mentions(op, buffer) && !isMemoryEffectFree(op) &&
         getCopied(op, buffer) != buffer;
}

StateSource mlir::linattn::findStateSource(ScanOp op) {
  if (op.getStateIndices())
    return {op.getState(), nullptr};
  return findSource(op, op.getState());
}

StateSource mlir::linattn::findSource(Operation *op, Value buffer) {
  StateSource inPlace{buffer, nullptr};
  for (Operation *it = op->getPrevNode(); it; it = it->getPrevNode()) {
    if (Value source = getCopied(it, buffer)) {
      // The kernel reads the source when it runs.
      for (Operation *between = it->getNextNode(); between != op;
           between = between->getNextNode())
        if (mayWrite(between, source))
          return inPlace;
      return {source, it};
    }
    if (auto fill = dyn_cast<linalg::FillOp>(it);
        fill && fill.getOutputs().front() == buffer)
      return matchPattern(fill.getInputs().front(), m_AnyZeroFloat())
                 ? StateSource{Value(), fill}
                 : inPlace;
    if (mentions(it, buffer) && !isMemoryEffectFree(it))
      return inPlace;
  }
  return inPlace;
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

ScanLocator::ScanLocator(ScanOp op, KernelFunction &function, int64_t segments,
                         int64_t chunk)
    : op(op), function(function), segments(segments), chunk(chunk) {
  function.addSize(op.getKey(), 2);
  function.addBuffer(op.getCuSeqlens(), Access::Read, 4);
  function.addBuffer(op.getStateIndices(), Access::Read, 4);
}

AffineExpr ScanLocator::gridStates() {
  return function.gridSize(sequencesOf(op), 0) * staticSize(op.getState(), 1);
}

/// An element of offsets or of rows of a pool, sign-extended to i64.
static Value readIndex(KernelBuilder &k, const GlobalView &view, Value at) {
  Value x = k.load(view.element, view.at(k, {at}), view.bytes());
  if (view.element.isInteger(64))
    return x;
  return arith::ExtSIOp::create(k.b, k.loc, k.b.getI64Type(), x);
}

StateSlot mlir::linattn::findSlot(KernelBuilder &k,
                                  const KernelFunction &function, ScanOp op,
                                  Value sequence) {
  GlobalView view = function.view(k, op.getStateIndices());
  if (!view)
    return {sequence, Value()};
  Value row = readIndex(k, view, sequence);
  Value exists = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::sge,
                                       row, k.i64(0));
  // It stays in a register until the state is written.
  return {arith::TruncIOp::create(k.b, k.loc, k.b.getI32Type(), row), exists};
}

ScanPlace ScanLocator::locate(KernelBuilder &k, Value state) {
  ScanPlace place;
  int64_t heads = staticSize(op.getState(), 1);
  Value sequence = k.div(state, heads);
  place.head = k.rem(state, heads);
  place.batch = place.sequence = sequence;
  place.count = function.size(k, op.getKey(), 2);
  if (GlobalView view = function.view(k, op.getCuSeqlens())) {
    place.batch = k.i32(0);
    place.begin = readIndex(k, view, sequence);
    Value length = k.sub(readIndex(k, view, k.add(sequence, 1)), place.begin);
    place.count = arith::TruncIOp::create(k.b, k.loc, k.b.getI32Type(), length);
  }
  StateSlot slot = findSlot(k, function, op, sequence);
  place.slot = slot.number;
  place.exists = slot.exists;
  if (segments > 1)
    locateSegment(k, place);
  return place;
}

/// The tokens of a segment. Those behind the last token have none.
void ScanLocator::locateSegment(KernelBuilder &k, ScanPlace &place) {
  place.segment = k.block(1);
  int64_t inFlight = segments * chunk;
  Value chunks = k.div(k.add(place.count, inFlight - 1), inFlight);
  Value length = k.mul(chunks, chunk);
  Value first = k.mul(place.segment, length);
  Value left =
      k.select(k.less(first, place.count), k.sub(place.count, first), k.i32(0));
  Value mine = k.select(k.less(left, length), left, length);
  if (op.getReverse())
    first = k.sub(k.sub(place.count, first), mine);
  Value begin = k.extend(first);
  place.begin = place.begin ? k.add(place.begin, begin) : begin;
  place.count = mine;
}

void ScanPlace::ifExists(KernelBuilder &k, function_ref<void()> body,
                         function_ref<void()> otherwise) const {
  k.ifThen(exists, body);
  if (exists)
    k.ifThen(k.negate(exists), otherwise);
}

Value ScanPlace::stateIn(KernelBuilder &k, const GlobalView &view,
                         int64_t later) const {
  if (view.strides.size() == 4)
    return view.at(k, {slot, head});
  return view.at(k, {k.add(segment, later), sequence, head});
}

void mlir::linattn::copyGate(KernelBuilder &k, Value shared, Value global,
                             Type element, Value exists) {
  if (element.isF32())
    return k.copyAsync(shared, global, 4, exists);
  Type f32 = k.b.getF32Type();
  Value gate = k.ifElse(
      exists, [&] { return k.convert(k.load(element, global, 2), f32); },
      k.f32(0));
  k.store(gate, shared, 4);
}

Rows ScanLocator::rowsOf(KernelBuilder &k, const ScanPlace &place,
                         const GlobalView &view, Value head) {
  Value token = place.begin ? place.begin : k.i64(0);
  Value stride = k.mul(view.strides[head ? 2 : 1], k.i64(view.bytes()));
  if (op.getReverse()) {
    token = k.add(token, k.sub(k.extend(place.count), k.i64(1)));
    stride = k.sub(k.i64(0), stride);
  }
  if (!head)
    return {view.at(k, {place.batch, token}), stride};
  return {view.at(k, {place.batch, head, token}), stride};
}

void WrittenTokens::place(KernelBuilder &k, ScanLocator &locator,
                          const ScanPlace &place) {
  if (GlobalView view = locator.function.view(k, locator.op.getMask()))
    rows = locator.rowsOf(k, place, view, /*head=*/Value());
}

Value WrittenTokens::has(KernelBuilder &k, Value number, Value exists) const {
  auto load = [&] { return k.loadFlag(rows.at(k, k.extend(number))); };
  return k.ifElse(exists, load, exists);
}

TilePipeline::Filter WrittenTokens::filter(KernelBuilder &k) const {
  if (!*this)
    return nullptr;
  return
      [this, &k](Value number, Value exists) { return has(k, number, exists); };
}

Value ScanLocator::headOf(KernelBuilder &k, Value buffer, Value head) {
  int64_t heads = staticSize(buffer, 1), total = staticSize(op.getState(), 1);
  // Head counts divide one another.
  if (heads == total)
    return head;
  return heads < total ? k.div(head, total / heads)
                       : k.mul(head, heads / total);
}

//===----------------------------------------------------------------------===//
// Chunk kernels
//===----------------------------------------------------------------------===//

void ScanShape::addStates(KernelFunction &function, int64_t align) {
  if (segments.part != Segments::Whole) {
    function.addBuffer(stateIn(), Access::Read, align);
    function.addBuffer(stateOut(), Access::Write, align);
    return;
  }
  bool copied = stateIn() && stateIn() != stateOut();
  Access access = copied ? Access::MayAlias : Access::ReadWrite;
  if (copied)
    function.addBuffer(stateIn(), access, align);
  function.addBuffer(stateOut(), access, align);
}

void ScanShape::addTokens(KernelFunction &function) {
  int64_t keyAlign = granuleOf(keySize(), type());
  int64_t valueAlign = granuleOf(valueSize(), type());
  if (reads())
    function.addBuffer(op.getQuery(), Access::Read, keyAlign);
  function.addBuffer(op.getKey(), Access::Read, keyAlign);
  function.addBuffer(op.getValue(), Access::Read, valueAlign);
  if (reads())
    function.addBuffer(op.getOutput(), Access::Write, valueAlign);
}

LaunchOp ScanShape::launch(KernelFunction &function, ScanLocator &locator,
                           int64_t shared) {
  AffineExpr one = getAffineConstantExpr(1, op.getContext());
  AffineExpr blocks =
      locator.gridStates() * (groupSize() * slices() + transitionSlices());
  // The last segment adds to no other one.
  int64_t parts = schedule.getSplit() - (reads() ? 0 : 1);
  return function.launch(op, {blocks, one * parts}, threads(), shared);
}

void ScanBlock::place(KernelBuilder &k, ScanShape shape, ScanLocator &locator) {
  Value block = k.block(0);
  int64_t ofTransition = shape.transitionSlices();
  int64_t slices = shape.slices() + ofTransition;
  if (slices > 1)
    firstColumn = k.mul(k.rem(block, slices), shape.slice());
  if (ofTransition) {
    int64_t end = ofTransition * shape.slice();
    isTransition = k.less(firstColumn, end);
    firstColumn =
        k.select(isTransition, firstColumn, k.sub(firstColumn, k.i32(end)));
  }
  Value head = k.div(block, slices);
  if (shape.groupSize() > 1)
    member = k.rem(head, shape.groupSize());
  here = locator.locate(k, k.div(head, shape.groupSize()));
}

ScanBlock::Tokens ScanBlock::findTokens(KernelBuilder &k, ScanShape shape,
                                        ScanLocator &locator) {
  ScanOp op = shape.op;
  Tokens tokens;
  auto rows = [&](Value buffer, Value head, bool isWritten = false) {
    GlobalView view = locator.function.view(k, buffer, isWritten);
    return locator.rowsOf(k, here, view, head);
  };
  Value outHead = k.mul(here.head, shape.groupSize());
  if (member)
    outHead = k.add(outHead, member);
  int64_t perQuery =
      staticSize(op.getOutput(), 1) / staticSize(op.getQuery(), 1);
  if (shape.reads())
    tokens.query = rows(op.getQuery(), k.div(outHead, perQuery));
  tokens.key = rows(op.getKey(), locator.headOf(k, op.getKey(), here.head));
  tokens.value =
      rows(op.getValue(), locator.headOf(k, op.getValue(), here.head));
  if (shape.reads())
    tokens.output = rows(op.getOutput(), outHead, /*isWritten=*/true);
  if (firstColumn) {
    Value bytes = k.mul(firstColumn, shape.elementBytes());
    tokens.value.base = k.offset(tokens.value.base, bytes);
    if (shape.reads())
      tokens.output.base = k.offset(tokens.output.base, bytes);
  }
  return tokens;
}

Value ScanBlock::loadHeadDecay(KernelBuilder &k, ScanShape shape,
                               const KernelFunction &function) {
  Value decay = shape.op.getDecay();
  if (!decay || rankOf(decay) != 1)
    return {};
  GlobalView view = function.view(k, decay);
  Value x =
      k.load(view.element, view.at(k, {here.head}), granuleOf(1, view.element));
  return k.convert(x, k.b.getF32Type());
}

Value ScanBlock::isWriter(KernelBuilder &k, ScanShape shape) {
  Value writer = member ? k.equal(member, 0) : Value();
  if (shape.segments.part == Segments::Outputs)
    writer =
        k.both(writer, k.equal(here.segment, shape.schedule.getSplit() - 1));
  return writer;
}
