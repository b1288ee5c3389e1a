// RUN: grep -v '^//' %s | grep . > %t.file
// RUN: linattn-families --emit=comba --with=beta --set=use_qk_l2norm_in_kernel=1 | grep . > %t.emitted
// RUN: diff %t.file %t.emitted
// RUN: FileCheck %s < %t.emitted
// RUN: linattn-run %s --open-size=1,7 --compare=reference

// CHECK-LABEL: func.func @comba(
// CHECK: linattn.scan {{.*}}update(dplr) transition(before)
#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1 floordiv 2, d2, d3)>
module {
  func.func @comba(%q: tensor<2x2x?x8xf32>, %k: tensor<2x2x?x8xf32>, %v: tensor<2x4x?x5xf32>, %p: tensor<2x2x?x8xf32>, %g: tensor<2x4x?xf32>, %beta: tensor<2x4x?xf32>) -> tensor<2x4x?x5xf32> {
    %c2 = arith.constant 2 : index
    %dim = tensor.dim %q, %c2 : tensor<2x2x?x8xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty(%dim) : tensor<2x2x?xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2x2x?xf32>) -> tensor<2x2x?xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%q : tensor<2x2x?x8xf32>) outs(%1 : tensor<2x2x?xf32>) {
    ^bb0(%q_0: f32, %out: f32):
      %19 = arith.mulf %q_0, %q_0 : f32
      %20 = arith.addf %out, %19 : f32
      linalg.yield %20 : f32
    } -> tensor<2x2x?xf32>
    %3 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%2 : tensor<2x2x?xf32>) outs(%0 : tensor<2x2x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %cst_0 = arith.constant 9.99999997E-7 : f32
      %19 = arith.addf %in, %cst_0 : f32
      %cst_1 = arith.constant 1.000000e+00 : f32
      %20 = math.sqrt %19 : f32
      %21 = arith.divf %cst_1, %20 : f32
      linalg.yield %21 : f32
    } -> tensor<2x2x?xf32>
    %4 = tensor.empty(%dim) : tensor<2x2x?x8xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%q, %3 : tensor<2x2x?x8xf32>, tensor<2x2x?xf32>) outs(%4 : tensor<2x2x?x8xf32>) {
    ^bb0(%q_0: f32, %in: f32, %out: f32):
      %19 = arith.mulf %q_0, %in : f32
      linalg.yield %19 : f32
    } -> tensor<2x2x?x8xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%k : tensor<2x2x?x8xf32>) outs(%1 : tensor<2x2x?xf32>) {
    ^bb0(%k_0: f32, %out: f32):
      %19 = arith.mulf %k_0, %k_0 : f32
      %20 = arith.addf %out, %19 : f32
      linalg.yield %20 : f32
    } -> tensor<2x2x?xf32>
    %7 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6 : tensor<2x2x?xf32>) outs(%0 : tensor<2x2x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %cst_0 = arith.constant 9.99999997E-7 : f32
      %19 = arith.addf %in, %cst_0 : f32
      %cst_1 = arith.constant 1.000000e+00 : f32
      %20 = math.sqrt %19 : f32
      %21 = arith.divf %cst_1, %20 : f32
      linalg.yield %21 : f32
    } -> tensor<2x2x?xf32>
    %8 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%k, %7 : tensor<2x2x?x8xf32>, tensor<2x2x?xf32>) outs(%4 : tensor<2x2x?x8xf32>) {
    ^bb0(%k_0: f32, %in: f32, %out: f32):
      %19 = arith.mulf %k_0, %in : f32
      linalg.yield %19 : f32
    } -> tensor<2x2x?x8xf32>
    %9 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%p : tensor<2x2x?x8xf32>) outs(%1 : tensor<2x2x?xf32>) {
    ^bb0(%p_0: f32, %out: f32):
      %19 = arith.mulf %p_0, %p_0 : f32
      %20 = arith.addf %out, %19 : f32
      linalg.yield %20 : f32
    } -> tensor<2x2x?xf32>
    %10 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%9 : tensor<2x2x?xf32>) outs(%0 : tensor<2x2x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %cst_0 = arith.constant 9.99999997E-7 : f32
      %19 = arith.addf %in, %cst_0 : f32
      %cst_1 = arith.constant 1.000000e+00 : f32
      %20 = math.sqrt %19 : f32
      %21 = arith.divf %cst_1, %20 : f32
      linalg.yield %21 : f32
    } -> tensor<2x2x?xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%p, %10 : tensor<2x2x?x8xf32>, tensor<2x2x?xf32>) outs(%4 : tensor<2x2x?x8xf32>) {
    ^bb0(%p_0: f32, %in: f32, %out: f32):
      %19 = arith.mulf %p_0, %in : f32
      linalg.yield %19 : f32
    } -> tensor<2x2x?x8xf32>
    %12 = tensor.empty(%dim) : tensor<2x4x?x8xf32>
    %13 = linalg.generic {indexing_maps = [#map3, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%11 : tensor<2x2x?x8xf32>) outs(%12 : tensor<2x4x?x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.negf %in : f32
      linalg.yield %19 : f32
    } -> tensor<2x4x?x8xf32>
    %14 = linalg.generic {indexing_maps = [#map3, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%8, %beta : tensor<2x2x?x8xf32>, tensor<2x4x?xf32>) outs(%12 : tensor<2x4x?x8xf32>) {
    ^bb0(%in: f32, %beta_0: f32, %out: f32):
      %19 = arith.mulf %in, %beta_0 : f32
      linalg.yield %19 : f32
    } -> tensor<2x4x?x8xf32>
    %15 = tensor.empty() : tensor<2x4x8x5xf32>
    %16 = linalg.fill ins(%cst : f32) outs(%15 : tensor<2x4x8x5xf32>) -> tensor<2x4x8x5xf32>
    %17 = tensor.empty(%dim) : tensor<2x4x?x5xf32>
    %18:2 = linattn.scan %5, %14, %v decay(%g) a(%13) b(%14) update(dplr) transition(before) into(%17) init(%16) {scale = 0.35355339059327373 : f64} : (tensor<2x2x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>, tensor<2x4x8x5xf32>) -> (tensor<2x4x?x5xf32>, tensor<2x4x8x5xf32>)
    return %18#0 : tensor<2x4x?x5xf32>
  }
}

