// RUN: grep -v '^//' %s | grep . > %t.file
// RUN: linattn-families --emit=gated_deltaproduct --with=g,beta --set=num_householder=2,use_qk_l2norm_in_kernel=1 --size=T=5,Tn=10 | grep . > %t.emitted
// RUN: diff %t.file %t.emitted
// RUN: FileCheck %s < %t.emitted
// RUN: linattn-run %s --open-size=1,7 --compare=reference

// CHECK-LABEL: func.func @gated_deltaproduct(
// CHECK: linattn.scan {{.*}}update(delta)
// CHECK: tensor.extract_slice
#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2 floordiv 2, d3)>
#map4 = affine_map<(d0, d1, d2) -> (d0, d1, d2 floordiv 2)>
module {
  func.func @gated_deltaproduct(%q: tensor<2x2x5x8xf32>, %k: tensor<2x2x10x8xf32>, %v: tensor<2x4x10x5xf32>, %g: tensor<2x4x5xf32>, %beta: tensor<2x4x10xf32>) -> tensor<2x4x5x5xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<2x2x5xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2x2x5xf32>) -> tensor<2x2x5xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%q : tensor<2x2x5x8xf32>) outs(%1 : tensor<2x2x5xf32>) {
    ^bb0(%q_0: f32, %out: f32):
      %19 = arith.mulf %q_0, %q_0 : f32
      %20 = arith.addf %out, %19 : f32
      linalg.yield %20 : f32
    } -> tensor<2x2x5xf32>
    %3 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%2 : tensor<2x2x5xf32>) outs(%0 : tensor<2x2x5xf32>) {
    ^bb0(%in: f32, %out: f32):
      %cst_0 = arith.constant 9.99999997E-7 : f32
      %19 = arith.addf %in, %cst_0 : f32
      %cst_1 = arith.constant 1.000000e+00 : f32
      %20 = math.sqrt %19 : f32
      %21 = arith.divf %cst_1, %20 : f32
      linalg.yield %21 : f32
    } -> tensor<2x2x5xf32>
    %4 = tensor.empty() : tensor<2x2x5x8xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%q, %3 : tensor<2x2x5x8xf32>, tensor<2x2x5xf32>) outs(%4 : tensor<2x2x5x8xf32>) {
    ^bb0(%q_0: f32, %in: f32, %out: f32):
      %19 = arith.mulf %q_0, %in : f32
      linalg.yield %19 : f32
    } -> tensor<2x2x5x8xf32>
    %6 = tensor.empty() : tensor<2x2x10xf32>
    %7 = linalg.fill ins(%cst : f32) outs(%6 : tensor<2x2x10xf32>) -> tensor<2x2x10xf32>
    %8 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%k : tensor<2x2x10x8xf32>) outs(%7 : tensor<2x2x10xf32>) {
    ^bb0(%k_0: f32, %out: f32):
      %19 = arith.mulf %k_0, %k_0 : f32
      %20 = arith.addf %out, %19 : f32
      linalg.yield %20 : f32
    } -> tensor<2x2x10xf32>
    %9 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%8 : tensor<2x2x10xf32>) outs(%6 : tensor<2x2x10xf32>) {
    ^bb0(%in: f32, %out: f32):
      %cst_0 = arith.constant 9.99999997E-7 : f32
      %19 = arith.addf %in, %cst_0 : f32
      %cst_1 = arith.constant 1.000000e+00 : f32
      %20 = math.sqrt %19 : f32
      %21 = arith.divf %cst_1, %20 : f32
      linalg.yield %21 : f32
    } -> tensor<2x2x10xf32>
    %10 = tensor.empty() : tensor<2x2x10x8xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%k, %9 : tensor<2x2x10x8xf32>, tensor<2x2x10xf32>) outs(%10 : tensor<2x2x10x8xf32>) {
    ^bb0(%k_0: f32, %in: f32, %out: f32):
      %19 = arith.mulf %k_0, %in : f32
      linalg.yield %19 : f32
    } -> tensor<2x2x10x8xf32>
    %12 = linalg.generic {indexing_maps = [#map3, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%5 : tensor<2x2x5x8xf32>) outs(%10 : tensor<2x2x10x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = linalg.index 2 : index
      %c2 = arith.constant 2 : index
      %20 = arith.remui %19, %c2 : index
      %c1 = arith.constant 1 : index
      %21 = arith.cmpi eq, %20, %c1 : index
      %22 = arith.select %21, %in, %cst : f32
      linalg.yield %22 : f32
    } -> tensor<2x2x10x8xf32>
    %13 = tensor.empty() : tensor<2x4x10xf32>
    %14 = linalg.generic {indexing_maps = [#map4, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%g : tensor<2x4x5xf32>) outs(%13 : tensor<2x4x10xf32>) {
    ^bb0(%g_0: f32, %out: f32):
      %19 = linalg.index 2 : index
      %c2 = arith.constant 2 : index
      %20 = arith.remui %19, %c2 : index
      %c0 = arith.constant 0 : index
      %21 = arith.cmpi eq, %20, %c0 : index
      %22 = arith.select %21, %g_0, %cst : f32
      linalg.yield %22 : f32
    } -> tensor<2x4x10xf32>
    %15 = tensor.empty() : tensor<2x4x8x5xf32>
    %16 = linalg.fill ins(%cst : f32) outs(%15 : tensor<2x4x8x5xf32>) -> tensor<2x4x8x5xf32>
    %17 = tensor.empty() : tensor<2x4x10x5xf32>
    %18:2 = linattn.scan %12, %11, %v decay(%14) beta(%beta) update(delta) into(%17) init(%16) {scale = 0.35355339059327373 : f64} : (tensor<2x2x10x8xf32>, tensor<2x2x10x8xf32>, tensor<2x4x10x5xf32>, tensor<2x4x10xf32>, tensor<2x4x10xf32>, tensor<2x4x10x5xf32>, tensor<2x4x8x5xf32>) -> (tensor<2x4x10x5xf32>, tensor<2x4x8x5xf32>)
    %extracted_slice = tensor.extract_slice %18#0[0, 0, 1, 0] [2, 4, 5, 5] [1, 1, 2, 1] : tensor<2x4x10x5xf32> to tensor<2x4x5x5xf32>
    return %extracted_slice : tensor<2x4x5x5xf32>
  }
}

