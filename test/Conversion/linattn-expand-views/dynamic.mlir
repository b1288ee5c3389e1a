// RUN: linattn-opt %s --linattn-expand-views | FileCheck %s

// CHECK-LABEL: func.func @heads(
// CHECK:         %[[BASE:.+]], %{{.+}}, %[[N:.+]]:2, %{{.+}}:2 = memref.extract_strided_metadata %arg0
// CHECK:         memref.reinterpret_cast %[[BASE]] to offset: [0], sizes: [%[[N]]#0, 4, 8], strides: [32, 8, 1]
// CHECK-NOT:     memref.expand_shape
func.func @heads(%m: memref<?x32xf32>, %n: index) -> memref<?x4x8xf32> {
  %heads = memref.expand_shape %m [[0], [1, 2]] output_shape [%n, 4, 8]
    : memref<?x32xf32> into memref<?x4x8xf32>
  return %heads : memref<?x4x8xf32>
}

// CHECK-LABEL: func.func @part(
// CHECK:         %[[BASE:.+]], %[[FROM:.+]], %{{.+}}, %[[BY:.+]] = memref.extract_strided_metadata %arg0
// CHECK-DAG:     affine.apply #{{.+}}()[%arg3, %[[BY]]]
// CHECK-DAG:     affine.apply #{{.+}}()[%[[FROM]], %arg1, %[[BY]]]
// CHECK:         memref.reinterpret_cast %[[BASE]]
func.func @part(%m: memref<?xf32, strided<[?], offset: ?>>, %offset: index, %size: index,
                %stride: index) -> memref<?xf32, strided<[?], offset: ?>> {
  %view = memref.subview %m[%offset] [%size] [%stride]
    : memref<?xf32, strided<[?], offset: ?>> to memref<?xf32, strided<[?], offset: ?>>
  return %view : memref<?xf32, strided<[?], offset: ?>>
}
