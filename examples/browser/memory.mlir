// A memory of pairs, token by token: a key of 24 numbers, a value of 36. Both functions read before the next token
// with the key itself as the query.

// S + k vᵀ: pairs with the same key add up.
func.func @add(%k: tensor<1x1x1x24xf32>, %v: tensor<1x1x1x36xf32>, %s: tensor<1x1x24x36xf32>)
    -> (tensor<1x1x1x36xf32>, tensor<1x1x24x36xf32>) {
  %into = tensor.empty() : tensor<1x1x1x36xf32>
  %o, %s1 = linattn.scan %k, %k, %v into(%into) init(%s) {scale = 1.0 : f64}
    : (tensor<1x1x1x24xf32>, tensor<1x1x1x24xf32>, tensor<1x1x1x36xf32>, tensor<1x1x1x36xf32>, tensor<1x1x24x36xf32>)
      -> (tensor<1x1x1x36xf32>, tensor<1x1x24x36xf32>)
  return %o, %s1 : tensor<1x1x1x36xf32>, tensor<1x1x24x36xf32>
}

// (1 − β k kᵀ) S + β k vᵀ: what the key had is erased first. With β = 0 nothing is written.
func.func @delta(%k: tensor<1x1x1x24xf32>, %v: tensor<1x1x1x36xf32>, %beta: tensor<1x1x1xf32>, %s: tensor<1x1x24x36xf32>)
    -> (tensor<1x1x1x36xf32>, tensor<1x1x24x36xf32>) {
  %into = tensor.empty() : tensor<1x1x1x36xf32>
  %o, %s1 = linattn.scan %k, %k, %v beta(%beta) update(delta) into(%into) init(%s) {scale = 1.0 : f64}
    : (tensor<1x1x1x24xf32>, tensor<1x1x1x24xf32>, tensor<1x1x1x36xf32>, tensor<1x1x1xf32>, tensor<1x1x1x36xf32>,
       tensor<1x1x24x36xf32>) -> (tensor<1x1x1x36xf32>, tensor<1x1x24x36xf32>)
  return %o, %s1 : tensor<1x1x1x36xf32>, tensor<1x1x24x36xf32>
}
