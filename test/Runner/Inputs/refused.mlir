func.func @copied(%x: tensor<4x?xf32>) -> tensor<4x?xf32> {
  return %x : tensor<4x?xf32>
}
func.func @scalar(%x: f32) -> f32 {
  return %x : f32
}
// The host would have to read an element.
func.func @looked_at(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %a = tensor.extract %x[%c0] : tensor<4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.fill ins(%a : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func @erf(%x: tensor<4xf64>) -> tensor<4xf64> {
  %r = math.erf %x : tensor<4xf64>
  return %r : tensor<4xf64>
}
