//===- CausalConv.cpp - The short causal convolution, in float64 ----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Reference/Recurrences.h"

#include "Detail.h"

#include <cmath>

namespace linattn::reference {

using namespace detail;

static Status checkCausalConv(const CausalConvOperands &operands,
                              const CausalConvOptions &options,
                              const std::optional<Array> &initial) {
  const Array &x = operands.x, &weight = operands.weight;
  if (x.rank() != 3)
    return expected("x [B, T, C]", toString(x.shape));
  if (Status error = checkData(x, "x"))
    return error;
  if (weight.rank() != 2 || weight.dim(0) != x.dim(2) || weight.dim(1) < 1)
    return expected("weight [" + std::to_string(x.dim(2)) + ", W]",
                    toString(weight.shape));
  if (Status error = checkData(weight, "weight"))
    return error;
  if (operands.bias)
    if (Status error = checkShape(*operands.bias, "bias", {{x.dim(2)}}))
      return error;
  if (options.dilation < 1)
    return expected("a dilation of at least 1",
                    std::to_string(options.dilation));
  if (!initial)
    return std::nullopt;
  int64_t least = (weight.dim(1) - 1) * options.dilation;
  if (initial->rank() != 3 || initial->dim(0) != x.dim(0) ||
      initial->dim(1) != x.dim(2) || initial->dim(2) < least)
    return expected("an initial state [B, C, S] with S of at least " +
                        std::to_string(least),
                    toString(initial->shape));
  return checkData(*initial, "initial state");
}

Result<CausalConvResult> causalConv(const CausalConvOperands &operands,
                                    const CausalConvOptions &options,
                                    const std::optional<Array> &initial) {
  if (Status error = checkCausalConv(operands, options, initial))
    return *error;
  const Array &x = operands.x, &weight = operands.weight;
  int64_t batch = x.dim(0), tokens = x.dim(1), channels = x.dim(2);
  int64_t taps = weight.dim(1);
  int64_t length = initial ? initial->dim(2) : (taps - 1) * options.dilation;
  CausalConvResult result{Array({batch, tokens, channels}),
                          Array({batch, channels, length})};
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t c = 0; c < channels; ++c) {
      // Position 0 is the first token in the order of the convolution.
      auto inputAt = [&](int64_t position) {
        if (position < 0)
          return initial ? initial->data[(b * channels + c) * length + length +
                                         position]
                         : 0.0;
        int64_t t = options.reverse ? tokens - 1 - position : position;
        return x.data[(b * tokens + t) * channels + c];
      };
      for (int64_t position = 0; position < tokens; ++position) {
        double y = operands.bias ? operands.bias->data[c] : 0.0;
        for (int64_t k = 0; k < taps; ++k)
          y += weight.data[c * taps + k] *
               inputAt(position - (taps - 1 - k) * options.dilation);
        double sigmoid = 1 / (1 + std::exp(-y));
        if (options.activation)
          y = *options.activation == Activation::Silu ? y * sigmoid : sigmoid;
        int64_t t = options.reverse ? tokens - 1 - position : position;
        result.y.data[(b * tokens + t) * channels + c] = y;
      }
      for (int64_t i = 0; i < length; ++i)
        result.state.data[(b * channels + c) * length + i] =
            inputAt(tokens - length + i);
    }
  return result;
}

} // namespace linattn::reference
