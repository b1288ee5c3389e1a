// RUN: linattn-opt %s --linattn-split-segments --split-input-file --verify-diagnostics
// RUN: linattn-opt %s --linattn-select-form --split-input-file --verify-diagnostics

func.func @packed(%q: tensor<1x2x64x4xf32>, %c: tensor<3xi32>, %s: tensor<2x2x4x4xf32>) -> tensor<1x2x64x4xf32> {
  // expected-error @+1 {{'linattn.scan' op cannot run in form segments: its sequences are packed already and run in parallel}}
  %r:2 = linattn.scan %q, %q, %q cu_seqlens(%c) into(%q) init(%s) {config = #linattn.config<form = segments, segment = 16>}
    : (tensor<1x2x64x4xf32>, tensor<1x2x64x4xf32>, tensor<1x2x64x4xf32>, tensor<3xi32>, tensor<1x2x64x4xf32>, tensor<2x2x4x4xf32>) -> (tensor<1x2x64x4xf32>, tensor<2x2x4x4xf32>)
  return %r#0 : tensor<1x2x64x4xf32>
}

// -----

func.func @beta(%q: tensor<1x2x64x4xf32>, %s: tensor<1x2x4x4xf32>) -> tensor<1x2x64x4xf32> {
  // expected-error @+1 {{'linattn.scan' op cannot run in form segments: a beta per value column gives every column a transition of its own}}
  %r:2 = linattn.scan %q, %q, %q beta(%q) update(delta) into(%q) init(%s) {config = #linattn.config<form = segments, segment = 16>}
    : (tensor<1x2x64x4xf32>, tensor<1x2x64x4xf32>, tensor<1x2x64x4xf32>, tensor<1x2x64x4xf32>, tensor<1x2x64x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x64x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0 : tensor<1x2x64x4xf32>
}

// -----

func.func @pool(%q: tensor<2x2x64x4xf32>, %i: tensor<2xi64>, %s: tensor<5x2x4x4xf32>) -> tensor<2x2x64x4xf32> {
  // expected-error @+1 {{'linattn.scan' op cannot run in form segments: its states are rows of a pool, which segments would have to gather}}
  %r:2 = linattn.scan %q, %q, %q state_indices(%i) into(%q) init(%s) {config = #linattn.config<form = segments, segment = 16>}
    : (tensor<2x2x64x4xf32>, tensor<2x2x64x4xf32>, tensor<2x2x64x4xf32>, tensor<2xi64>, tensor<2x2x64x4xf32>, tensor<5x2x4x4xf32>) -> (tensor<2x2x64x4xf32>, tensor<5x2x4x4xf32>)
  return %r#0 : tensor<2x2x64x4xf32>
}
