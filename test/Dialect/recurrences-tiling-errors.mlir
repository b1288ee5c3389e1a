// RUN: linattn-opt %s --transform-interpreter --split-input-file --verify-diagnostics

// Tiles that do not exist.

func.func @selective_scan_groups(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x2x6x4xf32>, %c: tensor<2x2x6x4xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x4xf32>) {
  // expected-error @+3 {{cannot be tiled over channels: they are in groups}}
  // expected-error @+2 {{to tile operation}}
  // expected-error @+1 {{failed to generate tiling loops}}
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x6x8xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x4xf32>)
  return %r#0, %r#1 : tensor<2x6x8xf32>, tensor<2x8x4xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %op = transform.structured.match ops{["linattn.selective_scan"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops = transform.structured.tile_using_for %op tile_sizes [0, 0, 4]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

func.func @diagonal_scan_reverse(%x: tensor<2x6x8xf32>, %decay: tensor<8xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8xf32>) -> (tensor<2x6x8xf32>, tensor<2x8xf32>) {
  // expected-error @+3 {{cannot be tiled over tokens: it runs from the last token to the first}}
  // expected-error @+2 {{to tile operation}}
  // expected-error @+1 {{failed to generate tiling loops}}
  %r:2 = linattn.diagonal_scan %x decay(%decay) into(%into) init(%init) {reverse}
    : (tensor<2x6x8xf32>, tensor<8xf32>, tensor<2x6x8xf32>, tensor<2x8xf32>) -> (tensor<2x6x8xf32>, tensor<2x8xf32>)
  return %r#0, %r#1 : tensor<2x6x8xf32>, tensor<2x8xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %op = transform.structured.match ops{["linattn.diagonal_scan"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops = transform.structured.tile_using_for %op tile_sizes [0, 3]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

func.func @wkv4_packed(%k: tensor<1x6x8xf32>, %v: tensor<1x6x8xf32>, %decay: tensor<8xf32>, %bonus: tensor<8xf32>, %cu_seqlens: tensor<3xi32>, %into: tensor<1x6x8xf32>, %init: tensor<2x3x8xf32>) -> (tensor<1x6x8xf32>, tensor<2x3x8xf32>) {
  // expected-error @+3 {{cannot be tiled over tokens: its sequences start inside the tiles}}
  // expected-error @+2 {{to tile operation}}
  // expected-error @+1 {{failed to generate tiling loops}}
  %r:2 = linattn.wkv4 %k, %v decay(%decay) bonus(%bonus) cu_seqlens(%cu_seqlens) into(%into) init(%init)
    : (tensor<1x6x8xf32>, tensor<1x6x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<3xi32>, tensor<1x6x8xf32>, tensor<2x3x8xf32>) -> (tensor<1x6x8xf32>, tensor<2x3x8xf32>)
  return %r#0, %r#1 : tensor<1x6x8xf32>, tensor<2x3x8xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %op = transform.structured.match ops{["linattn.wkv4"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops = transform.structured.tile_using_for %op tile_sizes [0, 3]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

func.func @log_linear_tokens(%q: tensor<2x4x6x8xf32>, %k: tensor<2x2x6x8xf32>, %v: tensor<2x2x6x8xf32>, %decay: tensor<2x2x6xf32>, %levels: tensor<2x2x6x4xf32>, %into: tensor<2x4x6x8xf32>, %init: tensor<2x2x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>) {
  // expected-error @+3 {{cannot be tiled over tokens: its levels follow from the position in the sequence}}
  // expected-error @+2 {{to tile operation}}
  // expected-error @+1 {{failed to generate tiling loops}}
  %r:2 = linattn.log_linear %q, %k, %v decay(%decay) levels(%levels) into(%into) init(%init)
    : (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6xf32>, tensor<2x2x6x4xf32>, tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>)
  return %r#0, %r#1 : tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %op = transform.structured.match ops{["linattn.log_linear"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops = transform.structured.tile_using_for %op tile_sizes [0, 0, 3]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

func.func @log_linear_heads(%q: tensor<2x4x6x8xf32>, %k: tensor<2x2x6x8xf32>, %v: tensor<2x2x6x8xf32>, %decay: tensor<2x2x6xf32>, %levels: tensor<2x2x6x4xf32>, %into: tensor<2x4x6x8xf32>, %init: tensor<2x2x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>) {
  // expected-error @+3 {{cannot be tiled over heads: its operands' head counts differ or are dynamic}}
  // expected-error @+2 {{to tile operation}}
  // expected-error @+1 {{failed to generate tiling loops}}
  %r:2 = linattn.log_linear %q, %k, %v decay(%decay) levels(%levels) into(%into) init(%init)
    : (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6xf32>, tensor<2x2x6x4xf32>, tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>)
  return %r#0, %r#1 : tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %op = transform.structured.match ops{["linattn.log_linear"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops = transform.structured.tile_using_for %op tile_sizes [0, 1]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

func.func @sweep_features(%k: tensor<1x2x6x4xf32>, %v: tensor<1x2x6x8xf32>, %s: tensor<1x2x4x8xf32>) -> tensor<1x2x6x8xf32> {
  // expected-error @+3 {{cannot be tiled over features: a read along the values sums over them}}
  // expected-error @+2 {{to tile operation}}
  // expected-error @+1 {{failed to generate tiling loops}}
  %r:3 = linattn.sweep %k, %k, %v value_query(%v) into(%v, %k) init(%s)
    : (tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>, tensor<1x2x6x4xf32>, tensor<1x2x4x8xf32>) -> (tensor<1x2x6x8xf32>, tensor<1x2x6x4xf32>, tensor<1x2x4x8xf32>)
  return %r#0 : tensor<1x2x6x8xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %op = transform.structured.match ops{["linattn.sweep"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops = transform.structured.tile_using_for %op tile_sizes [0, 0, 0, 4]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

func.func @sweep_selective(%x: tensor<1x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<1x6x4xf32>, %s: tensor<1x8x4xf32>) -> tensor<1x6x8xf32> {
  // expected-error @+3 {{cannot be tiled: its outputs are sums over sequences, tokens and channels}}
  // expected-error @+2 {{to tile operation}}
  // expected-error @+1 {{failed to generate tiling loops}}
  %r:6 = linattn.sweep_selective %x, %x, %a, %b, %b start(%s) cotangent(%x) into(%x, %x, %a, %b, %b) init(%s)
    : (tensor<1x6x8xf32>, tensor<1x6x8xf32>, tensor<8x4xf32>, tensor<1x6x4xf32>, tensor<1x6x4xf32>, tensor<1x8x4xf32>, tensor<1x6x8xf32>, tensor<1x6x8xf32>, tensor<1x6x8xf32>, tensor<8x4xf32>, tensor<1x6x4xf32>, tensor<1x6x4xf32>, tensor<1x8x4xf32>) -> (tensor<1x6x8xf32>, tensor<1x6x8xf32>, tensor<8x4xf32>, tensor<1x6x4xf32>, tensor<1x6x4xf32>, tensor<1x8x4xf32>)
  return %r#0 : tensor<1x6x8xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %op = transform.structured.match ops{["linattn.sweep_selective"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops = transform.structured.tile_using_for %op tile_sizes [0, 2]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
