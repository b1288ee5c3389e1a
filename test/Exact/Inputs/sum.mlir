func.func @sum(%x: tensor<3xf32>) -> tensor<3xf32> {
  %two = arith.constant dense<2.0> : tensor<3xf32>
  %r = arith.mulf %two, %x : tensor<3xf32>
  return %r : tensor<3xf32>
}
