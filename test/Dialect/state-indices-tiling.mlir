// RUN: linattn-opt %s --transform-interpreter --split-input-file --verify-diagnostics | FileCheck %s

// A tile of tokens sees the whole pool, and all indices.
// CHECK-LABEL: func.func @tokens
// CHECK:         scf.for {{.*}} iter_args({{.*}} = %{{.*}}, %[[POOL:.+]] = %{{.*}})
// CHECK:           tensor.extract_slice %{{.*}}[0] [2] [1] : tensor<2xi64> to tensor<2xi64>
// CHECK:           tensor.extract_slice %[[POOL]][0, 0, 0, 0] [9, 4, 8, 8] [1, 1, 1, 1]
// CHECK:           linattn.scan {{.*}} state_indices(
func.func @tokens(%q: tensor<2x4x6x8xf32>, %i: tensor<2xi64>, %s: tensor<9x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<9x4x8x8xf32>) {
  %r:2 = linattn.scan %q, %q, %q state_indices(%i) into(%q) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2xi64>, tensor<2x4x6x8xf32>, tensor<9x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<9x4x8x8xf32>)
  return %r#0, %r#1 : tensor<2x4x6x8xf32>, tensor<9x4x8x8xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %op = transform.structured.match ops{["linattn.scan"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops = transform.structured.tile_using_for %op tile_sizes [0, 0, 2]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

func.func @batch(%q: tensor<2x4x6x8xf32>, %i: tensor<2xi64>, %s: tensor<9x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<9x4x8x8xf32>) {
  // expected-error @+3 {{cannot be tiled over batches: every tile would return the whole pool of states}}
  // expected-error @+2 {{to tile operation}}
  // expected-error @+1 {{failed to generate tiling loops}}
  %r:2 = linattn.scan %q, %q, %q state_indices(%i) into(%q) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2xi64>, tensor<2x4x6x8xf32>, tensor<9x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<9x4x8x8xf32>)
  return %r#0, %r#1 : tensor<2x4x6x8xf32>, tensor<9x4x8x8xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %op = transform.structured.match ops{["linattn.scan"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops = transform.structured.tile_using_for %op tile_sizes [1, 0, 0]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
