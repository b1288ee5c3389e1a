//===- ArrayNames.cpp - Element types and shapes in messages --------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arrays.h"

namespace nb = nanobind;
using namespace linattn;
using namespace linattn::python;

const char *linattn::python::getPythonName(DType dtype) {
  switch (dtype) {
  case DType::F16:
    return "float16";
  case DType::BF16:
    return "bfloat16";
  case DType::F32:
    return "float32";
  case DType::F64:
    return "float64";
  case DType::I1:
    return "bool";
  case DType::I8:
    return "int8";
  case DType::I16:
    return "int16";
  case DType::I32:
    return "int32";
  case DType::I64:
    return "int64";
  case DType::Index:
    return "index";
  }
  return "unknown";
}

std::string linattn::python::formatPythonShape(llvm::ArrayRef<int64_t> shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

std::string linattn::python::describeType(nb::handle object) {
  return nb::cast<std::string>(nb::type_name(object.type()));
}
