//===- OnnxCausalConv.h - CausalConvWithState of ONNX -----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_TRANSFORMS_ONNXCAUSALCONV_H
#define LINATTN_LIB_TRANSFORMS_ONNXCAUSALCONV_H

#include "OnnxOperator.h"

namespace mlir::linattn {

/// The operator by its specification.
class OnnxCausalConv : OnnxOperator {
public:
  using OnnxOperator::OnnxOperator;

  /// Checks the rules of the operator.
  LogicalResult read() {
    return success(succeeded(readOperands()) && succeeded(readAttributes()) &&
                   succeeded(readShapes()) && succeeded(readResults()));
  }
  /// Emits output and present state, of the types of the results.
  SmallVector<Value, 2> write(OpBuilder &b);

private:
  LogicalResult readOperands();
  LogicalResult readAttributes();
  LogicalResult readShapes();
  LogicalResult readResults();

  LogicalResult checkRank(OnnxInput operand, int64_t rank, StringRef shape);

  OnnxInput input{{}, "input"}, weight{{}, "weight"}, bias{{}, "bias"},
      pastState{{}, "past_state"};
  bool silu = false;
};

} // namespace mlir::linattn

#endif // LINATTN_LIB_TRANSFORMS_ONNXCAUSALCONV_H
