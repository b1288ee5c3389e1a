// RUN: linattn-opt %s --linattn-lower-to-loops | FileCheck %s

// Tensors are not for this pass.

// CHECK-LABEL: func.func @tensors(
// CHECK-NEXT:    linattn.state
func.func @tensors(%k: tensor<1x2x4x8xf32>, %s: tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32> {
  %r = linattn.state %k, %k init(%s) : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32>
  return %r : tensor<1x2x8x8xf32>
}
