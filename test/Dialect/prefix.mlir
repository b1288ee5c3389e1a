// RUN: linattn-opt %s --split-input-file --verify-diagnostics | linattn-opt --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @prefix(
// CHECK:         linattn.attention %{{.*}}, %{{.*}}, %{{.*}} mask(%{{.*}}) prefix(%{{.*}}) weights(softmax) {causal}
// CHECK:         linattn.quadratic %{{.*}}, %{{.*}}, %{{.*}} prefix(%{{.*}}) into(%{{.*}}) {causal}
func.func @prefix(%q: tensor<2x3x?x4xf32>, %m: tensor<2x?xi1>, %p: tensor<2xi32>, %o: tensor<2x3x?x4xf32>) -> (tensor<2x3x?x4xf32>, tensor<2x3x?x4xf32>) {
  %a = linattn.attention %q, %q, %q mask(%m) prefix(%p) weights(softmax) {causal} : (tensor<2x3x?x4xf32>, tensor<2x3x?x4xf32>, tensor<2x3x?x4xf32>, tensor<2x?xi1>, tensor<2xi32>) -> tensor<2x3x?x4xf32>
  %b = linattn.quadratic %q, %q, %q prefix(%p) into(%o) {causal} : (tensor<2x3x?x4xf32>, tensor<2x3x?x4xf32>, tensor<2x3x?x4xf32>, tensor<2xi32>, tensor<2x3x?x4xf32>) -> tensor<2x3x?x4xf32>
  return %a, %b : tensor<2x3x?x4xf32>, tensor<2x3x?x4xf32>
}

// -----

func.func @A13_size(%q: tensor<2x3x8x4xf32>, %p: tensor<3xi64>) -> tensor<2x3x8x4xf32> {
  // expected-error @+1 {{expected query and prefix to have the same batch size, but got 2 and 3}}
  %r = linattn.attention %q, %q, %q prefix(%p) {causal} : (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>, tensor<3xi64>) -> tensor<2x3x8x4xf32>
  return %r : tensor<2x3x8x4xf32>
}

// -----

func.func @A13_causal(%q: tensor<2x3x8x4xf32>, %p: tensor<2xi64>) -> tensor<2x3x8x4xf32> {
  // expected-error @+1 {{expected a prefix only with causal, but got one without}}
  %r = linattn.attention %q, %q, %q prefix(%p) : (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>, tensor<2xi64>) -> tensor<2x3x8x4xf32>
  return %r : tensor<2x3x8x4xf32>
}
