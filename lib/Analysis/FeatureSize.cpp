//===- FeatureSize.cpp - How many features a map makes --------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Analysis/FeatureSize.h"

#include <algorithm>

using namespace linattn;

namespace {

struct FeatureMapSize {
  std::string_view name;
  /// Twice the size, in n; with `hasShifts` the linear part counts ν times.
  FeatureSizeFormula formula;
  bool hasShifts = false;
};

constexpr bool ofRows = true;

constexpr FeatureMapSize maps[] = {
    {"identity", {0, 2, 0}},
    {"relu", {0, 2, 0}},
    {"relu2", {0, 2, 0}},
    {"elu1", {0, 2, 0}},
    {"softmax_kernel", {0, 2, 0}},
    {"exp", {0, 2, 0}},
    {"softmax", {0, 2, 0}},
    {"l2norm", {0, 2, 0}},
    {"sum_norm", {0, 2, 0}},
    {"favor", {0, 2, 0, ofRows}},
    {"favor_hyperbolic", {0, 4, 0, ofRows}},
    {"random_fourier", {0, 4, 0, ofRows}},
    {"random_fourier_exp", {0, 4, 0, ofRows}},
    {"t2r", {0, 2, 0, ofRows}},
    {"hadamard", {0, 2, 0, ofRows}},
    {"cosformer", {0, 4, 0}},
    {"hedgehog", {0, 4, 0}},
    {"hedgehog_exp", {0, 4, 0}},
    {"dpfp", {0, 4, 0}, /*hasShifts=*/true},
    {"taylor", {2, 3, 1}},
    {"taylor_full", {2, 2, 2}},
    {"rebased", {0, 1, 1}},
    {"outer_product", {0, 1, 1}},
};

/// Beyond it a product of two sizes overflows.
constexpr int64_t largestParameter = int64_t(1) << 30;

} // namespace

std::vector<std::string_view> linattn::getFeatureMapNames() {
  std::vector<std::string_view> names;
  for (const FeatureMapSize &map : maps)
    names.push_back(map.name);
  return names;
}

std::optional<FeatureSizeFormula>
linattn::featureSizeFormula(std::string_view name, int64_t shifts) {
  for (const FeatureMapSize &map : maps)
    if (map.name == name) {
      FeatureSizeFormula formula = map.formula;
      formula.linear *= map.hasShifts ? shifts : 1;
      return formula;
    }
  return std::nullopt;
}

/// The reason why a parameter is not acceptable; empty if it is.
static std::string checkParameter(std::string_view map, std::string_view name,
                                  int64_t value) {
  if (value >= 1 && value <= largestParameter)
    return {};
  return "'" + std::string(map) + "': expected " + std::string(name) +
         " from 1 to " + std::to_string(largestParameter) + ", but got " +
         std::to_string(value);
}

std::optional<int64_t> linattn::featureSize(std::string_view name,
                                            const FeatureParameters &parameters,
                                            std::string *error) {
  auto refuse = [&](std::string message) {
    if (error)
      *error = std::move(message);
    return std::nullopt;
  };
  auto *map =
      std::find_if(std::begin(maps), std::end(maps),
                   [&](const FeatureMapSize &map) { return map.name == name; });
  if (map == std::end(maps)) {
    std::string known;
    for (const FeatureMapSize &other : maps)
      known += (known.empty() ? "" : ", ") + std::string(other.name);
    return refuse("expected a feature map among " + known + ", but got '" +
                  std::string(name) + "'");
  }
  std::string reason = checkParameter(name, "a head size", parameters.headSize);
  if (reason.empty() && map->formula.countsRows)
    reason = checkParameter(name, "a number of random features",
                            parameters.randomFeatures);
  if (reason.empty() && map->hasShifts)
    reason = checkParameter(name, "a number of shifts", parameters.shifts);
  if (!reason.empty())
    return refuse(std::move(reason));
  FeatureSizeFormula formula =
      *featureSizeFormula(name, map->hasShifts ? parameters.shifts : 1);
  return formula.evaluate(formula.countsRows ? parameters.randomFeatures
                                             : parameters.headSize);
}
