// RUN: grep -v '^//' %s | grep . > %t.file
// RUN: linattn-families --emit=momentum_delta_rule --with=p,beta,eta | grep . > %t.emitted
// RUN: diff %t.file %t.emitted
// RUN: FileCheck %s < %t.emitted
// RUN: linattn-run %s --open-size=1,7 --compare=reference

// CHECK-LABEL: func.func @momentum_delta_rule(
// CHECK: scf.for
// CHECK: linalg.generic
#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3, d2)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, d1 floordiv 2, d3)>
#map5 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map6 = affine_map<(d0, d1, d2, d3) -> (d0, d1 floordiv 2, d2)>
#map7 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
#map8 = affine_map<(d0, d1, d2, d3) -> (d0, d1)>
module {
  func.func @momentum_delta_rule(%q: tensor<2x2x?x8xf32>, %k: tensor<2x2x?x8xf32>, %v: tensor<2x4x?x5xf32>, %log_alpha: tensor<2x4x?xf32>, %log_mu: tensor<2x4x?xf32>, %p: tensor<2x2x?x8xf32>, %beta: tensor<2x4x?xf32>, %eta: tensor<2x4x?xf32>) -> tensor<2x4x?x5xf32> {
    %c2 = arith.constant 2 : index
    %dim = tensor.dim %q, %c2 : tensor<2x2x?x8xf32>
    %0 = tensor.empty(%dim) : tensor<2x2x?x8xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%q : tensor<2x2x?x8xf32>) outs(%0 : tensor<2x2x?x8xf32>) {
    ^bb0(%q_0: f32, %out: f32):
      linalg.yield %q_0 : f32
    } -> tensor<2x2x?x8xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %2 = tensor.empty(%dim) : tensor<2x2x?xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<2x2x?xf32>) -> tensor<2x2x?xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%1 : tensor<2x2x?x8xf32>) outs(%3 : tensor<2x2x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %25 = arith.mulf %in, %in : f32
      %26 = arith.addf %out, %25 : f32
      linalg.yield %26 : f32
    } -> tensor<2x2x?xf32>
    %5 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%4 : tensor<2x2x?xf32>) outs(%2 : tensor<2x2x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %cst_0 = arith.constant 9.99999997E-7 : f32
      %25 = arith.addf %in, %cst_0 : f32
      %cst_1 = arith.constant 1.000000e+00 : f32
      %26 = math.sqrt %25 : f32
      %27 = arith.divf %cst_1, %26 : f32
      linalg.yield %27 : f32
    } -> tensor<2x2x?xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%1, %5 : tensor<2x2x?x8xf32>, tensor<2x2x?xf32>) outs(%0 : tensor<2x2x?x8xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %25 = arith.mulf %in, %in_0 : f32
      linalg.yield %25 : f32
    } -> tensor<2x2x?x8xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%6 : tensor<2x2x?x8xf32>) outs(%0 : tensor<2x2x?x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %cst_0 = arith.constant 0.353553385 : f32
      %25 = arith.mulf %in, %cst_0 : f32
      linalg.yield %25 : f32
    } -> tensor<2x2x?x8xf32>
    %8 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%k : tensor<2x2x?x8xf32>) outs(%0 : tensor<2x2x?x8xf32>) {
    ^bb0(%k_0: f32, %out: f32):
      linalg.yield %k_0 : f32
    } -> tensor<2x2x?x8xf32>
    %9 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%8 : tensor<2x2x?x8xf32>) outs(%3 : tensor<2x2x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %25 = arith.mulf %in, %in : f32
      %26 = arith.addf %out, %25 : f32
      linalg.yield %26 : f32
    } -> tensor<2x2x?xf32>
    %10 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%9 : tensor<2x2x?xf32>) outs(%2 : tensor<2x2x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %cst_0 = arith.constant 9.99999997E-7 : f32
      %25 = arith.addf %in, %cst_0 : f32
      %cst_1 = arith.constant 1.000000e+00 : f32
      %26 = math.sqrt %25 : f32
      %27 = arith.divf %cst_1, %26 : f32
      linalg.yield %27 : f32
    } -> tensor<2x2x?xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%8, %10 : tensor<2x2x?x8xf32>, tensor<2x2x?xf32>) outs(%0 : tensor<2x2x?x8xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %25 = arith.mulf %in, %in_0 : f32
      linalg.yield %25 : f32
    } -> tensor<2x2x?x8xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%p : tensor<2x2x?x8xf32>) outs(%0 : tensor<2x2x?x8xf32>) {
    ^bb0(%p_0: f32, %out: f32):
      linalg.yield %p_0 : f32
    } -> tensor<2x2x?x8xf32>
    %13 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%12 : tensor<2x2x?x8xf32>) outs(%3 : tensor<2x2x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %25 = arith.mulf %in, %in : f32
      %26 = arith.addf %out, %25 : f32
      linalg.yield %26 : f32
    } -> tensor<2x2x?xf32>
    %14 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%13 : tensor<2x2x?xf32>) outs(%2 : tensor<2x2x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %cst_0 = arith.constant 9.99999997E-7 : f32
      %25 = arith.addf %in, %cst_0 : f32
      %cst_1 = arith.constant 1.000000e+00 : f32
      %26 = math.sqrt %25 : f32
      %27 = arith.divf %cst_1, %26 : f32
      linalg.yield %27 : f32
    } -> tensor<2x2x?xf32>
    %15 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%12, %14 : tensor<2x2x?x8xf32>, tensor<2x2x?xf32>) outs(%0 : tensor<2x2x?x8xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %25 = arith.mulf %in, %in_0 : f32
      linalg.yield %25 : f32
    } -> tensor<2x2x?x8xf32>
    %16 = tensor.empty(%dim) : tensor<2x4x?xf32>
    %17 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%log_alpha : tensor<2x4x?xf32>) outs(%16 : tensor<2x4x?xf32>) {
    ^bb0(%log_alpha_0: f32, %out: f32):
      %25 = math.exp %log_alpha_0 : f32
      linalg.yield %25 : f32
    } -> tensor<2x4x?xf32>
    %18 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%log_mu : tensor<2x4x?xf32>) outs(%16 : tensor<2x4x?xf32>) {
    ^bb0(%log_mu_0: f32, %out: f32):
      %25 = math.exp %log_mu_0 : f32
      linalg.yield %25 : f32
    } -> tensor<2x4x?xf32>
    %19 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%beta : tensor<2x4x?xf32>) outs(%16 : tensor<2x4x?xf32>) {
    ^bb0(%beta_0: f32, %out: f32):
      linalg.yield %beta_0 : f32
    } -> tensor<2x4x?xf32>
    %20 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%eta : tensor<2x4x?xf32>) outs(%16 : tensor<2x4x?xf32>) {
    ^bb0(%eta_0: f32, %out: f32):
      linalg.yield %eta_0 : f32
    } -> tensor<2x4x?xf32>
    %21 = tensor.empty() : tensor<2x4x8x5xf32>
    %22 = linalg.fill ins(%cst : f32) outs(%21 : tensor<2x4x8x5xf32>) -> tensor<2x4x8x5xf32>
    %23 = tensor.empty(%dim) : tensor<2x4x?x5xf32>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %24:3 = scf.for %arg8 = %c0 to %dim step %c1 iter_args(%arg9 = %22, %arg10 = %22, %arg11 = %23) -> (tensor<2x4x8x5xf32>, tensor<2x4x8x5xf32>, tensor<2x4x?x5xf32>) {
      %extracted_slice = tensor.extract_slice %15[0, 0, %arg8, 0] [2, 2, 1, 8] [1, 1, 1, 1] : tensor<2x2x?x8xf32> to tensor<2x2x8xf32>
      %25 = tensor.empty() : tensor<2x4x5xf32>
      %26 = linalg.fill ins(%cst : f32) outs(%25 : tensor<2x4x5xf32>) -> tensor<2x4x5xf32>
      %27 = linalg.generic {indexing_maps = [#map3, #map4, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%arg9, %extracted_slice : tensor<2x4x8x5xf32>, tensor<2x2x8xf32>) outs(%26 : tensor<2x4x5xf32>) {
      ^bb0(%in: f32, %in_7: f32, %out: f32):
        %31 = arith.mulf %in, %in_7 : f32
        %32 = arith.addf %out, %31 : f32
        linalg.yield %32 : f32
      } -> tensor<2x4x5xf32>
      %extracted_slice_0 = tensor.extract_slice %v[0, 0, %arg8, 0] [2, 4, 1, 5] [1, 1, 1, 1] : tensor<2x4x?x5xf32> to tensor<2x4x5xf32>
      %extracted_slice_1 = tensor.extract_slice %20[0, 0, %arg8] [2, 4, 1] [1, 1, 1] : tensor<2x4x?xf32> to tensor<2x4xf32>
      %extracted_slice_2 = tensor.extract_slice %17[0, 0, %arg8] [2, 4, 1] [1, 1, 1] : tensor<2x4x?xf32> to tensor<2x4xf32>
      %28 = linalg.generic {indexing_maps = [#map2, #map2, #map5, #map5, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%27, %extracted_slice_0, %extracted_slice_1, %extracted_slice_2 : tensor<2x4x5xf32>, tensor<2x4x5xf32>, tensor<2x4xf32>, tensor<2x4xf32>) outs(%25 : tensor<2x4x5xf32>) {
      ^bb0(%in: f32, %in_7: f32, %in_8: f32, %in_9: f32, %out: f32):
        %31 = arith.mulf %in, %in_9 : f32
        %32 = arith.subf %31, %in_7 : f32
        %33 = arith.mulf %in_8, %32 : f32
        linalg.yield %33 : f32
      } -> tensor<2x4x5xf32>
      %extracted_slice_3 = tensor.extract_slice %11[0, 0, %arg8, 0] [2, 2, 1, 8] [1, 1, 1, 1] : tensor<2x2x?x8xf32> to tensor<2x2x8xf32>
      %extracted_slice_4 = tensor.extract_slice %18[0, 0, %arg8] [2, 4, 1] [1, 1, 1] : tensor<2x4x?xf32> to tensor<2x4xf32>
      %extracted_slice_5 = tensor.extract_slice %19[0, 0, %arg8] [2, 4, 1] [1, 1, 1] : tensor<2x4x?xf32> to tensor<2x4xf32>
      %29:2 = linalg.generic {indexing_maps = [#map6, #map7, #map8, #map8, #map8, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%extracted_slice_3, %28, %extracted_slice_2, %extracted_slice_4, %extracted_slice_5 : tensor<2x2x8xf32>, tensor<2x4x5xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) outs(%arg9, %arg10 : tensor<2x4x8x5xf32>, tensor<2x4x8x5xf32>) {
      ^bb0(%in: f32, %in_7: f32, %in_8: f32, %in_9: f32, %in_10: f32, %out: f32, %out_11: f32):
        %31 = arith.mulf %in_9, %out_11 : f32
        %32 = arith.mulf %in, %in_7 : f32
        %33 = arith.addf %31, %32 : f32
        %34 = arith.mulf %in_8, %out : f32
        %35 = arith.mulf %in_10, %33 : f32
        %36 = arith.subf %34, %35 : f32
        linalg.yield %36, %33 : f32, f32
      } -> (tensor<2x4x8x5xf32>, tensor<2x4x8x5xf32>)
      %extracted_slice_6 = tensor.extract_slice %7[0, 0, %arg8, 0] [2, 2, 1, 8] [1, 1, 1, 1] : tensor<2x2x?x8xf32> to tensor<2x2x8xf32>
      %30 = linalg.generic {indexing_maps = [#map3, #map4, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%29#0, %extracted_slice_6 : tensor<2x4x8x5xf32>, tensor<2x2x8xf32>) outs(%26 : tensor<2x4x5xf32>) {
      ^bb0(%in: f32, %in_7: f32, %out: f32):
        %31 = arith.mulf %in, %in_7 : f32
        %32 = arith.addf %out, %31 : f32
        linalg.yield %32 : f32
      } -> tensor<2x4x5xf32>
      %inserted_slice = tensor.insert_slice %30 into %arg11[0, 0, %arg8, 0] [2, 4, 1, 5] [1, 1, 1, 1] : tensor<2x4x5xf32> into tensor<2x4x?x5xf32>
      scf.yield %29#0, %29#1, %inserted_slice : tensor<2x4x8x5xf32>, tensor<2x4x8x5xf32>, tensor<2x4x?x5xf32>
    }
    return %24#2 : tensor<2x4x?x5xf32>
  }
}

