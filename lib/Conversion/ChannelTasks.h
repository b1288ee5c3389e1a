//===- ChannelTasks.h - Tasks of channels with states -----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_CHANNELTASKS_H
#define LINATTN_CONVERSION_CHANNELTASKS_H

#include "RecurrenceBuilder.h"

namespace mlir::linattn {

/// Recurrences of channels with several states each, a few channels of one
/// group at a time. Blocks of tokens are packed into scratch memory with rows
/// of `width` channels. Operands with strided channels, such as [B, C, T], are
/// packed element by element.
class ChannelTasks : public RecurrenceBuilder {
public:
  static constexpr int64_t blockTokens = 32;

  /// `groups` of channels have projections of their own; `multiple` pads the
  /// states.
  ChannelTasks(OpBuilder &b, RecurrenceOpInterface op, int64_t width,
               Value groups, Value states, int64_t multiple)
      : RecurrenceBuilder(b, op, width), states(states),
        padded(roundUp(states, multiple)),
        grouped(getConstantIntValue(groups) != 1) {}

  /// Channels of one group.
  struct Channels {
    Value first, count, group;
  };

protected:
  /// Fills scratch of two dimensions, or its rows in [from, from + count), with
  /// zeros.
  void clear(Value buffer) { clear(buffer, index(0), dim(buffer, 0)); }
  void clear(Value buffer, Value from, Value rows);
  /// Calls `body` with the indices [prefix, channel, state] of an operand and
  /// those of packed memory, whose rows of a channel begin at `row`.
  void forEachState(const Channels &channels, ValueRange prefix, Value row,
                    function_ref<void(ValueRange, ValueRange)> body);
  /// operand[prefix, channel, state] to the row from `row` on of each state.
  void packStates(const Channels &channels, Value operand, ValueRange prefix,
                  Value target, Value row);
  /// The inverse.
  void storeStates(const Channels &channels, Value packed, Value row,
                   Value operand, ValueRange prefix);
  /// The channels of a [B, T, C] operand for `tokens` tokens from position
  /// `first` on, to rows from `row` on. Those of other groups are zero.
  void packTokens(const Channels &channels, Value operand, Value first,
                  Value tokens, Value target, Value row);
  /// The inverse.
  void writeTokens(const Channels &channels, Value packed, Value row,
                   Value first, Value tokens, Value operand);
  /// The states of a token's projection, [B, T, N] or [B, G, T, N], for a block
  /// of tokens. Without a target, does nothing.
  void packProjection(Value operand, Value group, Value first, Value tokens,
                      Value target);
  /// The indices of a token's projection, up to those of its states.
  SmallVector<Value> projectionRow(Value operand, Value batch, Value group,
                                   Value token);

  /// States per channel, and with padding.
  const Value states, padded;
  const bool grouped;
};

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_CHANNELTASKS_H
