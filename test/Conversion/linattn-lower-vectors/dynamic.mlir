// RUN: linattn-opt %s --linattn-lower-vectors | FileCheck %s

// Rows that may be outside are read under a condition.
// CHECK-LABEL: func.func @rows(
// CHECK:         memref.dim %arg0
// CHECK:         scf.if
// CHECK:           vector.transfer_read %arg0[{{.*}} : memref<?x?xf32>, vector<8xf32>
// CHECK-NOT:     vector<2x8xf32>, memref
func.func @rows(%m: memref<?x?xf32>, %i: index, %j: index) -> vector<2x8xf32> {
  %pad = arith.constant 0.0 : f32
  %x = vector.transfer_read %m[%i, %j], %pad : memref<?x?xf32>, vector<2x8xf32>
  return %x : vector<2x8xf32>
}
