//===- Producers.h - Operands that are made of earlier tokens ---*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// Running sums, running log-sum-exps and neighbours along the tokens of each
// sequence, packed ones included. The host reads no data: offsets may be in the
// memory of a device.
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_FAMILIES_PRODUCERS_H
#define LINATTN_LIB_FAMILIES_PRODUCERS_H

#include "linattn/Families/FamilyBuilder.h"

namespace mlir::linattn {

/// The first and the last tokens of sequences.
struct SequenceEnds {
  explicit SequenceEnds(FamilyBuilder &f);
  bool isPacked() const { return starts != Value(); }

  /// For packed sequences, null otherwise: the sequence that a token begins, or
  /// −1 [T]; the first token of each sequence, and the one after its last [N].
  Value starts, begins, ends;
};

/// The offsets of packed sequences with `factor` steps per token, or null.
Value scaleOffsets(FamilyBuilder &f, int64_t factor);

/// Tokens x [B, H, T, …] behind a row for what was before the first one, the
/// row of `state` [N, H, …] or zeros if it is null: what is written there, at
/// row 1 on, is every token's successor in the view from row 0 on.
class LaggedTokens {
public:
  LaggedTokens(FamilyBuilder &f, const SequenceEnds &sequences,
               ArrayRef<OpFoldResult> sizes, Type elementType, Value state);

  /// [B, H, T + 1, …]. The user fills it from row 1 on and sets it again.
  Value rows;
  void fill(Value tokens);

  Value own();
  /// For each token the one before it; for a first token, the row of its state.
  Value previous();
  /// The state for the next call: [N, H, …], of the states' type for packed
  /// sequences, else of x's.
  Value last();

private:
  Value slice(int64_t from);

  FamilyBuilder &f;
  const SequenceEnds &sequences;
  SmallVector<OpFoldResult> sizes;
  Type elementType;
  Value state;
};

/// The rotated features, and their angles.
struct Rotation {
  /// Rotates features 2i and 2i + 1 together, otherwise i and i + size / 2.
  bool pairwise = true;
  int64_t size = 0, angles = 0;
  Value cosines, sines; ///< [B, H, T, angles]
};

/// Writes (x + bias) with rotated features into a tensor, from that row of
/// dimension T on. `dims` names the dimensions of the tensor, features last.
Value emitRotation(FamilyBuilder &f, const Rotation &rotation, FamilyTerm x,
                   FamilyTerm bias, StringRef dims, Value into, int64_t row);

/// Running sums of increments [B, H, T, X] in f64, from `state` [N, H, X] of
/// any type on; `last`, the sums after the last token, is [N, H, 1, X] of f64.
struct RunningSum {
  Value sums, last;
};
RunningSum emitRunningSum(FamilyBuilder &f, StringRef dim, Value increments,
                          Value state);

/// z_t = log(e^{z_{t-1}} + e^{x_t}) per channel of x [B, H, T, X]:
/// weights e^{x_t − z_t} of x's type, log decays z_{t-1} − z_t, 0 at a first
/// token, and the last z [N, H, X], both of the states' type.
struct RunningLogSum {
  Value weights, decay, last;
};
RunningLogSum emitRunningLogSum(FamilyBuilder &f, const SequenceEnds &sequences,
                                FamilyTerm x, Value state);

} // namespace mlir::linattn

#endif // LINATTN_LIB_FAMILIES_PRODUCERS_H
