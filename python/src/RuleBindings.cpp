//===- RuleBindings.cpp - Update rules and legality in Python -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bindings.h"
#include "linattn/Analysis/Legality.h"

#include <nanobind/stl/string_view.h>

namespace nb = nanobind;
using namespace linattn;

static nb::tuple toTuple(Clauses clauses) {
  nb::list names;
  for (Clause clause : clauses.list())
    names.append(getName(clause));
  return nb::tuple(names);
}

static nb::dict describe(const UpdateRule &rule) {
  nb::dict result;
  result["name"] = rule.name;
  result["formula"] = rule.formula;
  result["takes"] = toTuple(rule.takes);
  result["needs"] = toTuple(rule.needs);
  result["needs_all"] = rule.needsAll;
  result["has_scalar_beta"] = rule.hasScalarBeta;
  result["couples_rows"] = rule.couplesRows();
  nb::dict refusals;
  for (size_t i = 0; i < numSchedules; ++i)
    if (auto why = whyNot(Schedule(i), getTraits(rule)); !why.empty())
      refusals[nb::cast(getName(Schedule(i)))] = why;
  result["refusals"] = refusals;
  return result;
}

static nb::list listRules() {
  nb::list rules;
  for (const UpdateRule &rule : getUpdateRules())
    rules.append(describe(rule));
  return rules;
}

static nb::list listRefusals() {
  nb::list rows;
  for (const Refusal &refusal : getRefusals()) {
    nb::list traits;
    for (size_t i = 0; i < numScanTraits; ++i)
      if (refusal.traits.contains(ScanTrait(i)))
        traits.append(getName(ScanTrait(i)));
    rows.append(nb::make_tuple(getName(refusal.schedule), nb::tuple(traits),
                               refusal.reason));
  }
  return rows;
}

void linattn::python::registerRules(nb::module_ &module) {
  nb::module_ sub =
      module.def_submodule("rules", "Update rules, and what runs them.");
  sub.def("list", listRules,
          "Every rule: its operands, and the schedules that refuse it.");
  sub.def(
      "refusals", listRefusals,
      "(schedule, properties of a scan, reason) in the order of the checks.");
}
