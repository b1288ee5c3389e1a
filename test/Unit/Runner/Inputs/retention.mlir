// A kernel with constants: the decay of each head.
func.func @retention(%q: tensor<1x2x?x16xf32>, %k: tensor<1x2x?x16xf32>,
                     %v: tensor<1x2x?x16xf32>) -> tensor<1x2x?x16xf32> {
  %g = arith.constant dense<[-0.25, -0.5]> : tensor<2xf32>
  %z = arith.constant dense<0.0> : tensor<1x2x16x16xf32>
  %c2 = arith.constant 2 : index
  %t = tensor.dim %q, %c2 : tensor<1x2x?x16xf32>
  %e = tensor.empty(%t) : tensor<1x2x?x16xf32>
  %o:2 = linattn.scan %q, %k, %v decay(%g) into(%e) init(%z)
    : (tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>,
       tensor<2xf32>, tensor<1x2x?x16xf32>, tensor<1x2x16x16xf32>)
    -> (tensor<1x2x?x16xf32>, tensor<1x2x16x16xf32>)
  return %o#0 : tensor<1x2x?x16xf32>
}
