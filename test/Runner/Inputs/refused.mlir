func.func @copied(%x: tensor<4x?xf32>) -> tensor<4x?xf32> {
  return %x : tensor<4x?xf32>
}
func.func @scalar(%x: f32) -> f32 {
  return %x : f32
}
