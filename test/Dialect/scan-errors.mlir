// RUN: linattn-opt %s --split-input-file --verify-diagnostics

// More constraints of linattn.scan and of its normalizer: see errors.mlir.

func.func @scan_s6_normalizer(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf64>, %z: tensor<2x4x8xf32>) {
  // expected-error @+1 {{expected normalizer to have element type 'f64', but got 'f32'}}
  %r:3 = linattn.scan %q, %k, %v into(%o) init(%s) normalizer(%z) {normalize = #linattn.normalize<>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf64>, tensor<2x4x8xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf64>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @scan_s6_running_max(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf64>, %z: tensor<2x4x8xf64>, %m: tensor<2x4xf32>) {
  // expected-error @+1 {{expected running_max to have element type 'f64', but got 'f32'}}
  %r:4 = linattn.scan %q, %k, %v into(%o) init(%s) normalizer(%z) running_max(%m) {normalize = #linattn.normalize<>, feature_map = #linattn.feature_map<exp>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf64>, tensor<2x4x8xf64>, tensor<2x4xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf64>, tensor<2x4x8xf64>, tensor<2x4xf32>)
  return
}

// -----

func.func @scan_s9_input_gate(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %input_gate: tensor<2x4x6xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x8xf32>) {
  // expected-error @+1 {{expected running_max exactly with feature map exp under normalize or with input_gate, but got none}}
  %r:3 = linattn.scan %q, %k, %v input_gate(%input_gate) into(%o) init(%s) normalizer(%z) {normalize = #linattn.normalize<abs_floor = 1.0>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @scan_s10_wide_state(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf64>) {
  // expected-error @+1 {{expected phi to take one argument of type 'f64', but got ('f32')}}
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s) {feature_map = #linattn.feature_map<region>} phi {
  ^bb0(%x: f32):
    linattn.yield %x : f32
  }
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf64>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf64>)
  return
}

// -----

func.func @scan_s11_input_gate(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %input_gate: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x8xf32>, %m: tensor<2x4xf32>) {
  // expected-error @+1 {{expected input_gate to be [B, H, T], but got}}
  %r:4 = linattn.scan %q, %k, %v input_gate(%input_gate) into(%o) init(%s) normalizer(%z) running_max(%m) {normalize = #linattn.normalize<>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>)
  return
}

// -----

func.func @scan_s11_input_gate_heads(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %input_gate: tensor<2x2x6xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x8xf32>, %m: tensor<2x4xf32>) {
  // expected-error @+1 {{expected input_gate and state to have the same head count, but got 2 and 4}}
  %r:4 = linattn.scan %q, %k, %v input_gate(%input_gate) into(%o) init(%s) normalizer(%z) running_max(%m) {normalize = #linattn.normalize<>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x2x6xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>)
  return
}

// -----

func.func @scan_s11_input_gate_tokens(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %input_gate: tensor<2x4x5xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x8xf32>, %m: tensor<2x4xf32>) {
  // expected-error @+1 {{expected input_gate and key to have the same sequence length, but got 5 and 6}}
  %r:4 = linattn.scan %q, %k, %v input_gate(%input_gate) into(%o) init(%s) normalizer(%z) running_max(%m) {normalize = #linattn.normalize<>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x5xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>)
  return
}

// -----

func.func @scan_s12_oja(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected update(oja) with beta, but got none}}
  %r:2 = linattn.scan %q, %k, %v update(oja) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s12_oja_erase(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %beta: tensor<2x4x6xf32>, %erase: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected erase only with update(delta), but got update(oja)}}
  %r:2 = linattn.scan %q, %k, %v beta(%beta) erase(%erase) update(oja) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s13_oja(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %beta: tensor<2x4x6xf32>, %a: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected a only with update(dplr), but got update(oja)}}
  %r:2 = linattn.scan %q, %k, %v beta(%beta) a(%a) update(oja) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s16_oja(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %beta: tensor<2x4x6xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x8xf32>) {
  // expected-error @+1 {{expected normalize only with update(add) and readout(inclusive), but got update(oja) and readout(inclusive)}}
  %r:3 = linattn.scan %q, %k, %v beta(%beta) update(oja) into(%o) init(%s) normalizer(%z) {normalize = #linattn.normalize<>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @scan_s18_oja(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %beta: tensor<2x4x6xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected transition(before) only with update(dplr), but got update(oja)}}
  %r:2 = linattn.scan %q, %k, %v beta(%beta) update(oja) transition(before) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s20(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %input_gate: tensor<2x4x6xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>, %m: tensor<2x4xf32>) {
  // expected-error @+1 {{expected input_gate only with normalize, but got none: the state is stored times e^-running_max, which only a quotient cancels}}
  %r:3 = linattn.scan %q, %k, %v input_gate(%input_gate) into(%o) init(%s) running_max(%m)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4xf32>)
  return
}

// -----

func.func @scan_s21(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %decay: tensor<2x4x6x8xf32>, %input_gate: tensor<2x4x6xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x8xf32>, %m: tensor<2x4xf32>) {
  // expected-error @+1 {{expected decay to be [H] or [B, H, T] with input_gate, whose running maximum follows one decay per head, but got 'tensor<2x4x6x8xf32>'}}
  %r:4 = linattn.scan %q, %k, %v decay(%decay) input_gate(%input_gate) into(%o) init(%s) normalizer(%z) running_max(%m) {normalize = #linattn.normalize<abs_floor = 1.0>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>)
  return
}

// -----

func.func @scan_s22(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %input_gate: tensor<2x4x6xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x8xf32>, %m: tensor<2x4xf32>) {
  // expected-error @+1 {{expected input_gate without the feature map exp, but got both: one running maximum cannot follow both}}
  %r:4 = linattn.scan %q, %k, %v input_gate(%input_gate) into(%o) init(%s) normalizer(%z) running_max(%m) {normalize = #linattn.normalize<>, feature_map = #linattn.feature_map<exp>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>)
  return
}

// -----

func.func @scan_s23(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x8xf32>, %m: tensor<2x4xf32>) {
  // expected-error @+1 {{expected abs_floor without the feature map exp, whose true denominator is never formed, but got both}}
  %r:4 = linattn.scan %q, %k, %v into(%o) init(%s) normalizer(%z) running_max(%m) {normalize = #linattn.normalize<abs_floor = 1.0>, feature_map = #linattn.feature_map<exp>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>)
  return
}

// -----

func.func @scan_s24(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %value_decay: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x8xf32>) {
  // expected-error @+1 {{expected normalize without value_decay, but got both: one denominator cannot follow factors that differ between value columns}}
  %r:3 = linattn.scan %q, %k, %v value_decay(%value_decay) into(%o) init(%s) normalizer(%z) {normalize = #linattn.normalize<>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @scan_s25(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %beta: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected beta to be [B, H, T] with update(oja), but got 'tensor<2x4x6x16xf32>'}}
  %r:2 = linattn.scan %q, %k, %v beta(%beta) update(oja) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s26_splat(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  %decay = arith.constant dense<0.5> : tensor<4xf32>
  // expected-error @+1 {{expected decay to hold natural logarithms of at most 0, but got 0.5}}
  %r:2 = linattn.scan %q, %k, %v decay(%decay) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<4xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s26_element(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  %decay = arith.constant dense<[-1.0, 0.0, 2.0, -0.0]> : tensor<4xf32>
  // expected-error @+1 {{expected decay to hold natural logarithms of at most 0, but got 2 at element 2}}
  %r:2 = linattn.scan %q, %k, %v decay(%decay) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<4xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s26_nan(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  %decay = arith.constant dense<0x7FC00000> : tensor<4xf32>
  // expected-error @+1 {{expected decay to hold natural logarithms of at most 0, but got NaN}}
  %r:2 = linattn.scan %q, %k, %v decay(%decay) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<4xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s26_value_decay(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  %value_decay = arith.constant dense<0.25> : tensor<2x4x6x16xf32>
  // expected-error @+1 {{expected value_decay to hold natural logarithms of at most 0, but got 0.25}}
  %r:2 = linattn.scan %q, %k, %v value_decay(%value_decay) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

// Legal decays: zero, minus infinity, and no element at all.
func.func @scan_s26_legal(%q: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>, %q0: tensor<2x4x0x8xf32>, %v0: tensor<2x4x0x16xf32>) {
  %decay = arith.constant dense<[-1.0, 0.0, 0xFF800000, -0.0]> : tensor<4xf32>
  %r:2 = linattn.scan %q, %q, %v decay(%decay) into(%v) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<4xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  %none = arith.constant dense<1.0> : tensor<2x4x0xf32>
  %r0:2 = linattn.scan %q0, %q0, %v0 decay(%none) into(%v0) init(%s)
    : (tensor<2x4x0x8xf32>, tensor<2x4x0x8xf32>, tensor<2x4x0x16xf32>, tensor<2x4x0xf32>, tensor<2x4x0x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x0x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @attention_a12(%q: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected abs_floor without the feature map exp, whose true denominator is never formed, but got both}}
  %r = linattn.attention %q, %q, %q {feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<abs_floor = 1.0>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @read_r8(%q: tensor<2x4x6x8xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x8xf32>, %m: tensor<2x4xf32>, %o: tensor<2x4x6x16xf32>) {
  // expected-error @+1 {{expected running_max only with abs_floor, but got another denominator}}
  %r = linattn.read %q, %s normalizer(%z) running_max(%m) into(%o) {normalize = #linattn.normalize<>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>, tensor<2x4x6x16xf32>) -> tensor<2x4x6x16xf32>
  return
}

// -----

func.func @read_r8_batch(%q: tensor<2x4x6x8xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x8xf32>, %m: tensor<1x4xf32>, %o: tensor<2x4x6x16xf32>) {
  // expected-error @+1 {{expected running_max and state to have the same batch size, but got 1 and 2}}
  %r = linattn.read %q, %s normalizer(%z) running_max(%m) into(%o) {normalize = #linattn.normalize<abs_floor = 1.0>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<1x4xf32>, tensor<2x4x6x16xf32>) -> tensor<2x4x6x16xf32>
  return
}

// -----

func.func @read_r8_heads(%q: tensor<2x4x6x8xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x8xf32>, %m: tensor<2x2xf32>, %o: tensor<2x4x6x16xf32>) {
  // expected-error @+1 {{expected running_max and state to have the same head count, but got 2 and 4}}
  %r = linattn.read %q, %s normalizer(%z) running_max(%m) into(%o) {normalize = #linattn.normalize<abs_floor = 1.0>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x2xf32>, tensor<2x4x6x16xf32>) -> tensor<2x4x6x16xf32>
  return
}

// -----

func.func @read_r9(%q: tensor<2x4x6x8xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x8xf32>, %m: tensor<2x4xf32>, %o: tensor<2x4x6x16xf32>) {
  // expected-error @+1 {{expected abs_floor without the feature map exp, whose true denominator is never formed, but got both}}
  %r = linattn.read %q, %s normalizer(%z) running_max(%m) into(%o) {normalize = #linattn.normalize<abs_floor = 1.0>, feature_map = #linattn.feature_map<exp>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>, tensor<2x4x6x16xf32>) -> tensor<2x4x6x16xf32>
  return
}

// -----

// expected-error @+1 {{expected either floor or abs_floor, but got both}}
func.func private @floors() attributes {n = #linattn.normalize<floor = 1.0, abs_floor = 1.0>}

// -----

// expected-error @+1 {{expected abs_floor to be finite and positive, but got 0}}
func.func private @abs_floor() attributes {n = #linattn.normalize<abs_floor = 0.0>}

// -----

func.func @scan_s27(%q: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %beta: tensor<2x4x6xf32>, %u: tensor<4x8xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected bonus only with update(add) or update(dplr), but got update(delta)}}
  %r:2 = linattn.scan %q, %q, %v beta(%beta) bonus(%u) update(delta) readout(exclusive) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6xf32>, tensor<4x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>) -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}
