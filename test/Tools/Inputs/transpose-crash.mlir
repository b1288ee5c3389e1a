// Upstream's parser of a permutation does not expect a question mark.
func.func @f(%x: tensor<4x5xf32>) -> tensor<5x4xf32> {
  %e = tensor.empty() : tensor<5x4xf32>
  %t = linalg.transpose ins(%x : tensor<4x5xf32>) outs(%e : tensor<5x4xf32>) permutation = [1, ?]
  return %t : tensor<5x4xf32>
}
