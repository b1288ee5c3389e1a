//===- TransitionKernel.cpp - States through transitions of segments ------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// S' = M S + U, segment after segment: the state before each of them, in the
// place of the increments. A block has 16 columns of a state, which it keeps in
// shared memory for the products; a thread sums elements of one column, in f32
// and in the order of M's columns.
//
//===----------------------------------------------------------------------===//

#include "ScanKernel.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

struct TransitionShape {
  static constexpr int64_t threads = 512, columns = transitionColumns;

  ScanOp op;
  Value from; ///< The state before the first segment; null: 0.
  Segments segments;

  int64_t count() const { return staticSize(segments.states, 0); }
  int64_t heads() const { return staticSize(segments.states, 2); }
  int64_t keySize() const { return staticSize(segments.states, 3); }
  int64_t valueSize() const { return staticSize(segments.states, 4); }
  int64_t slices() const { return llvm::divideCeil(valueSize(), columns); }
  /// Of a thread, this many rows from one another.
  static constexpr int64_t rowStep = threads / columns;
  int64_t rows() const { return llvm::divideCeil(keySize(), rowStep); }
  /// Columns of M that a round takes: a thread loads 64 numbers or fewer.
  int64_t terms() const {
    return std::min<int64_t>(keySize() > 128 ? 8 : 16, keySize() & -keySize());
  }
};

class TransitionKernel : TransitionShape {
public:
  using Values = SmallVector<Value>;

  /// Begins the code of the kernel, whose arguments `function` has.
  TransitionKernel(const TransitionShape &shape, KernelBuilder &k,
                   const KernelFunction &function);

  void run();

private:
  Value rowOf(int64_t i) { return k.add(group, i * rowStep); }
  Value existsAt(int64_t i);
  Values loadElements(const GlobalView &view, ArrayRef<Value> place);
  void storeElements(Value segment, ValueRange state);
  Values advance(Value segment, ValueRange state);
  Values addProducts(Value segment, Value number, ValueRange sums);
  Value sharedAt(Value row) {
    return k.offset(shared,
                    k.mul(k.add(k.mul(row, columns), inSlice), int64_t(4)));
  }

  KernelBuilder &k;
  const KernelFunction &function;
  GlobalView states, transitions;
  Value shared, group, inSlice, column;
  Value sequence, head;
  StateSlot slot;
};

} // namespace

TransitionKernel::TransitionKernel(const TransitionShape &shape,
                                   KernelBuilder &k,
                                   const KernelFunction &function)
    : TransitionShape(shape), k(k), function(function),
      states(function.view(k, segments.states, /*isWritten=*/true)),
      transitions(function.view(k, segments.transitions)),
      shared(function.sharedBase(k)) {
  Value block = k.block(0), state = k.div(block, slices());
  inSlice = k.rem(k.thread(), columns);
  group = k.div(k.thread(), columns);
  column = k.add(k.mul(k.rem(block, slices()), columns), inSlice);
  sequence = k.div(state, heads());
  head = k.rem(state, heads());
  slot = findSlot(k, function, op, sequence);
}

/// Whether the thread has an element `i`; null: all have.
Value TransitionKernel::existsAt(int64_t i) {
  Value inRows = keySize() % rowStep ? k.less(rowOf(i), keySize()) : Value();
  Value inColumns =
      valueSize() % columns ? k.less(column, valueSize()) : Value();
  return k.both(inRows, inColumns);
}

/// This thread's elements of a state; 0 where it has none.
TransitionKernel::Values TransitionKernel::loadElements(const GlobalView &view,
                                                        ArrayRef<Value> place) {
  Values elements, at(place);
  at.append({Value(), column});
  for (int64_t i = 0; i < rows(); ++i) {
    at[at.size() - 2] = rowOf(i);
    Value address = view.at(k, at);
    elements.push_back(k.ifElse(
        existsAt(i), [&] { return k.load(k.b.getF32Type(), address, 4); },
        k.f32(0)));
  }
  return elements;
}

/// The state before a segment.
void TransitionKernel::storeElements(Value segment, ValueRange state) {
  for (int64_t i = 0; i < rows(); ++i)
    k.ifThen(existsAt(i), [&] {
      k.store(state[i],
              states.at(k, {segment, sequence, head, rowOf(i), column}), 4);
    });
}

/// Adds the products of the columns of M that round `number` takes with as many
/// rows of the state.
TransitionKernel::Values
TransitionKernel::addProducts(Value segment, Value number, ValueRange sums) {
  Value first = k.mul(number, terms());
  int64_t width = std::min<int64_t>(terms(), 4);
  Type f32 = k.b.getF32Type();
  Values state, next(sums);
  for (int64_t j = 0; j < terms(); ++j)
    state.push_back(k.load(f32, sharedAt(k.add(first, j)), 4));
  for (int64_t i = 0; i < rows(); ++i) {
    // Rows that do not exist repeat the last one, and are not stored.
    Value row = rowOf(i);
    if (keySize() % rowStep)
      row = k.select(k.less(row, keySize()), row, k.i32(keySize() - 1));
    Value address = transitions.at(k, {segment, sequence, head, row, first});
    for (int64_t j = 0; j < terms(); j += width) {
      Value numbers = k.load(VectorType::get({width}, f32),
                             k.offset(address, 4 * j), 4 * width);
      for (int64_t n = 0; n < width; ++n)
        next[i] = k.fma(k.element(numbers, n), state[j + n], next[i]);
    }
  }
  return next;
}

TransitionKernel::Values TransitionKernel::advance(Value segment,
                                                   ValueRange state) {
  storeElements(segment, state);
  for (int64_t i = 0; i < rows(); ++i)
    k.ifThen(keySize() % rowStep ? k.less(rowOf(i), keySize()) : Value(),
             [&] { k.store(state[i], sharedAt(rowOf(i)), 4); });
  Values sums = loadElements(states, {k.add(segment, 1), sequence, head});
  k.barrier();
  sums = k.loop(k.i32(keySize() / terms()), sums,
                [&](Value number, ValueRange carried) {
                  return addProducts(segment, number, carried);
                });
  k.barrier(); // All have read the state.
  return sums;
}

void TransitionKernel::run() {
  k.ifThen(slot.exists, [&] {
    Values state(rows(), k.f32(0));
    if (GlobalView view = function.view(k, from))
      state = loadElements(view, {slot.number, head});
    int64_t steps = count() - 1;
    state = k.loop(k.i32(steps), state, [&](Value segment, ValueRange carried) {
      return advance(segment, carried);
    });
    storeElements(k.i32(steps), state);
  });
}

void mlir::linattn::buildTransitionKernel(ScanOp op, Value from,
                                          const Segments &segments,
                                          ModuleOp module, StringRef name) {
  TransitionShape shape{op, from, segments};
  KernelFunction function;
  function.addBuffer(from, Access::Read, 4);
  function.addBuffer(segments.states, Access::ReadWrite, 4);
  function.addBuffer(segments.transitions, Access::Read, 16);
  function.addBuffer(op.getStateIndices(), Access::Read, 4);
  AffineExpr sequences = function.gridSize(sequencesOf(op), 0);
  function.emit(module, name, op.getLoc(), [&](KernelBuilder &k) {
    TransitionKernel(shape, k, function).run();
  });
  function.launch(op, sequences * (shape.heads() * shape.slices()),
                  TransitionShape::threads,
                  4 * TransitionShape::columns * shape.keySize());
}
