// RUN: linattn-opt %s --linattn-check-shapes --split-input-file | FileCheck %s

// The function is as it was; beside it stand its checks.

// CHECK-LABEL: func.func @attend(
// CHECK:         linattn.attention

// CHECK-LABEL: func.func @attend__shapes(
// CHECK-SAME:    %[[Q:[^:]+]]: tensor<1x2x?x4xf32>, %[[K:[^:]+]]: tensor<1x2x?x4xf32>, %[[V:[^:]+]]: tensor<1x2x?x4xf32>, %[[S:[^:]+]]: memref<9xi64>)
// CHECK-SAME:    linattn.checks = ["expected key and value to have the same sequence length, but got {0} and {1}",
// CHECK-SAME:                      "expected query and key to have the same sequence length, but got {0} and {1}"]
// CHECK-NOT:     linattn.attention
// CHECK-DAG:     %[[NONE:.+]] = arith.constant -1 : i64
// CHECK-DAG:     %[[TRUE:.+]] = arith.constant true
// CHECK-DAG:     %[[C2:.+]] = arith.constant 2 : index
// CHECK-DAG:     %[[C4:.+]] = arith.constant 4 : index
// CHECK-DAG:     %[[KT:.+]] = tensor.dim %[[K]], %[[C2]]
// CHECK-DAG:     %[[VT:.+]] = tensor.dim %[[V]], %[[C2]]
// CHECK-DAG:     %[[KV:.+]] = arith.cmpi eq, %[[KT]], %[[VT]]
// CHECK-DAG:     %[[QT:.+]] = tensor.dim %[[Q]], %[[C2]]
// CHECK-DAG:     %[[QK:.+]] = arith.cmpi eq, %[[QT]], %[[KT]]
// CHECK:         %[[ALL:.+]] = arith.andi %[[KV]], %[[QK]]
// CHECK:         memref.store %[[NONE]], %[[S]][%[[C4]]]
// CHECK:         %[[FAILS:.+]] = arith.xori %[[ALL]], %[[TRUE]]
// CHECK:         scf.if %[[FAILS]] {
// CHECK:           %[[SECOND:.+]] = arith.select %[[QK]], %[[NONE]], %c1_i64
// CHECK:           %[[FIRST:.+]] = arith.select %[[KV]], %[[SECOND]], %c0_i64
// CHECK:           memref.store %[[FIRST]], %[[S]][%[[C4]]]
// CHECK-COUNT-4:   memref.store
func.func @attend(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  %o = linattn.attention %q, %k, %v {causal}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

// -----

// Static sizes were the verifier's business, and what follows needs no check.

// CHECK-LABEL: func.func @static__shapes(
// CHECK-SAME:    memref<4xi64>) attributes {linattn.checks = []}
// CHECK-NOT:     arith.cmpi
func.func @static(%q: tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xf32> {
  %o = linattn.attention %q, %q, %q {causal}
    : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xf32>
  return %o : tensor<1x2x8x4xf32>
}

// CHECK-LABEL: func.func @follows__shapes(
// CHECK-SAME:    memref<4xi64>) attributes {linattn.checks = []}
// CHECK-NOT:     arith.cmpi
func.func @follows(%q: tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %b = tensor.dim %q, %c0 : tensor<?x?x?x?xf32>
  %h = tensor.dim %q, %c1 : tensor<?x?x?x?xf32>
  %t = tensor.dim %q, %c2 : tensor<?x?x?x?xf32>
  %d = tensor.dim %q, %c3 : tensor<?x?x?x?xf32>
  %e = tensor.empty(%b, %h, %t, %d) : tensor<?x?x?x?xf32>
  %f = linattn.feature_map %q into(%e) {feature_map = #linattn.feature_map<elu1>}
    : (tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32>
  return %f : tensor<?x?x?x?xf32>
}

// -----

// Grouped heads divide one another, and the largest count is the result's.

// CHECK-LABEL: func.func @heads__shapes(
// CHECK-SAME:    %[[Q:[^:]+]]: tensor<1x?x8x4xf32>, %[[K:[^:]+]]: tensor<1x?x8x4xf32>,
// CHECK-SAME:    linattn.checks = ["expected head counts of query and key to divide one another, but got {0} and {1}"]
// CHECK:         %[[HQ:.+]] = tensor.dim %[[Q]], %c1
// CHECK:         %[[HK:.+]] = tensor.dim %[[K]], %c1
// CHECK-DAG:     %[[SMALL:.+]] = arith.minsi %[[HQ]], %[[HK]]
// CHECK-DAG:     %[[LARGE:.+]] = arith.maxsi %[[HQ]], %[[HK]]
// CHECK-DAG:     %[[DIVISOR:.+]] = arith.maxsi %[[SMALL]], %c1
// CHECK-DAG:     %[[REST:.+]] = arith.remsi %[[LARGE]], %[[DIVISOR]]
func.func @heads(%q: tensor<1x?x8x4xf32>, %k: tensor<1x?x8x4xf32>) -> tensor<1x?x8x4xf32> {
  %o = linattn.attention %q, %k, %k
    : (tensor<1x?x8x4xf32>, tensor<1x?x8x4xf32>, tensor<1x?x8x4xf32>) -> tensor<1x?x8x4xf32>
  return %o : tensor<1x?x8x4xf32>
}

// -----

// Other dialects: dimensions of one loop, arithmetic, casts and slices.

// CHECK-LABEL: func.func @matmul__shapes(
// CHECK-SAME:    linattn.checks = ["linalg.matmul: expected dimension 1 of operand 0 and dimension 0 of operand 1 to have the same size, but got {0} and {1}",
// CHECK-SAME:                      "linalg.matmul: expected dimension 0 of operand 0 and dimension 0 of operand 2 to have the same size, but got {0} and {1}"]
// CHECK-NOT:     linalg.matmul
func.func @matmul(%a: tensor<?x?xf32>, %b: tensor<4x3xf32>, %c: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<?x?xf32>, tensor<4x3xf32>) outs(%c : tensor<?x3xf32>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}

// Said once, though two ops ask for it.

// CHECK-LABEL: func.func @add__shapes(
// CHECK-SAME:    linattn.checks = ["arith.addf: expected dimension 0 of operand 0 and dimension 0 of operand 1 to have the same size, but got {0} and {1}"]
// CHECK-NOT:     arith.addf
func.func @add(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %0 = arith.addf %x, %y : tensor<?xf32>
  %1 = arith.mulf %0, %y : tensor<?xf32>
  return %1 : tensor<?xf32>
}

// CHECK-LABEL: func.func @cast__shapes(
// CHECK-SAME:    linattn.checks = ["tensor.cast: expected dimension 0 of operand 0 and the type to have the same size, but got {0} and {1}"]
func.func @cast(%x: tensor<?x?xf32>) -> tensor<4x?xf32> {
  %0 = tensor.cast %x : tensor<?x?xf32> to tensor<4x?xf32>
  return %0 : tensor<4x?xf32>
}

// CHECK-LABEL: func.func @slice__shapes(
// CHECK-SAME:    linattn.checks = ["tensor.extract_slice: expected a slice inside dimension 0 of size {3}, but got offset {0}, size {1} and stride {2}"]
func.func @slice(%x: tensor<?x4xf32>, %i: index) -> tensor<2x4xf32> {
  %0 = tensor.extract_slice %x[%i, 0] [2, 4] [1, 1] : tensor<?x4xf32> to tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

// Offsets of packed sequences are read.

// CHECK-LABEL: func.func @packed__shapes(
// CHECK-SAME:    %[[CU:[^:]+]]: tensor<?xi32>,
// CHECK-SAME:    "expected cu_seqlens to start at 0, but got {0}",
// CHECK-SAME:    "expected cu_seqlens not to decrease, but offset {0} is {1} after {2}",
// CHECK-SAME:    "expected cu_seqlens to end at the sequence length {0}, but got {1}"]
// CHECK-NOT:     linattn.scan
// CHECK:         scf.for
// CHECK:           tensor.extract %[[CU]]
func.func @packed(%x: tensor<1x2x?x4xf32>, %cu: tensor<?xi32>, %o: tensor<1x2x?x4xf32>, %s: tensor<?x2x4x4xf32>)
    -> (tensor<1x2x?x4xf32>, tensor<?x2x4x4xf32>) {
  %r:2 = linattn.scan %x, %x, %x cu_seqlens(%cu) into(%o) init(%s)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<?xi32>, tensor<1x2x?x4xf32>, tensor<?x2x4x4xf32>)
    -> (tensor<1x2x?x4xf32>, tensor<?x2x4x4xf32>)
  return %r#0, %r#1 : tensor<1x2x?x4xf32>, tensor<?x2x4x4xf32>
}

// -----

// So are indices into a pool of states; the pool has any number of them.

// CHECK-LABEL: func.func @pool__shapes(
// CHECK-SAME:    %[[I:[^:]+]]: tensor<?xi32>,
// CHECK-SAME:    "expected query and state_indices to have the same batch size, but got {0} and {1}",
// CHECK-SAME:    "expected state_indices to be -1 or a row of the state, which has {2}, but got {0} at {1}",
// CHECK-SAME:    "expected a row of the state no more than once in state_indices, but got {0} at {1} and {2}"]
// CHECK-NOT:     linattn.scan
// CHECK:         scf.for
// CHECK:           tensor.extract %[[I]]
// CHECK:           scf.for
// CHECK:             tensor.extract %[[I]]
func.func @pool(%x: tensor<?x2x1x4xf32>, %i: tensor<?xi32>, %o: tensor<?x2x1x4xf32>, %s: tensor<5x2x4x4xf32>)
    -> (tensor<?x2x1x4xf32>, tensor<5x2x4x4xf32>) {
  %r:2 = linattn.scan %x, %x, %x state_indices(%i) into(%o) init(%s)
    : (tensor<?x2x1x4xf32>, tensor<?x2x1x4xf32>, tensor<?x2x1x4xf32>, tensor<?xi32>, tensor<?x2x1x4xf32>, tensor<5x2x4x4xf32>)
    -> (tensor<?x2x1x4xf32>, tensor<5x2x4x4xf32>)
  return %r#0, %r#1 : tensor<?x2x1x4xf32>, tensor<5x2x4x4xf32>
}
