// RUN: linattn-opt %s --split-input-file --verify-diagnostics

// One function per numbered constraint of `linattn.selective_scan`: its name
// holds the number.

func.func @selective_scan_m1_gate(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %gate: tensor<2x5x8xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected input and gate to have the same sequence length, but got 6 and 5}}
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c gate(%gate) into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x5x8xf32>, tensor<2x6x8xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @selective_scan_m1_output(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %into: tensor<2x6x7xf32>, %init: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected input and output to have the same channel count, but got 8 and 7}}
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x7xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x7xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @selective_scan_m1_element(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %into: tensor<2x6x8xf16>, %init: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected input and output to have the same element type, but got 'f32' and 'f16'}}
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x8xf16>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf16>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @selective_scan_m2_tokens(%u: tensor<2x6x8xf32>, %delta: tensor<2x5x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected input and delta to have the same sequence length, but got 6 and 5}}
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x5x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x8xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @selective_scan_m2_channels(%u: tensor<2x6x8xf32>, %delta: tensor<7xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected delta and input to have the same channel count, but got 7 and 8}}
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<7xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x8xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @selective_scan_m3_a(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<7x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected a and input to have the same channel count, but got 7 and 8}}
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<7x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x8xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @selective_scan_m3_skip(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %skip: tensor<7xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected skip and input to have the same channel count, but got 7 and 8}}
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c skip(%skip) into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<7xf32>, tensor<2x6x8xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @selective_scan_m3_bias(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %delta_bias: tensor<7xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected delta_bias and input to have the same channel count, but got 7 and 8}}
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c delta_bias(%delta_bias) into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<7xf32>, tensor<2x6x8xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @selective_scan_m4_states(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x5xf32>, %c: tensor<2x6x4xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected b and a to have the same state size, but got 5 and 4}}
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x5xf32>, tensor<2x6x4xf32>, tensor<2x6x8xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @selective_scan_m4_fixed(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<7x4xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected c and input to have the same channel count, but got 7 and 8}}
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<7x4xf32>, tensor<2x6x8xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @selective_scan_m4_batch(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<1x6x4xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected c and input to have the same batch size, but got 1 and 2}}
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<1x6x4xf32>, tensor<2x6x8xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @selective_scan_m4_tokens(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x5x4xf32>, %c: tensor<2x6x4xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected b and input to have the same sequence length, but got 5 and 6}}
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x5x4xf32>, tensor<2x6x4xf32>, tensor<2x6x8xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @selective_scan_m4_groups(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x3x6x4xf32>, %c: tensor<2x3x6x4xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected channel or group counts of b and input to divide one another, but got 3 and 8}}
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x3x6x4xf32>, tensor<2x3x6x4xf32>, tensor<2x6x8xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @selective_scan_m4_too_many_groups(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x16x6x4xf32>, %c: tensor<2x16x6x4xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected the channel or group count of input to be the largest of those of input and b (8 and 16), but got 8}}
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x16x6x4xf32>, tensor<2x16x6x4xf32>, tensor<2x6x8xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @selective_scan_m4_same_groups(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x2x6x4xf32>, %c: tensor<2x4x6x4xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected b and c to have the same group count, but got 2 and 4}}
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x2x6x4xf32>, tensor<2x4x6x4xf32>, tensor<2x6x8xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @selective_scan_m4_ranks(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x2x6x4xf32>, %c: tensor<2x6x4xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected b and c that depend on the token to have the same rank, but got 4 and 3}}
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x8xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @selective_scan_m5_state(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %a_imag: tensor<8x4xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected a_imag and init_imag together, but got only a_imag}}
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c a_imag(%a_imag) into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<8x4xf32>, tensor<2x6x8xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @selective_scan_m5_a(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8x4xf32>, %init_imag: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected a_imag and init_imag together, but got only init_imag}}
  %r:3 = linattn.selective_scan %u, %delta, %a, %b, %c into(%into) init(%init) init_imag(%init_imag)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x8xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @selective_scan_m5_b(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %b_imag: tensor<2x6x4xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected b_imag only with a_imag, but got it alone}}
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c b_imag(%b_imag) into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x8xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @selective_scan_m5_c(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %c_imag: tensor<2x6x4xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected c_imag only with a_imag, but got it alone}}
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c c_imag(%c_imag) into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x8xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @selective_scan_m5_shape(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %a_imag: tensor<8x5xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8x4xf32>, %init_imag: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected a_imag and a to have the same shape, but got 5 and 4}}
  %r:3 = linattn.selective_scan %u, %delta, %a, %b, %c a_imag(%a_imag) into(%into) init(%init) init_imag(%init_imag)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<8x5xf32>, tensor<2x6x8xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @selective_scan_m5_rank(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %a_imag: tensor<8x4xf32>, %b_imag: tensor<8x4xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8x4xf32>, %init_imag: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected b_imag to have the rank of its real part, 3, but got 2}}
  %r:3 = linattn.selective_scan %u, %delta, %a, %b, %c a_imag(%a_imag) b_imag(%b_imag) into(%into) init(%init) init_imag(%init_imag)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<2x6x8xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @selective_scan_m6_states(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8x5xf32>) {
  // expected-error @+1 {{expected state and a to have the same state size, but got 5 and 4}}
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x8xf32>, tensor<2x8x5xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x5xf32>)
  return
}

// -----

func.func @selective_scan_m6_batch(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %into: tensor<2x6x8xf32>, %init: tensor<3x8x4xf32>) {
  // expected-error @+1 {{expected input and state to have the same batch size, but got 2 and 3}}
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x8xf32>, tensor<3x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<3x8x4xf32>)
  return
}

// -----

func.func @selective_scan_m6_type(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8x4xf16>) {
  // expected-error @+1 {{expected state to have element type f32 or f64, but got 'f16'}}
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x8xf32>, tensor<2x8x4xf16>) -> (tensor<2x6x8xf32>, tensor<2x8x4xf16>)
  return
}

// -----

func.func @selective_scan_m6_wide(%u: tensor<2x6x8xf64>, %delta: tensor<2x6x8xf64>, %a: tensor<8x4xf64>, %b: tensor<2x6x4xf64>, %c: tensor<2x6x4xf64>, %into: tensor<2x6x8xf64>, %init: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected state to have element type f64, but got 'f32'}}
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c into(%into) init(%init)
    : (tensor<2x6x8xf64>, tensor<2x6x8xf64>, tensor<8x4xf64>, tensor<2x6x4xf64>, tensor<2x6x4xf64>, tensor<2x6x8xf64>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf64>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @selective_scan_m6_parts(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %a_imag: tensor<8x4xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8x4xf32>, %init_imag: tensor<2x8x4xf64>) {
  // expected-error @+1 {{expected init_imag to have element type 'f32', but got 'f64'}}
  %r:3 = linattn.selective_scan %u, %delta, %a, %b, %c a_imag(%a_imag) into(%into) init(%init) init_imag(%init_imag)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<8x4xf32>, tensor<2x6x8xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf64>) -> (tensor<2x6x8xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf64>)
  return
}

// -----

func.func @selective_scan_m7_batch(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %cu_seqlens: tensor<3xi32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected batch size 1 with cu_seqlens, but got 2}}
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c cu_seqlens(%cu_seqlens) into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<3xi32>, tensor<2x6x8xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @selective_scan_m7_count(%u: tensor<1x6x8xf32>, %delta: tensor<1x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<1x6x4xf32>, %c: tensor<1x6x4xf32>, %cu_seqlens: tensor<4xi32>, %into: tensor<1x6x8xf32>, %init: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected the first dimension of state to be one less than the length of cu_seqlens (4), but got 2}}
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c cu_seqlens(%cu_seqlens) into(%into) init(%init)
    : (tensor<1x6x8xf32>, tensor<1x6x8xf32>, tensor<8x4xf32>, tensor<1x6x4xf32>, tensor<1x6x4xf32>, tensor<4xi32>, tensor<1x6x8xf32>, tensor<2x8x4xf32>) -> (tensor<1x6x8xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @selective_scan_mixture(%u: memref<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected all operands to be tensors or all to be buffers, but got a mixture}}
  %r:2 = linattn.selective_scan %u, %delta, %a, %b, %c into(%into) init(%init)
    : (memref<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x8xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x8x4xf32>)
  return
}
