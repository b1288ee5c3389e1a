// RUN: linattn-opt %s --linattn-lower-to-vector | FileCheck %s
// RUN: linattn-opt %s --linattn-lower-to-vector --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// What has no vector schedule waits for the scalar loops.

// CHECK-LABEL: func.func @delta(
// CHECK-NEXT:    linattn.scan
// REMARK:        remark: [Missed] lower-to-vector {{.*}}"runs as scalar loops: a rank-1 transition couples the rows of a state column"
func.func @delta(%q: memref<1x2x8x4xf32>, %b: memref<1x2x8xf32>, %o: memref<1x2x8x4xf32>, %s: memref<1x2x4x4xf32>) {
  linattn.scan %q, %q, %q beta(%b) update(delta) into(%o) init(%s)
    : (memref<1x2x8x4xf32>, memref<1x2x8x4xf32>, memref<1x2x8x4xf32>, memref<1x2x8xf32>, memref<1x2x8x4xf32>, memref<1x2x4x4xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @tensors(
// CHECK-NEXT:    linattn.state
func.func @tensors(%k: tensor<1x2x4x8xf32>, %s: tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32> {
  %r = linattn.state %k, %k init(%s) : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32>
  return %r : tensor<1x2x8x8xf32>
}
