//===- Module.cpp - The extension module _linattn -------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bindings.h"
#include "Buffer.h"
#include "Interrupts.h"
#include "KernelObject.h"
#include "linattn-c/Runtime.h"
#include "linattn/Version.h"

namespace nb = nanobind;
using namespace linattn::python;
using namespace nb::literals;

NB_MODULE(_linattn, module) {
  module.doc() = "The compiler and runtime behind the package linattn.";
  module.attr("__version__") = LINATTN_VERSION;
  registerCeilings(module);
  registerCosts(module);
  registerFamilies(module);
  registerRandom(module);
  registerReference(module);
  registerRules(module);
  registerBuffer(module);
  registerInterrupts(module);
  registerKernel(module);
  registerProgram(module);
  registerPlan(module);
  registerStep(module);
  module.def(
      "set_num_threads",
      [](nb::object count) { linattn_set_num_threads(parseNumThreads(count)); },
      "count"_a.none(),
      "Sets the number of threads of this process; None is the default: "
      "LINATTN_NUM_THREADS, or the CPUs that this process may use.");
  module.def(
      "get_num_threads", [] { return linattn_get_num_threads(); },
      "The number of threads that a call uses unless it says otherwise.");
  module.def(
      "outlive", [] { nb::set_leak_warnings(false); },
      "Says that something keeps objects of this module to the very end.");
}
