// RUN: linattn-opt %s --linattn-fold-views | FileCheck %s

// A row of a row: both views are gone.
// CHECK-LABEL: func.func @load(
// CHECK-NOT:     memref.subview
// CHECK:         %[[X:.+]] = memref.load %arg0[%arg1, %arg2] : memref<8x64xf32>
// CHECK-NEXT:    return %[[X]]
func.func @load(%m: memref<8x64xf32>, %i: index, %j: index) -> f32 {
  %c0 = arith.constant 0 : index
  %block = memref.subview %m[0, 0] [8, 64] [1, 1]
    : memref<8x64xf32> to memref<8x64xf32, strided<[64, 1]>>
  %row = memref.subview %block[%i, 0] [1, 64] [1, 1]
    : memref<8x64xf32, strided<[64, 1]>> to memref<64xf32, strided<[1], offset: ?>>
  %x = memref.load %row[%j] : memref<64xf32, strided<[1], offset: ?>>
  return %x : f32
}

// CHECK-LABEL: func.func @vectors(
// CHECK:         %[[X:.+]] = vector.load %arg0[%arg1, %arg2] : memref<8x64xf32>, vector<16xf32>
// CHECK:         vector.store %[[X]], %arg0[%arg1, %arg2]
// CHECK-NOT:     memref.subview
func.func @vectors(%m: memref<8x64xf32>, %i: index, %j: index) {
  %row = memref.subview %m[%i, 0] [1, 64] [1, 1]
    : memref<8x64xf32> to memref<64xf32, strided<[1], offset: ?>>
  %x = vector.load %row[%j] : memref<64xf32, strided<[1], offset: ?>>, vector<16xf32>
  vector.store %x, %row[%j] : memref<64xf32, strided<[1], offset: ?>>, vector<16xf32>
  return
}

// CHECK-LABEL: func.func @collapsed(
// CHECK:         affine.delinearize_index
// CHECK:         memref.load %arg0[
// CHECK-NOT:     memref.collapse_shape
func.func @collapsed(%m: memref<4x16xf32>, %i: index) -> f32 {
  %flat = memref.collapse_shape %m [[0, 1]] : memref<4x16xf32> into memref<64xf32>
  %x = memref.load %flat[%i] : memref<64xf32>
  return %x : f32
}
