//===- Producers.h - Operands that are made of earlier tokens ---*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sums, logarithms of sums and neighbours along the tokens of each sequence,
// packed ones included. Nothing is read on the host: the offsets may be in the
// memory of a device.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_FAMILIES_PRODUCERS_H
#define LINATTN_LIB_FAMILIES_PRODUCERS_H

#include "linattn/Families/FamilyBuilder.h"

namespace mlir::linattn {

/// Which tokens are the first and the last of their sequences.
struct SequenceEnds {
  explicit SequenceEnds(FamilyBuilder &f);
  bool isPacked() const { return starts != Value(); }

  /// Of packed sequences, null otherwise: the sequence that a token begins, or
  /// −1 [T]; the first token of each, and the one after its last [N].
  Value starts, begins, ends;
};

/// The offsets of packed sequences with `factor` steps per token, or null.
Value scaleOffsets(FamilyBuilder &f, int64_t factor);

/// What came before each token, and what is left for the next call.
struct Lagged {
  Value previous, last;
};

/// Every token's predecessor in x [B, H, T, …]; that of the first token of a
/// sequence is in `state` [N, H, …], zero if null. `last` [N, H, …] is of the
/// states' type if sequences are packed, of x's otherwise.
Lagged emitLag(FamilyBuilder &f, const SequenceEnds &sequences, Value x,
               Value state);

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
