// RUN: linattn-opt %s --linattn-causal-to-scan --remarks-filter=linattn 2>&1 | FileCheck %s

// CHECK-NOT: remark: [Passed]
// CHECK: remark: [Missed] causal-to-scan | Category:linattn | {{.*}}softmax weights have no state of fixed size; the attention stays quadratic
// CHECK-NOT: remark:

// CHECK-LABEL: func.func @not_causal
func.func @not_causal(%q: tensor<2x8x16x64xf32>) -> tensor<2x8x16x64xf32> {
  // CHECK-NEXT: linattn.attention
  %o = linattn.attention %q, %q, %q : (tensor<2x8x16x64xf32>, tensor<2x8x16x64xf32>, tensor<2x8x16x64xf32>) -> tensor<2x8x16x64xf32>
  return %o : tensor<2x8x16x64xf32>
}

// CHECK-LABEL: func.func @softmax
func.func @softmax(%q: tensor<2x8x16x64xf32>) -> tensor<2x8x16x64xf32> {
  // CHECK-NEXT: linattn.attention %{{.+}}, %{{.+}}, %{{.+}} weights(softmax) {causal}
  %o = linattn.attention %q, %q, %q weights(softmax) {causal} : (tensor<2x8x16x64xf32>, tensor<2x8x16x64xf32>, tensor<2x8x16x64xf32>) -> tensor<2x8x16x64xf32>
  return %o : tensor<2x8x16x64xf32>
}

// CHECK-LABEL: func.func @softmax_not_causal
func.func @softmax_not_causal(%q: tensor<2x8x?x64xf32>) -> tensor<2x8x?x64xf32> {
  // CHECK-NEXT: linattn.attention %{{.+}}, %{{.+}}, %{{.+}} weights(softmax) :
  %o = linattn.attention %q, %q, %q weights(softmax) : (tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>) -> tensor<2x8x?x64xf32>
  return %o : tensor<2x8x?x64xf32>
}
