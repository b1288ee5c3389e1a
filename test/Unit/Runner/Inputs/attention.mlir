// Several kernels, which share a workspace.
func.func @attention(%q: tensor<2x8x?x64xf32>, %k: tensor<2x8x?x64xf32>,
                     %v: tensor<2x8x?x64xf32>) -> tensor<2x8x?x64xf32> {
  %o = linattn.attention %q, %k, %v {causal,
      feature_map = #linattn.feature_map<elu1>,
      normalize = #linattn.normalize<eps = 1.0e-6>}
    : (tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>)
    -> tensor<2x8x?x64xf32>
  return %o : tensor<2x8x?x64xf32>
}
