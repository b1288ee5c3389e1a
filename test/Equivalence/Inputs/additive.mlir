func.func @add(%q: tensor<2x3x?x4xf32>, %k: tensor<2x3x?x4xf32>, %v: tensor<2x3x?x5xf32>, %o: tensor<2x3x?x5xf32>, %s: tensor<2x3x4x5xf32>) -> (tensor<2x3x?x5xf32>, tensor<2x3x4x5xf32>) {
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s) {scale = 0.5}
    : (tensor<2x3x?x4xf32>, tensor<2x3x?x4xf32>, tensor<2x3x?x5xf32>, tensor<2x3x?x5xf32>, tensor<2x3x4x5xf32>) -> (tensor<2x3x?x5xf32>, tensor<2x3x4x5xf32>)
  return %r#0, %r#1 : tensor<2x3x?x5xf32>, tensor<2x3x4x5xf32>
}

func.func @causal(%q: tensor<1x2x?x8xf32>, %k: tensor<1x2x?x8xf32>, %v: tensor<1x2x?x8xf32>, %m: tensor<1x?xi1>) -> tensor<1x2x?x8xf32> {
  %o = linattn.attention %q, %k, %v mask(%m) {causal, feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.0e-6>}
    : (tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>, tensor<1x?xi1>) -> tensor<1x2x?x8xf32>
  return %o : tensor<1x2x?x8xf32>
}
