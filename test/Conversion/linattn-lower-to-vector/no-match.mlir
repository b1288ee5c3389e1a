// RUN: linattn-opt %s --linattn-lower-to-vector | FileCheck %s
// RUN: linattn-opt %s --linattn-lower-to-vector --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// Ops without a vector schedule wait for the scalar loops.

// CHECK-LABEL: func.func @stabilised(
// CHECK-NEXT:    linattn.quadratic
// REMARK:        remark: [Missed] lower-to-vector {{.*}}"runs as scalar loops: the exp map under a normalizer needs a maximum per query"
func.func @stabilised(%q: memref<1x2x8x4xf32>, %o: memref<1x2x8x4xf32>) {
  linattn.quadratic %q, %q, %q into(%o) {causal, feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<eps = 1.0e-6>}
    : (memref<1x2x8x4xf32>, memref<1x2x8x4xf32>, memref<1x2x8x4xf32>, memref<1x2x8x4xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @tensors(
// CHECK-NEXT:    linattn.state
func.func @tensors(%k: tensor<1x2x4x8xf32>, %s: tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32> {
  %r = linattn.state %k, %k init(%s) : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32>
  return %r : tensor<1x2x8x8xf32>
}
