// The delta rule: S ← S + β k (v − Sᵀk)ᵀ, o = Sᵀq.

func.func @delta_rule(%q: tensor<2x8x?x64xf32>, %k: tensor<2x8x?x64xf32>,
                      %v: tensor<2x8x?x64xf32>, %beta: tensor<2x8x?xf32>,
                      %dest: tensor<2x8x?x64xf32>, %s0: tensor<2x8x64x64xf32>)
    -> (tensor<2x8x?x64xf32>, tensor<2x8x64x64xf32>) {
  %o, %s = linattn.scan %q, %k, %v beta(%beta) update(delta) into(%dest) init(%s0)
      {scale = 0.125}
    : (tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?xf32>,
       tensor<2x8x?x64xf32>, tensor<2x8x64x64xf32>)
    -> (tensor<2x8x?x64xf32>, tensor<2x8x64x64xf32>)
  return %o, %s : tensor<2x8x?x64xf32>, tensor<2x8x64x64xf32>
}
