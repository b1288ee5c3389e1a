// Three buffers besides the result, of which no more than two are in use at once.
func.func @chain(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x64xf32>
  %e0 = tensor.empty(%n) : tensor<?x64xf32>
  %r0 = linalg.map ins(%x : tensor<?x64xf32>) outs(%e0 : tensor<?x64xf32>) (%a: f32, %old: f32) {
    %y = math.exp %a : f32
    linalg.yield %y : f32
  }
  %e1 = tensor.empty(%n) : tensor<?x64xf32>
  %r1 = linalg.map ins(%r0 : tensor<?x64xf32>) outs(%e1 : tensor<?x64xf32>) (%a: f32, %old: f32) {
    %y = math.exp %a : f32
    linalg.yield %y : f32
  }
  %e2 = tensor.empty(%n) : tensor<?x64xf32>
  %r2 = linalg.map ins(%r1 : tensor<?x64xf32>) outs(%e2 : tensor<?x64xf32>) (%a: f32, %old: f32) {
    %y = math.exp %a : f32
    linalg.yield %y : f32
  }
  %e3 = tensor.empty(%n) : tensor<?x64xf32>
  %r3 = linalg.map ins(%r2 : tensor<?x64xf32>) outs(%e3 : tensor<?x64xf32>) (%a: f32, %old: f32) {
    %y = math.exp %a : f32
    linalg.yield %y : f32
  }
  return %r3 : tensor<?x64xf32>
}
