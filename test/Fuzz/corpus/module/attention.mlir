func.func @f(%q: tensor<1x2x?x8xf32>, %v: tensor<1x2x?x4xf32>, %m: tensor<1x?xi1>) -> tensor<1x2x?x4xf32> {
  %o = linattn.attention %q, %q, %v mask(%m) {causal, scale = 5.0e-01 : f64,
      feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.0e-6>,
      config = #linattn.config<form = chunk, chunk = 16>}
    : (tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>, tensor<1x2x?x4xf32>, tensor<1x?xi1>) -> tensor<1x2x?x4xf32>
  %p = linattn.attention %q, %q, %o weights(softmax) : (tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>, tensor<1x2x?x4xf32>)
    -> tensor<1x2x?x4xf32>
  return %p : tensor<1x2x?x4xf32>
}
