//===- Step.cpp - A step like the one before ------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A large state has just passed through the caches when it is stepped again:
// whatever else a step touches comes from afar. One that differs from the step
// before in nothing but its arrays looks nothing up.
//
//===----------------------------------------------------------------------===//

#include "Bindings.h"
#include "Plan.h"

namespace nb = nanobind;
using namespace linattn;
using namespace linattn::python;
using namespace nb::literals;

namespace {

class Step {
public:
  Step(nb::tuple arrays, nb::tuple options, nb::object plan, nb::tuple state)
      : options(options), owner(plan), plan(&nb::cast<Plan &>(plan)),
        state(state) {
    for (PyObject *array : itemsOf(arrays))
      present.push_back(array != Py_None);
  }

  /// What the plan returns, or None where anything but the arrays differs.
  nb::object call(nb::tuple arrays, nb::tuple given, nb::handle out,
                  bool inPlace, nb::handle numThreads) const {
    // The same objects: what `==` would say may be costly, or an error.
    if (itemsOf(options) != itemsOf(given) ||
        itemsOf(arrays).size() != present.size())
      return nb::none();
    llvm::SmallVector<PyObject *, 16> operands;
    for (auto [array, wasPresent] : llvm::zip_equal(itemsOf(arrays), present)) {
      if ((array != Py_None) != wasPresent)
        return nb::none();
      if (wasPresent)
        operands.push_back(array);
    }
    return plan->call(operands, state, out, inPlace, numThreads);
  }

private:
  nb::tuple options;
  nb::object owner;
  Plan *plan;
  nb::tuple state;
  llvm::SmallVector<bool, 16> present;
};

} // namespace

void linattn::python::registerStep(nb::module_ &module) {
  nb::class_<Step>(module, "Step",
                   "What a step of a state was, but for its arrays.")
      .def(nb::init<nb::tuple, nb::tuple, nb::object, nb::tuple>(), "arrays"_a,
           "options"_a, "plan"_a, "state"_a)
      .def("__call__", &Step::call, "arrays"_a, "options"_a, "out"_a.none(),
           "in_place"_a, "num_threads"_a.none());
}
