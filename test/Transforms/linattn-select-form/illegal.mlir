// RUN: linattn-opt %s --linattn-select-form --split-input-file --verify-diagnostics

// A form that is written down is not replaced by another: it is an error that
// says why. lib/Transforms/Forms.cpp states which forms are legal.

func.func @delta(%q: tensor<1x2x?x4xf32>, %beta: tensor<1x2x?xf32>, %o: tensor<1x2x?x4xf32>, %s: tensor<1x2x4x4xf32>) -> tensor<1x2x?x4xf32> {
  // expected-error @+1 {{cannot run in form state_tile: a rank-1 transition couples the rows of a state column}}
  %r:2 = linattn.scan %q, %q, %q beta(%beta) update(delta) into(%o) init(%s) {config = #linattn.config<form = state_tile>}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0 : tensor<1x2x?x4xf32>
}

// -----

func.func @oja(%q: tensor<1x2x?x4xf32>, %beta: tensor<1x2x?xf32>, %o: tensor<1x2x?x4xf32>, %s: tensor<1x2x4x4xf32>) -> tensor<1x2x?x4xf32> {
  // expected-error @+1 {{cannot run in form state_tile: a rank-1 transition couples the columns of a state row}}
  %r:2 = linattn.scan %q, %q, %q beta(%beta) update(oja) into(%o) init(%s) {config = #linattn.config<form = state_tile>}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0 : tensor<1x2x?x4xf32>
}

// -----

func.func @oja_segments(%q: tensor<1x2x?x4xf32>, %beta: tensor<1x2x?xf32>, %o: tensor<1x2x?x4xf32>, %s: tensor<1x2x4x4xf32>) -> tensor<1x2x?x4xf32> {
  // expected-error @+1 {{cannot run in form segments: its transition acts on the values' side of the state}}
  %r:2 = linattn.scan %q, %q, %q beta(%beta) update(oja) into(%o) init(%s) {config = #linattn.config<form = segments>}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0 : tensor<1x2x?x4xf32>
}

// -----

func.func @quadratic(%q: tensor<1x2x?x4xf32>, %o: tensor<1x2x?x4xf32>, %s: tensor<1x2x4x4xf32>) -> tensor<1x2x?x4xf32> {
  // expected-error @+1 {{cannot run in form quadratic: a scan starts from a state, which the quadratic form has none of}}
  %r:2 = linattn.scan %q, %q, %q into(%o) init(%s) {config = #linattn.config<form = quadratic>}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0 : tensor<1x2x?x4xf32>
}
