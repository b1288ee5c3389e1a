// RUN: linattn-opt %s --linattn-check-shapes | FileCheck %s

// An inserted tensor has the sizes of its place, and a reshaped tensor as many elements.

// CHECK-LABEL: func.func @insert__shapes(
// CHECK-SAME:    linattn.checks = ["tensor.insert_slice: expected a slice inside dimension 0 of size {3}, but got offset {0}, size {1} and stride {2}",
// CHECK-SAME:                      "tensor.insert_slice: expected dimension 0 of the source to be of size {0}, but got {1}"]
func.func @insert(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>, %n: index) -> tensor<?x4xf32> {
  %0 = tensor.insert_slice %x into %y[0, 0] [%n, 4] [1, 1] : tensor<?x4xf32> into tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// CHECK-LABEL: func.func @same__shapes(
// CHECK-NOT:     of the source
func.func @same(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %0 = tensor.insert_slice %x into %e[0, 0] [%n, 4] [1, 1] : tensor<?x4xf32> into tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// CHECK-LABEL: func.func @reshape__shapes(
// CHECK-SAME:    linattn.checks = ["tensor.reshape: expected {0} elements, but got {1}"]
func.func @reshape(%x: tensor<?xf32>, %n: index, %m: index) -> tensor<?x?xf32> {
  %s = tensor.from_elements %n, %m : tensor<2xindex>
  %0 = tensor.reshape %x(%s) : (tensor<?xf32>, tensor<2xindex>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
