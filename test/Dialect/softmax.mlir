// RUN: linattn-opt %s --split-input-file --verify-diagnostics | linattn-opt --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @forward(
// CHECK:         %{{.*}}:2 = linattn.softmax %{{.*}}, %{{.*}}, %{{.*}} mask(%{{.*}}) slopes(%{{.*}}) sinks(%{{.*}}) into(%{{.*}}, %{{.*}}) {causal, pattern = #linattn.pattern<window = 5>, scale = 5.000000e-01 : f64, softcap = 2.000000e+00 : f64} : (tensor<2x4x?x8xbf16>,
func.func @forward(%q: tensor<2x4x?x8xbf16>, %k: tensor<2x2x?x8xbf16>, %v: tensor<2x2x?x5xbf16>, %m: tensor<2x?xi1>, %h: tensor<4xf32>, %s: tensor<4xf32>, %o: tensor<2x4x?x5xbf16>, %l: tensor<2x4x?xf32>) {
  %r:2 = linattn.softmax %q, %k, %v mask(%m) slopes(%h) sinks(%s) into(%o, %l) {causal, pattern = #linattn.pattern<window = 5>, softcap = 2.0, scale = 0.5}
    : (tensor<2x4x?x8xbf16>, tensor<2x2x?x8xbf16>, tensor<2x2x?x5xbf16>, tensor<2x?xi1>, tensor<4xf32>, tensor<4xf32>, tensor<2x4x?x5xbf16>, tensor<2x4x?xf32>) -> (tensor<2x4x?x5xbf16>, tensor<2x4x?xf32>)
  return
}

// CHECK-LABEL: func.func @gradient(
// CHECK:         %{{.*}}:3 = linattn.softmax_gradient %{{.*}}, %{{.*}}, %{{.*}} cotangent(%{{.*}}) rows(%{{.*}}, %{{.*}}) prefix(%{{.*}}) scale(%{{.*}}) into(%{{.*}}, %{{.*}}, %{{.*}}) {causal} : (tensor<2x4x?x8xf32>,
func.func @gradient(%q: tensor<2x4x?x8xf32>, %k: tensor<2x4x?x8xf32>, %v: tensor<2x4x?x5xf32>, %d: tensor<2x4x?x5xf32>, %l: tensor<2x4x?xf32>, %p: tensor<2xi64>, %scale: f64) {
  %r:3 = linattn.softmax_gradient %q, %k, %v cotangent(%d) rows(%l, %l) prefix(%p) scale(%scale) into(%q, %k, %v) {causal}
    : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?xf32>, tensor<2x4x?xf32>, tensor<2xi64>, f64, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>) -> (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>)
  return
}

// CHECK-LABEL: func.func @on_buffers(
// CHECK:         linattn.softmax_gradient {{.*}} mask(%{{.*}}) slopes(%{{.*}}) into(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {softcap = 3.000000e+00 : f64} : (memref<2x4x6x8xf64>,
func.func @on_buffers(%q: memref<2x4x6x8xf64>, %k: memref<2x4x7x8xf64>, %l: memref<2x4x6xf64>, %m: memref<2x7xi1>, %h: memref<4xf64>) {
  linattn.softmax_gradient %q, %k, %k cotangent(%q) rows(%l, %l) mask(%m) slopes(%h) into(%q, %k, %k, %l) {softcap = 3.0}
    : (memref<2x4x6x8xf64>, memref<2x4x7x8xf64>, memref<2x4x7x8xf64>, memref<2x4x6x8xf64>, memref<2x4x6xf64>, memref<2x4x6xf64>, memref<2x7xi1>, memref<4xf64>, memref<2x4x6x8xf64>, memref<2x4x7x8xf64>, memref<2x4x7x8xf64>, memref<2x4x6xf64>) -> ()
  return
}

// CHECK-LABEL: func.func @spans_and_dropout(
// CHECK:         %{{.*}}:2 = linattn.softmax %{{.*}}, %{{.*}}, %{{.*}} spans(%{{.*}}) seed(%{{.*}}) into(%{{.*}}, %{{.*}}) {causal, dropout = 2.500000e-01 : f64} : (tensor<2x4x?x8xf32>,
// CHECK:         linattn.softmax_gradient %{{.*}}, %{{.*}}, %{{.*}} cotangent(%{{.*}}) rows(%{{.*}}, %{{.*}}) spans(%{{.*}}) seed(%{{.*}}) into(%{{.*}}, %{{.*}}, %{{.*}}) {dropout = 2.500000e-01 : f64}
func.func @spans_and_dropout(%q: tensor<2x4x?x8xf32>, %k: tensor<2x4x?x8xf32>, %spans: tensor<2x?x3xi32>, %seed: i64, %l: tensor<2x4x?xf32>) {
  %r:2 = linattn.softmax %q, %k, %k spans(%spans) seed(%seed) into(%q, %l) {causal, dropout = 0.25}
    : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x?x3xi32>, i64, tensor<2x4x?x8xf32>, tensor<2x4x?xf32>) -> (tensor<2x4x?x8xf32>, tensor<2x4x?xf32>)
  %g:3 = linattn.softmax_gradient %q, %k, %k cotangent(%q) rows(%l, %l) spans(%spans) seed(%seed) into(%q, %k, %k) {dropout = 0.25}
    : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?xf32>, tensor<2x4x?xf32>, tensor<2x?x3xi32>, i64, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) -> (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>)
  return
}

// -----

func.func @F1_head_size(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x7x9xf32>, %v: tensor<2x4x7x5xf32>, %o: tensor<2x4x6x5xf32>, %l: tensor<2x4x6xf32>) {
  // expected-error @+1 {{expected query and key to have the same head size, but got 8 and 9}}
  %r:2 = linattn.softmax %q, %k, %v into(%o, %l) : (tensor<2x4x6x8xf32>, tensor<2x4x7x9xf32>, tensor<2x4x7x5xf32>, tensor<2x4x6x5xf32>, tensor<2x4x6xf32>) -> (tensor<2x4x6x5xf32>, tensor<2x4x6xf32>)
  return
}

// -----

func.func @F1_heads(%q: tensor<2x4x6x8xf32>, %k: tensor<2x3x7x8xf32>, %v: tensor<2x3x7x5xf32>, %o: tensor<2x4x6x5xf32>, %l: tensor<2x4x6xf32>) {
  // expected-error @+1 {{expected head counts of query and key to divide one another, but got 4 and 3}}
  %r:2 = linattn.softmax %q, %k, %v into(%o, %l) : (tensor<2x4x6x8xf32>, tensor<2x3x7x8xf32>, tensor<2x3x7x5xf32>, tensor<2x4x6x5xf32>, tensor<2x4x6xf32>) -> (tensor<2x4x6x5xf32>, tensor<2x4x6xf32>)
  return
}

// -----

func.func @F1_types(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x7x8xf64>, %v: tensor<2x4x7x5xf32>, %o: tensor<2x4x6x5xf32>, %l: tensor<2x4x6xf32>) {
  // expected-error @+1 {{expected query and key to have the same element type}}
  %r:2 = linattn.softmax %q, %k, %v into(%o, %l) : (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf64>, tensor<2x4x7x5xf32>, tensor<2x4x6x5xf32>, tensor<2x4x6xf32>) -> (tensor<2x4x6x5xf32>, tensor<2x4x6xf32>)
  return
}

// -----

func.func @F1_mask(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x5xf32>, %m: tensor<2x6xi1>, %o: tensor<2x4x6x5xf32>, %l: tensor<2x4x6xf32>) {
  // expected-error @+1 {{expected key and mask to have the same sequence length, but got 7 and 6}}
  %r:2 = linattn.softmax %q, %k, %v mask(%m) into(%o, %l) : (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>, tensor<2x6xi1>, tensor<2x4x6x5xf32>, tensor<2x4x6xf32>) -> (tensor<2x4x6x5xf32>, tensor<2x4x6xf32>)
  return
}

// -----

func.func @F1_prefix(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x5xf32>, %p: tensor<2xi64>, %o: tensor<2x4x6x5xf32>, %l: tensor<2x4x6xf32>) {
  // expected-error @+1 {{expected a prefix only with causal, but got one without}}
  %r:2 = linattn.softmax %q, %k, %v prefix(%p) into(%o, %l) : (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>, tensor<2xi64>, tensor<2x4x6x5xf32>, tensor<2x4x6xf32>) -> (tensor<2x4x6x5xf32>, tensor<2x4x6xf32>)
  return
}

// -----

func.func @F1_prefix_and_pattern(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x5xf32>, %p: tensor<2xi64>, %o: tensor<2x4x6x5xf32>, %l: tensor<2x4x6xf32>) {
  // expected-error @+1 {{expected either a prefix or a pattern, but got both}}
  %r:2 = linattn.softmax %q, %k, %v prefix(%p) into(%o, %l) {causal, pattern = #linattn.pattern<window = 5>} : (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>, tensor<2xi64>, tensor<2x4x6x5xf32>, tensor<2x4x6xf32>) -> (tensor<2x4x6x5xf32>, tensor<2x4x6xf32>)
  return
}

// -----

func.func @F1_softcap(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x5xf32>, %o: tensor<2x4x6x5xf32>, %l: tensor<2x4x6xf32>) {
  // expected-error @+1 {{expected softcap to be finite and positive, but got -1}}
  %r:2 = linattn.softmax %q, %k, %v into(%o, %l) {softcap = -1.0} : (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>, tensor<2x4x6x5xf32>, tensor<2x4x6xf32>) -> (tensor<2x4x6x5xf32>, tensor<2x4x6xf32>)
  return
}

// -----

func.func @F1_scale(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x5xf32>, %o: tensor<2x4x6x5xf32>, %l: tensor<2x4x6xf32>) {
  // expected-error @+1 {{expected scale to be}}
  %r:2 = linattn.softmax %q, %k, %v into(%o, %l) {scale = 1.0e-45} : (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>, tensor<2x4x6x5xf32>, tensor<2x4x6xf32>) -> (tensor<2x4x6x5xf32>, tensor<2x4x6xf32>)
  return
}

// -----

func.func @F1_sinks(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x5xf32>, %s: tensor<2xf32>, %o: tensor<2x4x6x5xf32>, %l: tensor<2x4x6xf32>) {
  // expected-error @+1 {{expected output and sinks to have the same head count, but got 4 and 2}}
  %r:2 = linattn.softmax %q, %k, %v sinks(%s) into(%o, %l) : (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>, tensor<2xf32>, tensor<2x4x6x5xf32>, tensor<2x4x6xf32>) -> (tensor<2x4x6x5xf32>, tensor<2x4x6xf32>)
  return
}

// -----

func.func @F2_length(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x5xf32>, %o: tensor<2x4x6x5xf32>, %l: tensor<2x4x5xf32>) {
  // expected-error @+1 {{expected log_sum and output to have the same sequence length, but got 5 and 6}}
  %r:2 = linattn.softmax %q, %k, %v into(%o, %l) : (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>, tensor<2x4x6x5xf32>, tensor<2x4x5xf32>) -> (tensor<2x4x6x5xf32>, tensor<2x4x5xf32>)
  return
}

// -----

func.func @F2_type(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x5xf32>, %o: tensor<2x4x6x5xf32>, %l: tensor<2x4x6xf64>) {
  // expected-error @+1 {{expected log_sum to have element type}}
  %r:2 = linattn.softmax %q, %k, %v into(%o, %l) : (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>, tensor<2x4x6x5xf32>, tensor<2x4x6xf64>) -> (tensor<2x4x6x5xf32>, tensor<2x4x6xf64>)
  return
}

// -----

func.func @G1_key(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x7x9xf32>, %v: tensor<2x4x7x5xf32>, %d: tensor<2x4x6x5xf32>, %l: tensor<2x4x6xf32>, %c: tensor<2x4x6xf32>, %dq: tensor<2x4x6x8xf32>, %dk: tensor<2x4x7x9xf32>, %dv: tensor<2x4x7x5xf32>) {
  // expected-error @+1 {{expected query and key to have the same head size, but got 8 and 9}}
  %r:3 = linattn.softmax_gradient %q, %k, %v cotangent(%d) rows(%l, %c) into(%dq, %dk, %dv) : (tensor<2x4x6x8xf32>, tensor<2x4x7x9xf32>, tensor<2x4x7x5xf32>, tensor<2x4x6x5xf32>, tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<2x4x6x8xf32>, tensor<2x4x7x9xf32>, tensor<2x4x7x5xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x7x9xf32>, tensor<2x4x7x5xf32>)
  return
}

// -----

func.func @G1_cotangent(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x5xf32>, %d: tensor<2x4x6x4xf32>, %l: tensor<2x4x6xf32>, %c: tensor<2x4x6xf32>, %dq: tensor<2x4x6x8xf32>, %dk: tensor<2x4x7x8xf32>, %dv: tensor<2x4x7x5xf32>) {
  // expected-error @+1 {{expected value and cotangent to have the same head size, but got 5 and 4}}
  %r:3 = linattn.softmax_gradient %q, %k, %v cotangent(%d) rows(%l, %c) into(%dq, %dk, %dv) : (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>, tensor<2x4x6x4xf32>, tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>)
  return
}

// -----

func.func @G2_heads(%q: tensor<2x4x6x8xf32>, %k: tensor<2x2x7x8xf32>, %v: tensor<2x4x7x5xf32>, %d: tensor<2x4x6x5xf32>, %l: tensor<2x4x6xf32>, %c: tensor<2x4x6xf32>, %dq: tensor<2x4x6x8xf32>, %dk: tensor<2x2x7x8xf32>, %dv: tensor<2x4x7x5xf32>) {
  // expected-error @+1 {{expected query and key to have the same head count, but got 4 and 2}}
  %r:3 = linattn.softmax_gradient %q, %k, %v cotangent(%d) rows(%l, %c) into(%dq, %dk, %dv) : (tensor<2x4x6x8xf32>, tensor<2x2x7x8xf32>, tensor<2x4x7x5xf32>, tensor<2x4x6x5xf32>, tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<2x4x6x8xf32>, tensor<2x2x7x8xf32>, tensor<2x4x7x5xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x2x7x8xf32>, tensor<2x4x7x5xf32>)
  return
}

// -----

func.func @G2_value(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x6x5xf32>, %d: tensor<2x4x6x5xf32>, %l: tensor<2x4x6xf32>, %c: tensor<2x4x6xf32>, %dq: tensor<2x4x6x8xf32>, %dk: tensor<2x4x7x8xf32>, %dv: tensor<2x4x6x5xf32>) {
  // expected-error @+1 {{expected key and value to have the same sequence length, but got 7 and 6}}
  %r:3 = linattn.softmax_gradient %q, %k, %v cotangent(%d) rows(%l, %c) into(%dq, %dk, %dv) : (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x6x5xf32>, tensor<2x4x6x5xf32>, tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x6x5xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x6x5xf32>)
  return
}

// -----

func.func @G2_cotangent(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x5xf32>, %d: tensor<2x4x5x5xf32>, %l: tensor<2x4x6xf32>, %c: tensor<2x4x6xf32>, %dq: tensor<2x4x6x8xf32>, %dk: tensor<2x4x7x8xf32>, %dv: tensor<2x4x7x5xf32>) {
  // expected-error @+1 {{expected query and cotangent to have the same sequence length, but got 6 and 5}}
  %r:3 = linattn.softmax_gradient %q, %k, %v cotangent(%d) rows(%l, %c) into(%dq, %dk, %dv) : (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>, tensor<2x4x5x5xf32>, tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>)
  return
}

// -----

func.func @G3_bf16(%q: tensor<2x4x6x8xbf16>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x5xf32>, %d: tensor<2x4x6x5xf32>, %l: tensor<2x4x6xf32>, %c: tensor<2x4x6xf32>, %dq: tensor<2x4x6x8xbf16>, %dk: tensor<2x4x7x8xf32>, %dv: tensor<2x4x7x5xf32>) {
  // expected-error @+1 {{expected query to have element type f32 or f64, but got}}
  %r:3 = linattn.softmax_gradient %q, %k, %v cotangent(%d) rows(%l, %c) into(%dq, %dk, %dv) : (tensor<2x4x6x8xbf16>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>, tensor<2x4x6x5xf32>, tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<2x4x6x8xbf16>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>) -> (tensor<2x4x6x8xbf16>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>)
  return
}

// -----

func.func @G3_value(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x5xf64>, %d: tensor<2x4x6x5xf32>, %l: tensor<2x4x6xf32>, %c: tensor<2x4x6xf32>, %dq: tensor<2x4x6x8xf32>, %dk: tensor<2x4x7x8xf32>, %dv: tensor<2x4x7x5xf64>) {
  // expected-error @+1 {{expected query and value to have the same element type}}
  %r:3 = linattn.softmax_gradient %q, %k, %v cotangent(%d) rows(%l, %c) into(%dq, %dk, %dv) : (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf64>, tensor<2x4x6x5xf32>, tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf64>) -> (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf64>)
  return
}

// -----

func.func @G4_log_sum(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x5xf32>, %d: tensor<2x4x6x5xf32>, %l: tensor<2x4x5xf32>, %c: tensor<2x4x6xf32>, %dq: tensor<2x4x6x8xf32>, %dk: tensor<2x4x7x8xf32>, %dv: tensor<2x4x7x5xf32>) {
  // expected-error @+1 {{expected log_sum and query to have the same sequence length, but got 5 and 6}}
  %r:3 = linattn.softmax_gradient %q, %k, %v cotangent(%d) rows(%l, %c) into(%dq, %dk, %dv) : (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>, tensor<2x4x6x5xf32>, tensor<2x4x5xf32>, tensor<2x4x6xf32>, tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>)
  return
}

// -----

func.func @G4_correction(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x5xf32>, %d: tensor<2x4x6x5xf32>, %l: tensor<2x4x6xf32>, %c: tensor<2x3x6xf32>, %dq: tensor<2x4x6x8xf32>, %dk: tensor<2x4x7x8xf32>, %dv: tensor<2x4x7x5xf32>) {
  // expected-error @+1 {{expected correction and query to have the same head count, but got 3 and 4}}
  %r:3 = linattn.softmax_gradient %q, %k, %v cotangent(%d) rows(%l, %c) into(%dq, %dk, %dv) : (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>, tensor<2x4x6x5xf32>, tensor<2x4x6xf32>, tensor<2x3x6xf32>, tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>)
  return
}

// -----

func.func @G5_query(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x5xf32>, %d: tensor<2x4x6x5xf32>, %l: tensor<2x4x6xf32>, %c: tensor<2x4x6xf32>, %dq: tensor<2x4x6x9xf32>, %dk: tensor<2x4x7x8xf32>, %dv: tensor<2x4x7x5xf32>) {
  // expected-error @+1 {{expected query_output and query to have the same head size, but got 9 and 8}}
  %r:3 = linattn.softmax_gradient %q, %k, %v cotangent(%d) rows(%l, %c) into(%dq, %dk, %dv) : (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>, tensor<2x4x6x5xf32>, tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<2x4x6x9xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>) -> (tensor<2x4x6x9xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>)
  return
}

// -----

func.func @G5_key(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x5xf32>, %d: tensor<2x4x6x5xf32>, %l: tensor<2x4x6xf32>, %c: tensor<2x4x6xf32>, %dq: tensor<2x4x6x8xf32>, %dk: tensor<2x4x6x8xf32>, %dv: tensor<2x4x7x5xf32>) {
  // expected-error @+1 {{expected key_output and key to have the same sequence length, but got 6 and 7}}
  %r:3 = linattn.softmax_gradient %q, %k, %v cotangent(%d) rows(%l, %c) into(%dq, %dk, %dv) : (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>, tensor<2x4x6x5xf32>, tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x7x5xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x7x5xf32>)
  return
}

// -----

func.func @G5_value(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x5xf32>, %d: tensor<2x4x6x5xf32>, %l: tensor<2x4x6xf32>, %c: tensor<2x4x6xf32>, %dq: tensor<2x4x6x8xf32>, %dk: tensor<2x4x7x8xf32>, %dv: tensor<2x4x7x8xf32>) {
  // expected-error @+1 {{expected value_output and value to have the same head size, but got 8 and 5}}
  %r:3 = linattn.softmax_gradient %q, %k, %v cotangent(%d) rows(%l, %c) into(%dq, %dk, %dv) : (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>, tensor<2x4x6x5xf32>, tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>)
  return
}

// -----

func.func @G6_without_slopes(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x5xf32>, %d: tensor<2x4x6x5xf32>, %l: tensor<2x4x6xf32>, %c: tensor<2x4x6xf32>, %dq: tensor<2x4x6x8xf32>, %dk: tensor<2x4x7x8xf32>, %dv: tensor<2x4x7x5xf32>, %ds: tensor<2x4x6xf32>) {
  // expected-error @+1 {{expected both slopes and slope_output or neither, but got only slope_output}}
  %r:4 = linattn.softmax_gradient %q, %k, %v cotangent(%d) rows(%l, %c) into(%dq, %dk, %dv, %ds) : (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>, tensor<2x4x6x5xf32>, tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>, tensor<2x4x6xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>, tensor<2x4x6xf32>)
  return
}

// -----

func.func @G6_without_output(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x5xf32>, %d: tensor<2x4x6x5xf32>, %l: tensor<2x4x6xf32>, %c: tensor<2x4x6xf32>, %h: tensor<4xf32>, %dq: tensor<2x4x6x8xf32>, %dk: tensor<2x4x7x8xf32>, %dv: tensor<2x4x7x5xf32>) {
  // expected-error @+1 {{expected both slopes and slope_output or neither, but got only slopes}}
  %r:3 = linattn.softmax_gradient %q, %k, %v cotangent(%d) rows(%l, %c) slopes(%h) into(%dq, %dk, %dv) : (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>, tensor<2x4x6x5xf32>, tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<4xf32>, tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>)
  return
}

// -----

func.func @G7_slopes(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x5xf32>, %d: tensor<2x4x6x5xf32>, %l: tensor<2x4x6xf32>, %c: tensor<2x4x6xf32>, %h: tensor<3xf32>, %dq: tensor<2x4x6x8xf32>, %dk: tensor<2x4x7x8xf32>, %dv: tensor<2x4x7x5xf32>, %ds: tensor<2x4x6xf32>) {
  // expected-error @+1 {{expected query and slopes to have the same head count, but got 4 and 3}}
  %r:4 = linattn.softmax_gradient %q, %k, %v cotangent(%d) rows(%l, %c) slopes(%h) into(%dq, %dk, %dv, %ds) : (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>, tensor<2x4x6x5xf32>, tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<3xf32>, tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>, tensor<2x4x6xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>, tensor<2x4x6xf32>)
  return
}

// -----

func.func @G7_mask(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x5xf32>, %d: tensor<2x4x6x5xf32>, %l: tensor<2x4x6xf32>, %c: tensor<2x4x6xf32>, %m: tensor<2x6xi1>, %dq: tensor<2x4x6x8xf32>, %dk: tensor<2x4x7x8xf32>, %dv: tensor<2x4x7x5xf32>) {
  // expected-error @+1 {{expected key and mask to have the same sequence length, but got 7 and 6}}
  %r:3 = linattn.softmax_gradient %q, %k, %v cotangent(%d) rows(%l, %c) mask(%m) into(%dq, %dk, %dv) : (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>, tensor<2x4x6x5xf32>, tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<2x6xi1>, tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>)
  return
}

// -----

func.func @G7_prefix(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x5xf32>, %d: tensor<2x4x6x5xf32>, %l: tensor<2x4x6xf32>, %c: tensor<2x4x6xf32>, %p: tensor<2xi64>, %dq: tensor<2x4x6x8xf32>, %dk: tensor<2x4x7x8xf32>, %dv: tensor<2x4x7x5xf32>) {
  // expected-error @+1 {{expected a prefix only with causal, but got one without}}
  %r:3 = linattn.softmax_gradient %q, %k, %v cotangent(%d) rows(%l, %c) prefix(%p) into(%dq, %dk, %dv) : (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>, tensor<2x4x6x5xf32>, tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<2xi64>, tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>)
  return
}

// -----

func.func @G7_softcap(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x5xf32>, %d: tensor<2x4x6x5xf32>, %l: tensor<2x4x6xf32>, %c: tensor<2x4x6xf32>, %dq: tensor<2x4x6x8xf32>, %dk: tensor<2x4x7x8xf32>, %dv: tensor<2x4x7x5xf32>) {
  // expected-error @+1 {{expected softcap to be finite and positive, but got 0}}
  %r:3 = linattn.softmax_gradient %q, %k, %v cotangent(%d) rows(%l, %c) into(%dq, %dk, %dv) {softcap = 0.0} : (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>, tensor<2x4x6x5xf32>, tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>)
  return
}

// -----

func.func @G7_scale(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x5xf32>, %d: tensor<2x4x6x5xf32>, %l: tensor<2x4x6xf32>, %c: tensor<2x4x6xf32>, %dq: tensor<2x4x6x8xf32>, %dk: tensor<2x4x7x8xf32>, %dv: tensor<2x4x7x5xf32>) {
  // expected-error @+1 {{expected scale to be}}
  %r:3 = linattn.softmax_gradient %q, %k, %v cotangent(%d) rows(%l, %c) into(%dq, %dk, %dv) {scale = 1.0e-45} : (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>, tensor<2x4x6x5xf32>, tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>)
  return
}

// -----

func.func @F3_batch(%x: tensor<2x4x6x8xf32>, %l: tensor<2x4x6xf32>, %s: tensor<3x6x3xi64>) {
  // expected-error @+1 {{expected query and spans to have the same batch size, but got 2 and 3}}
  %r:2 = linattn.softmax %x, %x, %x spans(%s) into(%x, %l) : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<3x6x3xi64>, tensor<2x4x6x8xf32>, tensor<2x4x6xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x6xf32>)
  return
}

// -----

func.func @F3_length(%x: tensor<2x4x6x8xf32>, %l: tensor<2x4x6xf32>, %s: tensor<2x7x3xi64>) {
  // expected-error @+1 {{expected query and spans to have the same sequence length, but got 6 and 7}}
  %r:2 = linattn.softmax %x, %x, %x spans(%s) into(%x, %l) : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x7x3xi64>, tensor<2x4x6x8xf32>, tensor<2x4x6xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x6xf32>)
  return
}

// -----

func.func @F3_numbers(%x: tensor<2x4x6x8xf32>, %l: tensor<2x4x6xf32>, %s: tensor<2x6x2xi64>) {
  // expected-error @+1 {{expected spans to have 3 numbers for each query, but got 2}}
  %r:2 = linattn.softmax %x, %x, %x spans(%s) into(%x, %l) : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x6x2xi64>, tensor<2x4x6x8xf32>, tensor<2x4x6xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x6xf32>)
  return
}

// -----

func.func @F3_open_numbers(%x: tensor<2x4x6x8xf32>, %l: tensor<2x4x6xf32>, %s: tensor<2x6x?xi64>) {
  // expected-error @+1 {{expected spans to have 3 numbers for each query, but got an unknown number}}
  %r:2 = linattn.softmax %x, %x, %x spans(%s) into(%x, %l) : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x6x?xi64>, tensor<2x4x6x8xf32>, tensor<2x4x6xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x6xf32>)
  return
}

// -----

func.func @F3_prefix(%x: tensor<2x4x6x8xf32>, %l: tensor<2x4x6xf32>, %p: tensor<2xi64>, %s: tensor<2x6x3xi64>) {
  // expected-error @+1 {{expected either spans or a prefix, but got both}}
  %r:2 = linattn.softmax %x, %x, %x prefix(%p) spans(%s) into(%x, %l) {causal} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2xi64>, tensor<2x6x3xi64>, tensor<2x4x6x8xf32>, tensor<2x4x6xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x6xf32>)
  return
}

// -----

func.func @F4_seed(%x: tensor<2x4x6x8xf32>, %l: tensor<2x4x6xf32>, %s: i64) {
  // expected-error @+1 {{expected both seed and dropout or neither, but got only seed}}
  %r:2 = linattn.softmax %x, %x, %x seed(%s) into(%x, %l) : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, i64, tensor<2x4x6x8xf32>, tensor<2x4x6xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x6xf32>)
  return
}

// -----

func.func @F4_dropout(%x: tensor<2x4x6x8xf32>, %l: tensor<2x4x6xf32>) {
  // expected-error @+1 {{expected both seed and dropout or neither, but got only dropout}}
  %r:2 = linattn.softmax %x, %x, %x  into(%x, %l) {dropout = 0.5} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x6xf32>)
  return
}

// -----

func.func @F4_share(%x: tensor<2x4x6x8xf32>, %l: tensor<2x4x6xf32>, %s: i64) {
  // expected-error @+1 {{expected dropout to be in [0, 1), but got 1}}
  %r:2 = linattn.softmax %x, %x, %x seed(%s) into(%x, %l) {dropout = 1.0} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, i64, tensor<2x4x6x8xf32>, tensor<2x4x6xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x6xf32>)
  return
}

// -----

func.func @G8_length(%x: tensor<2x4x6x8xf32>, %l: tensor<2x4x6xf32>, %s: tensor<2x7x3xi64>) {
  // expected-error @+1 {{expected query and spans to have the same sequence length, but got 6 and 7}}
  %r:3 = linattn.softmax_gradient %x, %x, %x cotangent(%x) rows(%l, %l) spans(%s) into(%x, %x, %x) : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<2x7x3xi64>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>)
  return
}

// -----

func.func @G8_seed(%x: tensor<2x4x6x8xf32>, %l: tensor<2x4x6xf32>, %s: i64) {
  // expected-error @+1 {{expected both seed and dropout or neither, but got only seed}}
  %r:3 = linattn.softmax_gradient %x, %x, %x cotangent(%x) rows(%l, %l) seed(%s) into(%x, %x, %x) : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6xf32>, tensor<2x4x6xf32>, i64, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>)
  return
}
