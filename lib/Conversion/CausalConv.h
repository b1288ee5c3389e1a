//===- CausalConv.h - linattn.causal_conv as loops --------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_CONVERSION_CAUSALCONV_H
#define LINATTN_LIB_CONVERSION_CAUSALCONV_H

#include "Activations.h"
#include "RecurrenceBuilder.h"

#include "linattn/Dialect/LinAttnConv.h"

#include <map>

namespace mlir::linattn {

/// Emits the op on buffers as scalar loops.
void lowerToNaiveLoops(OpBuilder &b, CausalConvOp op, bool lanes);

/// Emits it as loops over vectors of `lanes` elements of the accumulation type,
/// which run along whichever of channels and tokens are neighbours in memory.
void lowerCausalConvToVector(OpBuilder &b, CausalConvOp op, int64_t lanes);

/// The base of the two vector forms. Positions count a sequence's tokens in the
/// order of computation; the first S of them, the head, see inputs of the
/// state.
class ConvBuilder : public RecurrenceBuilder {
public:
  using Vectors = SmallVector<Value, 16>;

  ConvBuilder(OpBuilder &b, CausalConvOp conv, int64_t lanes)
      : RecurrenceBuilder(
            b, conv, getAccumulationType(getElementTypeOrSelf(conv.getInput())),
            lanes),
        conv(conv), lanes(lanes), taps(conv.getWidth()),
        stateLength(conv.getStateLength()),
        parts(countParts(getElementTypeOrSelf(conv.getInput()), lanes)) {}

protected:
  /// How far before its output the input of a weight stands.
  int64_t distance(int64_t tap) {
    return (taps - 1 - tap) * conv.getDilation();
  }
  /// The sum over the weights, in their order.
  Value sum(ArrayRef<Value> weights, Value bias,
            function_ref<Value(int64_t)> input);
  Value activate(Value x);
  /// The activation of several vectors, some of them side by side: each is a
  /// long chain of operations, and one hides the latency of another.
  Vectors activate(ArrayRef<Value> vectors);
  /// How many that are: more would not fit the registers.
  static constexpr int64_t sideBySide = 4;
  /// Vectors of outputs that are computed at once.
  static constexpr int64_t outputsAtOnce = 8;

  /// Sets the sequence of a task and the positions [first, last) of its block
  /// of `tokens`; packed sequences have one block.
  void enterBlock(Value sequence, Value block, int64_t tokens);
  Value countBlocks(int64_t tokens);

  /// Elements [channel, channel + lanes) × [0, count) of a [..., C, count]
  /// operand as one vector for each of the `count`.
  Vectors loadInterleaved(Value memref, ValueRange prefix, Value channel);
  void storeInterleaved(ArrayRef<Value> vectors, Value memref,
                        ValueRange prefix, Value channel);

  /// The elements of pairs of neighbours as two vectors of the accumulation
  /// type, the first ones and the second ones; or one vector of all elements.
  Vectors split(Value vector);
  Value join(ArrayRef<Value> vectors, Type element);
  /// The values of one of two branches.
  Vectors branch(Value condition, function_ref<Vectors()> then,
                 function_ref<Vectors()> otherwise);
  /// The elements of all parts.
  int64_t span() const { return lanes * parts; }

  CausalConvOp conv;
  int64_t lanes, taps, stateLength, parts;
  Value first, last;
  /// Scratch memory of one vector.
  Value lane;

private:
  Vectors loadFlat(Value memref, ValueRange prefix, Value channel);
  Vectors gather(Value memref, ValueRange prefix, Value channel);
  void storeFlat(ArrayRef<Value> vectors, Value memref, ValueRange prefix,
                 Value channel);
  void scatter(ArrayRef<Value> vectors, Value memref, ValueRange prefix,
               Value channel);
  Value isFlat(Value memref);
  Value flatView(Value memref, ValueRange prefix);
  Value vectorOf(Value flat, Value from);
};

/// The axis along which elements are neighbours in memory.
enum class ConvAxis { Channels, Tokens, None };

/// Input and output [B, T, C], or [B, C, T] along tokens, of stride 1 in their
/// last dimension; as they are for `None`.
struct ConvViews {
  Value input, output;
  ConvAxis inputAxis, outputAxis;
};

/// Emits vectors over channels, or element by element where nothing is a
/// neighbour.
void emitConvOverChannels(OpBuilder &b, CausalConvOp op, int64_t lanes,
                          const ConvViews &views);
/// Emits vectors over tokens.
void emitConvOverTokens(OpBuilder &b, CausalConvOp op, int64_t lanes,
                        const ConvViews &views);

/// The columns of a square of vectors as vectors.
SmallVector<Value, 16> transposeSquare(LoopBuilder &loops,
                                       ArrayRef<Value> rows);

} // namespace mlir::linattn

#endif // LINATTN_LIB_CONVERSION_CAUSALCONV_H
