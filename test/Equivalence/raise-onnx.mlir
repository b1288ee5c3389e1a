// RUN: linattn-run %s --all --open-size=1,3,7 --compare=%S/Inputs/onnx.mlir
// RUN: linattn-opt %s --allow-unregistered-dialect --linattn-raise-onnx | linattn-run - --all --open-size=1,7 --target=reference --compare=%s

// The operator of ONNX against the same recurrence written by hand.

func.func @gated_delta(%q: tensor<2x?x16xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x6xf32>, %s: tensor<2x2x4x3xf32>, %g: tensor<2x?x2xf32>, %b: tensor<2x?x2xf32>) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>) {
  %o, %s1 = "onnx.LinearAttention"(%q, %k, %v, %s, %g, %b) {q_num_heads = 4 : si64, kv_num_heads = 2 : si64}
    : (tensor<2x?x16xf32>, tensor<2x?x8xf32>, tensor<2x?x6xf32>, tensor<2x2x4x3xf32>, tensor<2x?x2xf32>, tensor<2x?x2xf32>) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>)
  return %o, %s1 : tensor<2x?x12xf32>, tensor<2x2x4x3xf32>
}

func.func @linear(%q: tensor<1x5x8xf64>) -> tensor<1x5x8xf64> {
  %o = "onnx.LinearAttention"(%q, %q, %q) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "linear", scale = 1.0 : f32}
    : (tensor<1x5x8xf64>, tensor<1x5x8xf64>, tensor<1x5x8xf64>) -> tensor<1x5x8xf64>
  return %o : tensor<1x5x8xf64>
}
