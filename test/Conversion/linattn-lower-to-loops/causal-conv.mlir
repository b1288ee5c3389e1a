// RUN: linattn-opt %s --linattn-lower-to-loops --canonicalize | FileCheck %s

// A task per channel; inputs before the first token are those of the state.

// CHECK-LABEL: func.func @conv(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<2x?x6xbf16>, %[[W:[a-z0-9]+]]: memref<6x2xf32>, %[[B:[a-z0-9]+]]: memref<6xf32>, %[[O:[a-z0-9]+]]: memref<2x?x6xbf16>, %[[S:[a-z0-9]+]]: memref<2x6x1xbf16>
// CHECK: scf.parallel (%{{.+}}) = (%c0) to (%c12)
// CHECK: scf.for %[[T:.+]] =
// CHECK: scf.if {{.*}} -> (f32)
// CHECK: memref.load %[[X]][
// CHECK: memref.load %[[S]][
// CHECK: math.fma
// CHECK: math.fma
// CHECK: math.exp
// CHECK: memref.store {{.*}}, %[[O]][
// CHECK: memref.store {{.*}}, %[[S]][
func.func @conv(%x: memref<2x?x6xbf16>, %w: memref<6x2xf32>, %b: memref<6xf32>, %o: memref<2x?x6xbf16>, %s: memref<2x6x1xbf16>) {
  linattn.causal_conv %x, %w bias(%b) activation(silu) into(%o) init(%s) : (memref<2x?x6xbf16>, memref<6x2xf32>, memref<6xf32>, memref<2x?x6xbf16>, memref<2x6x1xbf16>) -> ()
  return
}

// Tensors are left alone.

// CHECK-LABEL: func.func @tensors(
// CHECK: linattn.causal_conv %
func.func @tensors(%x: tensor<2x?x6xf32>, %w: tensor<6x2xf32>, %s: tensor<2x6x1xf32>) -> tensor<2x?x6xf32> {
  %r:2 = "linattn.causal_conv"(%x, %w, %x, %s) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 1, 1>} : (tensor<2x?x6xf32>, tensor<6x2xf32>, tensor<2x?x6xf32>, tensor<2x6x1xf32>) -> (tensor<2x?x6xf32>, tensor<2x6x1xf32>)
  return %r#0 : tensor<2x?x6xf32>
}
