//===- CostFunctions.cpp - Operation and byte counts ----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Reference/CostFunctions.h"

#include <cmath>

namespace linattn::reference {

static constexpr double bytesPerElement = 4.0;

double softmaxFlops(double n, double d) { return 4 * n * n * d + 5 * n * n; }

double linearFlops(double n, double d) { return 4 * n * d * d + 4 * n * d + n; }

double softmaxScoreBytes(double n) { return bytesPerElement * n * n; }

double linearStateBytes(double d) { return bytesPerElement * (d * d + d); }

double quadraticMultiplyAdds(double n, double k, double v) {
  return n * n * (k + v);
}

double reassociatedMultiplyAdds(double n, double k, double v) {
  return 2 * n * k * v;
}

double crossoverTokens(double k, double v, bool causal) {
  double tokens = 2 * k * v / (k + v);
  return causal ? 2 * tokens : tokens;
}

double softmaxLayerMultiplyAdds(double n, double d) { return n * n * d; }

double linearLayerMultiplyAdds(double n, double d) { return n * d * d; }

double favorLayerMultiplyAdds(double n, double d, double m) {
  return n * m * d;
}

double nystromLayerMultiplyAdds(double n, double d, double m) {
  return n * m * d;
}

double fnetLayerMultiplyAdds(double n, double d) {
  // A sequence of one token (or none) needs no transform.
  return n > 1 ? n * d * std::log2(n) : 0.0;
}

} // namespace linattn::reference
