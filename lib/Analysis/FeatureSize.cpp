//===- FeatureSize.cpp - How many features a map makes --------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Analysis/FeatureMaps.h"

using namespace linattn;

/// Beyond it a product of two sizes overflows.
static constexpr int64_t largestParameter = int64_t(1) << 30;

std::vector<std::string_view> linattn::getFeatureMapNames() {
  std::vector<std::string_view> names;
  for (const FeatureMapTraits &map : getFeatureMaps())
    names.push_back(map.name);
  return names;
}

std::optional<FeatureSizeFormula>
linattn::featureSizeFormula(std::string_view name, int64_t shifts) {
  const FeatureMapTraits *map = findFeatureMap(name);
  if (!map)
    return std::nullopt;
  FeatureSizeFormula formula = map->size;
  formula.linear *= map->has(FeatureMapTraits::Shifts) ? shifts : 1;
  return formula;
}

/// Why a parameter is invalid; empty if it is valid.
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
  const FeatureMapTraits *map = findFeatureMap(name);
  if (!map) {
    std::string known;
    for (const FeatureMapTraits &other : getFeatureMaps())
      known += (known.empty() ? "" : ", ") + std::string(other.name);
    return refuse("expected a feature map among " + known + ", but got '" +
                  std::string(name) + "'");
  }
  std::string reason = checkParameter(name, "a head size", parameters.headSize);
  if (reason.empty() && map->size.countsRows)
    reason = checkParameter(name, "a number of random features",
                            parameters.randomFeatures);
  if (reason.empty() && map->has(FeatureMapTraits::Shifts))
    reason = checkParameter(name, "a number of shifts", parameters.shifts);
  if (!reason.empty())
    return refuse(std::move(reason));
  FeatureSizeFormula formula = *featureSizeFormula(
      name, map->has(FeatureMapTraits::Shifts) ? parameters.shifts : 1);
  return formula.evaluate(formula.countsRows ? parameters.randomFeatures
                                             : parameters.headSize);
}
