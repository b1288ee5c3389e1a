//===- PlanBindings.cpp - Plans for Python --------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bindings.h"
#include "PlanCall.h"
#include "Program.h"

#include <nanobind/stl/shared_ptr.h>

namespace nb = nanobind;
using namespace linattn;
using namespace linattn::python;
using namespace nb::literals;

static OperandRole parseRole(const std::string &role) {
  if (role == "tokens")
    return OperandRole::Tokens;
  if (role == "gate")
    return OperandRole::Gate;
  if (role == "mask")
    return OperandRole::Mask;
  if (role == "counts")
    return OperandRole::Counts;
  if (role == "offsets")
    return OperandRole::Offsets;
  if (role == "state")
    return OperandRole::State;
  if (role == "carried")
    return OperandRole::Carried;
  if (role == "parameter")
    return OperandRole::Parameter;
  if (role == "positions")
    return OperandRole::Positions;
  if (role == "number")
    return OperandRole::Number;
  throw nb::value_error(("role: expected tokens, gate, mask, counts, offsets, "
                         "state, carried, parameter, positions or number, but "
                         "got " +
                         role)
                            .c_str());
}

/// Fills in a plan. The lists have tuples (name, role, layouts).
static void describe(Plan &plan, nb::list operands, nb::list rules,
                     nb::list state, nb::handle output, nb::list snapshots) {
  auto make = [&](nb::handle item) {
    return plan.makeOperand(nb::cast<std::string>(item[0]),
                            parseRole(nb::cast<std::string>(item[1])),
                            nb::cast<std::string>(item[2]));
  };
  for (nb::handle operand : operands)
    plan.operands.push_back(make(operand));
  for (nb::handle rule : rules)
    plan.addRule(nb::cast<std::string>(rule));
  for (nb::handle part : state)
    plan.state.push_back(make(part));
  if (!output.is_none())
    plan.output.push_back(make(output));
  for (nb::handle part : snapshots)
    plan.snapshots.push_back(make(part));
  if (plan.operands.empty() ||
      plan.operands.front().role != OperandRole::Tokens)
    throw nb::value_error("operands: expected tokens first");
  if (plan.operands.size() + plan.state.size() > kMaxOperands ||
      plan.state.size() > kMaxStateParts)
    throw nb::value_error("operands: expected fewer");
  // An extent of 1 that users write out.
  if (plan.names.find("1") != DimNames::kNone)
    plan.addRule("1 = 1");
  plan.batch = plan.names.find("B");
  plan.states = plan.names.find("N");
  auto has = [&](OperandRole role) {
    return llvm::any_of(plan.operands, [&](const OperandSpec &spec) {
      return spec.role == role;
    });
  };
  plan.hasOffsets = has(OperandRole::Offsets);
  plan.hasNumbers = has(OperandRole::Number);
}

void linattn::python::registerPlan(nb::module_ &module) {
  module.def("count_kernels", &Plan::getKernelCount,
             "How many kernels all plans hold.");
  module.def(
      "bound_kernels",
      [](size_t count) { return std::exchange(Plan::mostKernels, count); },
      "count"_a,
      "Sets how many kernels all plans may hold; returns the former bound.");
  nb::class_<Plan>(module, "Plan", "The kernels of one combination of options.")
      .def(
          "__init__",
          [](Plan *self, nb::object build, nb::list operands, nb::list rules,
             nb::list state, nb::object output, bool hasState,
             bool returnsState, bool fixesHeads, bool hasWideState,
             bool trustsState, nb::list snapshots, bool emulatesDevice) {
            new (self) Plan();
            self->build = std::move(build);
            self->hasState = hasState;
            self->returnsState = returnsState;
            self->hasWideState = hasWideState;
            self->fixesHeads = fixesHeads;
            self->trustsState = trustsState;
            self->emulatesDevice = emulatesDevice;
            describe(*self, operands, rules, state, output, snapshots);
          },
          "build"_a, "operands"_a, "rules"_a, "state"_a, "output"_a.none(),
          "has_state"_a, "returns_state"_a, "fixes_heads"_a,
          "wide_state"_a = false, "trusts_state"_a = false,
          "snapshots"_a = nb::list(), "emulates_device"_a = false)
      .def_ro("build", &Plan::build, "The function that compiles its kernels.")
      .def_prop_ro("last_use", &Plan::getLastUse,
                   "When it was called last, in calls of all plans.")
      .def_prop_ro(
          "state_parts", [](const Plan &plan) { return plan.state.size(); },
          "How many arrays the state has.")
      .def(
          "__call__",
          [](Plan &plan, nb::tuple operands, nb::handle state, nb::handle out,
             nb::handle inPlace, nb::handle numThreads) {
            bool isGiven = PyTuple_Check(inPlace.ptr());
            return plan.call(itemsOf(operands), state, out,
                             isGiven ? InPlace::Never : parseInPlace(inPlace),
                             numThreads, isGiven ? inPlace : nb::none());
          },
          "operands"_a, "state"_a.none(), "out"_a.none(), "in_place"_a,
          "num_threads"_a.none())
      .def(
          "run",
          [](Plan &plan, nb::tuple operands, nb::handle state, nb::handle out,
             nb::handle inPlace, nb::handle numThreads) {
            bool isGiven = PyTuple_Check(inPlace.ptr());
            return plan.run(itemsOf(operands), state, out,
                            isGiven ? InPlace::Never : parseInPlace(inPlace),
                            numThreads, isGiven ? inPlace : nb::none());
          },
          "operands"_a, "state"_a.none(), "out"_a.none(), "in_place"_a,
          "num_threads"_a.none())
      .def("describe", &describeResults, "operands"_a, "state"_a,
           "The results of a call with arrays (dtype, shape), described like "
           "them.")
      .def("program", &makeProgram, "operands"_a, "state"_a,
           "num_threads"_a.none(),
           "A call with arrays (dtype, shape), as a `Program`.");
}
