// RUN: linattn-opt %s --split-input-file --verify-diagnostics | linattn-opt --split-input-file | FileCheck %s
// RUN: linattn-opt %s --split-input-file --verify-diagnostics --resolve-ranked-shaped-type-result-dims --canonicalize | FileCheck %s --check-prefix=FOLD

// CHECK-LABEL: func.func @round_trip
func.func @round_trip(%x: tensor<2x?x8x64xf32>) -> tensor<2x8x?x64xf32> {
  // CHECK: linattn.permute %arg0 [0, 2, 1, 3] : tensor<2x?x8x64xf32> to tensor<2x8x?x64xf32>
  %0 = linattn.permute %x [0, 2, 1, 3] : tensor<2x?x8x64xf32> to tensor<2x8x?x64xf32>
  return %0 : tensor<2x8x?x64xf32>
}

// -----

// FOLD-LABEL: func.func @inverse
func.func @inverse(%x: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>) {
  // FOLD-NEXT: return %arg0, %arg0
  %0 = linattn.permute %x [1, 2, 0] : tensor<2x3x4xf32> to tensor<3x4x2xf32>
  %1 = linattn.permute %0 [2, 0, 1] : tensor<3x4x2xf32> to tensor<2x3x4xf32>
  %2 = linattn.permute %x [0, 1, 2] : tensor<2x3x4xf32> to tensor<2x3x4xf32>
  return %1, %2 : tensor<2x3x4xf32>, tensor<2x3x4xf32>
}

// -----

// Twice the same is not there and back; a more static result is not the same.

// FOLD-LABEL: func.func @no_inverse
func.func @no_inverse(%x: tensor<3x3x3xf32>, %y: tensor<?xf32>) -> (tensor<3x3x3xf32>, tensor<4xf32>) {
  // FOLD-COUNT-3: linattn.permute
  %0 = linattn.permute %x [1, 2, 0] : tensor<3x3x3xf32> to tensor<3x3x3xf32>
  %1 = linattn.permute %0 [1, 2, 0] : tensor<3x3x3xf32> to tensor<3x3x3xf32>
  %2 = linattn.permute %y [0] : tensor<?xf32> to tensor<4xf32>
  return %1, %2 : tensor<3x3x3xf32>, tensor<4xf32>
}

// -----

// FOLD-LABEL: func.func @sizes
func.func @sizes(%x: tensor<2x?x8xf32>) -> (index, index) {
  // FOLD-DAG: %[[T:.+]] = tensor.dim %arg0, %c1
  // FOLD-DAG: %[[H:.+]] = arith.constant 8 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %0 = linattn.permute %x [0, 2, 1] : tensor<2x?x8xf32> to tensor<2x8x?xf32>
  %h = tensor.dim %0, %c1 : tensor<2x8x?xf32>
  %t = tensor.dim %0, %c2 : tensor<2x8x?xf32>
  return %h, %t : index, index
}

// -----

func.func @p1_repeated(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected permutation to hold each of 2 dimensions once, but got [1, 1]}}
  // expected-error @below {{failed to infer returned types}}
  %0 = "linattn.permute"(%x) <{permutation = array<i64: 1, 1>}> : (tensor<2x3xf32>) -> tensor<3x3xf32>
  return
}

// -----

func.func @p1_outside(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected permutation to hold each of 2 dimensions once, but got [0, 1, 2]}}
  // expected-error @below {{failed to infer returned types}}
  %0 = "linattn.permute"(%x) <{permutation = array<i64: 0, 1, 2>}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @p2_shape(%x: tensor<2x3xf32>) {
  // expected-error @below {{inferred type(s) 'tensor<3x2xf32>' are incompatible with return type(s) of operation 'tensor<2x3xf32>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = linattn.permute %x [1, 0] : tensor<2x3xf32> to tensor<2x3xf32>
  return
}

// -----

func.func @p2_element(%x: tensor<2x3xf32>) {
  // expected-error @below {{inferred type(s) 'tensor<3x2xf32>' are incompatible with return type(s) of operation 'tensor<3x2xf16>'}}
  // expected-error @below {{failed to infer returned types}}
  %0 = linattn.permute %x [1, 0] : tensor<2x3xf32> to tensor<3x2xf16>
  return
}
