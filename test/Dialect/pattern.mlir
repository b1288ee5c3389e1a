// RUN: linattn-opt %s --split-input-file --verify-diagnostics | linattn-opt --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @pattern(
// CHECK:         linattn.attention %{{.*}}, %{{.*}}, %{{.*}} slopes(%{{.*}}) sinks(%{{.*}}) weights(softmax) {causal, pattern = #linattn.pattern<window = 8, dilation = 2, globals = 4>, softcap = 3.000000e+01 : f64}
// CHECK:         linattn.quadratic %{{.*}}, %{{.*}}, %{{.*}} into(%{{.*}}) {pattern = #linattn.pattern<window = 8>}
func.func @pattern(%q: tensor<2x3x?x4xf32>, %h: tensor<3xf32>, %o: tensor<2x3x?x4xf32>) -> (tensor<2x3x?x4xf32>, tensor<2x3x?x4xf32>) {
  %a = linattn.attention %q, %q, %q slopes(%h) sinks(%h) weights(softmax) {causal, softcap = 30.0, pattern = #linattn.pattern<window = 8, dilation = 2, globals = 4>} : (tensor<2x3x?x4xf32>, tensor<2x3x?x4xf32>, tensor<2x3x?x4xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x?x4xf32>
  %b = linattn.quadratic %q, %q, %q into(%o) {pattern = #linattn.pattern<window = 8>} : (tensor<2x3x?x4xf32>, tensor<2x3x?x4xf32>, tensor<2x3x?x4xf32>, tensor<2x3x?x4xf32>) -> tensor<2x3x?x4xf32>
  return %a, %b : tensor<2x3x?x4xf32>, tensor<2x3x?x4xf32>
}

// -----

// CHECK-LABEL: func.func @fewer_queries(
func.func @fewer_queries(%q: tensor<2x3x2x4xf32>, %k: tensor<2x3x9x4xf32>) -> tensor<2x3x2x4xf32> {
  %a = linattn.attention %q, %k, %k weights(softmax) {causal} : (tensor<2x3x2x4xf32>, tensor<2x3x9x4xf32>, tensor<2x3x9x4xf32>) -> tensor<2x3x2x4xf32>
  return %a : tensor<2x3x2x4xf32>
}

// -----

func.func @A5(%q: tensor<2x3x2x4xf32>, %k: tensor<2x3x9x4xf32>) -> tensor<2x3x2x4xf32> {
  // expected-error @+1 {{expected query and key to have the same sequence length, but got 2 and 9}}
  %a = linattn.attention %q, %k, %k {causal} : (tensor<2x3x2x4xf32>, tensor<2x3x9x4xf32>, tensor<2x3x9x4xf32>) -> tensor<2x3x2x4xf32>
  return %a : tensor<2x3x2x4xf32>
}

// -----

func.func @A15_softcap(%q: tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32> {
  // expected-error @+1 {{expected softcap only with softmax weights, but got linear ones}}
  %r = linattn.attention %q, %q, %q {softcap = 1.0} : (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32>
  return %r : tensor<2x3x8x4xf32>
}

// -----

func.func @A15_slopes(%q: tensor<2x3x8x4xf32>, %h: tensor<3xf32>) -> tensor<2x3x8x4xf32> {
  // expected-error @+1 {{expected slopes only with softmax weights, but got linear ones}}
  %r = linattn.attention %q, %q, %q slopes(%h) : (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>, tensor<3xf32>) -> tensor<2x3x8x4xf32>
  return %r : tensor<2x3x8x4xf32>
}

// -----

func.func @A15_sinks(%q: tensor<2x3x8x4xf32>, %h: tensor<3xf32>, %o: tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32> {
  // expected-error @+1 {{expected sinks only with softmax weights, but got linear ones}}
  %r = linattn.quadratic %q, %q, %q sinks(%h) into(%o) : (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>, tensor<3xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32>
  return %r : tensor<2x3x8x4xf32>
}

// -----

func.func @A15_positive(%q: tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32> {
  // expected-error @+1 {{expected softcap to be finite and positive, but got -1}}
  %r = linattn.attention %q, %q, %q weights(softmax) {softcap = -1.0} : (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32>
  return %r : tensor<2x3x8x4xf32>
}

// -----

func.func @A16(%q: tensor<2x3x8x4xf32>, %h: tensor<2xf32>) -> tensor<2x3x8x4xf32> {
  // expected-error @+1 {{expected output and sinks to have the same head count, but got 3 and 2}}
  %r = linattn.attention %q, %q, %q sinks(%h) weights(softmax) : (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>, tensor<2xf32>) -> tensor<2x3x8x4xf32>
  return %r : tensor<2x3x8x4xf32>
}

// -----

func.func @A17(%q: tensor<2x3x8x4xf32>, %p: tensor<2xi64>) -> tensor<2x3x8x4xf32> {
  // expected-error @+1 {{expected either a prefix or a pattern, but got both}}
  %r = linattn.attention %q, %q, %q prefix(%p) {causal, pattern = #linattn.pattern<window = 8>} : (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>, tensor<2xi64>) -> tensor<2x3x8x4xf32>
  return %r : tensor<2x3x8x4xf32>
}

// -----

// expected-error @+1 {{expected window in [0, 2^31), but got -1}}
func.func private @window() attributes {a = #linattn.pattern<window = -1>}

// -----

// expected-error @+1 {{expected dilation in [1, 2^31), but got 0}}
func.func private @dilation() attributes {a = #linattn.pattern<window = 2, dilation = 0>}

// -----

// expected-error @+1 {{expected globals in [0, 2^31), but got 2147483648}}
func.func private @globals() attributes {a = #linattn.pattern<window = 2, globals = 2147483648>}
