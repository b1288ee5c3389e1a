// One layer in three statements, for the walk through the compiler.

!tokens = tensor<1x1x4096x64xf32>

// Every token sees all.
func.func @noncausal(%q: !tokens, %k: !tokens, %v: !tokens) -> !tokens {
  %o = linattn.attention %q, %k, %v {
      feature_map = #linattn.feature_map<elu1>,
      normalize = #linattn.normalize<eps = 1.0e-6>}
    : (!tokens, !tokens, !tokens) -> !tokens
  return %o : !tokens
}

// Every token sees those before it and itself.
func.func @causal(%q: !tokens, %k: !tokens, %v: !tokens) -> !tokens {
  %o = linattn.attention %q, %k, %v {causal,
      feature_map = #linattn.feature_map<elu1>,
      normalize = #linattn.normalize<eps = 1.0e-6>}
    : (!tokens, !tokens, !tokens) -> !tokens
  return %o : !tokens
}

// Three matrices, without any op of this dialect.
func.func @chain(%q: tensor<4096x64xf32>, %kt: tensor<64x4096xf32>,
                 %v: tensor<4096x64xf32>) -> tensor<4096x64xf32> {
  %zero = arith.constant 0.0 : f32
  %w_empty = tensor.empty() : tensor<4096x4096xf32>
  %w_zero = linalg.fill ins(%zero : f32) outs(%w_empty : tensor<4096x4096xf32>)
    -> tensor<4096x4096xf32>
  %w = linalg.matmul ins(%q, %kt : tensor<4096x64xf32>, tensor<64x4096xf32>)
    outs(%w_zero : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %o_empty = tensor.empty() : tensor<4096x64xf32>
  %o_zero = linalg.fill ins(%zero : f32) outs(%o_empty : tensor<4096x64xf32>)
    -> tensor<4096x64xf32>
  %o = linalg.matmul ins(%w, %v : tensor<4096x4096xf32>, tensor<4096x64xf32>)
    outs(%o_zero : tensor<4096x64xf32>) -> tensor<4096x64xf32>
  return %o : tensor<4096x64xf32>
}
