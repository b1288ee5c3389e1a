// RUN: linattn-opt %s --linattn-split-segments | FileCheck %s
// RUN: linattn-opt %s --linattn-split-segments --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// Other forms are left alone.

// CHECK-LABEL: func.func @tile(
// CHECK-NOT:     cu_seqlens
// CHECK:         linattn.scan {{.*}}form = state_tile
func.func @tile(%q: tensor<1x2x100x4xf32>, %o: tensor<1x2x100x4xf32>, %s: tensor<1x2x4x4xf32>) -> tensor<1x2x100x4xf32> {
  %r:2 = linattn.scan %q, %q, %q into(%o) init(%s) {config = #linattn.config<form = state_tile>}
    : (tensor<1x2x100x4xf32>, tensor<1x2x100x4xf32>, tensor<1x2x100x4xf32>, tensor<1x2x100x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x100x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0 : tensor<1x2x100x4xf32>
}

// One segment is the scan itself.

// CHECK-LABEL: func.func @short(
// CHECK-NOT:     cu_seqlens
// CHECK:         linattn.scan {{.*}} {config = #linattn.config<form = auto>}
// REMARK:      remark: [Missed] split-segments {{.*}}"the 100 tokens fit one segment of 512"
func.func @short(%q: tensor<1x2x100x4xf32>, %o: tensor<1x2x100x4xf32>, %s: tensor<1x2x4x4xf32>) -> tensor<1x2x100x4xf32> {
  %r:2 = linattn.scan %q, %q, %q into(%o) init(%s) {config = #linattn.config<form = segments>}
    : (tensor<1x2x100x4xf32>, tensor<1x2x100x4xf32>, tensor<1x2x100x4xf32>, tensor<1x2x100x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x100x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0 : tensor<1x2x100x4xf32>
}
