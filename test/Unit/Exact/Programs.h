//===- Programs.h - Programs of the planted errors --------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Small, but with more than one of everything: batches, heads, blocks of
// tokens, tiles and tails.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TEST_UNIT_EXACT_PROGRAMS_H
#define LINATTN_TEST_UNIT_EXACT_PROGRAMS_H

namespace linattn::test {

inline constexpr const char *kExclusive = R"mlir(
func.func @f(%q: tensor<2x2x19x9xf32>, %k: tensor<2x2x19x9xf32>,
             %v: tensor<2x2x19x9xf32>, %g: tensor<2x2x19x9xf32>,
             %u: tensor<2x9xf32>, %s: tensor<2x2x9x9xf32>)
    -> (tensor<2x2x19x9xf32>, tensor<2x2x9x9xf32>) {
  %o = tensor.empty() : tensor<2x2x19x9xf32>
  %r:2 = linattn.scan %q, %k, %v decay(%g) bonus(%u) readout(exclusive)
      into(%o) init(%s) {scale = 0.5}
    : (tensor<2x2x19x9xf32>, tensor<2x2x19x9xf32>, tensor<2x2x19x9xf32>,
       tensor<2x2x19x9xf32>, tensor<2x9xf32>, tensor<2x2x19x9xf32>,
       tensor<2x2x9x9xf32>) -> (tensor<2x2x19x9xf32>, tensor<2x2x9x9xf32>)
  return %r#0, %r#1 : tensor<2x2x19x9xf32>, tensor<2x2x9x9xf32>
}
)mlir";

// Small: its gradient has many ops.
inline constexpr const char *kSmallGated = R"mlir(
func.func @f(%q: tensor<2x2x5x3xf32>, %k: tensor<2x2x5x3xf32>,
             %v: tensor<2x2x5x3xf32>, %g: tensor<2x2x5x3xf32>,
             %s: tensor<2x2x3x3xf32>)
    -> (tensor<2x2x5x3xf32>, tensor<2x2x3x3xf32>) {
  %o = tensor.empty() : tensor<2x2x5x3xf32>
  %r:2 = linattn.scan %q, %k, %v decay(%g) into(%o) init(%s) {scale = 0.5}
    : (tensor<2x2x5x3xf32>, tensor<2x2x5x3xf32>, tensor<2x2x5x3xf32>,
       tensor<2x2x5x3xf32>, tensor<2x2x5x3xf32>, tensor<2x2x3x3xf32>)
      -> (tensor<2x2x5x3xf32>, tensor<2x2x3x3xf32>)
  return %r#0, %r#1 : tensor<2x2x5x3xf32>, tensor<2x2x3x3xf32>
}
)mlir";

inline constexpr const char *kDelta = R"mlir(
func.func @f(%q: tensor<2x2x19x9xf32>, %k: tensor<2x2x19x9xf32>,
             %v: tensor<2x2x19x9xf32>, %g: tensor<2x2x19xf32>,
             %b: tensor<2x2x19xf32>, %s: tensor<2x2x9x9xf32>)
    -> (tensor<2x2x19x9xf32>, tensor<2x2x9x9xf32>) {
  %o = tensor.empty() : tensor<2x2x19x9xf32>
  %r:2 = linattn.scan %q, %k, %v decay(%g) beta(%b) update(delta)
      into(%o) init(%s) {scale = 0.5}
    : (tensor<2x2x19x9xf32>, tensor<2x2x19x9xf32>, tensor<2x2x19x9xf32>,
       tensor<2x2x19xf32>, tensor<2x2x19xf32>, tensor<2x2x19x9xf32>,
       tensor<2x2x9x9xf32>) -> (tensor<2x2x19x9xf32>, tensor<2x2x9x9xf32>)
  return %r#0, %r#1 : tensor<2x2x19x9xf32>, tensor<2x2x9x9xf32>
}
)mlir";

inline constexpr const char *kSoftmax = R"mlir(
func.func @f(%q: tensor<2x4x46x8xf32>, %k: tensor<2x2x46x8xf32>,
             %v: tensor<2x2x46x9xf32>, %m: tensor<2x46xi1>)
    -> tensor<2x4x46x9xf32> {
  %o = linattn.attention %q, %k, %v mask(%m) weights(softmax)
      {causal, scale = 0.5}
    : (tensor<2x4x46x8xf32>, tensor<2x2x46x8xf32>, tensor<2x2x46x9xf32>,
       tensor<2x46xi1>) -> tensor<2x4x46x9xf32>
  return %o : tensor<2x4x46x9xf32>
}
)mlir";

inline constexpr const char *kNormalized = R"mlir(
func.func @f(%q: tensor<2x4x19x9xf32>, %k: tensor<2x2x19x9xf32>,
             %v: tensor<2x2x19x9xf32>, %m: tensor<2x19xi1>,
             %s: tensor<2x2x9x9xf32>, %z: tensor<2x2x9xf32>,
             %x: tensor<2x2xf32>)
    -> (tensor<2x4x19x9xf32>, tensor<2x2x9x9xf32>, tensor<2x2x9xf32>,
        tensor<2x2xf32>) {
  %o = tensor.empty() : tensor<2x4x19x9xf32>
  %r:4 = linattn.scan %q, %k, %v mask(%m) into(%o) init(%s) normalizer(%z)
      running_max(%x) {feature_map = #linattn.feature_map<exp>,
                       normalize = #linattn.normalize<eps = 1.0e-6>}
    : (tensor<2x4x19x9xf32>, tensor<2x2x19x9xf32>, tensor<2x2x19x9xf32>,
       tensor<2x19xi1>, tensor<2x4x19x9xf32>, tensor<2x2x9x9xf32>,
       tensor<2x2x9xf32>, tensor<2x2xf32>)
    -> (tensor<2x4x19x9xf32>, tensor<2x2x9x9xf32>, tensor<2x2x9xf32>,
        tensor<2x2xf32>)
  return %r#0, %r#1, %r#2, %r#3 : tensor<2x4x19x9xf32>, tensor<2x2x9x9xf32>,
    tensor<2x2x9xf32>, tensor<2x2xf32>
}
)mlir";

} // namespace linattn::test

#endif // LINATTN_TEST_UNIT_EXACT_PROGRAMS_H
