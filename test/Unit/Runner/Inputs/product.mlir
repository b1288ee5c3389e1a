// Arithmetic in f64, which keeps subnormal numbers.
func.func @product(%x: tensor<?xf64>, %by: f64) -> tensor<?xf64> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf64>
  %e = tensor.empty(%n) : tensor<?xf64>
  %o = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<?xf64>) outs(%e : tensor<?xf64>) {
  ^bb0(%a: f64, %b: f64):
    %y = arith.mulf %a, %by : f64
    linalg.yield %y : f64
  } -> tensor<?xf64>
  return %o : tensor<?xf64>
}
