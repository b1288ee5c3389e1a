func.func @small(%q: tensor<1x1x2x4xf32>, %k: tensor<1x1x2x4xf32>, %v: tensor<1x1x2x4xf32>, %s: tensor<1x1x4x4xf32>) -> tensor<1x1x2x4xf32> {
  %e = tensor.empty() : tensor<1x1x2x4xf32>
  %r:2 = linattn.scan %q, %k, %v into(%e) init(%s)
    : (tensor<1x1x2x4xf32>, tensor<1x1x2x4xf32>, tensor<1x1x2x4xf32>, tensor<1x1x2x4xf32>, tensor<1x1x4x4xf32>)
    -> (tensor<1x1x2x4xf32>, tensor<1x1x4x4xf32>)
  return %r#0 : tensor<1x1x2x4xf32>
}
