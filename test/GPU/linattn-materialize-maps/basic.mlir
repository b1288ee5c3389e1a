// RUN: linattn-opt %s --linattn-materialize-maps | FileCheck %s
// RUN: linattn-opt %s --linattn-materialize-maps --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// REMARK-COUNT-3: Remark="the feature map is applied before, to tokens of f32"

// Tokens of 16 bits, of any number: nothing is rounded on the way.
// CHECK-LABEL: func.func @scan(
// CHECK-SAME: %[[Q:.+]]: memref<2x8x?x16xbf16>, %[[O:.+]]: memref<2x8x?x16xbf16>
// CHECK: %[[FQ:.+]] = memref.alloc(%{{.+}}) : memref<2x8x?x16xf32>
// CHECK: linattn.feature_map %[[Q]] into(%[[FQ]]) {feature_map = #linattn.feature_map<region>} phi
// CHECK: %[[FK:.+]] = memref.alloc
// CHECK: linattn.feature_map %[[Q]] into(%[[FK]])
// CHECK: %[[V:.+]] = memref.alloc
// CHECK: arith.extf
// CHECK: %[[W:.+]] = memref.alloc
// CHECK: linattn.scan %[[FQ]], %[[FK]], %[[V]] into(%[[W]]) init(%{{.+}}) : (memref<2x8x?x16xf32>
// CHECK: linalg.generic {{.*}} ins(%[[W]] : {{.*}}) outs(%[[O]] :
// CHECK: arith.truncf
func.func @scan(%q: memref<2x8x?x16xbf16>, %o: memref<2x8x?x16xbf16>, %s: memref<2x8x16x16xf32>) {
  linattn.scan %q, %q, %q into(%o) init(%s) {feature_map = #linattn.feature_map<region>} phi {
  ^bb0(%x: f32):
    %y = arith.mulf %x, %x : f32
    linattn.yield %y : f32
  } : (memref<2x8x?x16xbf16>, memref<2x8x?x16xbf16>, memref<2x8x?x16xbf16>, memref<2x8x?x16xbf16>, memref<2x8x16x16xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @state(
// CHECK: linattn.feature_map %{{.+}} {feature_map = #linattn.feature_map<softmax_kernel>}
// CHECK: linattn.state %{{.+}} init(%{{.+}}) : (memref<2x8x64x16xf32>
func.func @state(%k: memref<2x8x64x16xf32>, %s: memref<2x8x16x16xf32>) {
  linattn.state %k, %k init(%s) {feature_map = #linattn.feature_map<softmax_kernel>}
    : (memref<2x8x64x16xf32>, memref<2x8x64x16xf32>, memref<2x8x16x16xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @read(
// CHECK: linattn.feature_map
// CHECK: linattn.read %{{.+}}, %{{.+}} into(%{{.+}}) : (memref<2x8x64x16xf32>
func.func @read(%q: memref<2x8x64x16xf32>, %s: memref<2x8x16x16xf32>) {
  linattn.read %q, %s into(%q) {feature_map = #linattn.feature_map<softmax_kernel>}
    : (memref<2x8x64x16xf32>, memref<2x8x16x16xf32>, memref<2x8x64x16xf32>) -> ()
  return
}
