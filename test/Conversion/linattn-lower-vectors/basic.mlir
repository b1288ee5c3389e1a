// RUN: linattn-opt %s --linattn-lower-vectors | FileCheck %s

// One transfer per row.
// CHECK-LABEL: func.func @transfers(
// CHECK-COUNT-2: vector.transfer_read %arg0[{{.*}} : memref<4x8xf32>, vector<8xf32>
// CHECK-COUNT-2: vector.transfer_write {{.*}} : vector<8xf32>, memref<4x8xf32>
// CHECK-NOT:     vector<2x8xf32>, memref
func.func @transfers(%m: memref<4x8xf32>, %i: index) {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %x = vector.transfer_read %m[%i, %c0], %pad {in_bounds = [true, true]}
    : memref<4x8xf32>, vector<2x8xf32>
  vector.transfer_write %x, %m[%c0, %c0] {in_bounds = [true, true]}
    : vector<2x8xf32>, memref<4x8xf32>
  return
}

// Rows are added to one another, lane by lane.
// CHECK-LABEL: func.func @reduction(
// CHECK-NOT:     vector.multi_reduction
// CHECK-COUNT-2: arith.addf {{.*}} : vector<8xf32>
// CHECK-NOT:     arith.addf
func.func @reduction(%x: vector<2x8xf32>, %sum: vector<8xf32>) -> vector<8xf32> {
  %r = vector.multi_reduction <add>, %x, %sum [0] : vector<2x8xf32> to vector<8xf32>
  return %r : vector<8xf32>
}

// CHECK-LABEL: func.func @masked(
// CHECK:         vector.transfer_read %arg0[%arg1], %arg3, %arg2
// CHECK-NOT:     vector.mask
func.func @masked(%m: memref<?xf32>, %i: index, %mask: vector<8xi1>, %pad: f32) -> vector<8xf32> {
  %x = vector.mask %mask {
    vector.transfer_read %m[%i], %pad {in_bounds = [true]} : memref<?xf32>, vector<8xf32>
  } : vector<8xi1> -> vector<8xf32>
  return %x : vector<8xf32>
}
