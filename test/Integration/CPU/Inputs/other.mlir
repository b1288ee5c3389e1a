func.func @twice(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = arith.mulf %x, %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}

func.func @thrice(%x: tensor<?xf32>) -> tensor<4xf32> {
  %0 = arith.constant dense<3.0> : tensor<4xf32>
  return %0 : tensor<4xf32>
}
