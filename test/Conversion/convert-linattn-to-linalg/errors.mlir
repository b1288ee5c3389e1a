// RUN: linattn-opt %s --convert-linattn-to-linalg --split-input-file --verify-diagnostics
// RUN: not linattn-opt %s --convert-linattn-to-linalg=chunk-size=0 2>&1 | FileCheck %s

// CHECK: error: expected chunk-size to be at least 1, but got 0

func.func @grouped(%q: tensor<1x4x7x4xf32>, %k: tensor<1x2x7x4xf32>, %v: tensor<1x?x7x4xf32>) -> tensor<1x4x7x4xf32> {
  // expected-error @+1 {{'linattn.quadratic' op cannot be decomposed: its head counts differ, and not all are known}}
  %o = linattn.attention %q, %k, %v : (tensor<1x4x7x4xf32>, tensor<1x2x7x4xf32>, tensor<1x?x7x4xf32>) -> tensor<1x4x7x4xf32>
  return %o : tensor<1x4x7x4xf32>
}

// -----

func.func @running_max(%q: tensor<1x2x7x4xf32>) -> tensor<1x2x7x4xf32> {
  // expected-error @+1 {{'linattn.quadratic' op cannot be decomposed: the exp map under a normalizer needs a running maximum}}
  %o = linattn.attention %q, %q, %q {causal, feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<eps = 0.0>}
    : (tensor<1x2x7x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x4xf32>) -> tensor<1x2x7x4xf32>
  return %o : tensor<1x2x7x4xf32>
}

// -----

func.func @groups(%u: tensor<1x?x?xf32>, %a: tensor<?x4xf32>, %b: tensor<1x2x?x4xf32>, %s: tensor<1x?x4xf32>) -> tensor<1x?x?xf32> {
  // expected-error @+1 {{'linattn.selective_scan' op cannot be converted to linalg: the number of its channels or of their groups is dynamic}}
  %r:2 = linattn.selective_scan %u, %u, %a, %b, %b into(%u) init(%s)
    : (tensor<1x?x?xf32>, tensor<1x?x?xf32>, tensor<?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x?x?xf32>, tensor<1x?x4xf32>) -> (tensor<1x?x?xf32>, tensor<1x?x4xf32>)
  return %r#0 : tensor<1x?x?xf32>
}

// -----

func.func @heads(%q: tensor<1x?x?x4xf32>, %l: tensor<1x?x?x3xf32>, %s: tensor<1x?x3x4x4xf32>) -> tensor<1x?x?x4xf32> {
  // expected-error @+1 {{'linattn.log_linear' op cannot be converted to linalg: a head count is dynamic}}
  %r:2 = linattn.log_linear %q, %q, %q levels(%l) into(%q) init(%s)
    : (tensor<1x?x?x4xf32>, tensor<1x?x?x4xf32>, tensor<1x?x?x4xf32>, tensor<1x?x?x3xf32>, tensor<1x?x?x4xf32>, tensor<1x?x3x4x4xf32>) -> (tensor<1x?x?x4xf32>, tensor<1x?x3x4x4xf32>)
  return %r#0 : tensor<1x?x?x4xf32>
}
