//===- SnapshotTokens.h - States in between as outputs ----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GRADIENT_SNAPSHOTTOKENS_H
#define LINATTN_LIB_GRADIENT_SNAPSHOTTOKENS_H

#include "TensorBuilder.h"

namespace mlir::linattn {

/// Tokens in groups of `every`, each followed by K tokens that write nothing
/// and read the rows of the state: the outputs of these are the snapshot.
class SnapshotTokens {
public:
  /// `tokens` is any operand [B, H, T, …].
  SnapshotTokens(TensorBuilder &t, Value tokens, int64_t every);

  /// [B, H, T, D] or [B, H, T] with zeros for the tokens between groups, of
  /// which there are `rows` in each; a constant gate [H] becomes one of tokens.
  Value insertZeros(Value x, OpFoldResult rows);
  /// Queries, each row of the unit matrix for the tokens between groups.
  Value insertUnitRows(Value query);
  /// The outputs [B, H, T, V] and the snapshots [B, P, H, K, V].
  std::pair<Value, Value> split(Value output);

private:
  Value insert(Value x, Value between);
  OpFoldResult compute(AffineExpr expr, ArrayRef<OpFoldResult> symbols);

  TensorBuilder &t;
  int64_t every;
  Value like;
  OpFoldResult tokens, groups, kept, padding, rows;
};

} // namespace mlir::linattn

#endif // LINATTN_LIB_GRADIENT_SNAPSHOTTOKENS_H
