// One small layer in three variants: 5 tokens, 4 features, one head.

!tokens = tensor<1x1x5x4xf32>

func.func @noncausal(%q: !tokens, %k: !tokens, %v: !tokens) -> !tokens {
  %o = linattn.attention %q, %k, %v {
      feature_map = #linattn.feature_map<elu1>,
      normalize = #linattn.normalize<eps = 1.0e-6>}
    : (!tokens, !tokens, !tokens) -> !tokens
  return %o : !tokens
}

func.func @causal(%q: !tokens, %k: !tokens, %v: !tokens) -> !tokens {
  %o = linattn.attention %q, %k, %v {causal,
      feature_map = #linattn.feature_map<elu1>,
      normalize = #linattn.normalize<eps = 1.0e-6>}
    : (!tokens, !tokens, !tokens) -> !tokens
  return %o : !tokens
}

func.func @softmax(%q: !tokens, %k: !tokens, %v: !tokens) -> !tokens {
  %o = linattn.attention %q, %k, %v weights(softmax) {scale = 0.5}
    : (!tokens, !tokens, !tokens) -> !tokens
  return %o : !tokens
}
