// RUN: linattn-opt %s --linattn-fold-views | FileCheck %s

// The offset is added, the stride multiplied.
// CHECK: #[[MAP:.+]] = affine_map<()[s0, s1, s2] -> (s0 + s1 * s2)>
// CHECK-LABEL: func.func @store(
// CHECK:         %[[AT:.+]] = affine.apply #[[MAP]]()[%arg1, %arg4, %arg3]
// CHECK:         memref.store %arg5, %arg0[%[[AT]]] : memref<?xf32>
// CHECK-NOT:     memref.subview
func.func @store(%m: memref<?xf32>, %offset: index, %size: index, %stride: index,
                 %i: index, %x: f32) {
  %view = memref.subview %m[%offset] [%size] [%stride]
    : memref<?xf32> to memref<?xf32, strided<[?], offset: ?>>
  memref.store %x, %view[%i] : memref<?xf32, strided<[?], offset: ?>>
  return
}
