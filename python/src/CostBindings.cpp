//===- CostBindings.cpp - Cost formulas in Python -------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bindings.h"
#include "linattn/Analysis/FeatureMaps.h"
#include "linattn/Analysis/FormCost.h"
#include "linattn/Reference/CostFunctions.h"

#include "llvm/ADT/StringRef.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

namespace nb = nanobind;
namespace ref = linattn::reference;
using namespace nb::literals;

static int64_t computeFeatureSize(const std::string &name, int64_t headSize,
                                  int64_t randomFeatures, int64_t shifts) {
  std::string error;
  std::optional<int64_t> size =
      linattn::featureSize(name, {headSize, randomFeatures, shifts}, &error);
  if (!size)
    throw nb::value_error(error.c_str());
  return *size;
}

/// (constant, linear, quadratic, countsRows) of a known map.
static nb::object getFeatureFormula(const std::string &name, int64_t shifts) {
  auto formula = linattn::featureSizeFormula(name, shifts);
  if (!formula)
    return nb::none();
  return nb::make_tuple(formula->constant, formula->linear, formula->quadratic,
                        formula->countsRows);
}

/// The maps of whole tokens, as the functions of `linattn.feature_maps` need
/// them.
static nb::list listTokenMaps() {
  using Traits = linattn::FeatureMapTraits;
  nb::list maps;
  for (const Traits &map : linattn::getFeatureMaps()) {
    if (!map.has(Traits::Token))
      continue;
    nb::list parameters;
    for (const linattn::MapParameter &parameter : map.parameters)
      parameters.append(nb::make_tuple(parameter.name, parameter.isMatrix(),
                                       parameter.isOptional));
    nb::dict entry;
    entry["name"] = map.name;
    entry["formula"] = map.formula;
    entry["source"] = map.source;
    entry["parameters"] = parameters;
    entry["eps"] = map.eps;
    entry["shifts"] = map.has(Traits::Shifts);
    entry["positions"] = map.has(Traits::Positions);
    entry["variant"] = map.has(Traits::Variant);
    maps.append(entry);
  }
  return maps;
}

static linattn::ScanForm parseForm(const std::string &text) {
  auto [name, size] = llvm::StringRef(text).split(':');
  linattn::ScanForm form{linattn::ScanForm::Token};
  if (name == "state-tile")
    form.kind = linattn::ScanForm::StateTile;
  else if (name == "quadratic")
    form.kind = linattn::ScanForm::Quadratic;
  else if (name == "chunk" && !size.getAsInteger(10, form.chunk))
    form.kind = linattn::ScanForm::Chunk;
  else if (name != "token")
    throw nb::value_error(("expected a form, but got " + text).c_str());
  return form;
}

/// The work of a form for one head and the cost predicted for it, per token.
static nb::tuple describeWork(const std::string &form,
                              const std::string &update,
                              const std::string &decay, bool normalized,
                              int64_t tokens, int64_t keySize,
                              int64_t valueSize, int64_t elementBits,
                              int64_t vectorBits, int64_t registers) {
  using Problem = linattn::ScanProblem;
  Problem problem;
  problem.rule = linattn::findUpdateRule(update);
  if (!problem.rule)
    throw nb::value_error(("expected an update, but got " + update).c_str());
  problem.decay = decay == "channel"  ? Problem::Decay::Channel
                  : decay == "scalar" ? Problem::Decay::Scalar
                                      : Problem::Decay::None;
  problem.normalized = normalized;
  // The cases of the calibration have no states.
  problem.startsAtZero = problem.endsUnused = true;
  problem.tokens = tokens;
  problem.keySize = keySize;
  problem.valueSize = valueSize;
  problem.elementBits = elementBits;
  linattn::VectorTarget target{vectorBits, registers};
  linattn::ScanForm parsed = parseForm(form);
  nb::list work;
  for (double count : linattn::countWork(problem, parsed, target))
    work.append(count);
  return nb::make_tuple(work, linattn::predictCost(problem, parsed, target));
}

void linattn::python::registerCosts(nb::module_ &module) {
  nb::module_ sub =
      module.def_submodule("costs", "Cost functions of the forms.");
  sub.def("softmax_flops", ref::softmaxFlops, "n"_a, "d"_a);
  sub.def("linear_flops", ref::linearFlops, "n"_a, "d"_a);
  sub.def("softmax_score_bytes", ref::softmaxScoreBytes, "n"_a);
  sub.def("linear_state_bytes", ref::linearStateBytes, "d"_a);
  sub.def("quadratic_multiply_adds", ref::quadraticMultiplyAdds, "n"_a, "k"_a,
          "v"_a);
  sub.def("reassociated_multiply_adds", ref::reassociatedMultiplyAdds, "n"_a,
          "k"_a, "v"_a);
  sub.def("crossover_tokens", ref::crossoverTokens, "k"_a, "v"_a,
          "causal"_a = false);
  sub.def("softmax_layer_multiply_adds", ref::softmaxLayerMultiplyAdds, "n"_a,
          "d"_a);
  sub.def("linear_layer_multiply_adds", ref::linearLayerMultiplyAdds, "n"_a,
          "d"_a);
  sub.def("favor_layer_multiply_adds", ref::favorLayerMultiplyAdds, "n"_a,
          "d"_a, "m"_a);
  sub.def("nystrom_layer_multiply_adds", ref::nystromLayerMultiplyAdds, "n"_a,
          "d"_a, "m"_a);
  sub.def("fnet_layer_multiply_adds", ref::fnetLayerMultiplyAdds, "n"_a, "d"_a);
  sub.def("feature_size", computeFeatureSize, "name"_a, "head_size"_a,
          "m"_a = 0, "shifts"_a = 1);
  sub.def("count_work", describeWork, "form"_a, "update"_a, "decay"_a,
          "normalized"_a, "tokens"_a, "key_size"_a, "value_size"_a,
          "element_bits"_a, "vector_bits"_a, "registers"_a);
  sub.def("feature_formula", getFeatureFormula, "name"_a, "shifts"_a = 1);
  sub.def("token_maps", listTokenMaps);
}
