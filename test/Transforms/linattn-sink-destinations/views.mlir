// RUN: linattn-opt %s --linattn-sink-destinations | FileCheck %s

// A permuted and collapsed result is written under the strides of the caller; the
// views come first, so that the op that computes the result may use them.

// CHECK-LABEL: func.func @packed
// CHECK-SAME: (%[[X:.+]]: tensor<2x4x?x8xf32>, %[[D:.+]]: memref<2x?x32xf32>)
func.func @packed(%x: tensor<2x4x?x8xf32>, %dest: memref<2x?x32xf32>) {
  // CHECK: %[[T:.+]] = memref.dim %[[D]], %c1
  // CHECK: %[[E:.+]] = memref.expand_shape %[[D]] {{\[\[}}0], [1], [2, 3]] output_shape [2, %[[T]], 4, 8] : memref<2x?x32xf32> into memref<2x?x4x8xf32>
  // CHECK: %[[V:.+]] = memref.transpose %[[E]] (d0, d1, d2, d3) -> (d0, d2, d1, d3) : memref<2x?x4x8xf32> to memref<2x4x?x8xf32, strided<{{.+}}>>
  // CHECK: %[[Y:.+]] = arith.addf
  // CHECK: bufferization.materialize_in_destination %[[Y]] in restrict writable %[[V]]
  %y = arith.addf %x, %x : tensor<2x4x?x8xf32>
  %p = linattn.permute %y [0, 2, 1, 3] : tensor<2x4x?x8xf32> to tensor<2x?x4x8xf32>
  %o = tensor.collapse_shape %p [[0], [1], [2, 3]] : tensor<2x?x4x8xf32> into tensor<2x?x32xf32>
  bufferization.materialize_in_destination %o in restrict writable %dest : (tensor<2x?x32xf32>, memref<2x?x32xf32>) -> ()
  return
}

// The inverse permutation, where it is another one.

// CHECK-LABEL: func.func @rotated
func.func @rotated(%x: tensor<2x3x4xf32>, %dest: memref<3x4x2xf32>) {
  // CHECK: memref.transpose %arg1 (d0, d1, d2) -> (d2, d0, d1) : memref<3x4x2xf32> to memref<2x3x4xf32, strided<[1, 8, 2]>>
  %p = linattn.permute %x [1, 2, 0] : tensor<2x3x4xf32> to tensor<3x4x2xf32>
  bufferization.materialize_in_destination %p in restrict writable %dest : (tensor<3x4x2xf32>, memref<3x4x2xf32>) -> ()
  return
}

// The size that a group leaves open follows from the others'.

// CHECK-LABEL: func.func @open
func.func @open(%x: tensor<4x?xf32>, %dest: memref<?xf32>) {
  // CHECK: %[[N:.+]] = memref.dim %arg1, %c0
  // CHECK: %[[M:.+]] = arith.divui %[[N]], %c4
  // CHECK: memref.expand_shape %arg1 {{\[\[}}0, 1]] output_shape [4, %[[M]]]
  %o = tensor.collapse_shape %x [[0, 1]] : tensor<4x?xf32> into tensor<?xf32>
  bufferization.materialize_in_destination %o in restrict writable %dest : (tensor<?xf32>, memref<?xf32>) -> ()
  return
}

// Two open sizes do not follow from their product.

// CHECK-LABEL: func.func @two_open
func.func @two_open(%x: tensor<?x?xf32>, %dest: memref<?xf32>) {
  // CHECK-NEXT: %[[O:.+]] = tensor.collapse_shape
  // CHECK-NEXT: bufferization.materialize_in_destination %[[O]] in restrict writable %arg1
  %o = tensor.collapse_shape %x [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>
  bufferization.materialize_in_destination %o in restrict writable %dest : (tensor<?xf32>, memref<?xf32>) -> ()
  return
}

// A branch writes the view, which is there before it.

// CHECK-LABEL: func.func @branch
func.func @branch(%c: i1, %x: tensor<2x3xf32>, %y: tensor<2x3xf32>, %dest: memref<3x2xf32>) {
  // CHECK: %[[V:.+]] = memref.transpose %arg3
  // CHECK: scf.if %arg0 {
  // CHECK-NEXT: bufferization.materialize_in_destination %arg1 in restrict writable %[[V]]
  // CHECK-NEXT: } else {
  // CHECK-NEXT: bufferization.materialize_in_destination %arg2 in restrict writable %[[V]]
  %r = scf.if %c -> tensor<2x3xf32> {
    scf.yield %x : tensor<2x3xf32>
  } else {
    scf.yield %y : tensor<2x3xf32>
  }
  %p = linattn.permute %r [1, 0] : tensor<2x3xf32> to tensor<3x2xf32>
  bufferization.materialize_in_destination %p in restrict writable %dest : (tensor<3x2xf32>, memref<3x2xf32>) -> ()
  return
}
