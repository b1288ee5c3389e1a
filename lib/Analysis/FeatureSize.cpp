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

using Parameters = FeatureParameters;

struct FeatureMapSize {
  std::string_view name;
  /// Whether the map has a matrix of m rows, whether it has shifts.
  bool hasRandomFeatures, hasShifts;
  int64_t (*size)(const Parameters &);
};

int64_t sameSize(const Parameters &p) { return p.headSize; }
int64_t twiceSize(const Parameters &p) { return 2 * p.headSize; }
int64_t randomSize(const Parameters &p) { return p.randomFeatures; }
int64_t twiceRandomSize(const Parameters &p) { return 2 * p.randomFeatures; }
int64_t shiftedSize(const Parameters &p) { return 2 * p.headSize * p.shifts; }
/// The products x_i x_j with i ≥ j.
int64_t pairs(const Parameters &p) { return p.headSize * (p.headSize + 1) / 2; }
int64_t taylorSize(const Parameters &p) { return 1 + p.headSize + pairs(p); }

constexpr FeatureMapSize maps[] = {
    {"identity", false, false, sameSize},
    {"relu", false, false, sameSize},
    {"relu2", false, false, sameSize},
    {"elu1", false, false, sameSize},
    {"softmax_kernel", false, false, sameSize},
    {"exp", false, false, sameSize},
    {"l2norm", false, false, sameSize},
    {"favor", true, false, randomSize},
    {"favor_hyperbolic", true, false, twiceRandomSize},
    {"random_fourier", true, false, twiceRandomSize},
    {"t2r", true, false, randomSize},
    {"hadamard", true, false, randomSize},
    {"cosformer", false, false, twiceSize},
    {"hedgehog", false, false, twiceSize},
    {"dpfp", false, true, shiftedSize},
    {"taylor", false, false, taylorSize},
    {"rebased", false, false, pairs},
    {"outer_product", false, false, pairs},
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
  if (reason.empty() && map->hasRandomFeatures)
    reason = checkParameter(name, "a number of random features",
                            parameters.randomFeatures);
  if (reason.empty() && map->hasShifts)
    reason = checkParameter(name, "a number of shifts", parameters.shifts);
  if (!reason.empty())
    return refuse(std::move(reason));
  return map->size(parameters);
}
