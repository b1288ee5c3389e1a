// RUN: linattn-opt %s --transform-interpreter --canonicalize --cse --split-input-file | FileCheck %s

// Tiled over batch and channels, and over tokens with the state going along.

// CHECK-LABEL: func.func @selective_scan_tiled(
// CHECK: scf.for %[[B:[a-z0-9]+]] =
// CHECK: scf.for %[[T:[a-z0-9]+]] =
// CHECK: scf.for %[[C:[a-z0-9]+]] = %{{.+}} iter_args(%[[O:.+]] = %{{.+}}, %[[S:.+]] = %{{.+}})
// CHECK-DAG: tensor.extract_slice %{{.+}}[%[[B]], %[[T]], %[[C]]] [1, 3, 4]
// CHECK-DAG: tensor.extract_slice %{{.+}}[%[[C]], 0] [4, 4]
// CHECK-DAG: tensor.extract_slice %{{.+}}[%[[B]], %[[T]], 0] [1, 3, 4]
// CHECK-DAG: tensor.extract_slice %{{.+}}[%[[C]]] [4]
// CHECK-DAG: tensor.extract_slice %[[S]][%[[B]], %[[C]], 0] [1, 4, 4]
// CHECK: linattn.selective_scan
func.func @selective_scan_tiled(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %skip: tensor<8xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x4xf32>) {
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c skip(%skip) into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<8xf32>, tensor<2x6x8xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x4xf32>)
  return %r#0, %r#1 : tensor<2x6x8xf32>, tensor<2x8x4xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %op = transform.structured.match ops{["linattn.selective_scan"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops:3 = transform.structured.tile_using_for %op tile_sizes [1, 3, 4]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// CHECK-LABEL: func.func @diagonal_scan_dynamic(
// CHECK: scf.for %[[T:[a-z0-9]+]] = {{.*}} iter_args(%[[O:.+]] = %{{.+}}, %[[S:.+]] = %{{.+}})
// CHECK: %[[N:.+]] = affine.min #{{.+}}(%[[T]])
// CHECK: linattn.diagonal_scan {{.*}} init(%[[S]])
func.func @diagonal_scan_dynamic(%x: tensor<2x?x8xf32>, %decay: tensor<2x?x8xf32>, %into: tensor<2x?x8xf32>, %init: tensor<2x8xf32>) -> (tensor<2x?x8xf32>, tensor<2x8xf32>) {
  %r:2 = linattn.diagonal_scan %x decay(%decay) into(%into) init(%init)
    : (tensor<2x?x8xf32>, tensor<2x?x8xf32>, tensor<2x?x8xf32>, tensor<2x8xf32>) -> (tensor<2x?x8xf32>, tensor<2x8xf32>)
  return %r#0, %r#1 : tensor<2x?x8xf32>, tensor<2x8xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %op = transform.structured.match ops{["linattn.diagonal_scan"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops = transform.structured.tile_using_for %op tile_sizes [0, 16]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// CHECK-LABEL: func.func @wkv4_tiled(
// CHECK: scf.for %[[C:[a-z0-9]+]] =
// CHECK-DAG: tensor.extract_slice %{{.+}}[0, 0, %[[C]]] [2, 6, 4]
// CHECK-DAG: tensor.extract_slice %{{.+}}[%[[C]]] [4]
// CHECK-DAG: tensor.extract_slice %{{.+}}[0, 0, %[[C]]] [2, 3, 4]
// CHECK: linattn.wkv4
func.func @wkv4_tiled(%k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>, %decay: tensor<8xf32>, %bonus: tensor<8xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x3x8xf32>) -> (tensor<2x6x8xf32>, tensor<2x3x8xf32>) {
  %r:2 = linattn.wkv4 %k, %v decay(%decay) bonus(%bonus) into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<2x6x8xf32>, tensor<2x3x8xf32>) -> (tensor<2x6x8xf32>, tensor<2x3x8xf32>)
  return %r#0, %r#1 : tensor<2x6x8xf32>, tensor<2x3x8xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %op = transform.structured.match ops{["linattn.wkv4"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops = transform.structured.tile_using_for %op tile_sizes [0, 0, 4]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Heads and value columns.

// CHECK-LABEL: func.func @log_linear_tiled(
// CHECK: scf.for %[[H:[a-z0-9]+]] =
// CHECK: scf.for %[[V:[a-z0-9]+]] =
// CHECK-DAG: tensor.extract_slice %{{.+}}[0, %[[H]], 0, %[[V]]] [2, 1, 6, 4]
// CHECK-DAG: tensor.extract_slice %{{.+}}[0, %[[H]], 0, 0, %[[V]]] [2, 1, 4, 8, 4]
// CHECK: linattn.log_linear
func.func @log_linear_tiled(%q: tensor<2x2x6x8xf32>, %k: tensor<2x2x6x8xf32>, %v: tensor<2x2x6x8xf32>, %decay: tensor<2x2x6xf32>, %levels: tensor<2x2x6x4xf32>, %into: tensor<2x2x6x8xf32>, %init: tensor<2x2x4x8x8xf32>) -> (tensor<2x2x6x8xf32>, tensor<2x2x4x8x8xf32>) {
  %r:2 = linattn.log_linear %q, %k, %v decay(%decay) levels(%levels) into(%into) init(%init)
    : (tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x8xf32>, tensor<2x2x4x8x8xf32>) -> (tensor<2x2x6x8xf32>, tensor<2x2x4x8x8xf32>)
  return %r#0, %r#1 : tensor<2x2x6x8xf32>, tensor<2x2x4x8x8xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %op = transform.structured.match ops{["linattn.log_linear"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops:2 = transform.structured.tile_using_for %op tile_sizes [0, 1, 0, 4]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}
