// RUN: linattn-opt %s --transform-interpreter --canonicalize --cse --split-input-file | FileCheck %s

// A scan is tiled over batch, head and token; the state goes from chunk to chunk.

// CHECK-LABEL: func.func @scan
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<2x4x48x8xf32>, %[[S:[a-z0-9]+]]: tensor<2x4x8x8xf32>
// CHECK: scf.for %[[B:[a-z0-9]+]] = %{{.+}} to %{{.+}} step %{{.+}} iter_args(%[[O0:.+]] = %{{.+}}, %[[S0:.+]] = %[[S]])
// CHECK: scf.for %[[H:[a-z0-9]+]] = %{{.+}} iter_args(%[[O1:.+]] = %[[O0]], %[[S1:.+]] = %[[S0]])
// CHECK: scf.for %[[T:[a-z0-9]+]] = %{{.+}} iter_args(%[[O2:.+]] = %[[O1]], %[[S2:.+]] = %[[S1]])
// CHECK-DAG: %[[QT:.+]] = tensor.extract_slice %[[Q]][%[[B]], %[[H]], %[[T]], 0] [1, 2, 16, 8]
// CHECK-DAG: %[[OT:.+]] = tensor.extract_slice %[[O2]][%[[B]], %[[H]], %[[T]], 0] [1, 2, 16, 8]
// CHECK-DAG: %[[ST:.+]] = tensor.extract_slice %[[S2]][%[[B]], %[[H]], 0, 0] [1, 2, 8, 8]
// CHECK: linattn.scan %[[QT]], %[[QT]], %[[QT]] into(%[[OT]]) init(%[[ST]])
func.func @scan(%q: tensor<2x4x48x8xf32>, %s: tensor<2x4x8x8xf32>) -> (tensor<2x4x48x8xf32>, tensor<2x4x8x8xf32>) {
  %e = tensor.empty() : tensor<2x4x48x8xf32>
  %r:2 = linattn.scan %q, %q, %q into(%e) init(%s)
    : (tensor<2x4x48x8xf32>, tensor<2x4x48x8xf32>, tensor<2x4x48x8xf32>, tensor<2x4x48x8xf32>, tensor<2x4x8x8xf32>)
    -> (tensor<2x4x48x8xf32>, tensor<2x4x8x8xf32>)
  return %r#0, %r#1 : tensor<2x4x48x8xf32>, tensor<2x4x8x8xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %op = transform.structured.match ops{["linattn.scan"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops:3 = transform.structured.tile_using_for %op tile_sizes [1, 2, 16]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// A tile of causal queries sees the keys up to its last query, and no others.

// CHECK-LABEL: func.func @quadratic
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<1x2x64x8xf32>
// CHECK: scf.for %[[I:[a-z0-9]+]] =
// CHECK: tensor.extract_slice %[[Q]][0, 0, %[[I]], 0] [1, 2, 16, 8]
// CHECK: %[[END:.+]] = affine.max #{{.+}}(%[[I]])
// CHECK: tensor.extract_slice %[[Q]][0, 0, 0, 0] [1, 2, %[[END]], 8]
// CHECK: linattn.quadratic {{.+}} {causal}
func.func @quadratic(%q: tensor<1x2x64x8xf32>) -> tensor<1x2x64x8xf32> {
  %e = tensor.empty() : tensor<1x2x64x8xf32>
  %o = linattn.quadratic %q, %q, %q into(%e) {causal}
    : (tensor<1x2x64x8xf32>, tensor<1x2x64x8xf32>, tensor<1x2x64x8xf32>, tensor<1x2x64x8xf32>) -> tensor<1x2x64x8xf32>
  return %o : tensor<1x2x64x8xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %op = transform.structured.match ops{["linattn.quadratic"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %op tile_sizes [0, 0, 16]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Reads of a state are independent: a parallel loop over batch, head and token.

// CHECK-LABEL: func.func @read
// CHECK: scf.forall (%[[B:[a-z0-9]+]], %[[H:[a-z0-9]+]], %[[T:[a-z0-9]+]]) in (2, 4, 6)
// CHECK: linattn.read {{.+}} : (tensor<1x1x?x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x?x8xf32>) -> tensor<1x1x?x8xf32>
// CHECK: tensor.parallel_insert_slice
func.func @read(%q: tensor<2x4x44x8xf32>, %s: tensor<2x4x8x8xf32>) -> tensor<2x4x44x8xf32> {
  %e = tensor.empty() : tensor<2x4x44x8xf32>
  %o = linattn.read %q, %s into(%e)
    : (tensor<2x4x44x8xf32>, tensor<2x4x8x8xf32>, tensor<2x4x44x8xf32>) -> tensor<2x4x44x8xf32>
  return %o : tensor<2x4x44x8xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %op = transform.structured.match ops{["linattn.read"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_forall %op tile_sizes [1, 1, 8]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Dynamic sizes: the last chunk may be short.

// CHECK-LABEL: func.func @dynamic
// CHECK: scf.for %[[T:[a-z0-9]+]] =
// CHECK: %[[N:.+]] = affine.min #{{.+}}(%[[T]])
// CHECK: linattn.state {{.+}} normalizer(%{{.+}}) : (tensor<1x1x?x8xf32>, tensor<1x1x?x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8xf32>)
func.func @dynamic(%k: tensor<1x1x?x8xf32>, %s: tensor<1x1x8x8xf32>, %z: tensor<1x1x8xf32>) -> (tensor<1x1x8x8xf32>, tensor<1x1x8xf32>) {
  %r:2 = linattn.state %k, %k init(%s) normalizer(%z)
    : (tensor<1x1x?x8xf32>, tensor<1x1x?x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8xf32>) -> (tensor<1x1x8x8xf32>, tensor<1x1x8xf32>)
  return %r#0, %r#1 : tensor<1x1x8x8xf32>, tensor<1x1x8xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %op = transform.structured.match ops{["linattn.state"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %op tile_sizes [0, 0, 16]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Every tile has the scale.

// CHECK-LABEL: func.func @scale_operand
// CHECK-SAME: %[[SCALE:[a-z0-9]+]]: f64
// CHECK: linattn.scan {{.+}} scale(%[[SCALE]]) into
// CHECK: linattn.quadratic {{.+}} scale(%[[SCALE]]) into
// CHECK: linattn.read {{.+}} scale(%[[SCALE]]) into
func.func @scale_operand(%q: tensor<2x4x?x8xf32>, %scale: f64, %s: tensor<2x4x8x8xf32>) -> (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) {
  %0:2 = linattn.scan %q, %q, %q scale(%scale) into(%q) init(%s)
    : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, f64, tensor<2x4x?x8xf32>, tensor<2x4x8x8xf32>) -> (tensor<2x4x?x8xf32>, tensor<2x4x8x8xf32>)
  %1 = linattn.quadratic %q, %q, %q scale(%scale) into(%q) {causal}
    : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, f64, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  %2 = linattn.read %q, %s scale(%scale) into(%q) : (tensor<2x4x?x8xf32>, tensor<2x4x8x8xf32>, f64, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %0#0, %1, %2 : tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %op = transform.structured.match ops{["linattn.scan", "linattn.quadratic", "linattn.read"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops:3 = transform.structured.tile_using_for %op tile_sizes [1, 2, 16]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}
