// RUN: linattn-opt %s --linattn-expand-views | FileCheck %s

// CHECK: #[[MAP:.+]] = affine_map<()[s0] -> (s0 * 64)>
// CHECK-LABEL: func.func @row(
// CHECK:         %[[BASE:.+]], %{{.+}}, %{{.+}}:2, %{{.+}}:2 = memref.extract_strided_metadata %arg0
// CHECK:         %[[OFFSET:.+]] = affine.apply #[[MAP]]()[%arg1]
// CHECK:         %[[ROW:.+]] = memref.reinterpret_cast %[[BASE]] to offset: [%[[OFFSET]]], sizes: [64], strides: [1]
// CHECK-NOT:     memref.subview
// CHECK:         return %[[ROW]]
func.func @row(%m: memref<8x64xf32>, %i: index) -> memref<64xf32, strided<[1], offset: ?>> {
  %row = memref.subview %m[%i, 0] [1, 64] [1, 1]
    : memref<8x64xf32> to memref<64xf32, strided<[1], offset: ?>>
  return %row : memref<64xf32, strided<[1], offset: ?>>
}
