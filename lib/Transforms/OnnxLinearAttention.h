//===- OnnxLinearAttention.h - The operator of ONNX, read -------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_TRANSFORMS_ONNXLINEARATTENTION_H
#define LINATTN_LIB_TRANSFORMS_ONNXLINEARATTENTION_H

#include "OnnxOperator.h"

namespace mlir::linattn {

/// The operator by its specification.
class OnnxLinearAttention : OnnxOperator {
public:
  using OnnxOperator::OnnxOperator;

  LogicalResult read() {
    return success(succeeded(readOperands()) && succeeded(readAttributes()) &&
                   succeeded(readTokens()) && succeeded(readGates()) &&
                   succeeded(readState()) && succeeded(readResults()));
  }

  bool isGated() const { return rule.starts_with("gated"); }
  bool isDelta() const { return rule.ends_with("delta"); }

  OnnxInput query{{}, "query"}, key{{}, "key"}, value{{}, "value"},
      pastState{{}, "past_state"}, decay{{}, "decay"}, beta{{}, "beta"},
      eraseGate{{}, "erase_gate"};
  StringRef rule = "gated_delta";
  int64_t queryHeads = 0, heads = 0;
  /// Sizes of one head; kOpenSize where types leave them open.
  int64_t keySize = kOpenSize, valueSize = kOpenSize;
  double scale = 0;

private:
  LogicalResult readOperands();
  LogicalResult readAttributes();
  LogicalResult readTokens();
  LogicalResult readGates();
  LogicalResult readState();
  LogicalResult readResults();

  FailureOr<int64_t> readHeads(StringRef name);
  LogicalResult readScale();
  /// A [B, T, F] tensor of the query's element type.
  LogicalResult readPacked(OnnxInput input);
  /// The size of one of `count` heads. An error if `size` disagrees.
  LogicalResult readHeadSize(OnnxInput input, int64_t count,
                             StringRef countName, int64_t &size);
};

} // namespace mlir::linattn

#endif // LINATTN_LIB_TRANSFORMS_ONNXLINEARATTENTION_H
