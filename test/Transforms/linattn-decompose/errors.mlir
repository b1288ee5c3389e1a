// RUN: linattn-opt %s --pass-pipeline='builtin.module(func.func(linattn-decompose))' --split-input-file --verify-diagnostics
// RUN: not linattn-opt %s --pass-pipeline='builtin.module(func.func(linattn-decompose))' --split-input-file > /dev/null 2>&1
// RUN: linattn-opt %s --pass-pipeline='builtin.module(func.func(linattn-decompose{ops=read}))' --split-input-file > /dev/null

// An op that the options name and that has no decomposition is an error.

func.func @heads(%q: tensor<1x4x8x4xf32>, %k: tensor<1x2x8x4xf32>, %s: tensor<1x2x4x4xf32>) -> tensor<1x4x8x4xf32> {
  // expected-error @below {{'linattn.scan' op cannot be decomposed: its head counts differ}}
  %r:2 = linattn.scan %q, %k, %k into(%q) init(%s)
    : (tensor<1x4x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x4x8x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x4x8x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0 : tensor<1x4x8x4xf32>
}

// -----

func.func @decay(%q: tensor<1x2x8x4xf32>, %g: tensor<2xf32>, %s: tensor<1x2x4x4xf32>) -> tensor<1x2x8x4xf32> {
  // expected-error @below {{'linattn.scan' op cannot be decomposed}}
  %r:2 = linattn.scan %q, %q, %q decay(%g) into(%q) init(%s)
    : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<2xf32>, tensor<1x2x8x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x8x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0 : tensor<1x2x8x4xf32>
}
