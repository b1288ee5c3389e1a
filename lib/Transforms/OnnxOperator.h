//===- OnnxOperator.h - Operators of ONNX, read -----------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_TRANSFORMS_ONNXOPERATOR_H
#define LINATTN_LIB_TRANSFORMS_ONNXOPERATOR_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Operation.h"

namespace mlir::linattn {

inline constexpr int64_t kOpenSize = ShapedType::kDynamic;

/// Whether a type stands for an absent operand.
bool isOnnxNone(Type type);

/// One operand of the operator; null if it is absent.
struct OnnxInput {
  Value value;
  StringRef name;

  explicit operator bool() const { return bool(value); }
  RankedTensorType type() const {
    return cast<RankedTensorType>(value.getType());
  }
  int64_t size(int64_t dim) const { return type().getDimSize(dim); }
};

/// An unregistered op for an operator of ONNX, whose attributes have names
/// with a prefix.
class OnnxOperator {
public:
  OnnxOperator(Operation *op, StringRef prefix) : op(op), prefix(prefix) {}

protected:
  /// Emits an error that ends in "but got", for the caller to complete.
  InFlightDiagnostic fail(const Twine &expected) {
    return op->emitOpError("expected ") << expected << ", but got ";
  }
  Attribute get(StringRef name) { return op->getAttr((prefix + name).str()); }
  /// Reads the operands, of which the first `required` must be present, and
  /// checks the number of results.
  LogicalResult readInputs(ArrayRef<OnnxInput *> inputs, size_t required);
  /// Whether an attribute is one of `known`, or belongs to an importer.
  bool mayHave(NamedAttribute attr, ArrayRef<StringRef> known);
  LogicalResult checkSize(const Twine &what, int64_t actual, int64_t expected);

  Operation *op;
  StringRef prefix;
};

} // namespace mlir::linattn

#endif // LINATTN_LIB_TRANSFORMS_ONNXOPERATOR_H
