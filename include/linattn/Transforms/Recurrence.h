//===- Recurrence.h - The operands of a recurrence --------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TRANSFORMS_RECURRENCE_H
#define LINATTN_TRANSFORMS_RECURRENCE_H

#include "linattn/Dialect/Einsum.h"
#include "linattn/Dialect/LinAttn.h"

#include <optional>

namespace mlir::linattn {

/// The operands and clauses of a scan, or of its halves: a state has no
/// queries, a read no keys. Absent operands are null.
struct Recurrence {
  FeatureMappedOpInterface op;
  Value query, key, value, decay, valueDecay, beta, a, b, bonus, erase, write,
      inputGate, mask, offsets, indices, output;
  StateValues state;
  /// The memory with the state before the first token, if the state is updated
  /// elsewhere.
  Value initial;
  /// The state before the first token is zero; its memory holds anything.
  bool startsAtZero = false;
  Update update = Update::Add;
  bool exclusive = false, before = false, reverse = false;
  std::optional<NormalizeAttr> normalize;
  Scale scale = {};

  explicit Recurrence(ScanOp op);
  explicit Recurrence(StateOp op);
  explicit Recurrence(ReadOp op);

  /// The tokens that the recurrence visits: keys, or the queries of a read.
  Value rows() const { return key ? key : query; }
  /// The operands with a token dimension.
  SmallVector<Value *> tokenOperands();
  /// True if the states are followed by a running maximum.
  bool isStabilised() const { return bool(state.runningMax); }
};

} // namespace mlir::linattn

#endif // LINATTN_TRANSFORMS_RECURRENCE_H
