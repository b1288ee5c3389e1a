// RUN: linattn-opt %s --linattn-sink-destinations --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @choose
// CHECK-SAME: %[[C:.+]]: i1, %[[A:.+]]: tensor<?xf32>, %[[B:.+]]: tensor<?xf32>, %[[DEST:.+]]: memref<?xf32>
// CHECK: scf.if %[[C]] {
// CHECK-NEXT: bufferization.materialize_in_destination %[[A]] in restrict writable %[[DEST]]
// CHECK-NEXT: } else {
// CHECK-NEXT: bufferization.materialize_in_destination %[[B]] in restrict writable %[[DEST]]
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @choose(%c: i1, %a: tensor<?xf32>, %b: tensor<?xf32>, %dest: memref<?xf32>) {
  %r = scf.if %c -> (tensor<?xf32>) {
    scf.yield %a : tensor<?xf32>
  } else {
    scf.yield %b : tensor<?xf32>
  }
  bufferization.materialize_in_destination %r in restrict writable %dest : (tensor<?xf32>, memref<?xf32>) -> ()
  return
}

// -----

// A result that somebody else reads stays a result.
// CHECK-LABEL: func.func @used_twice
// CHECK: %[[R:.+]] = scf.if
// CHECK: bufferization.materialize_in_destination %[[R]]
func.func @used_twice(%c: i1, %a: tensor<4xf32>, %b: tensor<4xf32>, %dest: memref<4xf32>) -> tensor<4xf32> {
  %r = scf.if %c -> (tensor<4xf32>) {
    scf.yield %a : tensor<4xf32>
  } else {
    scf.yield %b : tensor<4xf32>
  }
  bufferization.materialize_in_destination %r in restrict writable %dest : (tensor<4xf32>, memref<4xf32>) -> ()
  return %r : tensor<4xf32>
}

// -----

// Without restrict, others may touch the destination in between.
// CHECK-LABEL: func.func @shared
// CHECK: %[[R:.+]] = scf.if
// CHECK: bufferization.materialize_in_destination %[[R]]
func.func @shared(%c: i1, %a: tensor<4xf32>, %b: tensor<4xf32>, %dest: memref<4xf32>) {
  %r = scf.if %c -> (tensor<4xf32>) {
    scf.yield %a : tensor<4xf32>
  } else {
    scf.yield %b : tensor<4xf32>
  }
  bufferization.materialize_in_destination %r in writable %dest : (tensor<4xf32>, memref<4xf32>) -> ()
  return
}
