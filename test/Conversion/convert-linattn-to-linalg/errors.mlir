// RUN: linattn-opt %s --convert-linattn-to-linalg --split-input-file --verify-diagnostics
// RUN: linattn-opt %s --linattn-to-quadratic --linattn-decompose --split-input-file --verify-diagnostics

func.func @grouped(%q: tensor<1x4x7x4xf32>, %k: tensor<1x2x7x4xf32>) -> tensor<1x4x7x4xf32> {
  // expected-error @+1 {{'linattn.quadratic' op cannot be decomposed: its head counts differ}}
  %o = linattn.attention %q, %k, %k : (tensor<1x4x7x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x4xf32>) -> tensor<1x4x7x4xf32>
  return %o : tensor<1x4x7x4xf32>
}

// -----

func.func @running_max(%q: tensor<1x2x7x4xf32>) -> tensor<1x2x7x4xf32> {
  // expected-error @+1 {{'linattn.quadratic' op cannot be decomposed: the exp map under a normalizer needs a running maximum}}
  %o = linattn.attention %q, %q, %q {causal, feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<eps = 0.0>}
    : (tensor<1x2x7x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x4xf32>) -> tensor<1x2x7x4xf32>
  return %o : tensor<1x2x7x4xf32>
}

// -----

func.func @delta(%q: tensor<1x2x8x4xf32>, %b: tensor<1x2x8xf32>, %o: tensor<1x2x8x4xf32>, %s: tensor<1x2x4x4xf32>) -> tensor<1x2x8x4xf32> {
  // expected-error @+1 {{'linattn.scan' op cannot be decomposed: only the additive update without decay, gates, sequences, pool of states, running maximum or snapshots has this form}}
  %r:2 = linattn.scan %q, %q, %q beta(%b) update(delta) into(%o) init(%s)
    : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8xf32>, tensor<1x2x8x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x8x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0 : tensor<1x2x8x4xf32>
}

// -----

func.func @tokens_in_order(%x: tensor<2x6x8xf32>, %g: tensor<8xf32>, %s: tensor<2x8xf32>) -> (tensor<2x6x8xf32>, tensor<2x8xf32>) {
  // expected-error @+1 {{'linattn.diagonal_scan' op cannot be decomposed: linalg has no loop over tokens that follow one another}}
  %r:2 = linattn.diagonal_scan %x decay(%g) into(%x) init(%s)
    : (tensor<2x6x8xf32>, tensor<8xf32>, tensor<2x6x8xf32>, tensor<2x8xf32>) -> (tensor<2x6x8xf32>, tensor<2x8xf32>)
  return %r#0, %r#1 : tensor<2x6x8xf32>, tensor<2x8xf32>
}

// -----

func.func @pool(%q: tensor<2x2x8x4xf32>, %i: tensor<2xi64>, %s: tensor<5x2x4x4xf32>) -> tensor<2x2x8x4xf32> {
  // expected-error @+1 {{'linattn.scan' op cannot be decomposed: only the additive update without decay, gates, sequences, pool of states, running maximum or snapshots has this form}}
  %r:2 = linattn.scan %q, %q, %q state_indices(%i) into(%q) init(%s)
    : (tensor<2x2x8x4xf32>, tensor<2x2x8x4xf32>, tensor<2x2x8x4xf32>, tensor<2xi64>, tensor<2x2x8x4xf32>, tensor<5x2x4x4xf32>) -> (tensor<2x2x8x4xf32>, tensor<5x2x4x4xf32>)
  return %r#0 : tensor<2x2x8x4xf32>
}
