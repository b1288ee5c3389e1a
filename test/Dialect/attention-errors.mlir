// RUN: linattn-opt %s --split-input-file --verify-diagnostics

// One function per numbered constraint of the ops' descriptions: its name ends in
// the number.

//===----------------------------------------------------------------------===//
// attention
//===----------------------------------------------------------------------===//

func.func @attention_a1(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x16xf32>, %v: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected query and key to have the same head size, but got 8 and 16}}
  %r = linattn.attention %q, %k, %v
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @attention_a2(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x5x8xf32>) {
  // expected-error @+1 {{expected key and value to have the same sequence length, but got 6 and 5}}
  %r = linattn.attention %q, %k, %v
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x5x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @attention_a3_key(%q: tensor<2x4x6x8xf32>, %k: tensor<3x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected query and key to have the same batch size, but got 2 and 3}}
  %r = linattn.attention %q, %k, %v
    : (tensor<2x4x6x8xf32>, tensor<3x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @attention_a3_value(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expected query and value to have the same batch size, but got 2 and 1}}
  %r = linattn.attention %q, %k, %v
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<1x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @attention_a4(%q: tensor<2x4x6x8xf32>, %k: tensor<2x3x6x8xf32>, %v: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected head counts of query and key to divide one another, but got 4 and 3}}
  %r = linattn.attention %q, %k, %v
    : (tensor<2x4x6x8xf32>, tensor<2x3x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @attention_a4_key_value(%q: tensor<2x6x6x8xf32>, %k: tensor<2x2x6x8xf32>, %v: tensor<2x3x6x8xf32>) {
  // expected-error @+1 {{expected head counts of key and value to divide one another, but got 2 and 3}}
  %r = linattn.attention %q, %k, %v
    : (tensor<2x6x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x3x6x8xf32>) -> tensor<2x6x6x8xf32>
  return
}

// -----

func.func @attention_a4_zero(%q: tensor<2x4x6x8xf32>, %k: tensor<2x0x6x8xf32>, %v: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected head counts of query and key to divide one another, but got 4 and 0}}
  %r = linattn.attention %q, %k, %v
    : (tensor<2x4x6x8xf32>, tensor<2x0x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @attention_a5(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected query and key to have the same sequence length, but got 3 and 6}}
  %r = linattn.attention %q, %k, %v {causal}
    : (tensor<2x4x3x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @attention_a6_key(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf16>, %v: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected query and key to have the same element type, but got 'f32' and 'f16'}}
  %r = linattn.attention %q, %k, %v
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf16>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @attention_a6_output(%q: tensor<2x4x6x8xbf16>, %k: tensor<2x4x6x8xbf16>, %v: tensor<2x4x6x8xbf16>) {
  // expected-error @+1 {{expected query and output to have the same element type, but got 'bf16' and 'f32'}}
  %r = linattn.attention %q, %k, %v
    : (tensor<2x4x6x8xbf16>, tensor<2x4x6x8xbf16>, tensor<2x4x6x8xbf16>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @attention_a7_batch(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %mask: tensor<3x6xi1>) {
  // expected-error @+1 {{expected query and mask to have the same batch size, but got 2 and 3}}
  %r = linattn.attention %q, %k, %v mask(%mask)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<3x6xi1>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @attention_a7_tokens(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %mask: tensor<2x5xi1>) {
  // expected-error @+1 {{expected key and mask to have the same sequence length, but got 6 and 5}}
  %r = linattn.attention %q, %k, %v mask(%mask)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x5xi1>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @attention_a8_missing(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected a phi region with feature map region, but got none}}
  %r = linattn.attention %q, %k, %v {feature_map = #linattn.feature_map<region>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @attention_a8_unused(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected a phi region only with feature map region, but got feature map relu}}
  %r = linattn.attention %q, %k, %v {feature_map = #linattn.feature_map<relu>} phi {
  ^bb0(%x: f32):
    linattn.yield %x : f32
  }
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @attention_a8_argument(%q: tensor<2x4x6x8xf16>, %k: tensor<2x4x6x8xf16>, %v: tensor<2x4x6x8xf16>) {
  // expected-error @+1 {{expected phi to take one argument of type 'f32', but got ('f16')}}
  %r = linattn.attention %q, %k, %v {feature_map = #linattn.feature_map<region>} phi {
  ^bb0(%x: f16):
    linattn.yield %x : f16
  }
    : (tensor<2x4x6x8xf16>, tensor<2x4x6x8xf16>, tensor<2x4x6x8xf16>) -> tensor<2x4x6x8xf16>
  return
}

// -----

func.func @attention_a8_arguments(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected phi to take one argument of type 'f32', but got ('f32', 'f32')}}
  %r = linattn.attention %q, %k, %v {feature_map = #linattn.feature_map<region>} phi {
  ^bb0(%x: f32, %y: f32):
    linattn.yield %x : f32
  }
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @attention_a8_yield(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected phi to yield one value of type 'f32', but got none}}
  %r = linattn.attention %q, %k, %v {feature_map = #linattn.feature_map<region>} phi {
  ^bb0(%x: f32):
    linattn.yield
  }
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @attention_a8_yield_type(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected phi to yield one value of type 'f32', but got 'f64'}}
  %r = linattn.attention %q, %k, %v {feature_map = #linattn.feature_map<region>} phi {
  ^bb0(%x: f32):
    %y = arith.extf %x : f32 to f64
    linattn.yield %y : f64
  }
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @attention_a8_not_scalar(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected phi to hold scalar arithmetic only, but got 'tensor.splat'}}
  %r = linattn.attention %q, %k, %v {feature_map = #linattn.feature_map<region>} phi {
  ^bb0(%x: f32):
    %y = tensor.splat %x : tensor<4xf32>
    linattn.yield %x : f32
  }
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @attention_a8_empty(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expects a non-empty block}}
  %r = linattn.attention %q, %k, %v {feature_map = #linattn.feature_map<region>} phi {
  ^bb0(%x: f32):
  }
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @attention_a8_constant(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected phi to hold scalar arithmetic only, but got 'index.constant'}}
  %r = linattn.attention %q, %k, %v {feature_map = #linattn.feature_map<region>} phi {
  ^bb0(%x: f32):
    %c = index.constant 4
    linattn.yield %x : f32
  }
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @attention_a8_impure(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected phi to hold scalar arithmetic only, but got 'func.call'}}
  %r = linattn.attention %q, %k, %v {feature_map = #linattn.feature_map<region>} phi {
  ^bb0(%x: f32):
    %y = func.call @f(%x) : (f32) -> f32
    linattn.yield %y : f32
  }
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @attention_a9_map(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected softmax weights without a feature map, but got elu1}}
  %r = linattn.attention %q, %k, %v weights(softmax) {feature_map = #linattn.feature_map<elu1>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @attention_a9_normalize(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected softmax weights without normalize, but got both}}
  %r = linattn.attention %q, %k, %v weights(softmax) {normalize = #linattn.normalize<>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @attention_a10_batch(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected query and output to have the same batch size, but got 2 and 3}}
  %r = linattn.attention %q, %k, %v
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<3x4x6x8xf32>
  return
}

// -----

func.func @attention_a10_heads(%q: tensor<2x4x6x8xf32>, %k: tensor<2x2x6x8xf32>, %v: tensor<2x2x6x8xf32>) {
  // expected-error @+1 {{expected the head count of output to be the largest of those of query, key and value (4, 2 and 2), but got 2}}
  %r = linattn.attention %q, %k, %v
    : (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) -> tensor<2x2x6x8xf32>
  return
}

// -----

func.func @attention_a10_tokens(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected query and output to have the same sequence length, but got 6 and 7}}
  %r = linattn.attention %q, %k, %v
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x7x8xf32>
  return
}

// -----

func.func @attention_a10_value(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>) {
  // expected-error @+1 {{expected value and output to have the same head size, but got 16 and 8}}
  %r = linattn.attention %q, %k, %v
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @attention_a11(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected scale to be 0 or a normal number of 'f32', but got}}
  %r = linattn.attention %q, %k, %v {scale = 0x7FF0000000000000 : f64}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @attention_a8_tensor_operand(%q: tensor<2x4x6x8xf32>, %t: tensor<4xf32>) {
  // expected-error @+1 {{expected phi to hold scalar arithmetic only, but got 'arith.addf'}}
  %r = linattn.attention %q, %q, %q {feature_map = #linattn.feature_map<region>} phi {
  ^bb0(%x: f32):
    %y = arith.addf %t, %t : tensor<4xf32>
    linattn.yield %x : f32
  } : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @attention_rank(%q: tensor<4x6x8xf32>) {
  // expected-error @+1 {{operand #0 must be [B, H, T, D] tokens as a ranked tensor or memref of f16, bf16, f32 or f64, but got 'tensor<4x6x8xf32>'}}
  %r = linattn.attention %q, %q, %q : (tensor<4x6x8xf32>, tensor<4x6x8xf32>, tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  return
}

// -----

func.func @attention_buffers(%q: memref<2x4x6x8xf32>) {
  // expected-error @+2 {{expected query to be a [B, H, T, D] tensor, but got 'memref<2x4x6x8xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = linattn.attention %q, %q, %q : (memref<2x4x6x8xf32>, memref<2x4x6x8xf32>, memref<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// quadratic: the constraints of attention, except A5
//===----------------------------------------------------------------------===//

func.func @quadratic_a1(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x16xf32>, %v: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected query and key to have the same head size, but got 8 and 16}}
  %r = linattn.quadratic %q, %k, %v into(%o)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @quadratic_a2(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x5x8xf32>, %o: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected key and value to have the same sequence length, but got 6 and 5}}
  %r = linattn.quadratic %q, %k, %v into(%o)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x5x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @quadratic_a3(%q: tensor<2x4x6x8xf32>, %k: tensor<3x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected query and key to have the same batch size, but got 2 and 3}}
  %r = linattn.quadratic %q, %k, %v into(%o)
    : (tensor<2x4x6x8xf32>, tensor<3x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @quadratic_a4(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x3x6x8xf32>, %o: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected head counts of query and value to divide one another, but got 4 and 3}}
  %r = linattn.quadratic %q, %k, %v into(%o)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x3x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @quadratic_a6(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf64>, %o: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected query and value to have the same element type, but got 'f32' and 'f64'}}
  %r = linattn.quadratic %q, %k, %v into(%o)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf64>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @quadratic_a7(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %mask: tensor<2x4xi1>, %o: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected key and mask to have the same sequence length, but got 6 and 4}}
  %r = linattn.quadratic %q, %k, %v mask(%mask) into(%o)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4xi1>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @quadratic_a8(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected a phi region with feature map region, but got none}}
  %r = linattn.quadratic %q, %k, %v into(%o) {feature_map = #linattn.feature_map<region>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @quadratic_a9(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected softmax weights without normalize, but got both}}
  %r = linattn.quadratic %q, %k, %v weights(softmax) into(%o) {normalize = #linattn.normalize<eps = 0.0>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @quadratic_a10(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x9xf32>) {
  // expected-error @+1 {{expected value and output to have the same head size, but got 8 and 9}}
  %r = linattn.quadratic %q, %k, %v into(%o)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x9xf32>) -> tensor<2x4x6x9xf32>
  return
}

// -----

func.func @quadratic_a11(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected scale to be 0 or a normal number of 'f32', but got}}
  %r = linattn.quadratic %q, %k, %v into(%o) {scale = 0x7FF8000000000000 : f64}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @quadratic_mixture(%q: tensor<2x4x6x8xf32>, %o: memref<2x4x6x8xf32>) {
  // expected-error @+1 {{expected all operands to be tensors or all to be buffers, but got a mixture}}
  linattn.quadratic %q, %q, %q into(%o) : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, memref<2x4x6x8xf32>) -> ()
  return
}

// -----

func.func @quadratic_result(%q: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected the number of tensor results (0) to be equal to the number of output tensors (1)}}
  linattn.quadratic %q, %q, %q into(%q) : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> ()
  return
}

// -----

func.func @summands_of_few_matrices(%q: tensor<2x4x6x16xbf16>) {
  // expected-error @+1 {{expected summands of 4 matrices, but got 2}}
  linattn.quadratic %q, %q, %q into(%q) {summands = array<i64: 1, 1>} : (tensor<2x4x6x16xbf16>, tensor<2x4x6x16xbf16>, tensor<2x4x6x16xbf16>, tensor<2x4x6x16xbf16>) -> tensor<2x4x6x16xbf16>
  return
}

// -----

func.func @too_many_summands(%q: tensor<2x4x6x16xbf16>) {
  // expected-error @+1 {{expected 1, 2 or 3 summands, but got 4}}
  linattn.quadratic %q, %q, %q into(%q) {summands = array<i64: 1, 1, 4, 1>} : (tensor<2x4x6x16xbf16>, tensor<2x4x6x16xbf16>, tensor<2x4x6x16xbf16>, tensor<2x4x6x16xbf16>) -> tensor<2x4x6x16xbf16>
  return
}

// -----

func.func @summands_of_f16(%q: tensor<2x4x6x16xf16>) {
  // expected-error @+1 {{expected summands only for bf16 tokens, but got 'f16'}}
  linattn.quadratic %q, %q, %q into(%q) {summands = array<i64: 1, 1, 2, 1>} : (tensor<2x4x6x16xf16>, tensor<2x4x6x16xf16>, tensor<2x4x6x16xf16>, tensor<2x4x6x16xf16>) -> tensor<2x4x6x16xf16>
  return
}
