// RUN: linattn-opt %s --split-input-file --verify-diagnostics

// One function per numbered constraint of `linattn.scan`, S1 to S10: its name
// ends in the number.

func.func @scan_s1(%q: tensor<2x4x6x4xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected query and key to have the same head size, but got 4 and 8}}
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s)
    : (tensor<2x4x6x4xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s2_query(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected query and key to have the same sequence length, but got 5 and 6}}
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s)
    : (tensor<2x4x5x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s2_value(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x7x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected key and value to have the same sequence length, but got 6 and 7}}
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x7x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s3_key(%q: tensor<2x4x6x8xf32>, %k: tensor<3x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected query and key to have the same batch size, but got 2 and 3}}
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<3x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s3_value(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<3x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected query and value to have the same batch size, but got 2 and 3}}
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<3x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s4(%q: tensor<2x3x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected head counts of query and key to divide one another, but got 3 and 4}}
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s)
    : (tensor<2x3x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s5_value(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xbf16>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected query and value to have the same element type, but got 'f32' and 'bf16'}}
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xbf16>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s5_output(%q: tensor<2x4x6x8xf16>, %k: tensor<2x4x6x8xf16>, %v: tensor<2x4x6x16xf16>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected query and output to have the same element type, but got 'f16' and 'f32'}}
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s)
    : (tensor<2x4x6x8xf16>, tensor<2x4x6x8xf16>, tensor<2x4x6x16xf16>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s6_type(%q: tensor<2x4x6x8xf16>, %k: tensor<2x4x6x8xf16>, %v: tensor<2x4x6x16xf16>, %o: tensor<2x4x6x16xf16>, %s: tensor<2x4x8x16xf16>) {
  // expected-error @+1 {{expected state to have element type 'f32' or 'f64', but got 'f16'}}
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s)
    : (tensor<2x4x6x8xf16>, tensor<2x4x6x8xf16>, tensor<2x4x6x16xf16>, tensor<2x4x6x16xf16>, tensor<2x4x8x16xf16>)
    -> (tensor<2x4x6x16xf16>, tensor<2x4x8x16xf16>)
  return
}

// -----

func.func @scan_s6_type_f64(%q: tensor<2x4x6x8xf64>, %k: tensor<2x4x6x8xf64>, %v: tensor<2x4x6x16xf64>, %o: tensor<2x4x6x16xf64>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected state to have element type 'f64', but got 'f32'}}
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s)
    : (tensor<2x4x6x8xf64>, tensor<2x4x6x8xf64>, tensor<2x4x6x16xf64>, tensor<2x4x6x16xf64>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf64>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s6_batch(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<3x4x8x16xf32>) {
  // expected-error @+1 {{expected query and state to have the same batch size, but got 2 and 3}}
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<3x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<3x4x8x16xf32>)
  return
}

// -----

func.func @scan_s6_heads(%q: tensor<2x4x6x8xf32>, %k: tensor<2x2x6x8xf32>, %v: tensor<2x2x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected the head count of state to be the largest of those of key and value (2 and 2), but got 4}}
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s6_key(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x9x16xf32>) {
  // expected-error @+1 {{expected key and state to have the same head size, but got 8 and 9}}
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x9x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x9x16xf32>)
  return
}

// -----

func.func @scan_s6_value(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x17xf32>) {
  // expected-error @+1 {{expected value and state to have the same head size, but got 16 and 17}}
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x17xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x17xf32>)
  return
}

// -----

func.func @scan_s7_batch(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<1x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected query and output to have the same batch size, but got 2 and 1}}
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<1x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<1x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s7_heads(%q: tensor<2x8x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected the head count of output to be the largest of those of query, key and value (8, 4 and 4), but got 4}}
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s)
    : (tensor<2x8x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s7_tokens(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x8x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected query and output to have the same sequence length, but got 6 and 8}}
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s7_value(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x8xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected value and output to have the same head size, but got 16 and 8}}
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x8xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x8xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s8_missing(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected a normalizer exactly with normalize, but got normalize without a normalizer}}
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s) {normalize = #linattn.normalize<>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s8_unused(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x8xf32>) {
  // expected-error @+1 {{expected a normalizer exactly with normalize, but got a normalizer without normalize}}
  %r:3 = linattn.scan %q, %k, %v into(%o) init(%s) normalizer(%z)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @scan_s8_batch(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<1x4x8xf32>) {
  // expected-error @+1 {{expected normalizer and state to have the same batch size, but got 1 and 2}}
  %r:3 = linattn.scan %q, %k, %v into(%o) init(%s) normalizer(%z) {normalize = #linattn.normalize<>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<1x4x8xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<1x4x8xf32>)
  return
}

// -----

func.func @scan_s8_heads(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x2x8xf32>) {
  // expected-error @+1 {{expected normalizer and state to have the same head count, but got 2 and 4}}
  %r:3 = linattn.scan %q, %k, %v into(%o) init(%s) normalizer(%z) {normalize = #linattn.normalize<>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x2x8xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x2x8xf32>)
  return
}

// -----

func.func @scan_s8_key(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x16xf32>) {
  // expected-error @+1 {{expected normalizer and state to have the same head size, but got 16 and 8}}
  %r:3 = linattn.scan %q, %k, %v into(%o) init(%s) normalizer(%z) {normalize = #linattn.normalize<>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @scan_s8_type(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x8xf64>) {
  // expected-error @+1 {{expected normalizer to have element type 'f32', but got 'f64'}}
  %r:3 = linattn.scan %q, %k, %v into(%o) init(%s) normalizer(%z) {normalize = #linattn.normalize<>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf64>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf64>)
  return
}

// -----

func.func @scan_s9_missing(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x8xf32>) {
  // expected-error @+1 {{expected running_max exactly with feature map exp under normalize or with input_gate, but got none}}
  %r:3 = linattn.scan %q, %k, %v into(%o) init(%s) normalizer(%z) {normalize = #linattn.normalize<>, feature_map = #linattn.feature_map<exp>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @scan_s9_unused(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x8xf32>, %m: tensor<2x4xf32>) {
  // expected-error @+1 {{expected running_max exactly with feature map exp under normalize or with input_gate, but got one without them}}
  %r:4 = linattn.scan %q, %k, %v into(%o) init(%s) normalizer(%z) running_max(%m) {normalize = #linattn.normalize<>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>)
  return
}

// -----

func.func @scan_s9_plain_exp(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>, %m: tensor<2x4xf32>) {
  // expected-error @+1 {{expected running_max exactly with feature map exp under normalize or with input_gate, but got one without them}}
  %r:3 = linattn.scan %q, %k, %v into(%o) init(%s) running_max(%m) {feature_map = #linattn.feature_map<exp>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4xf32>)
  return
}

// -----

func.func @scan_s9_heads(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x8xf32>, %m: tensor<2x3xf32>) {
  // expected-error @+1 {{expected running_max and state to have the same head count, but got 3 and 4}}
  %r:4 = linattn.scan %q, %k, %v into(%o) init(%s) normalizer(%z) running_max(%m) {normalize = #linattn.normalize<>, feature_map = #linattn.feature_map<exp>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x3xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x3xf32>)
  return
}

// -----

func.func @scan_s9_batch(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x8xf32>, %m: tensor<1x4xf32>) {
  // expected-error @+1 {{expected running_max and state to have the same batch size, but got 1 and 2}}
  %r:4 = linattn.scan %q, %k, %v into(%o) init(%s) normalizer(%z) running_max(%m) {normalize = #linattn.normalize<>, feature_map = #linattn.feature_map<exp>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<1x4xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<1x4xf32>)
  return
}

// -----

func.func @scan_s9_type(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x8xf32>, %m: tensor<2x4xbf16>) {
  // expected-error @+1 {{expected running_max to have element type 'f32', but got 'bf16'}}
  %r:4 = linattn.scan %q, %k, %v into(%o) init(%s) normalizer(%z) running_max(%m) {normalize = #linattn.normalize<>, feature_map = #linattn.feature_map<exp>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x4xbf16>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x4xbf16>)
  return
}

// -----

func.func @scan_s10_missing(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected a phi region with feature map region, but got none}}
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s) {feature_map = #linattn.feature_map<region>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s10_unused(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected a phi region only with feature map region, but got feature map identity}}
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s) phi {
  ^bb0(%x: f32):
    linattn.yield %x : f32
  }
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}
