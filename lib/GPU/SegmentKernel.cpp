//===- SegmentKernel.cpp - Scans whose segments run in parallel -----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// Few sequences and heads leave most of a GPU idle. Their tokens are cut into
// segments, for three kernels:
//
// - increments: what each segment but the last adds to a state of 0, and its
//   decay, or the matrix that it multiplies a state by;
// - states: from these, in order, the state before each segment;
// - scan: every segment from its state.
//
// The first kernel reads keys, values and decays a second time.
//===----------------------------------------------------------------------===//

#include "ScanKernel.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// The states before all segments, from `from` or 0 on. A thread has one
/// element of one state; normalizers are states of one column.
struct StatesShape {
  static constexpr int64_t threads = 128;
  /// Segments whose increments are loaded at once, and waited for once.
  static constexpr int64_t loadsAtOnce = 8;

  ScanOp op;
  Value from;
  Value memory; ///< [S, B, H, K, V].
  Value decays; ///< [S − 1, B, H] or [S − 1, B, H, K].

  int64_t count() const { return staticSize(memory, 0); }
  int64_t heads() const { return staticSize(memory, 2); }
  int64_t keySize() const { return staticSize(memory, 3); }
  int64_t valueSize() const { return staticSize(memory, 4); }
  int64_t elements() const { return keySize() * valueSize(); }
  int64_t blocksPerState() const {
    return llvm::divideCeil(elements(), threads);
  }
  void build(ModuleOp module, StringRef name);
};

class StatesKernel : StatesShape {
public:
  /// Begins the code of the kernel, whose arguments `function` has.
  StatesKernel(const StatesShape &shape, KernelBuilder &k,
               const KernelFunction &function);

  void run();

private:
  /// A thread's element of a state.
  struct Place {
    Value sequence, head, row, column;
    Value slot;         ///< Of the state in a pool.
    Value exists;       ///< Null: it does.
    Value base, stride; ///< Of the segments in memory.
  };

  void runElement();
  Value advance(Value first, int64_t number, Value state);
  Value stateOf(Value segment);
  Value loadFloat(Value address) {
    return k.load(k.b.getF32Type(), address, 4);
  }

  KernelBuilder &k;
  const KernelFunction &function;
  GlobalView factors;
  Place here;
};

} // namespace

StatesKernel::StatesKernel(const StatesShape &shape, KernelBuilder &k,
                           const KernelFunction &function)
    : StatesShape(shape), k(k), function(function) {
  Value block = k.block(0);
  Value state = k.div(block, blocksPerState());
  Value element =
      k.add(k.mul(k.rem(block, blocksPerState()), threads), k.thread());
  here.sequence = k.div(state, heads());
  here.head = k.rem(state, heads());
  here.row = k.div(element, valueSize());
  here.column = k.rem(element, valueSize());
  if (elements() % threads)
    here.exists = k.less(element, elements());
  StateSlot slot = findSlot(k, function, op, here.sequence);
  here.slot = slot.number;
  here.exists = k.both(here.exists, slot.exists);
  GlobalView view = function.view(k, memory);
  here.base =
      view.at(k, {k.i32(0), here.sequence, here.head, here.row, here.column});
  here.stride = k.mul(view.strides[0], k.i64(4));
  factors = function.view(k, decays);
}

/// This thread's element of the state of a segment.
Value StatesKernel::stateOf(Value segment) {
  return k.offset(here.base, k.mul(k.extend(segment), here.stride));
}

/// Through `number` segments: stores the state before each of them.
Value StatesKernel::advance(Value first, int64_t number, Value state) {
  SmallVector<Value> increments, decayFactors;
  for (int64_t i = 0; i < number; ++i) {
    Value segment = k.add(first, i);
    increments.push_back(loadFloat(stateOf(k.add(segment, 1))));
    if (!factors)
      continue;
    SmallVector<Value> place{segment, here.sequence, here.head};
    if (factors.strides.size() == 4)
      place.push_back(here.row);
    decayFactors.push_back(loadFloat(factors.at(k, place)));
  }
  for (int64_t i = 0; i < number; ++i) {
    k.store(state, stateOf(k.add(first, i)), 4);
    state = factors ? k.fma(state, decayFactors[i], increments[i])
                    : k.addf(state, increments[i]);
  }
  return state;
}

void StatesKernel::runElement() {
  Value state = k.f32(0);
  if (GlobalView view = function.view(k, from)) {
    SmallVector<Value> place{here.slot, here.head, here.row, here.column};
    place.truncate(view.strides.size());
    state = loadFloat(view.at(k, place));
  }
  int64_t steps = count() - 1, rounds = steps / loadsAtOnce;
  if (rounds)
    state = k.loop(k.i32(rounds), state, [&](Value round, ValueRange carried) {
      Value first = k.mul(round, loadsAtOnce);
      return SmallVector<Value>{advance(first, loadsAtOnce, carried[0])};
    })[0];
  state = advance(k.i32(rounds * loadsAtOnce), steps % loadsAtOnce, state);
  k.store(state, stateOf(k.i32(steps)), 4);
}

void StatesKernel::run() {
  k.ifThen(here.exists, [&] { runElement(); });
}

void StatesShape::build(ModuleOp module, StringRef name) {
  KernelFunction function;
  function.addBuffer(from, Access::Read, 4);
  function.addBuffer(memory, Access::ReadWrite, 4);
  function.addBuffer(decays, Access::Read, 4);
  function.addBuffer(op.getStateIndices(), Access::Read, 4);
  AffineExpr sequences = function.gridSize(sequencesOf(op), 0);
  function.emit(module, name, op.getLoc(), [&](KernelBuilder &k) {
    StatesKernel(*this, k, function).run();
  });
  function.launch(op, sequences * (heads() * blocksPerState()), threads,
                  /*shared=*/0);
}

/// Memory of f32 for every sequence of the scan, S times.
static Value allocate(ScanOp op, int64_t segments, ArrayRef<int64_t> rest) {
  OpBuilder b(op);
  Value sequences = sequencesOf(op);
  int64_t count = staticSize(sequences, 0);
  SmallVector<int64_t> shape{segments, count, staticSize(op.getState(), 1)};
  llvm::append_range(shape, rest);
  SmallVector<Value> sizes;
  if (ShapedType::isDynamic(count))
    sizes.push_back(memref::DimOp::create(b, op.getLoc(), sequences, 0));
  return memref::AllocOp::create(b, op.getLoc(),
                                 MemRefType::get(shape, b.getF32Type()), sizes);
}

LaunchOp mlir::linattn::buildSegmentKernels(ScanOp op, ScheduleAttr schedule,
                                            const StateSource &source,
                                            ModuleOp module, StringRef name) {
  int64_t keySize = staticSize(op.getState(), 2), count = schedule.getSplit();
  Segments segments;
  segments.states =
      allocate(op, count, {keySize, staticSize(op.getState(), 3)});
  bool hasTransitions = getRule(op).couplesRows();
  if (hasTransitions)
    segments.transitions = allocate(op, count - 1, {keySize, keySize});
  else if (Value decay = op.getDecay())
    segments.factors = allocate(op, count - 1,
                                rankOf(decay) == 4 ? ArrayRef<int64_t>(keySize)
                                                   : ArrayRef<int64_t>());
  if (op.getNormalizer())
    segments.normalizers = allocate(op, count, {keySize, 1});
  auto build = runsByColumns(op) ? buildColumnKernel : buildRowKernel;
  segments.part = Segments::Increments;
  build(op, schedule, source, segments, module, (name + "_increments").str());
  std::string merge = (name + "_states").str();
  if (hasTransitions)
    buildTransitionKernel(op, source.buffer, segments, module, merge);
  else
    StatesShape{op, source.buffer, segments.states, segments.factors}.build(
        module, merge);
  if (op.getNormalizer())
    StatesShape{op, op.getNormalizer(), segments.normalizers, segments.factors}
        .build(module, (name + "_normalizers").str());
  segments.part = Segments::Outputs;
  LaunchOp launch = build(op, schedule, source, segments, module, name);
  OpBuilder b(op);
  for (Value memory : {segments.states, segments.factors, segments.transitions,
                       segments.normalizers})
    if (memory)
      memref::DeallocOp::create(b, op.getLoc(), memory);
  return launch;
}

LaunchOp mlir::linattn::buildChunkKernel(ScanOp op, ScheduleAttr schedule,
                                         const StateSource &source,
                                         ModuleOp module, StringRef name) {
  auto build = runsByColumns(op) ? buildColumnKernel : buildRowKernel;
  return build(op, schedule, source, Segments(), module, name);
}
