// RUN: grep -v '^//' %s | grep . > %t.file
// RUN: linattn-families --emit=ttt_linear --set=use_qk_l2norm_in_kernel=1 | grep . > %t.emitted
// RUN: diff %t.file %t.emitted
// RUN: FileCheck %s < %t.emitted
// RUN: linattn-run %s --open-size=1,7 --compare=reference

// CHECK-LABEL: func.func @ttt_linear(
// CHECK: linattn.scan {{.*}}beta(%eta) update(delta)
#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
  func.func @ttt_linear(%q: tensor<2x2x?x8xf32>, %k: tensor<2x2x?x8xf32>, %v: tensor<2x4x?x5xf32>, %eta: tensor<2x4x?xf32>) -> tensor<2x4x?x5xf32> {
    %c2 = arith.constant 2 : index
    %dim = tensor.dim %q, %c2 : tensor<2x2x?x8xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty(%dim) : tensor<2x2x?xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2x2x?xf32>) -> tensor<2x2x?xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%q : tensor<2x2x?x8xf32>) outs(%1 : tensor<2x2x?xf32>) {
    ^bb0(%q_0: f32, %out: f32):
      %13 = arith.mulf %q_0, %q_0 : f32
      %14 = arith.addf %out, %13 : f32
      linalg.yield %14 : f32
    } -> tensor<2x2x?xf32>
    %3 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%2 : tensor<2x2x?xf32>) outs(%0 : tensor<2x2x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %cst_0 = arith.constant 9.99999997E-7 : f32
      %13 = arith.addf %in, %cst_0 : f32
      %cst_1 = arith.constant 1.000000e+00 : f32
      %14 = math.sqrt %13 : f32
      %15 = arith.divf %cst_1, %14 : f32
      linalg.yield %15 : f32
    } -> tensor<2x2x?xf32>
    %4 = tensor.empty(%dim) : tensor<2x2x?x8xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%q, %3 : tensor<2x2x?x8xf32>, tensor<2x2x?xf32>) outs(%4 : tensor<2x2x?x8xf32>) {
    ^bb0(%q_0: f32, %in: f32, %out: f32):
      %13 = arith.mulf %q_0, %in : f32
      linalg.yield %13 : f32
    } -> tensor<2x2x?x8xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%k : tensor<2x2x?x8xf32>) outs(%1 : tensor<2x2x?xf32>) {
    ^bb0(%k_0: f32, %out: f32):
      %13 = arith.mulf %k_0, %k_0 : f32
      %14 = arith.addf %out, %13 : f32
      linalg.yield %14 : f32
    } -> tensor<2x2x?xf32>
    %7 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6 : tensor<2x2x?xf32>) outs(%0 : tensor<2x2x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %cst_0 = arith.constant 9.99999997E-7 : f32
      %13 = arith.addf %in, %cst_0 : f32
      %cst_1 = arith.constant 1.000000e+00 : f32
      %14 = math.sqrt %13 : f32
      %15 = arith.divf %cst_1, %14 : f32
      linalg.yield %15 : f32
    } -> tensor<2x2x?xf32>
    %8 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%k, %7 : tensor<2x2x?x8xf32>, tensor<2x2x?xf32>) outs(%4 : tensor<2x2x?x8xf32>) {
    ^bb0(%k_0: f32, %in: f32, %out: f32):
      %13 = arith.mulf %k_0, %in : f32
      linalg.yield %13 : f32
    } -> tensor<2x2x?x8xf32>
    %9 = tensor.empty() : tensor<2x4x8x5xf32>
    %10 = linalg.fill ins(%cst : f32) outs(%9 : tensor<2x4x8x5xf32>) -> tensor<2x4x8x5xf32>
    %11 = tensor.empty(%dim) : tensor<2x4x?x5xf32>
    %12:2 = linattn.scan %5, %8, %v beta(%eta) update(delta) into(%11) init(%10) {scale = 0.35355339059327373 : f64} : (tensor<2x2x?x8xf32>, tensor<2x2x?x8xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?xf32>, tensor<2x4x?x5xf32>, tensor<2x4x8x5xf32>) -> (tensor<2x4x?x5xf32>, tensor<2x4x8x5xf32>)
    return %12#0 : tensor<2x4x?x5xf32>
  }
}

