// RUN: linattn-opt %s --split-input-file --verify-diagnostics

// One function per numbered constraint of the ops' descriptions: its name ends in
// the number.

//===----------------------------------------------------------------------===//
// state
//===----------------------------------------------------------------------===//

func.func @state_t1(%k: tensor<2x4x6x8xf32>, %v: tensor<2x4x5x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected key and value to have the same sequence length, but got 6 and 5}}
  %r = linattn.state %k, %v init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x5x16xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  return
}

// -----

func.func @state_t2_value(%k: tensor<2x4x6x8xf32>, %v: tensor<3x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected key and value to have the same batch size, but got 2 and 3}}
  %r = linattn.state %k, %v init(%s)
    : (tensor<2x4x6x8xf32>, tensor<3x4x6x16xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  return
}

// -----

func.func @state_t2_state(%k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %s: tensor<3x4x8x16xf32>) {
  // expected-error @+1 {{expected key and state to have the same batch size, but got 2 and 3}}
  %r = linattn.state %k, %v init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<3x4x8x16xf32>) -> tensor<3x4x8x16xf32>
  return
}

// -----

func.func @state_t3(%k: tensor<2x3x6x8xf32>, %v: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected head counts of key and value to divide one another, but got 3 and 4}}
  %r = linattn.state %k, %v init(%s)
    : (tensor<2x3x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  return
}

// -----

func.func @state_t4(%k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf16>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected key and value to have the same element type, but got 'f32' and 'f16'}}
  %r = linattn.state %k, %v init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x16xf16>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  return
}

// -----

func.func @state_t5_type(%k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf16>) {
  // expected-error @+1 {{expected state to have element type 'f32' or 'f64', but got 'f16'}}
  %r = linattn.state %k, %v init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf16>) -> tensor<2x4x8x16xf16>
  return
}

// -----

func.func @state_t5_heads(%k: tensor<2x2x6x8xf32>, %v: tensor<2x4x6x16xf32>, %s: tensor<2x2x8x16xf32>) {
  // expected-error @+1 {{expected the head count of state to be the largest of those of key and value (2 and 4), but got 2}}
  %r = linattn.state %k, %v init(%s)
    : (tensor<2x2x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x2x8x16xf32>) -> tensor<2x2x8x16xf32>
  return
}

// -----

func.func @state_t5_key(%k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %s: tensor<2x4x4x16xf32>) {
  // expected-error @+1 {{expected key and state to have the same head size, but got 8 and 4}}
  %r = linattn.state %k, %v init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x4x16xf32>) -> tensor<2x4x4x16xf32>
  return
}

// -----

func.func @state_t5_value(%k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x4xf32>) {
  // expected-error @+1 {{expected value and state to have the same head size, but got 16 and 4}}
  %r = linattn.state %k, %v init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x4xf32>) -> tensor<2x4x8x4xf32>
  return
}

// -----

func.func @state_t5_normalizer(%k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x9xf32>) {
  // expected-error @+1 {{expected normalizer and state to have the same head size, but got 9 and 8}}
  %r:2 = linattn.state %k, %v init(%s) normalizer(%z)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x9xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x9xf32>)
  return
}

// -----

func.func @state_t5_normalizer_type(%k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x8xf16>) {
  // expected-error @+1 {{expected normalizer to have element type 'f32', but got 'f16'}}
  %r:2 = linattn.state %k, %v init(%s) normalizer(%z)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf16>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf16>)
  return
}

// -----

func.func @state_t5_running_max(%k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x8xf32>, %m: tensor<2x1xf32>) {
  // expected-error @+1 {{expected running_max and state to have the same head count, but got 1 and 4}}
  %r:3 = linattn.state %k, %v init(%s) normalizer(%z) running_max(%m) {feature_map = #linattn.feature_map<exp>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x1xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x1xf32>)
  return
}

// -----

func.func @state_t5_mask_batch(%k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %mask: tensor<1x6xi1>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected key and mask to have the same batch size, but got 2 and 1}}
  %r = linattn.state %k, %v mask(%mask) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<1x6xi1>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  return
}

// -----

func.func @state_t5_mask_tokens(%k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %mask: tensor<2x5xi1>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected key and mask to have the same sequence length, but got 6 and 5}}
  %r = linattn.state %k, %v mask(%mask) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x5xi1>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  return
}

// -----

func.func @state_t6_missing(%k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected a phi region with feature map region, but got none}}
  %r = linattn.state %k, %v init(%s) {feature_map = #linattn.feature_map<region>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  return
}

// -----

func.func @state_t6_unused(%k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected a phi region only with feature map region, but got feature map elu1}}
  %r = linattn.state %k, %v init(%s) {feature_map = #linattn.feature_map<elu1>} phi {
  ^bb0(%x: f32):
    linattn.yield %x : f32
  }
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  return
}

// -----

func.func @state_t7_missing(%k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x8xf32>) {
  // expected-error @+1 {{expected running_max exactly with feature map exp and a normalizer, but got none}}
  %r:2 = linattn.state %k, %v init(%s) normalizer(%z) {feature_map = #linattn.feature_map<exp>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @state_t7_unused(%k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x8xf32>, %m: tensor<2x4xf32>) {
  // expected-error @+1 {{expected running_max exactly with feature map exp and a normalizer, but got one without them}}
  %r:3 = linattn.state %k, %v init(%s) normalizer(%z) running_max(%m)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>)
  return
}

// -----

//===----------------------------------------------------------------------===//
// read
//===----------------------------------------------------------------------===//

func.func @read_r1_key(%q: tensor<2x8x6x4xf32>, %s: tensor<2x4x8x16xf32>, %o: tensor<2x8x6x16xf32>) {
  // expected-error @+1 {{expected query and state to have the same head size, but got 4 and 8}}
  %r = linattn.read %q, %s into(%o)
    : (tensor<2x8x6x4xf32>, tensor<2x4x8x16xf32>, tensor<2x8x6x16xf32>) -> tensor<2x8x6x16xf32>
  return
}

// -----

func.func @read_r1_batch(%q: tensor<3x8x6x8xf32>, %s: tensor<2x4x8x16xf32>, %o: tensor<2x8x6x16xf32>) {
  // expected-error @+1 {{expected query and state to have the same batch size, but got 3 and 2}}
  %r = linattn.read %q, %s into(%o)
    : (tensor<3x8x6x8xf32>, tensor<2x4x8x16xf32>, tensor<2x8x6x16xf32>) -> tensor<2x8x6x16xf32>
  return
}

// -----

func.func @read_r2(%q: tensor<2x6x6x8xf32>, %s: tensor<2x4x8x16xf32>, %o: tensor<2x8x6x16xf32>) {
  // expected-error @+1 {{expected head counts of query and state to divide one another, but got 6 and 4}}
  %r = linattn.read %q, %s into(%o)
    : (tensor<2x6x6x8xf32>, tensor<2x4x8x16xf32>, tensor<2x8x6x16xf32>) -> tensor<2x8x6x16xf32>
  return
}

// -----

func.func @read_r3_type(%q: tensor<2x8x6x8xf16>, %s: tensor<2x4x8x16xf32>, %o: tensor<2x8x6x16xf32>) {
  // expected-error @+1 {{expected query and output to have the same element type, but got 'f16' and 'f32'}}
  %r = linattn.read %q, %s into(%o)
    : (tensor<2x8x6x8xf16>, tensor<2x4x8x16xf32>, tensor<2x8x6x16xf32>) -> tensor<2x8x6x16xf32>
  return
}

// -----

func.func @read_r3_batch(%q: tensor<2x8x6x8xf32>, %s: tensor<2x4x8x16xf32>, %o: tensor<3x8x6x16xf32>) {
  // expected-error @+1 {{expected query and output to have the same batch size, but got 2 and 3}}
  %r = linattn.read %q, %s into(%o)
    : (tensor<2x8x6x8xf32>, tensor<2x4x8x16xf32>, tensor<3x8x6x16xf32>) -> tensor<3x8x6x16xf32>
  return
}

// -----

func.func @read_r3_heads(%q: tensor<2x8x6x8xf32>, %s: tensor<2x4x8x16xf32>, %o: tensor<2x4x6x16xf32>) {
  // expected-error @+1 {{expected the head count of output to be the largest of those of query and state (8 and 4), but got 4}}
  %r = linattn.read %q, %s into(%o)
    : (tensor<2x8x6x8xf32>, tensor<2x4x8x16xf32>, tensor<2x4x6x16xf32>) -> tensor<2x4x6x16xf32>
  return
}

// -----

func.func @read_r3_tokens(%q: tensor<2x8x6x8xf32>, %s: tensor<2x4x8x16xf32>, %o: tensor<2x8x5x16xf32>) {
  // expected-error @+1 {{expected query and output to have the same sequence length, but got 6 and 5}}
  %r = linattn.read %q, %s into(%o)
    : (tensor<2x8x6x8xf32>, tensor<2x4x8x16xf32>, tensor<2x8x5x16xf32>) -> tensor<2x8x5x16xf32>
  return
}

// -----

func.func @read_r3_value(%q: tensor<2x8x6x8xf32>, %s: tensor<2x4x8x16xf32>, %o: tensor<2x8x6x8xf32>) {
  // expected-error @+1 {{expected state and output to have the same head size, but got 16 and 8}}
  %r = linattn.read %q, %s into(%o)
    : (tensor<2x8x6x8xf32>, tensor<2x4x8x16xf32>, tensor<2x8x6x8xf32>) -> tensor<2x8x6x8xf32>
  return
}

// -----

func.func @read_r4_missing(%q: tensor<2x8x6x8xf32>, %s: tensor<2x4x8x16xf32>, %o: tensor<2x8x6x16xf32>) {
  // expected-error @+1 {{expected a normalizer exactly with normalize, but got normalize without a normalizer}}
  %r = linattn.read %q, %s into(%o) {normalize = #linattn.normalize<>}
    : (tensor<2x8x6x8xf32>, tensor<2x4x8x16xf32>, tensor<2x8x6x16xf32>) -> tensor<2x8x6x16xf32>
  return
}

// -----

func.func @read_r4_unused(%q: tensor<2x8x6x8xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x8xf32>, %o: tensor<2x8x6x16xf32>) {
  // expected-error @+1 {{expected a normalizer exactly with normalize, but got a normalizer without normalize}}
  %r = linattn.read %q, %s normalizer(%z) into(%o)
    : (tensor<2x8x6x8xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x8x6x16xf32>) -> tensor<2x8x6x16xf32>
  return
}

// -----

func.func @read_r4_batch(%q: tensor<2x8x6x8xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<3x4x8xf32>, %o: tensor<2x8x6x16xf32>) {
  // expected-error @+1 {{expected normalizer and state to have the same batch size, but got 3 and 2}}
  %r = linattn.read %q, %s normalizer(%z) into(%o) {normalize = #linattn.normalize<>}
    : (tensor<2x8x6x8xf32>, tensor<2x4x8x16xf32>, tensor<3x4x8xf32>, tensor<2x8x6x16xf32>) -> tensor<2x8x6x16xf32>
  return
}

// -----

func.func @read_r4_heads(%q: tensor<2x8x6x8xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x8x8xf32>, %o: tensor<2x8x6x16xf32>) {
  // expected-error @+1 {{expected normalizer and state to have the same head count, but got 8 and 4}}
  %r = linattn.read %q, %s normalizer(%z) into(%o) {normalize = #linattn.normalize<>}
    : (tensor<2x8x6x8xf32>, tensor<2x4x8x16xf32>, tensor<2x8x8xf32>, tensor<2x8x6x16xf32>) -> tensor<2x8x6x16xf32>
  return
}

// -----

func.func @read_r4_key(%q: tensor<2x8x6x8xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x16xf32>, %o: tensor<2x8x6x16xf32>) {
  // expected-error @+1 {{expected normalizer and state to have the same head size, but got 16 and 8}}
  %r = linattn.read %q, %s normalizer(%z) into(%o) {normalize = #linattn.normalize<>}
    : (tensor<2x8x6x8xf32>, tensor<2x4x8x16xf32>, tensor<2x4x16xf32>, tensor<2x8x6x16xf32>) -> tensor<2x8x6x16xf32>
  return
}

// -----

func.func @read_r5_state(%q: tensor<2x8x6x8xbf16>, %s: tensor<2x4x8x16xbf16>, %o: tensor<2x8x6x16xbf16>) {
  // expected-error @+1 {{expected state to have element type 'f32' or 'f64', but got 'bf16'}}
  %r = linattn.read %q, %s into(%o)
    : (tensor<2x8x6x8xbf16>, tensor<2x4x8x16xbf16>, tensor<2x8x6x16xbf16>) -> tensor<2x8x6x16xbf16>
  return
}

// -----

func.func @read_r5_normalizer(%q: tensor<2x8x6x8xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x8xbf16>, %o: tensor<2x8x6x16xf32>) {
  // expected-error @+1 {{expected normalizer to have element type 'f32', but got 'bf16'}}
  %r = linattn.read %q, %s normalizer(%z) into(%o) {normalize = #linattn.normalize<>}
    : (tensor<2x8x6x8xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xbf16>, tensor<2x8x6x16xf32>) -> tensor<2x8x6x16xf32>
  return
}

// -----

func.func @read_r6_missing(%q: tensor<2x8x6x8xf32>, %s: tensor<2x4x8x16xf32>, %o: tensor<2x8x6x16xf32>) {
  // expected-error @+1 {{expected a phi region with feature map region, but got none}}
  %r = linattn.read %q, %s into(%o) {feature_map = #linattn.feature_map<region>}
    : (tensor<2x8x6x8xf32>, tensor<2x4x8x16xf32>, tensor<2x8x6x16xf32>) -> tensor<2x8x6x16xf32>
  return
}

// -----

func.func @read_r6_unused(%q: tensor<2x8x6x8xf32>, %s: tensor<2x4x8x16xf32>, %o: tensor<2x8x6x16xf32>) {
  // expected-error @+1 {{expected a phi region only with feature map region, but got feature map identity}}
  %r = linattn.read %q, %s into(%o) phi {
  ^bb0(%x: f32):
    linattn.yield %x : f32
  }
    : (tensor<2x8x6x8xf32>, tensor<2x4x8x16xf32>, tensor<2x8x6x16xf32>) -> tensor<2x8x6x16xf32>
  return
}

// -----

func.func @read_r7(%q: tensor<2x8x6x8xf32>, %s: tensor<2x4x8x16xf32>, %o: tensor<2x8x6x16xf32>) {
  // expected-error @+1 {{expected scale to be 0 or a normal number of 'f32', but got}}
  %r = linattn.read %q, %s into(%o) {scale = 0x7FF0000000000000 : f64}
    : (tensor<2x8x6x8xf32>, tensor<2x4x8x16xf32>, tensor<2x8x6x16xf32>) -> tensor<2x8x6x16xf32>
  return
}
