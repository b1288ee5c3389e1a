// RUN: linattn-opt %s --transform-interpreter --canonicalize --cse --split-input-file --verify-diagnostics | FileCheck %s

// Tiled over batch and channels, and over tokens with the state going along.

// CHECK-LABEL: func.func @tiled(
// CHECK: scf.for %[[B:[a-z0-9]+]] =
// CHECK: scf.for %[[T:[a-z0-9]+]] =
// CHECK: scf.for %[[C:[a-z0-9]+]] = %{{.+}} iter_args(%[[O:.+]] = %{{.+}}, %[[S:.+]] = %{{.+}})
// CHECK-DAG: tensor.extract_slice %{{.+}}[%[[B]], %[[T]], %[[C]]] [1, 3, 4]
// CHECK-DAG: tensor.extract_slice %{{.+}}[%[[C]], 0] [4, 2]
// CHECK-DAG: tensor.extract_slice %{{.+}}[%[[C]]] [4]
// CHECK-DAG: tensor.extract_slice %[[S]][%[[B]], %[[C]], 0] [1, 4, 1]
// CHECK: linattn.causal_conv
func.func @tiled(%x: tensor<2x6x8xf32>, %w: tensor<8x2xf32>, %b: tensor<8xf32>, %o: tensor<2x6x8xf32>, %s: tensor<2x8x1xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x1xf32>) {
  %r:2 = linattn.causal_conv %x, %w bias(%b) into(%o) init(%s)
    : (tensor<2x6x8xf32>, tensor<8x2xf32>, tensor<8xf32>, tensor<2x6x8xf32>, tensor<2x8x1xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x1xf32>)
  return %r#0, %r#1 : tensor<2x6x8xf32>, tensor<2x8x1xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %op = transform.structured.match ops{["linattn.causal_conv"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops:3 = transform.structured.tile_using_for %op tile_sizes [1, 3, 4]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

func.func @reverse(%x: tensor<2x6x8xf32>, %w: tensor<8x2xf32>, %o: tensor<2x6x8xf32>, %s: tensor<2x8x1xf32>) -> tensor<2x6x8xf32> {
  // expected-error @+3 {{cannot be tiled over tokens: it runs from the last token to the first}}
  // expected-error @+2 {{to tile operation}}
  // expected-error @+1 {{failed to generate tiling loops}}
  %r:2 = linattn.causal_conv %x, %w into(%o) init(%s) {reverse}
    : (tensor<2x6x8xf32>, tensor<8x2xf32>, tensor<2x6x8xf32>, tensor<2x8x1xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x1xf32>)
  return %r#0 : tensor<2x6x8xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %op = transform.structured.match ops{["linattn.causal_conv"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops = transform.structured.tile_using_for %op tile_sizes [0, 3]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
