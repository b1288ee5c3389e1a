//===- TokenLoops.h - Recurrences as loops over tokens ----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The recurrences that the scan cannot say have no chunks: a loop over tokens,
// each of them a few linalg ops on slices of one token. Subscripts: b batch, h
// channel or head, n state, l and m levels, k and v features. The letter of
// channels is that of heads, since groups share projections as they share keys.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_CONVERSION_TOKENLOOPS_H
#define LINATTN_LIB_CONVERSION_TOKENLOOPS_H

#include "RecurrenceBuilder.h"

#include "linattn/Dialect/Einsum.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::linattn {

/// Inputs of a linalg op with their subscripts; absent operands leave no trace.
struct Inputs {
  size_t add(Value x, StringRef letters) {
    if (!x)
      return none;
    subscripts += (values.empty() ? "" : ",") + letters.str();
    values.push_back(x);
    return values.size() - 1;
  }
  static Value get(ValueRange args, size_t at) {
    return at == none ? Value() : args[at];
  }
  static constexpr size_t none = ~size_t(0);
  SmallVector<Value> values;
  std::string subscripts;
};

/// Builds the loops around the tokens of a recurrence on tensors.
class TokenLoops {
public:
  using Scalars = function_ref<Value(RecurrenceBuilder &, ValueRange)>;

  TokenLoops(OpBuilder &b, RecurrenceOpInterface op)
      : b(b), loc(op->getLoc()), op(op),
        type(getElementTypeOrSelf(op.getFirstState().get())),
        firstInit(op.getFirstOutput().getOperandNumber()),
        firstState(op.getFirstState().getOperandNumber()),
        loops(op.getOperandLoops()) {}

  /// `step` gets the op on the slices of one token, destinations included, and
  /// returns the destinations' next values.
  template <typename OpTy>
  SmallVector<Value> emit(function_ref<SmallVector<Value>(OpTy)> step) {
    return emitSequences(
        [&](Operation *part) { return step(cast<OpTy>(part)); });
  }

  /// A linalg op whose scalars are those of the state's type.
  Value map(StringRef subscripts, ValueRange inputs, Value init, Scalars body) {
    return elementwise(
        b, loc, subscripts, inputs, init,
        [&](OpBuilder &nested, Location, ValueRange args) -> Value {
          RecurrenceBuilder r(nested, op, type, /*width=*/1);
          SmallVector<Value> converted;
          for (Value arg : args)
            converted.push_back(
                isa<FloatType>(arg.getType()) ? r.convert(arg, type) : arg);
          return r.convert(body(r, converted), getElementTypeOrSelf(init));
        });
  }
  /// Zeros of the sizes of a slice.
  Value zerosLike(Value x) {
    return filled(b, loc, tensor::getMixedSizes(b, loc, x), type, 0.0);
  }

  /// One index of a dimension, which is dropped or stays with size 1.
  Value take(Value x, int64_t dim, Value at, bool drop);
  Value insert(Value part, Value x, int64_t dim, Value at);
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }

  OpBuilder &b;
  Location loc;
  RecurrenceOpInterface op;
  Type type;
  /// The position of the current token in its sequence.
  Value position;
  /// The current sequence, null for a batch.
  Value sequence;

private:
  using Step = function_ref<SmallVector<Value>(Operation *)>;
  SmallVector<Value> emitSequences(Step step);
  SmallVector<Value> emitTokens(Value begin, Value end, ValueRange carried,
                                Step step);
  SmallVector<Value>
  loop(Value from, Value to, ValueRange carried,
       function_ref<SmallVector<Value>(Value, ValueRange)> body);
  std::optional<int64_t> tokenDim(unsigned operand) {
    auto *dim = llvm::find(loops[operand], op.getTokenLoop());
    if (dim == loops[operand].end())
      return std::nullopt;
    return dim - loops[operand].begin();
  }

  unsigned firstInit, firstState;
  SmallVector<SmallVector<int64_t, 5>> loops;
};

/// The results of the op, built at the builder's insertion point.
SmallVector<Value> expandTokens(OpBuilder &b, LogLinearOp op);

} // namespace mlir::linattn

#endif // LINATTN_LIB_CONVERSION_TOKENLOOPS_H
