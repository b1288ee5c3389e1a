// RUN: linattn-opt %s --linattn-materialize-maps | FileCheck %s

// Kernels apply maps of one element; f64 has none; a running maximum depends on
// the tokens before.
// CHECK-NOT: linattn.feature_map %
// CHECK-LABEL: func.func @elu(
func.func @elu(%q: memref<2x8x?x16xf32>, %s: memref<2x8x16x16xf32>) {
  linattn.scan %q, %q, %q into(%q) init(%s) {feature_map = #linattn.feature_map<elu1>}
    : (memref<2x8x?x16xf32>, memref<2x8x?x16xf32>, memref<2x8x?x16xf32>, memref<2x8x?x16xf32>, memref<2x8x16x16xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @double(
func.func @double(%q: memref<2x8x?x16xf64>, %s: memref<2x8x16x16xf64>) {
  linattn.scan %q, %q, %q into(%q) init(%s) {feature_map = #linattn.feature_map<softmax_kernel>}
    : (memref<2x8x?x16xf64>, memref<2x8x?x16xf64>, memref<2x8x?x16xf64>, memref<2x8x?x16xf64>, memref<2x8x16x16xf64>) -> ()
  return
}

// CHECK-LABEL: func.func @stabilised(
func.func @stabilised(%q: memref<2x8x?x16xf32>, %s: memref<2x8x16x16xf32>, %z: memref<2x8x16xf32>, %m: memref<2x8xf32>) {
  linattn.scan %q, %q, %q into(%q) init(%s) normalizer(%z) running_max(%m)
      {feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<eps = 1.0e-6>}
    : (memref<2x8x?x16xf32>, memref<2x8x?x16xf32>, memref<2x8x?x16xf32>, memref<2x8x?x16xf32>, memref<2x8x16x16xf32>, memref<2x8x16xf32>, memref<2x8xf32>) -> ()
  return
}
