//===- Libraries.h - Array libraries of this process ------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_PYTHON_LIBRARIES_H
#define LINATTN_PYTHON_LIBRARIES_H

#include "Arrays.h"
#include "DLPack.h"

#include <unordered_map>

namespace linattn::python {

/// The library of an array type, and its DLPack functions.
struct TypeInfo {
  ArrayKind kind = ArrayKind::Other;
  /// Functions that import and export its arrays, if it has them.
  const dlpack::ExchangeAPI *api = nullptr;
  /// A subclass of PyTorch's tensors.
  bool isTensorSubclass = false;
  /// JAX's placeholder for an array while it traces a function.
  bool isTracer = false;
};

/// Python objects that live as long as the interpreter. They are leaked, since
/// at exit no moment to release them is safe.
struct Libraries {
  nanobind::object numpyArray, numpyEmpty, float32, float64;
  nanobind::object uint16;
  /// The dtype of ml_dtypes, looked up at first use.
  nanobind::object bfloat16;
  nanobind::object dtypeName, viewName, dlpackName, dlpackDeviceName,
      maxVersion;
  nanobind::object cudaName, gradientName, isNegName, levelName;
  /// The variables of torch.autograd.forward_ad, looked up at the first tensor.
  nanobind::object forwardGradients;
  std::unordered_map<PyTypeObject *, TypeInfo> types;

  Libraries();
};

Libraries &getLibraries();

/// Whether PyTorch records forward gradients.
bool recordsForward();

/// The dtype bfloat16 of ml_dtypes.
nanobind::object getBFloat16();

/// The library of a type, by the name of its module. Throws a TypeError that
/// starts with `name` for a masked array.
TypeInfo classify(nanobind::handle object, const char *name);

} // namespace linattn::python

#endif // LINATTN_PYTHON_LIBRARIES_H
