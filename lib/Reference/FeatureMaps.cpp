//===- FeatureMaps.cpp - Feature maps and the normalizer ------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Detail.h"

#include <algorithm>

namespace linattn::reference {

using namespace detail;

static constexpr double defaultEps = 1e-6;

//===----------------------------------------------------------------------===//
// Feature maps
//===----------------------------------------------------------------------===//

const char *featureMapName(FeatureMapKind kind) {
  switch (kind) {
  case FeatureMapKind::Identity:
    return "identity";
  case FeatureMapKind::Relu:
    return "relu";
  case FeatureMapKind::Relu2:
    return "relu2";
  case FeatureMapKind::Elu1:
    return "elu";
  case FeatureMapKind::SoftmaxKernel:
    return "softmax_kernel";
  case FeatureMapKind::Exp:
    return "exp";
  case FeatureMapKind::Custom:
    return "custom";
  }
  return "unknown";
}

Result<FeatureMap> FeatureMap::parse(const std::string &name) {
  for (FeatureMapKind kind :
       {FeatureMapKind::Identity, FeatureMapKind::Relu, FeatureMapKind::Relu2,
        FeatureMapKind::Elu1, FeatureMapKind::SoftmaxKernel,
        FeatureMapKind::Exp})
    if (name == featureMapName(kind))
      return FeatureMap{kind};
  if (name == "elu1")
    return FeatureMap{FeatureMapKind::Elu1};
  return expected("feature map to be identity, relu, relu2, elu, elu1, "
                  "softmax_kernel or exp",
                  "\"" + name + "\"");
}

static double mapElement(const FeatureMap &map, double x) {
  switch (map.kind) {
  case FeatureMapKind::Identity:
    return x;
  case FeatureMapKind::Relu:
    // This comparison keeps a NaN.
    return x < 0.0 ? 0.0 : x;
  case FeatureMapKind::Relu2:
    return x < 0.0 ? 0.0 : x * x;
  case FeatureMapKind::Elu1:
    return x > 0.0 ? x + 1.0 : std::exp(x);
  case FeatureMapKind::Exp:
    return std::exp(x);
  case FeatureMapKind::Custom:
    return map.custom(x);
  case FeatureMapKind::SoftmaxKernel:
    break;
  }
  assert(false && "softmax_kernel needs the whole token");
  return x;
}

void detail::mapToken(const FeatureMap &map, const double *in, double *out,
                      int64_t n) {
  if (map.kind == FeatureMapKind::SoftmaxKernel) {
    mapTokenStabilized(in, out, n);
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    out[i] = mapElement(map, in[i]);
}

double detail::mapTokenStabilized(const double *in, double *out, int64_t n) {
  double largest = lowest;
  for (int64_t i = 0; i < n; ++i)
    largest = std::max(largest, in[i]);
  for (int64_t i = 0; i < n; ++i)
    out[i] = expBelow(in[i], largest);
  return largest;
}

Status detail::checkFeatureMap(const FeatureMap &map) {
  if (map.kind == FeatureMapKind::Custom && !map.custom)
    return expected("feature map custom to have a function", "none");
  return std::nullopt;
}

Result<Array> applyFeatureMap(const Array &x, const FeatureMap &map) {
  if (Status error = checkData(x, "input"))
    return *error;
  if (Status error = checkFeatureMap(map))
    return *error;
  if (x.rank() < 1)
    return expected("input to have at least rank 1", "0");
  Array result(x.shape);
  int64_t features = x.shape.back();
  int64_t count = static_cast<int64_t>(x.data.size());
  for (int64_t start = 0; start < count; start += features)
    mapToken(map, x.data.data() + start, result.data.data() + start, features);
  return result;
}

//===----------------------------------------------------------------------===//
// Normalizer
//===----------------------------------------------------------------------===//

Status detail::checkNormalize(const std::optional<Normalize> &normalize,
                              const FeatureMap &map) {
  if (!normalize)
    return std::nullopt;
  if (normalize->eps && normalize->floor)
    return expected("normalize to have either eps or floor", "both");
  if (normalize->floor && normalize->absFloor)
    return expected("normalize to have either floor or abs_floor", "both");
  // Negated comparisons refuse a NaN as well.
  if (normalize->eps && !(*normalize->eps >= 0.0))
    return expected("normalize eps of at least 0",
                    std::to_string(*normalize->eps));
  if (normalize->floor && !(*normalize->floor > 0.0))
    return expected("normalize floor above 0",
                    std::to_string(*normalize->floor));
  if (normalize->absFloor && !(*normalize->absFloor > 0.0))
    return expected("normalize abs_floor above 0",
                    std::to_string(*normalize->absFloor));
  if (normalize->clamp && !(*normalize->clamp > 0.0))
    return expected("normalize clamp above 0",
                    std::to_string(*normalize->clamp));
  if (normalize->absFloor && isStabilized(map, /*normalized=*/true))
    return expected("no abs_floor with the exp map", "one");
  return std::nullopt;
}

double normalizerDivisor(double den, const Normalize &normalize, double m) {
  if (normalize.floor)
    return std::max(den, *normalize.floor);
  if (normalize.absFloor)
    return std::max(std::fabs(den), *normalize.absFloor * std::exp(-m)) +
           normalize.eps.value_or(0.0);
  return den + normalize.eps.value_or(defaultEps);
}

double normalizeValue(double num, double den, const Normalize &normalize,
                      double m) {
  double divisor = normalizerDivisor(den, normalize, m);
  double value = divisor == 0.0 ? 0.0 : num / divisor;
  if (normalize.clamp)
    value = std::min(std::max(value, -*normalize.clamp), *normalize.clamp);
  return value;
}

} // namespace linattn::reference
