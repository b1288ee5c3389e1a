// RUN: linattn-opt %s --linattn-causal-to-scan --linattn-reassociate --remarks-filter=linattn 2>&1 | FileCheck %s

// A pattern has neither a scan nor Q(KᵀV), whether it is causal or not.

// CHECK-DAG: a pattern has no state of fixed size; the attention stays quadratic in the keys that it sees
// CHECK-DAG: a pattern gives each query keys of its own: (QKᵀ)V stays quadratic in them

// CHECK-LABEL: func.func @causal(
// CHECK:         linattn.attention {{.*}} {causal, pattern = #linattn.pattern<window = 8>}
func.func @causal(%q: tensor<2x3x?x4xf32>) -> tensor<2x3x?x4xf32> {
  %r = linattn.attention %q, %q, %q {causal, pattern = #linattn.pattern<window = 8>} : (tensor<2x3x?x4xf32>, tensor<2x3x?x4xf32>, tensor<2x3x?x4xf32>) -> tensor<2x3x?x4xf32>
  return %r : tensor<2x3x?x4xf32>
}

// CHECK-LABEL: func.func @both_ways(
// CHECK:         linattn.attention {{.*}} {pattern = #linattn.pattern<window = 8>}
func.func @both_ways(%q: tensor<2x3x4096x4xf32>) -> tensor<2x3x4096x4xf32> {
  %r = linattn.attention %q, %q, %q {pattern = #linattn.pattern<window = 8>} : (tensor<2x3x4096x4xf32>, tensor<2x3x4096x4xf32>, tensor<2x3x4096x4xf32>) -> tensor<2x3x4096x4xf32>
  return %r : tensor<2x3x4096x4xf32>
}
