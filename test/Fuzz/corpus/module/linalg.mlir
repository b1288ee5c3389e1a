#map = affine_map<(d0, d1) -> (d0, d1)>
#flip = affine_map<(d0, d1) -> (d1, -d0 + 3)>
func.func @f(%x: tensor<4x5xf32>, %i: index) -> tensor<5x4xf32> attributes {a = [1, "b", {c = dense<[1, 2]> : tensor<2xi32>}]} {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x4xf32>
  %t = linalg.transpose ins(%x : tensor<4x5xf32>) outs(%e : tensor<5x4xf32>) permutation = [1, 0]
  %j = affine.apply affine_map<(d0)[s0] -> (d0 floordiv 2 + s0 * 3)>(%i)[%i]
  %s = tensor.extract_slice %t[0, 0] [5, 4] [1, 1] : tensor<5x4xf32> to tensor<5x4xf32>
  %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<5x4xf32>) outs(%e : tensor<5x4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = math.exp %a : f32
    %n = arith.addf %m, %c0 : f32
    linalg.yield %n : f32
  } -> tensor<5x4xf32>
  %p = scf.for %k = %i to %j step %i iter_args(%acc = %r) -> tensor<5x4xf32> { scf.yield %acc : tensor<5x4xf32> }
  return %p : tensor<5x4xf32>
}
