//===- OnnxOperator.cpp - Operators of ONNX, read -------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OnnxOperator.h"

#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;
using namespace mlir::linattn;

bool mlir::linattn::isOnnxNone(Type type) {
  auto opaque = dyn_cast<OpaqueType>(type);
  return isa<NoneType>(type) ||
         (opaque && opaque.getDialectNamespace() == "torch" &&
          opaque.getTypeData() == "none");
}

LogicalResult OnnxOperator::readInputs(ArrayRef<OnnxInput *> inputs,
                                       size_t required) {
  auto segments = op->getAttrOfType<DenseI32ArrayAttr>("operandSegmentSizes");
  unsigned next = 0, count = op->getNumOperands();
  if (count > inputs.size())
    return fail("at most " + Twine(inputs.size()) + " operands") << count;
  for (auto [i, input] : llvm::enumerate(inputs)) {
    if (segments && i < static_cast<size_t>(segments.size()) &&
        segments[i] == 0)
      continue;
    if (next < count && !isOnnxNone(op->getOperand(next).getType()))
      input->value = op->getOperand(next);
    ++next;
  }
  for (auto [i, input] : llvm::enumerate(inputs)) {
    if (!*input) {
      if (i < required)
        return op->emitOpError("expected ") << input->name << ", but got none";
      continue;
    }
    if (!isa<RankedTensorType>(input->value.getType()))
      return fail(input->name + Twine(" to be a ranked tensor"))
             << input->value.getType();
  }
  if (op->getNumResults() < 1 || op->getNumResults() > 2)
    return fail("the results output and present_state")
           << op->getNumResults() << " results";
  return success();
}

bool OnnxOperator::mayHave(NamedAttribute attr, ArrayRef<StringRef> known) {
  static constexpr StringRef ofImporters[] = {
      "operandSegmentSizes", "resultSegmentSizes", "onnx_node_name",
      "doc_string",          "domain_name",        "name"};
  StringRef name = attr.getName();
  bool hasPrefix = name.consume_front(prefix);
  return (hasPrefix && llvm::is_contained(known, name)) ||
         llvm::is_contained(ofImporters, attr.getName().getValue()) ||
         (name.contains('.') && (prefix.empty() || !hasPrefix));
}

LogicalResult OnnxOperator::checkSize(const Twine &what, int64_t actual,
                                      int64_t expected) {
  if (actual == kOpenSize || expected == kOpenSize || actual == expected)
    return success();
  return fail(what + " to be " + Twine(expected)) << actual;
}
