// RUN: linattn-opt %s --allow-unregistered-dialect --linattn-raise-onnx --split-input-file --verify-diagnostics

// One function per rule of the operator, named after its number.

func.func @n1_missing(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>) {
  // expected-error @below {{expected value, but got none}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "linear"}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n1_absent(%a0: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>) {
  %none = "onnx.NoValue"() {value} : () -> none
  // expected-error @below {{expected key, but got none}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %none, %a2) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "linear"}
    : (tensor<1x5x16xf32>, none, tensor<1x5x16xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n1_many(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>, %a3: tensor<1x5x16xf32>, %a4: tensor<1x5x16xf32>, %a5: tensor<1x5x16xf32>, %a6: tensor<1x5x16xf32>, %a7: tensor<1x5x16xf32>) {
  // expected-error @below {{expected at most 7 operands, but got 8}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "linear"}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n1_unranked(%a0: tensor<*xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>) {
  // expected-error @below {{expected query to be a ranked tensor, but got 'tensor<*xf32>'}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "linear"}
    : (tensor<*xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n1_scalar(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>, %a4: f32) {
  %none = "onnx.NoValue"() {value} : () -> none
  // expected-error @below {{expected decay to be a ranked tensor, but got 'f32'}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2, %none, %a4) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "gated"}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>, none, f32) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n1_results(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>) {
  // expected-error @below {{expected the results output and present_state, but got 3 results}}
  %r0, %r1, %r2 = "onnx.LinearAttention"(%a0, %a1, %a2) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "linear"}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n2_rank(%a0: tensor<1x5x16xf32>, %a1: tensor<1x2x5x8xf32>, %a2: tensor<1x5x16xf32>) {
  // expected-error @below {{expected key to be packed, [B, T, H·D], but got 'tensor<1x2x5x8xf32>'}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "linear"}
    : (tensor<1x5x16xf32>, tensor<1x2x5x8xf32>, tensor<1x5x16xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n2_element(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf16>) {
  // expected-error @below {{expected value to have the element type of query, 'f32', but got 'f16'}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "linear"}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf16>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n2_gate_element(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>, %a4: tensor<1x5x2xf64>) {
  %none = "onnx.NoValue"() {value} : () -> none
  // expected-error @below {{expected decay to have the element type of query, 'f32', but got 'f64'}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2, %none, %a4) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "gated"}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>, none, tensor<1x5x2xf64>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n2_integers(%a0: tensor<1x5x16xi32>, %a1: tensor<1x5x16xi32>, %a2: tensor<1x5x16xi32>) {
  // expected-error @below {{expected query to have the element type f16, bf16, f32 or f64, but got 'i32'}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "linear"}
    : (tensor<1x5x16xi32>, tensor<1x5x16xi32>, tensor<1x5x16xi32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n2_batch(%a0: tensor<1x5x16xf32>, %a1: tensor<2x5x16xf32>, %a2: tensor<1x5x16xf32>) {
  // expected-error @below {{expected batch size of key to be 1, but got 2}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "linear"}
    : (tensor<1x5x16xf32>, tensor<2x5x16xf32>, tensor<1x5x16xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n2_length(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>, %a5: tensor<1x4x2xf32>) {
  %none = "onnx.NoValue"() {value} : () -> none
  // expected-error @below {{expected sequence length of beta to be 5, but got 4}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2, %none, %none, %a5) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "delta"}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>, none, none, tensor<1x4x2xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n3_missing(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>) {
  // expected-error @below {{expected q_num_heads, but got none}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2) {kv_num_heads = 2 : i64}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n3_kind(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>) {
  // expected-error @below {{expected kv_num_heads to be an integer, but got 2.000000e+00 : f32}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2) {q_num_heads = 2 : i64, kv_num_heads = 2.0 : f32}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n3_zero(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>) {
  // expected-error @below {{expected kv_num_heads to be positive, but got 0}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2) {q_num_heads = 2 : i64, kv_num_heads = 0 : i64}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n3_wide(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>) {
  // expected-error @below {{expected kv_num_heads to fit in 64 bits, but got 18446744073709551616 : i129}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2) {q_num_heads = 2 : i64, kv_num_heads = 18446744073709551616 : i129}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n3_multiple(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>) {
  // expected-error @below {{expected q_num_heads to be a multiple of kv_num_heads, but got 2 and 4}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2) {q_num_heads = 2 : i64, kv_num_heads = 4 : i64}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n4_query(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>) {
  // expected-error @below {{expected the last size of query to be a multiple of q_num_heads, 3, but got 16}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2) {q_num_heads = 3 : i64, kv_num_heads = 1 : i64, update_rule = "linear"}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n4_key(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x20xf32>, %a2: tensor<1x5x16xf32>) {
  // expected-error @below {{expected size of a head of key to be 8, but got 10}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "linear"}
    : (tensor<1x5x16xf32>, tensor<1x5x20xf32>, tensor<1x5x16xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n4_value(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x15xf32>) {
  // expected-error @below {{expected the last size of value to be a multiple of kv_num_heads, 2, but got 15}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "linear"}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x15xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n4_unknown(%a0: tensor<1x5x?xf32>, %a1: tensor<1x5x?xf32>, %a2: tensor<1x5x?xf32>) {
  // expected-error @below {{expected scale, since it depends on the last size of query, which is not known, but got none}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "linear"}
    : (tensor<1x5x?xf32>, tensor<1x5x?xf32>, tensor<1x5x?xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n5_rule(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>) {
  // expected-error @below {{expected update_rule to be linear, gated, delta or gated_delta, but got "deltas"}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "deltas"}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n6_missing(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>, %a5: tensor<1x5x2xf32>) {
  %none = "onnx.NoValue"() {value} : () -> none
  // expected-error @below {{expected decay with update_rule gated_delta, but got none}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2, %none, %none, %a5) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>, none, none, tensor<1x5x2xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n6_forbidden(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>, %a4: tensor<1x5x2xf32>, %a5: tensor<1x5x2xf32>) {
  %none = "onnx.NoValue"() {value} : () -> none
  // expected-error @below {{expected decay only with update_rule gated or gated_delta, but got delta}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2, %none, %a4, %a5) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "delta"}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>, none, tensor<1x5x2xf32>, tensor<1x5x2xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n6_size(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>, %a4: tensor<1x5x8xf32>) {
  %none = "onnx.NoValue"() {value} : () -> none
  // expected-error @below {{expected the last size of decay to be kv_num_heads, 2, or kv_num_heads·d_k, 16, but got 8}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2, %none, %a4) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "gated"}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>, none, tensor<1x5x8xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n6_unknown(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>, %a4: tensor<1x5x?xf32>) {
  %none = "onnx.NoValue"() {value} : () -> none
  // expected-error @below {{expected the last size of decay to be kv_num_heads, 2, or kv_num_heads·d_k, 16, but got one that is not known}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2, %none, %a4) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "gated"}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>, none, tensor<1x5x?xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n7_missing(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>) {
  // expected-error @below {{expected beta with update_rule delta, but got none}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "delta"}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n7_forbidden(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>, %a4: tensor<1x5x2xf32>, %a5: tensor<1x5x2xf32>) {
  %none = "onnx.NoValue"() {value} : () -> none
  // expected-error @below {{expected beta only with update_rule delta or gated_delta, but got gated}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2, %none, %a4, %a5) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "gated"}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>, none, tensor<1x5x2xf32>, tensor<1x5x2xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n7_size(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>, %a5: tensor<1x5x16xf32>) {
  %none = "onnx.NoValue"() {value} : () -> none
  // expected-error @below {{expected the last size of beta to be kv_num_heads, 2, or 1, but got 16}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2, %none, %none, %a5) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "delta"}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>, none, none, tensor<1x5x16xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n8_forbidden(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>, %a4: tensor<1x5x2xf32>, %a6: tensor<1x5x16xf32>) {
  %none = "onnx.NoValue"() {value} : () -> none
  // expected-error @below {{expected erase_gate only with update_rule delta or gated_delta, but got gated}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2, %none, %a4, %none, %a6) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "gated"}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>, none, tensor<1x5x2xf32>, none, tensor<1x5x16xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n8_size(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>, %a5: tensor<1x5x2xf32>, %a6: tensor<1x5x2xf32>) {
  %none = "onnx.NoValue"() {value} : () -> none
  // expected-error @below {{expected the last size of erase_gate to be kv_num_heads·d_k, 16, but got 2}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2, %none, %none, %a5, %a6) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "delta"}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>, none, none, tensor<1x5x2xf32>, tensor<1x5x2xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n9_rank(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>, %a3: tensor<1x2x64xf32>) {
  // expected-error @below {{expected past_state to be [B, H_kv, d_k, d_v], but got 'tensor<1x2x64xf32>'}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2, %a3) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "linear"}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x2x64xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n9_integers(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>, %a3: tensor<1x2x8x8xi32>) {
  // expected-error @below {{expected past_state to have a floating-point element type, but got 'i32'}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2, %a3) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "linear"}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x2x8x8xi32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n9_heads(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>, %a3: tensor<1x4x8x8xf32>) {
  // expected-error @below {{expected number of heads of past_state to be 2, but got 4}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2, %a3) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "linear"}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x4x8x8xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n9_sizes(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>, %a3: tensor<1x2x8x4xf32>) {
  // expected-error @below {{expected value size of past_state to be 8, but got 4}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2, %a3) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "linear"}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x2x8x4xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n9_output(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>) {
  // expected-error @below {{expected output to be 'tensor<1x5x16xf32>', but got 'tensor<1x5x8xf32>'}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "linear"}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>) -> (tensor<1x5x8xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n9_present(%a0: tensor<1x5x16xf16>, %a1: tensor<1x5x16xf16>, %a2: tensor<1x5x16xf16>) {
  // expected-error @below {{expected present_state to be 'tensor<1x2x8x8xf16>', but got 'tensor<1x2x8x8xf32>'}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "linear"}
    : (tensor<1x5x16xf16>, tensor<1x5x16xf16>, tensor<1x5x16xf16>) -> (tensor<1x5x16xf16>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n9_past(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>, %a3: tensor<1x2x8x8xf16>) {
  // expected-error @below {{expected present_state to be 'tensor<1x2x8x8xf16>', but got 'tensor<1x2x8x8xf32>'}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2, %a3) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "linear"}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x2x8x8xf16>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n10_scale(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>) {
  // expected-error @below {{expected scale to be 0 or a normal number, but got 0x7F800000 : f32}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "linear", scale = 0x7F800000 : f32}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n10_kind(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>) {
  // expected-error @below {{expected scale to be a number, but got "half"}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "linear", scale = "half"}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n10_unknown(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>) {
  // expected-error @below {{expected attributes q_num_heads, kv_num_heads, update_rule, scale, chunk_size, but got 'update_rules'}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "linear", update_rules = "linear"}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}

// -----

func.func @n10_chunk(%a0: tensor<1x5x16xf32>, %a1: tensor<1x5x16xf32>, %a2: tensor<1x5x16xf32>) {
  // expected-error @below {{expected chunk_size to be an integer, but got unit}}
  %r0, %r1 = "onnx.LinearAttention"(%a0, %a1, %a2) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "linear", chunk_size}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return
}
