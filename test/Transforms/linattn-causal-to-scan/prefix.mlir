// RUN: linattn-opt %s --linattn-causal-to-scan | FileCheck %s
// RUN: linattn-opt %s --linattn-causal-to-scan --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// The state of the whole prefix answers the prefix; the scan has read it before
// the other tokens come.

// CHECK-LABEL: func.func @prefix(
// CHECK-SAME:    %[[Q:[^:]+]]: tensor<2x3x?x4xf32>, %[[P:[^:]+]]: tensor<2xi64>
// CHECK:         %[[SCAN:.+]]:3 = linattn.scan %[[Q]], %[[Q]], %[[Q]] into(
// CHECK:         %[[MASK:.+]] = linalg.generic {{.*}} ins(%[[P]] : tensor<2xi64>) outs({{.*}} : tensor<2x?xi1>)
// CHECK:           arith.cmpi slt
// CHECK:         %[[S:.+]]:2 = linattn.state %[[Q]], %[[Q]] mask(%[[MASK]])
// CHECK:         %[[READ:.+]] = linattn.read %[[Q]], %[[S]]#0 normalizer(%[[S]]#1)
// CHECK:         %[[O:.+]] = linalg.generic {{.*}} ins(%[[P]], %[[READ]], %[[SCAN]]#0
// CHECK:           arith.select
// CHECK:         return %[[O]]
// REMARK:      remark: [Passed] causal-to-scan {{.*}}"the prefix reads its whole state, the other tokens a scan"
func.func @prefix(%q: tensor<2x3x?x4xf32>, %p: tensor<2xi64>) -> tensor<2x3x?x4xf32> {
  %o = linattn.attention %q, %q, %q prefix(%p) {causal, feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.0e-6>}
    : (tensor<2x3x?x4xf32>, tensor<2x3x?x4xf32>, tensor<2x3x?x4xf32>, tensor<2xi64>) -> tensor<2x3x?x4xf32>
  return %o : tensor<2x3x?x4xf32>
}

// CHECK-LABEL: func.func @softmax(
// CHECK-NOT:     linattn.scan
// CHECK:         linattn.attention {{.*}} prefix(
func.func @softmax(%q: tensor<2x3x8x4xf32>, %p: tensor<2xi64>) -> tensor<2x3x8x4xf32> {
  %o = linattn.attention %q, %q, %q prefix(%p) weights(softmax) {causal}
    : (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>, tensor<2xi64>) -> tensor<2x3x8x4xf32>
  return %o : tensor<2x3x8x4xf32>
}
