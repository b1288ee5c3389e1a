#map = affine_map<(d0, d1) -> (d0, d1)>
func.func @f(%q: tensor<1x2x?x8xf32>, %v: tensor<1x2x?x4xf32>, %g: tensor<1x2x?xf32>, %s: tensor<1x2x8x4xf32>)
    -> (tensor<1x2x?x4xf32>, tensor<1x2x8x4xf32>) {
  %c2 = arith.constant 2 : index
  %n = tensor.dim %q, %c2 : tensor<1x2x?x8xf32>
  %e = tensor.empty(%n) : tensor<1x2x?x4xf32>
  %o, %t = linattn.scan %q, %q, %v decay(%g) update(delta) beta(%g) into(%e) init(%s) {scale = 1.0e+00 : f64}
      : (tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?xf32>, tensor<1x2x?xf32>,
         tensor<1x2x?x4xf32>, tensor<1x2x8x4xf32>)
      -> (tensor<1x2x?x4xf32>, tensor<1x2x8x4xf32>)
  return %o, %t : tensor<1x2x?x4xf32>, tensor<1x2x8x4xf32>
}
