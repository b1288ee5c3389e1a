//===- Expansion.h - The loops around chunks --------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_TRANSFORMS_EXPANSION_H
#define LINATTN_LIB_TRANSFORMS_EXPANSION_H

#include "ChunkSteps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::linattn {

/// How a recurrence becomes chunks.
struct ExpansionOptions {
  /// Tokens of a chunk.
  int64_t chunk;
  /// Every token is a chunk, which is 1.
  bool byToken = false;
  /// Every chunk has a static number of tokens.
  bool exact = false;
  /// Head sizes are whole tiles, outputs are scaled, and the op itself takes
  /// the tokens behind the last chunk.
  bool forUnit = false;
  /// With `forUnit`: zeros fill up a last chunk of so many tokens or more, if
  /// they are fewer than a chunk.
  int64_t fewestOfLast = 0;
  /// With `forUnit`: there may be no chunk.
  bool mayLackChunk = false;
  /// With `forUnit`: the op itself takes all tokens if they are fewer, from a
  /// fill with zero. At least a chunk, or 0: never.
  int64_t fewest = 0;
  /// That of the outputs, whose place it takes, or null.
  OutputNormOp norm = {};

  bool fillsUpLast() const { return forUnit && fewestOfLast < chunk; }
};

/// Builds the loops around the chunks of one recurrence.
class Expansion {
public:
  Expansion(OpBuilder &b, const Recurrence &recurrence,
            const ExpansionOptions &options)
      : b(b), loc(recurrence.op->getLoc()), r(recurrence), options(options) {}

  /// The results of the op.
  SmallVector<Value> emit();

private:
  /// The tokens of one sequence, or of a batch of sequences of one length.
  struct Span {
    OpFoldResult batch, batches;
    Value begin, end;
  };

  SmallVector<Value> emitForUnit(const Span &tokens, CarriedValues carried);
  SmallVector<Value> emitFewOrChunks(const Span &tokens,
                                     const CarriedValues &carried);
  SmallVector<Value> resultsOf(const CarriedValues &carried);
  CarriedValues emitSpan(const Span &span, CarriedValues carried);
  Span splitRemainder(Span &tokens);
  SmallVector<Value> emitOp(const Span &span, SmallVector<Value> results,
                            bool isRemainder = false);
  CarriedValues emitSequences(CarriedValues carried);
  CarriedValues emitSequence(Value sequence, CarriedValues carried);
  CarriedValues emitChunks(const Span &span, CarriedValues carried);
  CarriedValues emitExactChunks(const Span &span, CarriedValues carried);
  CarriedValues emitChunk(const Span &span, Value position, OpFoldResult count,
                          CarriedValues carried);
  Value emitNorm(Value rows, Value output, const Span &span, OpFoldResult first,
                 OpFoldResult count);
  void packDecayOfHead(const Span &span);
  Value rowsFor(Value output, bool mayBeFilledUp);
  OpFoldResult tokensFrom(const Span &span, Value position);
  CarriedValues loop(Value from, Value to, int64_t step, CarriedValues carried,
                     function_ref<CarriedValues(Value, CarriedValues)> body);
  /// The results of a branch, as many as `like`, of the same types.
  SmallVector<Value> either(Value condition, ValueRange like,
                            function_ref<SmallVector<Value>()> emitThen,
                            function_ref<SmallVector<Value>()> emitElse);
  /// The same for what a loop carries.
  CarriedValues either(Value condition, CarriedValues carried,
                       function_ref<CarriedValues()> emitThen,
                       function_ref<CarriedValues()> emitElse);
  /// Tokens [first, first + count) of the span's batch.
  Value slice(Value x, const Span &span, OpFoldResult first,
              OpFoldResult count);
  Value clearTokens(const Span &span, Value output);
  Value stateOf(Value states, OpFoldResult slot);
  Value insertState(Value state, Value states, OpFoldResult slot);
  Value padded(Value state, ArrayRef<int64_t> dims);
  Value unpadded(Value state, Value like);
  void place(Value x, SmallVector<OpFoldResult> &offsets,
             SmallVector<OpFoldResult> &sizes);
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value element(Value x, Value position) {
    Value number = tensor::ExtractOp::create(b, loc, x, ValueRange{position});
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), number);
  }
  Value dim(Value x, int64_t position) {
    return getValueOrCreateConstantIndexOp(
        b, loc, tensor::getMixedSize(b, loc, x, position));
  }

  OpFoldResult batches() { return tensor::getMixedSize(b, loc, r.rows(), 0); }
  Value length() { return dim(r.rows(), 2); }

  OpBuilder &b;
  Location loc;
  Recurrence r;
  ExpansionOptions options;
  /// A decay of a head for each row of a chunk, and of a last chunk that is
  /// filled up; null where a decay is each token's own.
  struct {
    Value whole, last;
  } decays;
};

} // namespace mlir::linattn

#endif // LINATTN_LIB_TRANSFORMS_EXPANSION_H
