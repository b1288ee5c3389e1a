// RUN: linattn-opt %s --pass-pipeline='builtin.module(func.func(linattn-decompose))' --split-input-file --verify-diagnostics
// RUN: not linattn-opt %s --pass-pipeline='builtin.module(func.func(linattn-decompose))' --split-input-file > /dev/null 2>&1
// RUN: linattn-opt %s --pass-pipeline='builtin.module(func.func(linattn-decompose{ops=read}))' --split-input-file > /dev/null

// An op that the options name and that has no decomposition is an error.

func.func @heads(%q: tensor<1x4x8x4xf32>, %k: tensor<1x2x8x4xf32>, %v: tensor<1x?x8x4xf32>, %s: tensor<1x2x4x4xf32>) -> tensor<1x4x8x4xf32> {
  // expected-error @below {{'linattn.scan' op cannot be decomposed: its head counts differ, and not all are known}}
  %r:2 = linattn.scan %q, %k, %v into(%q) init(%s)
    : (tensor<1x4x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x?x8x4xf32>, tensor<1x4x8x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x4x8x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0 : tensor<1x4x8x4xf32>
}

// -----

func.func @decay(%q: tensor<1x2x8x4xf32>, %g: tensor<2xf32>, %s: tensor<1x2x4x4xf32>) -> tensor<1x2x8x4xf32> {
  // expected-error @below {{'linattn.scan' op cannot be decomposed}}
  %r:2 = linattn.scan %q, %q, %q decay(%g) into(%q) init(%s)
    : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<2xf32>, tensor<1x2x8x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x8x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0 : tensor<1x2x8x4xf32>
}

// -----

func.func @delta(%q: tensor<1x2x8x4xf32>, %b: tensor<1x2x8xf32>, %o: tensor<1x2x8x4xf32>, %s: tensor<1x2x4x4xf32>) -> tensor<1x2x8x4xf32> {
  // expected-error @below {{'linattn.scan' op cannot be decomposed: only the additive update without decay, gates, sequences, pool of states, running maximum or snapshots has this form}}
  %r:2 = linattn.scan %q, %q, %q beta(%b) update(delta) into(%o) init(%s)
    : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8xf32>, tensor<1x2x8x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x8x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0 : tensor<1x2x8x4xf32>
}

// -----

func.func @tokens_in_order(%x: tensor<2x6x8xf32>, %g: tensor<8xf32>, %s: tensor<2x8xf32>) -> (tensor<2x6x8xf32>, tensor<2x8xf32>) {
  // expected-error @below {{'linattn.diagonal_scan' op cannot be decomposed: linalg has no loop over tokens that follow one another}}
  %r:2 = linattn.diagonal_scan %x decay(%g) into(%x) init(%s)
    : (tensor<2x6x8xf32>, tensor<8xf32>, tensor<2x6x8xf32>, tensor<2x8xf32>) -> (tensor<2x6x8xf32>, tensor<2x8xf32>)
  return %r#0, %r#1 : tensor<2x6x8xf32>, tensor<2x8xf32>
}

// -----

func.func @pool(%q: tensor<2x2x8x4xf32>, %i: tensor<2xi64>, %s: tensor<5x2x4x4xf32>) -> tensor<2x2x8x4xf32> {
  // expected-error @below {{'linattn.scan' op cannot be decomposed: only the additive update without decay, gates, sequences, pool of states, running maximum or snapshots has this form}}
  %r:2 = linattn.scan %q, %q, %q state_indices(%i) into(%q) init(%s)
    : (tensor<2x2x8x4xf32>, tensor<2x2x8x4xf32>, tensor<2x2x8x4xf32>, tensor<2xi64>, tensor<2x2x8x4xf32>, tensor<5x2x4x4xf32>) -> (tensor<2x2x8x4xf32>, tensor<5x2x4x4xf32>)
  return %r#0 : tensor<2x2x8x4xf32>
}
