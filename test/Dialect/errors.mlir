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

//===----------------------------------------------------------------------===//
// scan
//===----------------------------------------------------------------------===//

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

// -----

func.func @scan_s11_decay_head(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %decay: tensor<3xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected decay and state to have the same head count, but got 3 and 4}}
  %r:2 = linattn.scan %q, %k, %v decay(%decay) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<3xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_decay_batch(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %decay: tensor<1x4x6xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected decay and key to have the same batch size, but got 1 and 2}}
  %r:2 = linattn.scan %q, %k, %v decay(%decay) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<1x4x6xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_decay_heads(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %decay: tensor<2x2x6xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected decay and state to have the same head count, but got 2 and 4}}
  %r:2 = linattn.scan %q, %k, %v decay(%decay) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x2x6xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_decay_tokens(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %decay: tensor<2x4x5xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected decay and key to have the same sequence length, but got 5 and 6}}
  %r:2 = linattn.scan %q, %k, %v decay(%decay) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x5xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_decay_key(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %decay: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected decay and key to have the same head size, but got 16 and 8}}
  %r:2 = linattn.scan %q, %k, %v decay(%decay) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_value_decay_rank(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %value_decay: tensor<2x4x6xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected value_decay to be [B, H, T, V], but got 'tensor<2x4x6xf32>'}}
  %r:2 = linattn.scan %q, %k, %v value_decay(%value_decay) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_value_decay(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %value_decay: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected value_decay and value to have the same head size, but got 8 and 16}}
  %r:2 = linattn.scan %q, %k, %v value_decay(%value_decay) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_write(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %beta: tensor<2x4x6xf32>, %write: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected write and value to have the same head size, but got 8 and 16}}
  %r:2 = linattn.scan %q, %k, %v beta(%beta) write(%write) update(delta) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_write_rank(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %beta: tensor<2x4x6xf32>, %write: tensor<2x4x6xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected write to be [B, H, T, V], but got 'tensor<2x4x6xf32>'}}
  %r:2 = linattn.scan %q, %k, %v beta(%beta) write(%write) update(delta) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_beta_rank(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %beta: tensor<4xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected beta to be [B, H, T] or [B, H, T, V], but got 'tensor<4xf32>'}}
  %r:2 = linattn.scan %q, %k, %v beta(%beta) update(delta) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<4xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_beta(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %beta: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected beta and value to have the same head size, but got 8 and 16}}
  %r:2 = linattn.scan %q, %k, %v beta(%beta) update(delta) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_a_rank(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %a: tensor<2x4x6xf32>, %b: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected a to be [B, H, T, K], but got 'tensor<2x4x6xf32>'}}
  %r:2 = linattn.scan %q, %k, %v a(%a) b(%b) update(dplr) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_a(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %a: tensor<2x4x6x16xf32>, %b: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected a and key to have the same head size, but got 16 and 8}}
  %r:2 = linattn.scan %q, %k, %v a(%a) b(%b) update(dplr) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_b_rank(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %a: tensor<2x4x6x8xf32>, %b: tensor<4xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected b to be [B, H, T, K], but got 'tensor<4xf32>'}}
  %r:2 = linattn.scan %q, %k, %v a(%a) b(%b) update(dplr) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x8xf32>, tensor<4xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_b(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %a: tensor<2x4x6x8xf32>, %b: tensor<2x1x6x8xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected b and state to have the same head count, but got 1 and 4}}
  %r:2 = linattn.scan %q, %k, %v a(%a) b(%b) update(dplr) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x8xf32>, tensor<2x1x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_erase_rank(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %erase: tensor<2x4x6xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected erase to be [B, H, T, K], but got 'tensor<2x4x6xf32>'}}
  %r:2 = linattn.scan %q, %k, %v erase(%erase) update(delta) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_erase(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %erase: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected erase and key to have the same head size, but got 16 and 8}}
  %r:2 = linattn.scan %q, %k, %v erase(%erase) update(delta) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_bonus_heads(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %bonus: tensor<2x8xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected bonus and state to have the same head count, but got 2 and 4}}
  %r:2 = linattn.scan %q, %k, %v bonus(%bonus) readout(exclusive) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_bonus_key(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %bonus: tensor<4x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected bonus and key to have the same head size, but got 16 and 8}}
  %r:2 = linattn.scan %q, %k, %v bonus(%bonus) readout(exclusive) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<4x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_mask_batch(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %mask: tensor<1x6xi1>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected mask and key to have the same batch size, but got 1 and 2}}
  %r:2 = linattn.scan %q, %k, %v mask(%mask) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<1x6xi1>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s11_mask_tokens(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %mask: tensor<2x7xi1>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected mask and key to have the same sequence length, but got 7 and 6}}
  %r:2 = linattn.scan %q, %k, %v mask(%mask) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x7xi1>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s12_beta(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %beta: tensor<2x4x6xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected beta only with update(delta) or update(oja), but got update(add)}}
  %r:2 = linattn.scan %q, %k, %v beta(%beta) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s12_erase(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %erase: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected erase only with update(delta), but got update(add)}}
  %r:2 = linattn.scan %q, %k, %v erase(%erase) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s12_write(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %write: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected write only with update(delta), but got update(add)}}
  %r:2 = linattn.scan %q, %k, %v write(%write) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s12_delta(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected update(delta) with beta or erase, but got neither}}
  %r:2 = linattn.scan %q, %k, %v update(delta) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s13_a(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %a: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected a only with update(dplr), but got update(add)}}
  %r:2 = linattn.scan %q, %k, %v a(%a) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s13_b(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %beta: tensor<2x4x6xf32>, %b: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected b only with update(dplr), but got update(delta)}}
  %r:2 = linattn.scan %q, %k, %v beta(%beta) b(%b) update(delta) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s13_missing_b(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %a: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected update(dplr) with both a and b, but got only a}}
  %r:2 = linattn.scan %q, %k, %v a(%a) update(dplr) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s13_missing_a(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %b: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected update(dplr) with both a and b, but got only b}}
  %r:2 = linattn.scan %q, %k, %v b(%b) update(dplr) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s13_missing(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected update(dplr) with both a and b, but got neither}}
  %r:2 = linattn.scan %q, %k, %v update(dplr) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s14(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %bonus: tensor<4x8xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected bonus only with readout(exclusive), but got readout(inclusive)}}
  %r:2 = linattn.scan %q, %k, %v bonus(%bonus) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<4x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s15(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %value_decay: tensor<2x4x6x16xf32>, %beta: tensor<2x4x6xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected value_decay only with update(add) or update(oja), but got update(delta)}}
  %r:2 = linattn.scan %q, %k, %v value_decay(%value_decay) beta(%beta) update(delta) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s16_update(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %beta: tensor<2x4x6xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x8xf32>) {
  // expected-error @+1 {{expected normalize only with update(add) and readout(inclusive), but got update(delta) and readout(inclusive)}}
  %r:3 = linattn.scan %q, %k, %v beta(%beta) update(delta) into(%o) init(%s) normalizer(%z) {normalize = #linattn.normalize<>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @scan_s16_readout(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x8xf32>) {
  // expected-error @+1 {{expected normalize only with update(add) and readout(inclusive), but got update(add) and readout(exclusive)}}
  %r:3 = linattn.scan %q, %k, %v readout(exclusive) into(%o) init(%s) normalizer(%z) {normalize = #linattn.normalize<>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @scan_s17_batch(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %cu_seqlens: tensor<3xi32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected batch size 1 with cu_seqlens, but got 2}}
  %r:2 = linattn.scan %q, %k, %v cu_seqlens(%cu_seqlens) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<3xi32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s17_state(%q: tensor<1x4x6x8xf32>, %k: tensor<1x4x6x8xf32>, %v: tensor<1x4x6x16xf32>, %cu_seqlens: tensor<3xi32>, %o: tensor<1x4x6x16xf32>, %s: tensor<3x4x8x16xf32>) {
  // expected-error @+1 {{expected the batch size of state to be one less than the length of cu_seqlens (3), but got 3}}
  %r:2 = linattn.scan %q, %k, %v cu_seqlens(%cu_seqlens) into(%o) init(%s)
    : (tensor<1x4x6x8xf32>, tensor<1x4x6x8xf32>, tensor<1x4x6x16xf32>, tensor<3xi32>, tensor<1x4x6x16xf32>, tensor<3x4x8x16xf32>)
    -> (tensor<1x4x6x16xf32>, tensor<3x4x8x16xf32>)
  return
}

// -----

func.func @scan_s18(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected transition(before) only with update(dplr), but got update(add)}}
  %r:2 = linattn.scan %q, %k, %v transition(before) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_s19(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) {
  // expected-error @+1 {{expected scale to be 0 or a normal number of 'f32', but got}}
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s) {scale = 0xFFF0000000000000 : f64}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return
}

// -----

func.func @scan_gate_rank(%q: tensor<2x4x6x8xf32>, %g: tensor<2x4xf32>, %s: tensor<2x4x8x8xf32>) {
  // expected-error @+1 {{operand #3 must be [H], [B, H, T] or [B, H, T, D] gate as a ranked tensor or memref of f16, bf16, f32 or f64, but got 'tensor<2x4xf32>'}}
  %r:2 = linattn.scan %q, %q, %q decay(%g) into(%q) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4xf32>, tensor<2x4x6x8xf32>, tensor<2x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x8x8xf32>)
  return
}

// -----

func.func @scan_mixture(%q: memref<2x4x6x8xf32>, %s: tensor<2x4x8x8xf32>) {
  // expected-error @+1 {{expected all operands to be tensors or all to be buffers, but got a mixture}}
  %r = linattn.scan %q, %q, %q into(%q) init(%s)
    : (memref<2x4x6x8xf32>, memref<2x4x6x8xf32>, memref<2x4x6x8xf32>, memref<2x4x6x8xf32>, tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  return
}

// -----

func.func @scan_result_type(%q: tensor<2x4x6x8xf32>, %s: tensor<2x4x8x8xf32>) {
  // expected-error @+1 {{expected type of operand #4 ('tensor<2x4x8x8xf32>') to match type of corresponding result ('tensor<2x4x8x?xf32>')}}
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x8x?xf32>)
  return
}

// -----

func.func @scan_unknown_update(%q: tensor<2x4x6x8xf32>, %s: tensor<2x4x8x8xf32>) {
  // expected-error @+1 {{expected one of [add, delta, dplr, oja] for how a token is written into the state, got: gamma}}
  %r:2 = linattn.scan %q, %q, %q update(gamma) into(%q) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x8x8xf32>)
  return
}

// -----

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

// -----

//===----------------------------------------------------------------------===//
// feature_map, yield
//===----------------------------------------------------------------------===//

func.func @feature_map_f1_type(%x: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x8xf16>) {
  // expected-error @+1 {{expected output to have element type 'f32', but got 'f16'}}
  %r = linattn.feature_map %x into(%o)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf16>) -> tensor<2x4x6x8xf16>
  return
}

// -----

func.func @feature_map_f1_batch(%x: tensor<2x4x6x8xf32>, %o: tensor<3x4x6x8xf32>) {
  // expected-error @+1 {{expected input and output to have the same batch size, but got 2 and 3}}
  %r = linattn.feature_map %x into(%o)
    : (tensor<2x4x6x8xf32>, tensor<3x4x6x8xf32>) -> tensor<3x4x6x8xf32>
  return
}

// -----

func.func @feature_map_f1_heads(%x: tensor<2x4x6x8xf32>, %o: tensor<2x3x6x8xf32>) {
  // expected-error @+1 {{expected input and output to have the same head count, but got 4 and 3}}
  %r = linattn.feature_map %x into(%o)
    : (tensor<2x4x6x8xf32>, tensor<2x3x6x8xf32>) -> tensor<2x3x6x8xf32>
  return
}

// -----

func.func @feature_map_f1_tokens(%x: tensor<2x4x6x8xf32>, %o: tensor<2x4x3x8xf32>) {
  // expected-error @+1 {{expected input and output to have the same sequence length, but got 6 and 3}}
  %r = linattn.feature_map %x into(%o)
    : (tensor<2x4x6x8xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @feature_map_f1_features(%x: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x3xf32>) {
  // expected-error @+1 {{expected input and output to have the same head size, but got 8 and 3}}
  %r = linattn.feature_map %x into(%o)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x3xf32>) -> tensor<2x4x6x3xf32>
  return
}

// -----

func.func @feature_map_f2_missing(%x: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected a phi region with feature map region, but got none}}
  %r = linattn.feature_map %x into(%o) {feature_map = #linattn.feature_map<region>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @feature_map_f2_unused(%x: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected a phi region only with feature map region, but got feature map relu2}}
  %r = linattn.feature_map %x into(%o) {feature_map = #linattn.feature_map<relu2>} phi {
  ^bb0(%x1: f32):
    linattn.yield %x1 : f32
  }
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @yield_parent(%x: f32) {
  // expected-error @+1 {{expects parent op to be one of 'linattn.attention, linattn.quadratic, linattn.scan, linattn.state, linattn.read, linattn.feature_map'}}
  linattn.yield %x : f32
}

// -----

//===----------------------------------------------------------------------===//
// attributes
//===----------------------------------------------------------------------===//

// expected-error @+1 {{expected either eps or floor, but got both}}
func.func private @normalize_both() attributes {a = #linattn.normalize<eps = 1.0e-6, floor = 1.0>}

// -----

// expected-error @+1 {{expected eps to be finite and not negative, but got -1}}
func.func private @normalize_eps() attributes {a = #linattn.normalize<eps = -1.0>}

// -----

// expected-error @+1 {{expected eps to be finite and not negative, but got nan}}
func.func private @normalize_eps_nan() attributes {a = #linattn.normalize<eps = 0x7FF8000000000000 : f64>}

// -----

// expected-error @+1 {{expected floor to be finite and positive, but got 0}}
func.func private @normalize_floor() attributes {a = #linattn.normalize<floor = 0.0>}

// -----

// expected-error @+1 {{expected clamp to be finite and positive, but got -2.5}}
func.func private @normalize_clamp() attributes {a = #linattn.normalize<clamp = -2.5>}

// -----

// expected-error @+1 {{expected clamp to be finite and positive, but got INF}}
func.func private @normalize_clamp_infinite() attributes {a = #linattn.normalize<clamp = 0x7FF0000000000000 : f64>}

// -----

// expected-error @+1 {{expected chunk to be between 0 and 1048576, but got -1}}
func.func private @config_chunk() attributes {a = #linattn.config<form = chunk, chunk = -1>}

// -----

// expected-error @+1 {{expected rows to be between 0 and 64, but got 65}}
func.func private @config_rows() attributes {a = #linattn.config<form = state_tile, rows = 65>}

// -----

// expected-error @+1 {{expected cols to be between 0 and 256, but got 257}}
func.func private @config_cols() attributes {a = #linattn.config<form = state_tile, cols = 257>}

// -----

// expected-error @+1 {{expected block to be between 0 and 4096, but got 4097}}
func.func private @config_block() attributes {a = #linattn.config<form = state_tile, block = 4097>}

// -----

// expected-error @+1 {{expected whole to be between 0 and 256, but got 257}}
func.func private @config_whole() attributes {a = #linattn.config<form = chunk, whole = 257>}

// -----

// expected-error @+1 {{expected few to be between 0 and 64, but got 65}}
func.func private @config_few() attributes {a = #linattn.config<form = chunk, few = 65>}

// -----

// expected-error @+2 {{expected ::mlir::linattn::Form to be one of: auto, quadratic, token, state_tile, chunk}}
// expected-error @+1 {{failed to parse LinAttn_ConfigAttr parameter 'form'}}
func.func private @config_form() attributes {a = #linattn.config<form = spiral>}

// -----

// expected-error @+2 {{expected ::mlir::linattn::FeatureMapKind to be one of: identity, relu, relu2, elu1, softmax_kernel, exp, region, softmax, }}
// expected-error @+1 {{failed to parse LinAttn_FeatureMapAttr parameter 'kind'}}
func.func private @feature_map_kind() attributes {a = #linattn.feature_map<gelu>}
