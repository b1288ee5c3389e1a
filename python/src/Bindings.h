//===- Bindings.h - The parts of the extension module -----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_PYTHON_BINDINGS_H
#define LINATTN_PYTHON_BINDINGS_H

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

namespace linattn::python {

/// Adds the submodule `costs`.
void registerCosts(nanobind::module_ &module);

/// Adds `random_projection`.
void registerRandom(nanobind::module_ &module);

/// Adds the measured peaks of the machine, for benchmarks.
void registerCeilings(nanobind::module_ &module);

/// Adds the submodule `reference`.
void registerReference(nanobind::module_ &module);

/// Adds the submodule `rules`.
void registerRules(nanobind::module_ &module);

/// Adds `Kernel` and `compile`.
void registerKernel(nanobind::module_ &module);

/// Adds the submodule `families`.
void registerFamilies(nanobind::module_ &module);

/// Adds `Plan`, the fast path of `attention`, `scan` and `State`.
void registerPlan(nanobind::module_ &module);

/// Adds `Program`, and its handler for XLA.
void registerProgram(nanobind::module_ &module);

/// Adds `Step`, the fast path of `State.step`.
void registerStep(nanobind::module_ &module);

} // namespace linattn::python

#endif // LINATTN_PYTHON_BINDINGS_H
