// RUN: linattn-run %s %S/Inputs/onnx.mlir --all --open-size=1,9 --compare=exact
// RUN: linattn-run %s %S/Inputs/onnx.mlir --all --open-size=9 --form=chunk:4 --compare=exact

// The operator of ONNX, raised and compiled, against its specification written
// as loops: packed heads, query heads that share states, every rule, every shape
// of decay and beta, with a past state and without.

func.func @linear(%q: tensor<2x?x16xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x6xf32>, %s: tensor<2x2x4x3xf32>) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>) {
  %none = "onnx.NoValue"() {value} : () -> none
  %o, %s1 = "onnx.LinearAttention"(%q, %k, %v, %s, %none, %none) {q_num_heads = 4 : si64, kv_num_heads = 2 : si64, update_rule = "linear"}
    : (tensor<2x?x16xf32>, tensor<2x?x8xf32>, tensor<2x?x6xf32>, tensor<2x2x4x3xf32>, none, none) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>)
  return %o, %s1 : tensor<2x?x12xf32>, tensor<2x2x4x3xf32>
}

func.func @gated_per_head(%q: tensor<2x?x16xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x6xf32>, %s: tensor<2x2x4x3xf32>, %g: tensor<2x?x2xf32>) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>) {
  %none = "onnx.NoValue"() {value} : () -> none
  %o, %s1 = "onnx.LinearAttention"(%q, %k, %v, %s, %g, %none) {q_num_heads = 4 : si64, kv_num_heads = 2 : si64, update_rule = "gated"}
    : (tensor<2x?x16xf32>, tensor<2x?x8xf32>, tensor<2x?x6xf32>, tensor<2x2x4x3xf32>, tensor<2x?x2xf32>, none) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>)
  return %o, %s1 : tensor<2x?x12xf32>, tensor<2x2x4x3xf32>
}

func.func @gated_per_channel(%q: tensor<2x?x16xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x6xf32>, %s: tensor<2x2x4x3xf32>, %g: tensor<2x?x8xf32>) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>) {
  %none = "onnx.NoValue"() {value} : () -> none
  %o, %s1 = "onnx.LinearAttention"(%q, %k, %v, %s, %g, %none) {q_num_heads = 4 : si64, kv_num_heads = 2 : si64, update_rule = "gated"}
    : (tensor<2x?x16xf32>, tensor<2x?x8xf32>, tensor<2x?x6xf32>, tensor<2x2x4x3xf32>, tensor<2x?x8xf32>, none) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>)
  return %o, %s1 : tensor<2x?x12xf32>, tensor<2x2x4x3xf32>
}

func.func @delta_per_head(%q: tensor<2x?x16xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x6xf32>, %s: tensor<2x2x4x3xf32>, %b: tensor<2x?x2xf32>) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>) {
  %none = "onnx.NoValue"() {value} : () -> none
  %o, %s1 = "onnx.LinearAttention"(%q, %k, %v, %s, %none, %b) {q_num_heads = 4 : si64, kv_num_heads = 2 : si64, update_rule = "delta"}
    : (tensor<2x?x16xf32>, tensor<2x?x8xf32>, tensor<2x?x6xf32>, tensor<2x2x4x3xf32>, none, tensor<2x?x2xf32>) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>)
  return %o, %s1 : tensor<2x?x12xf32>, tensor<2x2x4x3xf32>
}

func.func @delta_per_token(%q: tensor<2x?x16xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x6xf32>, %s: tensor<2x2x4x3xf32>, %b: tensor<2x?x1xf32>) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>) {
  %none = "onnx.NoValue"() {value} : () -> none
  %o, %s1 = "onnx.LinearAttention"(%q, %k, %v, %s, %none, %b) {q_num_heads = 4 : si64, kv_num_heads = 2 : si64, update_rule = "delta"}
    : (tensor<2x?x16xf32>, tensor<2x?x8xf32>, tensor<2x?x6xf32>, tensor<2x2x4x3xf32>, none, tensor<2x?x1xf32>) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>)
  return %o, %s1 : tensor<2x?x12xf32>, tensor<2x2x4x3xf32>
}

func.func @gated_delta_per_head(%q: tensor<2x?x16xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x6xf32>, %s: tensor<2x2x4x3xf32>, %g: tensor<2x?x2xf32>, %b: tensor<2x?x2xf32>) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>) {
  %o, %s1 = "onnx.LinearAttention"(%q, %k, %v, %s, %g, %b) {q_num_heads = 4 : si64, kv_num_heads = 2 : si64, update_rule = "gated_delta"}
    : (tensor<2x?x16xf32>, tensor<2x?x8xf32>, tensor<2x?x6xf32>, tensor<2x2x4x3xf32>, tensor<2x?x2xf32>, tensor<2x?x2xf32>) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>)
  return %o, %s1 : tensor<2x?x12xf32>, tensor<2x2x4x3xf32>
}

func.func @gated_delta_per_channel(%q: tensor<2x?x16xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x6xf32>, %s: tensor<2x2x4x3xf32>, %g: tensor<2x?x8xf32>, %b: tensor<2x?x1xf32>) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>) {
  %o, %s1 = "onnx.LinearAttention"(%q, %k, %v, %s, %g, %b) {q_num_heads = 4 : si64, kv_num_heads = 2 : si64, update_rule = "gated_delta"}
    : (tensor<2x?x16xf32>, tensor<2x?x8xf32>, tensor<2x?x6xf32>, tensor<2x2x4x3xf32>, tensor<2x?x8xf32>, tensor<2x?x1xf32>) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>)
  return %o, %s1 : tensor<2x?x12xf32>, tensor<2x2x4x3xf32>
}

func.func @without_past(%q: tensor<2x?x16xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x6xf32>, %g: tensor<2x?x2xf32>, %b: tensor<2x?x2xf32>) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>) {
  %none = "onnx.NoValue"() {value} : () -> none
  %o, %s1 = "onnx.LinearAttention"(%q, %k, %v, %none, %g, %b) {q_num_heads = 4 : si64, kv_num_heads = 2 : si64, update_rule = "gated_delta"}
    : (tensor<2x?x16xf32>, tensor<2x?x8xf32>, tensor<2x?x6xf32>, none, tensor<2x?x2xf32>, tensor<2x?x2xf32>) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>)
  return %o, %s1 : tensor<2x?x12xf32>, tensor<2x2x4x3xf32>
}
