// A scalar and a mask among the arguments, which is data for the caller's code.
func.func @scaled(%x: tensor<?x3xf32>, %mask: tensor<?x3xi1>, %by: f32) -> tensor<?x3xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x3xf32>
  %e = tensor.empty(%n) : tensor<?x3xf32>
  %o = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x, %mask : tensor<?x3xf32>, tensor<?x3xi1>) outs(%e : tensor<?x3xf32>) {
  ^bb0(%a: f32, %m: i1, %b: f32):
    %scaled = arith.mulf %a, %by : f32
    %y = arith.select %m, %scaled, %a : f32
    linalg.yield %y : f32
  } -> tensor<?x3xf32>
  return %o : tensor<?x3xf32>
}
