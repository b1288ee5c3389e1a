// RUN: linattn-opt %s --linattn-causal-to-scan='vector-bits=512 registers=32' --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s

// For some numbers of tokens, the quadratic form is predicted to be faster.

// CHECK: crossover.mlir:[[#@LINE+3]]{{.*}} [Missed] causal-to-scan {{.*}}"for 16 tokens the form quadratic, if asked for, is predicted to be faster"
func.func @short(%q: tensor<2x3x16x128xf32>) -> tensor<2x3x16x128xf32> {
  // The next line is where the remark points.
  %o = linattn.attention %q, %q, %q {causal} : (tensor<2x3x16x128xf32>, tensor<2x3x16x128xf32>, tensor<2x3x16x128xf32>) -> tensor<2x3x16x128xf32>
  return %o : tensor<2x3x16x128xf32>
}

// CHECK: [Missed] causal-to-scan {{.*}}"for {{[0-9]+}} to {{[0-9]+}} tokens the form quadratic, if asked for, is predicted to be faster"
func.func @dynamic(%q: tensor<2x3x?x128xf32>) -> tensor<2x3x?x128xf32> {
  %o = linattn.attention %q, %q, %q {causal} : (tensor<2x3x?x128xf32>, tensor<2x3x?x128xf32>, tensor<2x3x?x128xf32>) -> tensor<2x3x?x128xf32>
  return %o : tensor<2x3x?x128xf32>
}

// Nothing is said of many tokens, of a form that was asked for, nor of a running
// maximum.

// CHECK-NOT: the form quadratic
func.func @no_match(%q: tensor<2x3x4096x128xf32>, %r: tensor<2x3x16x128xf32>) -> (tensor<2x3x4096x128xf32>, tensor<2x3x16x128xf32>, tensor<2x3x16x128xf32>) {
  %o = linattn.attention %q, %q, %q {causal} : (tensor<2x3x4096x128xf32>, tensor<2x3x4096x128xf32>, tensor<2x3x4096x128xf32>) -> tensor<2x3x4096x128xf32>
  %p = linattn.attention %r, %r, %r {causal, config = #linattn.config<form = token>} : (tensor<2x3x16x128xf32>, tensor<2x3x16x128xf32>, tensor<2x3x16x128xf32>) -> tensor<2x3x16x128xf32>
  %e = linattn.attention %r, %r, %r {causal, feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<eps = 1.0e-6>} : (tensor<2x3x16x128xf32>, tensor<2x3x16x128xf32>, tensor<2x3x16x128xf32>) -> tensor<2x3x16x128xf32>
  return %o, %p, %e : tensor<2x3x4096x128xf32>, tensor<2x3x16x128xf32>, tensor<2x3x16x128xf32>
}
