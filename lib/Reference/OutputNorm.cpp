//===- OutputNorm.cpp - Norms of outputs ----------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Detail.h"

namespace linattn::reference {

using namespace detail;

static double activate(Activation activation, double x) {
  double sigmoid = 1.0 / (1.0 + std::exp(-x));
  return activation == Activation::Silu ? x * sigmoid : sigmoid;
}

static Status checkOperands(const Array &x, const OutputNormOptions &options) {
  if (Status error = checkTokens(x, "input"))
    return error;
  std::vector<std::vector<int64_t>> affine = {{x.dim(3)}, {x.dim(1), x.dim(3)}};
  if (options.weight)
    if (Status error = checkShape(*options.weight, "weight", affine))
      return error;
  if (options.bias)
    if (Status error = checkShape(*options.bias, "bias", affine))
      return error;
  if (options.gate)
    if (Status error = checkShape(*options.gate, "gate", {x.shape}))
      return error;
  if (options.skip.has_value() != options.skipWeight.has_value())
    return expected("skip and skip_weight together", "only one of them");
  if (options.skip)
    if (Status error = checkShape(*options.skip, "skip", {x.shape}))
      return error;
  if (options.skipWeight)
    if (Status error = checkShape(*options.skipWeight, "skip_weight", affine))
      return error;
  if (options.gateFirst && !options.gate)
    return expected("gate_first only with a gate", "none");
  if (!(options.eps >= 0) || std::isinf(options.eps))
    return expected("eps to be finite and not negative",
                    std::to_string(options.eps));
  return std::nullopt;
}

Result<Array> outputNorm(const Array &x, const OutputNormOptions &options) {
  if (Status error = checkOperands(x, options))
    return *error;
  int64_t heads = x.dim(1), size = x.dim(3);
  auto affine = [&](const Array &weights, int64_t head, int64_t d) {
    return weights.rank() == 1 ? weights.at({d}) : weights.at({head, d});
  };
  Array result = x;
  for (int64_t b = 0; b < x.dim(0); ++b)
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t t = 0; t < x.dim(2); ++t) {
        auto gate = [&](int64_t d) {
          return activate(options.activation,
                          options.gate->at({b, head, t, d}));
        };
        double *y = result.row({b, head, t});
        double mean = 0.0, variance = 0.0;
        for (int64_t d = 0; d < size; ++d) {
          if (options.skip)
            y[d] += affine(*options.skipWeight, head, d) *
                    options.skip->at({b, head, t, d});
          if (options.gateFirst)
            y[d] *= gate(d);
          mean += y[d] / size;
        }
        if (options.kind != NormKind::Layer)
          mean = 0.0;
        for (int64_t d = 0; d < size; ++d)
          variance += (y[d] - mean) * (y[d] - mean) / size;
        for (int64_t d = 0; d < size; ++d) {
          if (options.kind != NormKind::None)
            y[d] = (y[d] - mean) / std::sqrt(variance + options.eps);
          if (options.weight)
            y[d] *= affine(*options.weight, head, d) + options.weightOffset;
          if (options.bias)
            y[d] += affine(*options.bias, head, d);
          if (options.gate && !options.gateFirst)
            y[d] *= gate(d);
        }
      }
  return result;
}

} // namespace linattn::reference
