// RUN: linattn-opt %s --split-input-file --verify-diagnostics

// One function per numbered constraint of diagonal scans, WKV-4 and log-linear
// attention: its name holds the number.

func.func @diagonal_scan_d1_imag(%x: tensor<2x6x8xf32>, %imag: tensor<2x5x8xf32>, %decay: tensor<8xf32>, %phase: tensor<8xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8xf32>, %init_imag: tensor<2x8xf32>) {
  // expected-error @+1 {{expected input and imag to have the same sequence length, but got 6 and 5}}
  %r:3 = linattn.diagonal_scan %x imag(%imag) decay(%decay) phase(%phase) into(%into) init(%init) init_imag(%init_imag)
    : (tensor<2x6x8xf32>, tensor<2x5x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<2x6x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> (tensor<2x6x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>)
  return
}

// -----

func.func @diagonal_scan_d1_output(%x: tensor<2x6x8xf32>, %decay: tensor<8xf32>, %into: tensor<2x6x9xf32>, %init: tensor<2x8xf32>) {
  // expected-error @+1 {{expected input and output to have the same channel count, but got 8 and 9}}
  %r:2 = linattn.diagonal_scan %x decay(%decay) into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<8xf32>, tensor<2x6x9xf32>, tensor<2x8xf32>) -> (tensor<2x6x9xf32>, tensor<2x8xf32>)
  return
}

// -----

func.func @diagonal_scan_d1_output_imag(%x: tensor<2x6x8xf32>, %decay: tensor<8xf32>, %phase: tensor<8xf32>, %into: tensor<2x6x8xf32>, %into_imag: tensor<3x6x8xf32>, %init: tensor<2x8xf32>, %init_imag: tensor<2x8xf32>) {
  // expected-error @+1 {{expected input and into_imag to have the same batch size, but got 2 and 3}}
  %r:4 = linattn.diagonal_scan %x decay(%decay) phase(%phase) into(%into) into_imag(%into_imag) init(%init) init_imag(%init_imag)
    : (tensor<2x6x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<2x6x8xf32>, tensor<3x6x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> (tensor<2x6x8xf32>, tensor<3x6x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>)
  return
}

// -----

func.func @diagonal_scan_d1_element(%x: tensor<2x6x8xf32>, %decay: tensor<8xf32>, %into: tensor<2x6x8xbf16>, %init: tensor<2x8xf32>) {
  // expected-error @+1 {{expected input and output to have the same element type, but got 'f32' and 'bf16'}}
  %r:2 = linattn.diagonal_scan %x decay(%decay) into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<8xf32>, tensor<2x6x8xbf16>, tensor<2x8xf32>) -> (tensor<2x6x8xbf16>, tensor<2x8xf32>)
  return
}

// -----

func.func @diagonal_scan_d2_decay(%x: tensor<2x6x8xf32>, %decay: tensor<9xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8xf32>) {
  // expected-error @+1 {{expected decay and input to have the same channel count, but got 9 and 8}}
  %r:2 = linattn.diagonal_scan %x decay(%decay) into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<9xf32>, tensor<2x6x8xf32>, tensor<2x8xf32>) -> (tensor<2x6x8xf32>, tensor<2x8xf32>)
  return
}

// -----

func.func @diagonal_scan_d2_phase(%x: tensor<2x6x8xf32>, %decay: tensor<8xf32>, %phase: tensor<2x6x9xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8xf32>, %init_imag: tensor<2x8xf32>) {
  // expected-error @+1 {{expected input and phase to have the same channel count, but got 8 and 9}}
  %r:3 = linattn.diagonal_scan %x decay(%decay) phase(%phase) into(%into) init(%init) init_imag(%init_imag)
    : (tensor<2x6x8xf32>, tensor<8xf32>, tensor<2x6x9xf32>, tensor<2x6x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> (tensor<2x6x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>)
  return
}

// -----

func.func @diagonal_scan_d3_state(%x: tensor<2x6x8xf32>, %decay: tensor<8xf32>, %phase: tensor<8xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8xf32>) {
  // expected-error @+1 {{expected phase and init_imag together, but got only phase}}
  %r:2 = linattn.diagonal_scan %x decay(%decay) phase(%phase) into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<2x6x8xf32>, tensor<2x8xf32>) -> (tensor<2x6x8xf32>, tensor<2x8xf32>)
  return
}

// -----

func.func @diagonal_scan_d3_phase(%x: tensor<2x6x8xf32>, %decay: tensor<8xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8xf32>, %init_imag: tensor<2x8xf32>) {
  // expected-error @+1 {{expected phase and init_imag together, but got only init_imag}}
  %r:3 = linattn.diagonal_scan %x decay(%decay) into(%into) init(%init) init_imag(%init_imag)
    : (tensor<2x6x8xf32>, tensor<8xf32>, tensor<2x6x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> (tensor<2x6x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>)
  return
}

// -----

func.func @diagonal_scan_d3_imag(%x: tensor<2x6x8xf32>, %imag: tensor<2x6x8xf32>, %decay: tensor<8xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8xf32>) {
  // expected-error @+1 {{expected imag only with phase, but got it alone}}
  %r:2 = linattn.diagonal_scan %x imag(%imag) decay(%decay) into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8xf32>, tensor<2x6x8xf32>, tensor<2x8xf32>) -> (tensor<2x6x8xf32>, tensor<2x8xf32>)
  return
}

// -----

func.func @diagonal_scan_d3_output(%x: tensor<2x6x8xf32>, %decay: tensor<8xf32>, %into: tensor<2x6x8xf32>, %into_imag: tensor<2x6x8xf32>, %init: tensor<2x8xf32>) {
  // expected-error @+1 {{expected into_imag only with phase, but got it alone}}
  %r:3 = linattn.diagonal_scan %x decay(%decay) into(%into) into_imag(%into_imag) init(%init)
    : (tensor<2x6x8xf32>, tensor<8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<2x8xf32>) -> (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<2x8xf32>)
  return
}

// -----

func.func @diagonal_scan_d4_channels(%x: tensor<2x6x8xf32>, %decay: tensor<8xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x9xf32>) {
  // expected-error @+1 {{expected state and input to have the same channel count, but got 9 and 8}}
  %r:2 = linattn.diagonal_scan %x decay(%decay) into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<8xf32>, tensor<2x6x8xf32>, tensor<2x9xf32>) -> (tensor<2x6x8xf32>, tensor<2x9xf32>)
  return
}

// -----

func.func @diagonal_scan_d4_batch(%x: tensor<2x6x8xf32>, %decay: tensor<8xf32>, %into: tensor<2x6x8xf32>, %init: tensor<3x8xf32>) {
  // expected-error @+1 {{expected input and state to have the same batch size, but got 2 and 3}}
  %r:2 = linattn.diagonal_scan %x decay(%decay) into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<8xf32>, tensor<2x6x8xf32>, tensor<3x8xf32>) -> (tensor<2x6x8xf32>, tensor<3x8xf32>)
  return
}

// -----

func.func @diagonal_scan_d4_type(%x: tensor<2x6x8xf32>, %decay: tensor<8xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8xbf16>) {
  // expected-error @+1 {{expected state to have element type f32 or f64, but got 'bf16'}}
  %r:2 = linattn.diagonal_scan %x decay(%decay) into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<8xf32>, tensor<2x6x8xf32>, tensor<2x8xbf16>) -> (tensor<2x6x8xf32>, tensor<2x8xbf16>)
  return
}

// -----

func.func @diagonal_scan_d4_imag(%x: tensor<2x6x8xf32>, %decay: tensor<8xf32>, %phase: tensor<8xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8xf32>, %init_imag: tensor<2x9xf32>) {
  // expected-error @+1 {{expected init_imag and state to have the same channel count, but got 9 and 8}}
  %r:3 = linattn.diagonal_scan %x decay(%decay) phase(%phase) into(%into) init(%init) init_imag(%init_imag)
    : (tensor<2x6x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<2x6x8xf32>, tensor<2x8xf32>, tensor<2x9xf32>) -> (tensor<2x6x8xf32>, tensor<2x8xf32>, tensor<2x9xf32>)
  return
}

// -----

func.func @diagonal_scan_d4_parts(%x: tensor<2x6x8xf32>, %decay: tensor<8xf32>, %phase: tensor<8xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x8xf32>, %init_imag: tensor<2x8xf64>) {
  // expected-error @+1 {{expected init_imag to have element type 'f32', but got 'f64'}}
  %r:3 = linattn.diagonal_scan %x decay(%decay) phase(%phase) into(%into) init(%init) init_imag(%init_imag)
    : (tensor<2x6x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<2x6x8xf32>, tensor<2x8xf32>, tensor<2x8xf64>) -> (tensor<2x6x8xf32>, tensor<2x8xf32>, tensor<2x8xf64>)
  return
}

// -----

func.func @diagonal_scan_d5_batch(%x: tensor<2x6x8xf32>, %decay: tensor<8xf32>, %cu_seqlens: tensor<3xi64>, %into: tensor<2x6x8xf32>, %init: tensor<2x8xf32>) {
  // expected-error @+1 {{expected batch size 1 with cu_seqlens, but got 2}}
  %r:2 = linattn.diagonal_scan %x decay(%decay) cu_seqlens(%cu_seqlens) into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<8xf32>, tensor<3xi64>, tensor<2x6x8xf32>, tensor<2x8xf32>) -> (tensor<2x6x8xf32>, tensor<2x8xf32>)
  return
}

// -----

func.func @diagonal_scan_d5_count(%x: tensor<1x6x8xf32>, %decay: tensor<8xf32>, %cu_seqlens: tensor<4xi64>, %into: tensor<1x6x8xf32>, %init: tensor<2x8xf32>) {
  // expected-error @+1 {{expected the first dimension of state to be one less than the length of cu_seqlens (4), but got 2}}
  %r:2 = linattn.diagonal_scan %x decay(%decay) cu_seqlens(%cu_seqlens) into(%into) init(%init)
    : (tensor<1x6x8xf32>, tensor<8xf32>, tensor<4xi64>, tensor<1x6x8xf32>, tensor<2x8xf32>) -> (tensor<1x6x8xf32>, tensor<2x8xf32>)
  return
}

// -----

func.func @wkv4_w1_value(%k: tensor<2x6x8xf32>, %v: tensor<2x5x8xf32>, %decay: tensor<8xf32>, %bonus: tensor<8xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x3x8xf32>) {
  // expected-error @+1 {{expected key and value to have the same sequence length, but got 6 and 5}}
  %r:2 = linattn.wkv4 %k, %v decay(%decay) bonus(%bonus) into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x5x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<2x6x8xf32>, tensor<2x3x8xf32>) -> (tensor<2x6x8xf32>, tensor<2x3x8xf32>)
  return
}

// -----

func.func @wkv4_w1_output(%k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>, %decay: tensor<8xf32>, %bonus: tensor<8xf32>, %into: tensor<2x6x9xf32>, %init: tensor<2x3x8xf32>) {
  // expected-error @+1 {{expected key and output to have the same channel count, but got 8 and 9}}
  %r:2 = linattn.wkv4 %k, %v decay(%decay) bonus(%bonus) into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<2x6x9xf32>, tensor<2x3x8xf32>) -> (tensor<2x6x9xf32>, tensor<2x3x8xf32>)
  return
}

// -----

func.func @wkv4_w1_element(%k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf16>, %decay: tensor<8xf32>, %bonus: tensor<8xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x3x8xf32>) {
  // expected-error @+1 {{expected key and value to have the same element type, but got 'f32' and 'f16'}}
  %r:2 = linattn.wkv4 %k, %v decay(%decay) bonus(%bonus) into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf16>, tensor<8xf32>, tensor<8xf32>, tensor<2x6x8xf32>, tensor<2x3x8xf32>) -> (tensor<2x6x8xf32>, tensor<2x3x8xf32>)
  return
}

// -----

func.func @wkv4_w2_decay(%k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>, %decay: tensor<9xf32>, %bonus: tensor<8xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x3x8xf32>) {
  // expected-error @+1 {{expected decay and key to have the same channel count, but got 9 and 8}}
  %r:2 = linattn.wkv4 %k, %v decay(%decay) bonus(%bonus) into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<9xf32>, tensor<8xf32>, tensor<2x6x8xf32>, tensor<2x3x8xf32>) -> (tensor<2x6x8xf32>, tensor<2x3x8xf32>)
  return
}

// -----

func.func @wkv4_w2_bonus(%k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>, %decay: tensor<8xf32>, %bonus: tensor<9xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x3x8xf32>) {
  // expected-error @+1 {{expected bonus and key to have the same channel count, but got 9 and 8}}
  %r:2 = linattn.wkv4 %k, %v decay(%decay) bonus(%bonus) into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8xf32>, tensor<9xf32>, tensor<2x6x8xf32>, tensor<2x3x8xf32>) -> (tensor<2x6x8xf32>, tensor<2x3x8xf32>)
  return
}

// -----

func.func @wkv4_w3_parts(%k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>, %decay: tensor<8xf32>, %bonus: tensor<8xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x2x8xf32>) {
  // expected-error @+1 {{expected the state's second dimension to be 3, but got 2}}
  %r:2 = linattn.wkv4 %k, %v decay(%decay) bonus(%bonus) into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<2x6x8xf32>, tensor<2x2x8xf32>) -> (tensor<2x6x8xf32>, tensor<2x2x8xf32>)
  return
}

// -----

func.func @wkv4_w3_dynamic(%k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>, %decay: tensor<8xf32>, %bonus: tensor<8xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x?x8xf32>) {
  // expected-error @+1 {{expected the state's second dimension to be 3, but got ?}}
  %r:2 = linattn.wkv4 %k, %v decay(%decay) bonus(%bonus) into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<2x6x8xf32>, tensor<2x?x8xf32>) -> (tensor<2x6x8xf32>, tensor<2x?x8xf32>)
  return
}

// -----

func.func @wkv4_w3_channels(%k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>, %decay: tensor<8xf32>, %bonus: tensor<8xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x3x9xf32>) {
  // expected-error @+1 {{expected state and key to have the same channel count, but got 9 and 8}}
  %r:2 = linattn.wkv4 %k, %v decay(%decay) bonus(%bonus) into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<2x6x8xf32>, tensor<2x3x9xf32>) -> (tensor<2x6x8xf32>, tensor<2x3x9xf32>)
  return
}

// -----

func.func @wkv4_w3_batch(%k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>, %decay: tensor<8xf32>, %bonus: tensor<8xf32>, %into: tensor<2x6x8xf32>, %init: tensor<3x3x8xf32>) {
  // expected-error @+1 {{expected key and state to have the same batch size, but got 2 and 3}}
  %r:2 = linattn.wkv4 %k, %v decay(%decay) bonus(%bonus) into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<2x6x8xf32>, tensor<3x3x8xf32>) -> (tensor<2x6x8xf32>, tensor<3x3x8xf32>)
  return
}

// -----

func.func @wkv4_w3_type(%k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>, %decay: tensor<8xf32>, %bonus: tensor<8xf32>, %into: tensor<2x6x8xf32>, %init: tensor<2x3x8xf16>) {
  // expected-error @+1 {{expected state to have element type f32 or f64, but got 'f16'}}
  %r:2 = linattn.wkv4 %k, %v decay(%decay) bonus(%bonus) into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<2x6x8xf32>, tensor<2x3x8xf16>) -> (tensor<2x6x8xf32>, tensor<2x3x8xf16>)
  return
}

// -----

func.func @wkv4_w4_batch(%k: tensor<2x6x8xf32>, %v: tensor<2x6x8xf32>, %decay: tensor<8xf32>, %bonus: tensor<8xf32>, %cu_seqlens: tensor<3xi32>, %into: tensor<2x6x8xf32>, %init: tensor<2x3x8xf32>) {
  // expected-error @+1 {{expected batch size 1 with cu_seqlens, but got 2}}
  %r:2 = linattn.wkv4 %k, %v decay(%decay) bonus(%bonus) cu_seqlens(%cu_seqlens) into(%into) init(%init)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<3xi32>, tensor<2x6x8xf32>, tensor<2x3x8xf32>) -> (tensor<2x6x8xf32>, tensor<2x3x8xf32>)
  return
}

// -----

func.func @wkv4_w4_count(%k: tensor<1x6x8xf32>, %v: tensor<1x6x8xf32>, %decay: tensor<8xf32>, %bonus: tensor<8xf32>, %cu_seqlens: tensor<4xi32>, %into: tensor<1x6x8xf32>, %init: tensor<2x3x8xf32>) {
  // expected-error @+1 {{expected the first dimension of state to be one less than the length of cu_seqlens (4), but got 2}}
  %r:2 = linattn.wkv4 %k, %v decay(%decay) bonus(%bonus) cu_seqlens(%cu_seqlens) into(%into) init(%init)
    : (tensor<1x6x8xf32>, tensor<1x6x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4xi32>, tensor<1x6x8xf32>, tensor<2x3x8xf32>) -> (tensor<1x6x8xf32>, tensor<2x3x8xf32>)
  return
}

// -----

func.func @log_linear_l1(%q: tensor<2x4x6x8xf32>, %k: tensor<2x2x6x9xf32>, %v: tensor<2x2x6x8xf32>, %decay: tensor<2x2x6xf32>, %levels: tensor<2x2x6x4xf32>, %into: tensor<2x4x6x8xf32>, %init: tensor<2x2x4x8x8xf32>) {
  // expected-error @+1 {{expected query and key to have the same head size, but got 8 and 9}}
  %r:2 = linattn.log_linear %q, %k, %v decay(%decay) levels(%levels) into(%into) init(%init)
    : (tensor<2x4x6x8xf32>, tensor<2x2x6x9xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6xf32>, tensor<2x2x6x4xf32>, tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>)
  return
}

// -----

func.func @log_linear_l2_key(%q: tensor<2x4x6x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x6x8xf32>, %decay: tensor<2x2x6xf32>, %levels: tensor<2x2x6x4xf32>, %into: tensor<2x4x6x8xf32>, %init: tensor<2x2x4x8x8xf32>) {
  // expected-error @+1 {{expected query and key to have the same sequence length, but got 6 and 5}}
  %r:2 = linattn.log_linear %q, %k, %v decay(%decay) levels(%levels) into(%into) init(%init)
    : (tensor<2x4x6x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6xf32>, tensor<2x2x6x4xf32>, tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>)
  return
}

// -----

func.func @log_linear_l2_value(%q: tensor<2x4x6x8xf32>, %k: tensor<2x2x6x8xf32>, %v: tensor<2x2x5x8xf32>, %decay: tensor<2x2x6xf32>, %levels: tensor<2x2x6x4xf32>, %into: tensor<2x4x6x8xf32>, %init: tensor<2x2x4x8x8xf32>) {
  // expected-error @+1 {{expected key and value to have the same sequence length, but got 6 and 5}}
  %r:2 = linattn.log_linear %q, %k, %v decay(%decay) levels(%levels) into(%into) init(%init)
    : (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x6xf32>, tensor<2x2x6x4xf32>, tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>)
  return
}

// -----

func.func @log_linear_l3(%q: tensor<2x4x6x8xf32>, %k: tensor<2x2x6x8xf32>, %v: tensor<3x2x6x8xf32>, %decay: tensor<2x2x6xf32>, %levels: tensor<2x2x6x4xf32>, %into: tensor<2x4x6x8xf32>, %init: tensor<2x2x4x8x8xf32>) {
  // expected-error @+1 {{expected query and value to have the same batch size, but got 2 and 3}}
  %r:2 = linattn.log_linear %q, %k, %v decay(%decay) levels(%levels) into(%into) init(%init)
    : (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<3x2x6x8xf32>, tensor<2x2x6xf32>, tensor<2x2x6x4xf32>, tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>)
  return
}

// -----

func.func @log_linear_l4(%q: tensor<2x3x6x8xf32>, %k: tensor<2x2x6x8xf32>, %v: tensor<2x2x6x8xf32>, %decay: tensor<2x2x6xf32>, %levels: tensor<2x2x6x4xf32>, %into: tensor<2x4x6x8xf32>, %init: tensor<2x2x4x8x8xf32>) {
  // expected-error @+1 {{expected head counts of query and key to divide one another, but got 3 and 2}}
  %r:2 = linattn.log_linear %q, %k, %v decay(%decay) levels(%levels) into(%into) init(%init)
    : (tensor<2x3x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6xf32>, tensor<2x2x6x4xf32>, tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>)
  return
}

// -----

func.func @log_linear_l5(%q: tensor<2x4x6x8xf32>, %k: tensor<2x2x6x8xf32>, %v: tensor<2x2x6x8xf16>, %decay: tensor<2x2x6xf32>, %levels: tensor<2x2x6x4xf32>, %into: tensor<2x4x6x8xf32>, %init: tensor<2x2x4x8x8xf32>) {
  // expected-error @+1 {{expected query and value to have the same element type, but got 'f32' and 'f16'}}
  %r:2 = linattn.log_linear %q, %k, %v decay(%decay) levels(%levels) into(%into) init(%init)
    : (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf16>, tensor<2x2x6xf32>, tensor<2x2x6x4xf32>, tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>)
  return
}

// -----

func.func @log_linear_l6_heads(%q: tensor<2x4x6x8xf32>, %k: tensor<2x2x6x8xf32>, %v: tensor<2x2x6x8xf32>, %decay: tensor<2x2x6xf32>, %levels: tensor<2x2x6x4xf32>, %into: tensor<2x4x6x8xf32>, %init: tensor<2x4x4x8x8xf32>) {
  // expected-error @+1 {{expected the head count of state to be the largest of those of key and value (2 and 2), but got 4}}
  %r:2 = linattn.log_linear %q, %k, %v decay(%decay) levels(%levels) into(%into) init(%init)
    : (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6xf32>, tensor<2x2x6x4xf32>, tensor<2x4x6x8xf32>, tensor<2x4x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x4x8x8xf32>)
  return
}

// -----

func.func @log_linear_l6_key(%q: tensor<2x4x6x8xf32>, %k: tensor<2x2x6x8xf32>, %v: tensor<2x2x6x8xf32>, %decay: tensor<2x2x6xf32>, %levels: tensor<2x2x6x4xf32>, %into: tensor<2x4x6x8xf32>, %init: tensor<2x2x4x9x8xf32>) {
  // expected-error @+1 {{expected key and state to have the same head size, but got 8 and 9}}
  %r:2 = linattn.log_linear %q, %k, %v decay(%decay) levels(%levels) into(%into) init(%init)
    : (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6xf32>, tensor<2x2x6x4xf32>, tensor<2x4x6x8xf32>, tensor<2x2x4x9x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x2x4x9x8xf32>)
  return
}

// -----

func.func @log_linear_l6_value(%q: tensor<2x4x6x8xf32>, %k: tensor<2x2x6x8xf32>, %v: tensor<2x2x6x8xf32>, %decay: tensor<2x2x6xf32>, %levels: tensor<2x2x6x4xf32>, %into: tensor<2x4x6x8xf32>, %init: tensor<2x2x4x8x9xf32>) {
  // expected-error @+1 {{expected value and state to have the same head size, but got 8 and 9}}
  %r:2 = linattn.log_linear %q, %k, %v decay(%decay) levels(%levels) into(%into) init(%init)
    : (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6xf32>, tensor<2x2x6x4xf32>, tensor<2x4x6x8xf32>, tensor<2x2x4x8x9xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x2x4x8x9xf32>)
  return
}

// -----

func.func @log_linear_l6_batch(%q: tensor<2x4x6x8xf32>, %k: tensor<2x2x6x8xf32>, %v: tensor<2x2x6x8xf32>, %decay: tensor<2x2x6xf32>, %levels: tensor<2x2x6x4xf32>, %into: tensor<2x4x6x8xf32>, %init: tensor<3x2x4x8x8xf32>) {
  // expected-error @+1 {{expected key and state to have the same batch size, but got 2 and 3}}
  %r:2 = linattn.log_linear %q, %k, %v decay(%decay) levels(%levels) into(%into) init(%init)
    : (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6xf32>, tensor<2x2x6x4xf32>, tensor<2x4x6x8xf32>, tensor<3x2x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<3x2x4x8x8xf32>)
  return
}

// -----

func.func @log_linear_l6_type(%q: tensor<2x4x6x8xf32>, %k: tensor<2x2x6x8xf32>, %v: tensor<2x2x6x8xf32>, %decay: tensor<2x2x6xf32>, %levels: tensor<2x2x6x4xf32>, %into: tensor<2x4x6x8xf32>, %init: tensor<2x2x4x8x8xf16>) {
  // expected-error @+1 {{expected state to have element type f32 or f64, but got 'f16'}}
  %r:2 = linattn.log_linear %q, %k, %v decay(%decay) levels(%levels) into(%into) init(%init)
    : (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6xf32>, tensor<2x2x6x4xf32>, tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf16>) -> (tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf16>)
  return
}

// -----

func.func @log_linear_l6_levels(%q: tensor<2x4x6x8xf32>, %k: tensor<2x2x6x8xf32>, %v: tensor<2x2x6x8xf32>, %decay: tensor<2x2x6xf32>, %levels: tensor<2x2x6x0xf32>, %into: tensor<2x4x6x8xf32>, %init: tensor<2x2x0x8x8xf32>) {
  // expected-error @+1 {{expected a fixed number of levels, at least one, but got 0}}
  %r:2 = linattn.log_linear %q, %k, %v decay(%decay) levels(%levels) into(%into) init(%init)
    : (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6xf32>, tensor<2x2x6x0xf32>, tensor<2x4x6x8xf32>, tensor<2x2x0x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x2x0x8x8xf32>)
  return
}

// -----

func.func @log_linear_l6_dynamic(%q: tensor<2x4x6x8xf32>, %k: tensor<2x2x6x8xf32>, %v: tensor<2x2x6x8xf32>, %decay: tensor<2x2x6xf32>, %levels: tensor<2x2x6x4xf32>, %into: tensor<2x4x6x8xf32>, %init: tensor<2x2x?x8x8xf32>) {
  // expected-error @+1 {{expected a fixed number of levels, at least one, but got ?}}
  %r:2 = linattn.log_linear %q, %k, %v decay(%decay) levels(%levels) into(%into) init(%init)
    : (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6xf32>, tensor<2x2x6x4xf32>, tensor<2x4x6x8xf32>, tensor<2x2x?x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x2x?x8x8xf32>)
  return
}

// -----

func.func @log_linear_l7_heads(%q: tensor<2x4x6x8xf32>, %k: tensor<2x2x6x8xf32>, %v: tensor<2x2x6x8xf32>, %decay: tensor<2x2x6xf32>, %levels: tensor<2x2x6x4xf32>, %into: tensor<2x2x6x8xf32>, %init: tensor<2x2x4x8x8xf32>) {
  // expected-error @+1 {{expected the head count of output to be the largest of those of query, key and value (4, 2 and 2), but got 2}}
  %r:2 = linattn.log_linear %q, %k, %v decay(%decay) levels(%levels) into(%into) init(%init)
    : (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x8xf32>, tensor<2x2x4x8x8xf32>) -> (tensor<2x2x6x8xf32>, tensor<2x2x4x8x8xf32>)
  return
}

// -----

func.func @log_linear_l7_value(%q: tensor<2x4x6x8xf32>, %k: tensor<2x2x6x8xf32>, %v: tensor<2x2x6x8xf32>, %decay: tensor<2x2x6xf32>, %levels: tensor<2x2x6x4xf32>, %into: tensor<2x4x6x9xf32>, %init: tensor<2x2x4x8x8xf32>) {
  // expected-error @+1 {{expected value and output to have the same head size, but got 8 and 9}}
  %r:2 = linattn.log_linear %q, %k, %v decay(%decay) levels(%levels) into(%into) init(%init)
    : (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6xf32>, tensor<2x2x6x4xf32>, tensor<2x4x6x9xf32>, tensor<2x2x4x8x8xf32>) -> (tensor<2x4x6x9xf32>, tensor<2x2x4x8x8xf32>)
  return
}

// -----

func.func @log_linear_l8_decay(%q: tensor<2x4x6x8xf32>, %k: tensor<2x2x6x8xf32>, %v: tensor<2x2x6x8xf32>, %decay: tensor<2x4x6xf32>, %levels: tensor<2x2x6x4xf32>, %into: tensor<2x4x6x8xf32>, %init: tensor<2x2x4x8x8xf32>) {
  // expected-error @+1 {{expected decay and state to have the same head count, but got 4 and 2}}
  %r:2 = linattn.log_linear %q, %k, %v decay(%decay) levels(%levels) into(%into) init(%init)
    : (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x4x6xf32>, tensor<2x2x6x4xf32>, tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>)
  return
}

// -----

func.func @log_linear_l8_tokens(%q: tensor<2x4x6x8xf32>, %k: tensor<2x2x6x8xf32>, %v: tensor<2x2x6x8xf32>, %decay: tensor<2x2x6xf32>, %levels: tensor<2x2x5x4xf32>, %into: tensor<2x4x6x8xf32>, %init: tensor<2x2x4x8x8xf32>) {
  // expected-error @+1 {{expected levels and key to have the same sequence length, but got 5 and 6}}
  %r:2 = linattn.log_linear %q, %k, %v decay(%decay) levels(%levels) into(%into) init(%init)
    : (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6xf32>, tensor<2x2x5x4xf32>, tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>)
  return
}

// -----

func.func @log_linear_l8_levels(%q: tensor<2x4x6x8xf32>, %k: tensor<2x2x6x8xf32>, %v: tensor<2x2x6x8xf32>, %decay: tensor<2x2x6xf32>, %levels: tensor<2x2x6x5xf32>, %into: tensor<2x4x6x8xf32>, %init: tensor<2x2x4x8x8xf32>) {
  // expected-error @+1 {{expected levels and state to have the same level count, but got 5 and 4}}
  %r:2 = linattn.log_linear %q, %k, %v decay(%decay) levels(%levels) into(%into) init(%init)
    : (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6xf32>, tensor<2x2x6x5xf32>, tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>)
  return
}

// -----

func.func @log_linear_l9(%q: tensor<2x4x6x8xf32>, %k: tensor<2x2x6x8xf32>, %v: tensor<2x2x6x8xf32>, %decay: tensor<2x2x6xf32>, %levels: tensor<2x2x6x4xf32>, %position: tensor<3xi32>, %into: tensor<2x4x6x8xf32>, %init: tensor<2x2x4x8x8xf32>) {
  // expected-error @+1 {{expected position and state to have the same batch size, but got 3 and 2}}
  %r:2 = linattn.log_linear %q, %k, %v decay(%decay) levels(%levels) position(%position) into(%into) init(%init)
    : (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6xf32>, tensor<2x2x6x4xf32>, tensor<3xi32>, tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>)
  return
}

// -----

func.func @log_linear_l10_batch(%q: tensor<2x4x6x8xf32>, %k: tensor<2x2x6x8xf32>, %v: tensor<2x2x6x8xf32>, %decay: tensor<2x2x6xf32>, %levels: tensor<2x2x6x4xf32>, %cu_seqlens: tensor<3xi32>, %into: tensor<2x4x6x8xf32>, %init: tensor<2x2x4x8x8xf32>) {
  // expected-error @+1 {{expected batch size 1 with cu_seqlens, but got 2}}
  %r:2 = linattn.log_linear %q, %k, %v decay(%decay) levels(%levels) cu_seqlens(%cu_seqlens) into(%into) init(%init)
    : (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6xf32>, tensor<2x2x6x4xf32>, tensor<3xi32>, tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>)
  return
}

// -----

func.func @log_linear_l10_count(%q: tensor<1x4x6x8xf32>, %k: tensor<1x2x6x8xf32>, %v: tensor<1x2x6x8xf32>, %decay: tensor<1x2x6xf32>, %levels: tensor<1x2x6x4xf32>, %cu_seqlens: tensor<4xi32>, %into: tensor<1x4x6x8xf32>, %init: tensor<2x2x4x8x8xf32>) {
  // expected-error @+1 {{expected the first dimension of state to be one less than the length of cu_seqlens (4), but got 2}}
  %r:2 = linattn.log_linear %q, %k, %v decay(%decay) levels(%levels) cu_seqlens(%cu_seqlens) into(%into) init(%init)
    : (tensor<1x4x6x8xf32>, tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>, tensor<1x2x6xf32>, tensor<1x2x6x4xf32>, tensor<4xi32>, tensor<1x4x6x8xf32>, tensor<2x2x4x8x8xf32>) -> (tensor<1x4x6x8xf32>, tensor<2x2x4x8x8xf32>)
  return
}

// -----

func.func @log_linear_l11(%q: tensor<2x4x6x8xf32>, %k: tensor<2x2x6x8xf32>, %v: tensor<2x2x6x8xf32>, %decay: tensor<2x2x6xf32>, %levels: tensor<2x2x6x4xf32>, %into: tensor<2x4x6x8xf32>, %init: tensor<2x2x4x8x8xf32>) {
  // expected-error @+1 {{expected scale to be 0 or a normal number of 'f32', but got 1.000000e-300}}
  %r:2 = linattn.log_linear %q, %k, %v decay(%decay) levels(%levels) into(%into) init(%init) {scale = 1.0e-300}
    : (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6xf32>, tensor<2x2x6x4xf32>, tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x2x4x8x8xf32>)
  return
}
