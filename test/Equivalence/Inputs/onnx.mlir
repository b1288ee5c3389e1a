// Copies instead of views, and the scan itself.

func.func @gated_delta(%q: tensor<2x?x16xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x6xf32>, %s: tensor<2x2x4x3xf32>, %g: tensor<2x?x2xf32>, %b: tensor<2x?x2xf32>) -> (tensor<2x?x12xf32>, tensor<2x2x4x3xf32>) {
  %c1 = arith.constant 1 : index
  %t = tensor.dim %q, %c1 : tensor<2x?x16xf32>
  %q4 = tensor.expand_shape %q [[0], [1], [2, 3]] output_shape [2, %t, 4, 4] : tensor<2x?x16xf32> into tensor<2x?x4x4xf32>
  %k4 = tensor.expand_shape %k [[0], [1], [2, 3]] output_shape [2, %t, 2, 4] : tensor<2x?x8xf32> into tensor<2x?x2x4xf32>
  %v4 = tensor.expand_shape %v [[0], [1], [2, 3]] output_shape [2, %t, 2, 3] : tensor<2x?x6xf32> into tensor<2x?x2x3xf32>
  %qe = tensor.empty(%t) : tensor<2x4x?x4xf32>
  %ke = tensor.empty(%t) : tensor<2x2x?x4xf32>
  %ve = tensor.empty(%t) : tensor<2x2x?x3xf32>
  %ge = tensor.empty(%t) : tensor<2x2x?xf32>
  %qh = linalg.transpose ins(%q4 : tensor<2x?x4x4xf32>) outs(%qe : tensor<2x4x?x4xf32>) permutation = [0, 2, 1, 3]
  %kh = linalg.transpose ins(%k4 : tensor<2x?x2x4xf32>) outs(%ke : tensor<2x2x?x4xf32>) permutation = [0, 2, 1, 3]
  %vh = linalg.transpose ins(%v4 : tensor<2x?x2x3xf32>) outs(%ve : tensor<2x2x?x3xf32>) permutation = [0, 2, 1, 3]
  %gh = linalg.transpose ins(%g : tensor<2x?x2xf32>) outs(%ge : tensor<2x2x?xf32>) permutation = [0, 2, 1]
  %bh = linalg.transpose ins(%b : tensor<2x?x2xf32>) outs(%ge : tensor<2x2x?xf32>) permutation = [0, 2, 1]
  %oe = tensor.empty(%t) : tensor<2x4x?x3xf32>
  %r, %s1 = linattn.scan %qh, %kh, %vh decay(%gh) beta(%bh) update(delta) into(%oe) init(%s) {scale = 0.5}
    : (tensor<2x4x?x4xf32>, tensor<2x2x?x4xf32>, tensor<2x2x?x3xf32>, tensor<2x2x?xf32>, tensor<2x2x?xf32>, tensor<2x4x?x3xf32>, tensor<2x2x4x3xf32>) -> (tensor<2x4x?x3xf32>, tensor<2x2x4x3xf32>)
  %pe = tensor.empty(%t) : tensor<2x?x4x3xf32>
  %p = linalg.transpose ins(%r : tensor<2x4x?x3xf32>) outs(%pe : tensor<2x?x4x3xf32>) permutation = [0, 2, 1, 3]
  %o = tensor.collapse_shape %p [[0], [1], [2, 3]] : tensor<2x?x4x3xf32> into tensor<2x?x12xf32>
  return %o, %s1 : tensor<2x?x12xf32>, tensor<2x2x4x3xf32>
}

func.func @linear(%q: tensor<1x5x8xf64>) -> tensor<1x5x8xf64> {
  %q4 = tensor.expand_shape %q [[0], [1], [2, 3]] output_shape [1, 5, 2, 4] : tensor<1x5x8xf64> into tensor<1x5x2x4xf64>
  %e = tensor.empty() : tensor<1x2x5x4xf64>
  %h = linalg.transpose ins(%q4 : tensor<1x5x2x4xf64>) outs(%e : tensor<1x2x5x4xf64>) permutation = [0, 2, 1, 3]
  %r = linattn.attention %h, %h, %h {causal} : (tensor<1x2x5x4xf64>, tensor<1x2x5x4xf64>, tensor<1x2x5x4xf64>) -> tensor<1x2x5x4xf64>
  %pe = tensor.empty() : tensor<1x5x2x4xf64>
  %p = linalg.transpose ins(%r : tensor<1x2x5x4xf64>) outs(%pe : tensor<1x5x2x4xf64>) permutation = [0, 2, 1, 3]
  %o = tensor.collapse_shape %p [[0], [1], [2, 3]] : tensor<1x5x2x4xf64> into tensor<1x5x8xf64>
  return %o : tensor<1x5x8xf64>
}
