// RUN: linattn-opt %s --transform-interpreter --split-input-file --verify-diagnostics

// Query heads that share a state head cannot be tiled.

func.func @grouped(%x: tensor<2x4x8x64xf32>, %s: tensor<2x2x64x64xf32>) -> tensor<2x4x8x64xf32> {
  // expected-error @+3 {{cannot be tiled over heads: its operands' head counts differ or are dynamic}}
  // expected-error @+2 {{to tile operation}}
  // expected-error @+1 {{failed to generate tiling loops}}
  %r = linattn.chunk.read %x, %s into(%x)
    : (tensor<2x4x8x64xf32>, tensor<2x2x64x64xf32>, tensor<2x4x8x64xf32>) -> tensor<2x4x8x64xf32>
  return %r : tensor<2x4x8x64xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %op = transform.structured.match ops{["linattn.chunk.read"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %op tile_sizes [0, 2]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

func.func @dynamic_heads(%x: tensor<2x?x8x64xf32>) -> tensor<2x?x8x64xf32> {
  // expected-error @+3 {{cannot be tiled over heads: its operands' head counts differ or are dynamic}}
  // expected-error @+2 {{to tile operation}}
  // expected-error @+1 {{failed to generate tiling loops}}
  %r = linattn.chunk.pack %x into(%x) : (tensor<2x?x8x64xf32>, tensor<2x?x8x64xf32>) -> tensor<2x?x8x64xf32>
  return %r : tensor<2x?x8x64xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %op = transform.structured.match ops{["linattn.chunk.pack"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %op tile_sizes [0, 2]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// The sums of scores run over all tokens of a chunk: two loops, no third.

func.func @scores(%x: tensor<2x4x8x64xf32>, %p: tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32> {
  // expected-note @+1 {{target op}}
  %r = linattn.chunk.scores %x, %x into(%p)
    : (tensor<2x4x8x64xf32>, tensor<2x4x8x64xf32>, tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  return %r : tensor<2x4x8x8xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %op = transform.structured.match ops{["linattn.chunk.scores"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error @+1 {{too many tiles provided, expected at most 2 found 3}}
    %tiled, %loop = transform.structured.tile_using_for %op tile_sizes [0, 0, 4]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
