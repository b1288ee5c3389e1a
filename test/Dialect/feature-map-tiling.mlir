// RUN: linattn-opt %s --transform-interpreter --canonicalize --cse --split-input-file | FileCheck %s

// Parameters are tiled over heads where there is one for each; positions over
// batch and tokens.

// CHECK-LABEL: func.func @shared
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x4x48x8xf32>, %[[W:[a-z0-9]+]]: tensor<6x8xf32>
// CHECK: %[[XT:.+]] = tensor.extract_slice %[[X]][%[[B:.+]], %[[H:.+]], %[[T:.+]], 0] [1, 2, 16, 8]
// CHECK: linattn.feature_map %[[XT]] params(%[[W]]) into(%{{.+}}) {feature_map = #linattn.feature_map<favor>} : (tensor<1x2x16x8xf32>, tensor<6x8xf32>, tensor<1x2x16x6xf32>) -> tensor<1x2x16x6xf32>
func.func @shared(%x: tensor<2x4x48x8xf32>, %w: tensor<6x8xf32>, %o: tensor<2x4x48x6xf32>) -> tensor<2x4x48x6xf32> {
  %r = linattn.feature_map %x params(%w) into(%o) {feature_map = #linattn.feature_map<favor>} : (tensor<2x4x48x8xf32>, tensor<6x8xf32>, tensor<2x4x48x6xf32>) -> tensor<2x4x48x6xf32>
  return %r : tensor<2x4x48x6xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %op = transform.structured.match ops{["linattn.feature_map"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops:3 = transform.structured.tile_using_for %op tile_sizes [1, 2, 16]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// CHECK-LABEL: func.func @per_head
// CHECK-SAME: %{{.+}}: tensor<2x4x48x8xf32>, %[[W:[a-z0-9]+]]: tensor<4x6x8xf32>, %[[BIAS:[a-z0-9]+]]: tensor<4x6xf32>
// CHECK-DAG: tensor.extract_slice %[[W]][%[[H:.+]], 0, 0] [2, 6, 8]
// CHECK-DAG: tensor.extract_slice %[[BIAS]][%[[H]], 0] [2, 6]
func.func @per_head(%x: tensor<2x4x48x8xf32>, %w: tensor<4x6x8xf32>, %b: tensor<4x6xf32>, %o: tensor<2x4x48x6xf32>) -> tensor<2x4x48x6xf32> {
  %r = linattn.feature_map %x params(%w, %b) into(%o) {feature_map = #linattn.feature_map<t2r>} : (tensor<2x4x48x8xf32>, tensor<4x6x8xf32>, tensor<4x6xf32>, tensor<2x4x48x6xf32>) -> tensor<2x4x48x6xf32>
  return %r : tensor<2x4x48x6xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %op = transform.structured.match ops{["linattn.feature_map"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops = transform.structured.tile_using_for %op tile_sizes [0, 2, 0]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// CHECK-LABEL: func.func @positions
// CHECK-SAME: %[[P:[a-z0-9]+]]: tensor<2x?xi64>
// CHECK: tensor.extract_slice %[[P]][%{{.+}}, %{{.+}}] [1, %{{.+}}]
func.func @positions(%x: tensor<2x4x?x8xf32>, %p: tensor<2x?xi64>, %o: tensor<2x4x?x16xf32>) -> tensor<2x4x?x16xf32> {
  %r = linattn.feature_map %x positions(%p) into(%o) {feature_map = #linattn.feature_map<cosformer, max_length = 99>} : (tensor<2x4x?x8xf32>, tensor<2x?xi64>, tensor<2x4x?x16xf32>) -> tensor<2x4x?x16xf32>
  return %r : tensor<2x4x?x16xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %op = transform.structured.match ops{["linattn.feature_map"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops:2 = transform.structured.tile_using_for %op tile_sizes [1, 0, 16]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}
