// RUN: grep -v '^//' %s | grep . > %t.file
// RUN: linattn-families --emit=kda --with=beta,A_log,dt_bias --set=use_gate_in_kernel=1,lower_bound=-5,use_qk_l2norm_in_kernel=1 | grep . > %t.emitted
// RUN: diff %t.file %t.emitted
// RUN: FileCheck %s < %t.emitted
// RUN: linattn-run %s --open-size=1,7 --compare=reference

// CHECK-LABEL: func.func @kda(
// CHECK: linattn.scan {{.*}}update(delta)
#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d1)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d1, d3)>
module {
  func.func @kda(%q: tensor<2x2x?x8xf32>, %k: tensor<2x2x?x8xf32>, %v: tensor<2x4x?x5xf32>, %g: tensor<2x4x?x8xf32>, %beta: tensor<2x4x?xf32>, %A_log: tensor<4xf32>, %dt_bias: tensor<4x8xf32>) -> tensor<2x4x?x5xf32> {
    %c2 = arith.constant 2 : index
    %dim = tensor.dim %q, %c2 : tensor<2x2x?x8xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty(%dim) : tensor<2x2x?xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2x2x?xf32>) -> tensor<2x2x?xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%q : tensor<2x2x?x8xf32>) outs(%1 : tensor<2x2x?xf32>) {
    ^bb0(%q_0: f32, %out: f32):
      %15 = arith.mulf %q_0, %q_0 : f32
      %16 = arith.addf %out, %15 : f32
      linalg.yield %16 : f32
    } -> tensor<2x2x?xf32>
    %3 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%2 : tensor<2x2x?xf32>) outs(%0 : tensor<2x2x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %cst_0 = arith.constant 9.99999997E-7 : f32
      %15 = arith.addf %in, %cst_0 : f32
      %cst_1 = arith.constant 1.000000e+00 : f32
      %16 = math.sqrt %15 : f32
      %17 = arith.divf %cst_1, %16 : f32
      linalg.yield %17 : f32
    } -> tensor<2x2x?xf32>
    %4 = tensor.empty(%dim) : tensor<2x2x?x8xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%q, %3 : tensor<2x2x?x8xf32>, tensor<2x2x?xf32>) outs(%4 : tensor<2x2x?x8xf32>) {
    ^bb0(%q_0: f32, %in: f32, %out: f32):
      %15 = arith.mulf %q_0, %in : f32
      linalg.yield %15 : f32
    } -> tensor<2x2x?x8xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%k : tensor<2x2x?x8xf32>) outs(%1 : tensor<2x2x?xf32>) {
    ^bb0(%k_0: f32, %out: f32):
      %15 = arith.mulf %k_0, %k_0 : f32
      %16 = arith.addf %out, %15 : f32
      linalg.yield %16 : f32
    } -> tensor<2x2x?xf32>
    %7 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6 : tensor<2x2x?xf32>) outs(%0 : tensor<2x2x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %cst_0 = arith.constant 9.99999997E-7 : f32
      %15 = arith.addf %in, %cst_0 : f32
      %cst_1 = arith.constant 1.000000e+00 : f32
      %16 = math.sqrt %15 : f32
      %17 = arith.divf %cst_1, %16 : f32
      linalg.yield %17 : f32
    } -> tensor<2x2x?xf32>
    %8 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%k, %7 : tensor<2x2x?x8xf32>, tensor<2x2x?xf32>) outs(%4 : tensor<2x2x?x8xf32>) {
    ^bb0(%k_0: f32, %in: f32, %out: f32):
      %15 = arith.mulf %k_0, %in : f32
      linalg.yield %15 : f32
    } -> tensor<2x2x?x8xf32>
    %9 = tensor.empty(%dim) : tensor<2x4x?x8xf32>
    %10 = linalg.generic {indexing_maps = [#map, #map3, #map4, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%g, %A_log, %dt_bias : tensor<2x4x?x8xf32>, tensor<4xf32>, tensor<4x8xf32>) outs(%9 : tensor<2x4x?x8xf32>) {
    ^bb0(%g_0: f32, %A_log_1: f32, %dt_bias_2: f32, %out: f32):
      %15 = arith.addf %g_0, %dt_bias_2 : f32
      %16 = math.exp %A_log_1 : f32
      %cst_3 = arith.constant -5.000000e+00 : f32
      %17 = arith.mulf %16, %15 : f32
      %cst_4 = arith.constant 1.000000e+00 : f32
      %cst_5 = arith.constant 8.700000e+01 : f32
      %18 = arith.negf %17 : f32
      %19 = arith.minimumf %18, %cst_5 : f32
      %20 = math.exp %19 : f32
      %21 = arith.addf %cst_4, %20 : f32
      %22 = arith.divf %cst_4, %21 : f32
      %23 = arith.mulf %cst_3, %22 : f32
      linalg.yield %23 : f32
    } -> tensor<2x4x?x8xf32>
    %11 = tensor.empty() : tensor<2x4x8x5xf32>
    %12 = linalg.fill ins(%cst : f32) outs(%11 : tensor<2x4x8x5xf32>) -> tensor<2x4x8x5xf32>
    %13 = tensor.empty(%dim) : tensor<2x4x?x5xf32>
    %14:2 = linattn.scan %5, %8, %v decay(%10) beta(%beta) update(delta) into(%13) init(%12) {scale = 0.35355339059327373 : f64} : (tensor<2x2x?x8xf32>, tensor<2x2x?x8xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?xf32>, tensor<2x4x?x5xf32>, tensor<2x4x8x5xf32>) -> (tensor<2x4x?x5xf32>, tensor<2x4x8x5xf32>)
    return %14#0 : tensor<2x4x?x5xf32>
  }
}

