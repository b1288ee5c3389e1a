// RUN: grep -v '^//' %s | grep . > %t.file
// RUN: linattn-families --emit=lru | grep . > %t.emitted
// RUN: diff %t.file %t.emitted
// RUN: FileCheck %s < %t.emitted
// RUN: linattn-run %s --open-size=1,7 --compare=reference

// CHECK-LABEL: func.func @lru(
// CHECK: linattn.diagonal_scan 
#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0, d1) -> (d0, d1)>
#map2 = affine_map<(d0, d1) -> (d0)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#map5 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map6 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
  func.func @lru(%u: tensor<2x?x4xf32>, %nu_log: tensor<4xf32>, %theta_log: tensor<4xf32>, %B_re: tensor<4x4xf32>, %B_im: tensor<4x4xf32>, %C_re: tensor<4x4xf32>, %C_im: tensor<4x4xf32>) -> tensor<2x?x4xf32> {
    %c1 = arith.constant 1 : index
    %dim = tensor.dim %u, %c1 : tensor<2x?x4xf32>
    %0 = tensor.empty() : tensor<4xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%nu_log : tensor<4xf32>) outs(%0 : tensor<4xf32>) {
    ^bb0(%nu_log_0: f32, %out: f32):
      %13 = math.exp %nu_log_0 : f32
      %14 = arith.negf %13 : f32
      linalg.yield %14 : f32
    } -> tensor<4xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%theta_log : tensor<4xf32>) outs(%0 : tensor<4xf32>) {
    ^bb0(%theta_log_0: f32, %out: f32):
      %13 = math.exp %theta_log_0 : f32
      linalg.yield %13 : f32
    } -> tensor<4xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%1 : tensor<4xf32>) outs(%0 : tensor<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %13 = arith.addf %in, %in : f32
      %14 = math.expm1 %13 : f32
      %15 = arith.negf %14 : f32
      %16 = math.sqrt %15 : f32
      linalg.yield %16 : f32
    } -> tensor<4xf32>
    %4 = tensor.empty() : tensor<4x4xf32>
    %5 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel"]} ins(%B_re, %3 : tensor<4x4xf32>, tensor<4xf32>) outs(%4 : tensor<4x4xf32>) {
    ^bb0(%B_re_0: f32, %in: f32, %out: f32):
      %13 = arith.mulf %B_re_0, %in : f32
      linalg.yield %13 : f32
    } -> tensor<4x4xf32>
    %6 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel"]} ins(%B_im, %3 : tensor<4x4xf32>, tensor<4xf32>) outs(%4 : tensor<4x4xf32>) {
    ^bb0(%B_im_0: f32, %in: f32, %out: f32):
      %13 = arith.mulf %B_im_0, %in : f32
      linalg.yield %13 : f32
    } -> tensor<4x4xf32>
    %7 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%C_re : tensor<4x4xf32>) outs(%4 : tensor<4x4xf32>) {
    ^bb0(%C_re_0: f32, %out: f32):
      linalg.yield %C_re_0 : f32
    } -> tensor<4x4xf32>
    %8 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%C_im : tensor<4x4xf32>) outs(%4 : tensor<4x4xf32>) {
    ^bb0(%C_im_0: f32, %out: f32):
      %13 = arith.negf %C_im_0 : f32
      linalg.yield %13 : f32
    } -> tensor<4x4xf32>
    %9 = tensor.empty(%dim) : tensor<2x?x4xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %10 = tensor.empty() : tensor<2x4xf32>
    %11 = linalg.fill ins(%cst : f32) outs(%10 : tensor<2x4xf32>) -> tensor<2x4xf32>
    %c64 = arith.constant 64 : index
    %c0 = arith.constant 0 : index
    %12:3 = scf.for %arg7 = %c0 to %dim step %c64 iter_args(%arg8 = %9, %arg9 = %11, %arg10 = %11) -> (tensor<2x?x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
      %13 = arith.subi %dim, %arg7 : index
      %14 = arith.minsi %13, %c64 : index
      %extracted_slice = tensor.extract_slice %u[0, %arg7, 0] [2, %14, 4] [1, 1, 1] : tensor<2x?x4xf32> to tensor<2x?x4xf32>
      %15 = tensor.empty(%14) : tensor<2x?x4xf32>
      %16 = linalg.fill ins(%cst : f32) outs(%15 : tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
      %17 = linalg.generic {indexing_maps = [#map3, #map4, #map5], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%extracted_slice, %5 : tensor<2x?x4xf32>, tensor<4x4xf32>) outs(%16 : tensor<2x?x4xf32>) {
      ^bb0(%in: f32, %in_0: f32, %out: f32):
        %23 = arith.mulf %in, %in_0 : f32
        %24 = arith.addf %out, %23 : f32
        linalg.yield %24 : f32
      } -> tensor<2x?x4xf32>
      %18 = linalg.generic {indexing_maps = [#map3, #map4, #map5], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%extracted_slice, %6 : tensor<2x?x4xf32>, tensor<4x4xf32>) outs(%16 : tensor<2x?x4xf32>) {
      ^bb0(%in: f32, %in_0: f32, %out: f32):
        %23 = arith.mulf %in, %in_0 : f32
        %24 = arith.addf %out, %23 : f32
        linalg.yield %24 : f32
      } -> tensor<2x?x4xf32>
      %19:4 = linattn.diagonal_scan %17 imag(%18) decay(%1) phase(%2) into(%15) into_imag(%15) init(%arg9) init_imag(%arg10) : (tensor<2x?x4xf32>, tensor<2x?x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2x?x4xf32>, tensor<2x?x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) -> (tensor<2x?x4xf32>, tensor<2x?x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>)
      %20 = linalg.generic {indexing_maps = [#map3, #map4, #map5], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%19#0, %7 : tensor<2x?x4xf32>, tensor<4x4xf32>) outs(%16 : tensor<2x?x4xf32>) {
      ^bb0(%in: f32, %in_0: f32, %out: f32):
        %23 = arith.mulf %in, %in_0 : f32
        %24 = arith.addf %out, %23 : f32
        linalg.yield %24 : f32
      } -> tensor<2x?x4xf32>
      %21 = linalg.generic {indexing_maps = [#map3, #map4, #map5], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%19#1, %8 : tensor<2x?x4xf32>, tensor<4x4xf32>) outs(%20 : tensor<2x?x4xf32>) {
      ^bb0(%in: f32, %in_0: f32, %out: f32):
        %23 = arith.mulf %in, %in_0 : f32
        %24 = arith.addf %out, %23 : f32
        linalg.yield %24 : f32
      } -> tensor<2x?x4xf32>
      %22 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = ["parallel", "parallel", "parallel"]} ins(%21 : tensor<2x?x4xf32>) outs(%15 : tensor<2x?x4xf32>) {
      ^bb0(%in: f32, %out: f32):
        linalg.yield %in : f32
      } -> tensor<2x?x4xf32>
      %inserted_slice = tensor.insert_slice %22 into %arg8[0, %arg7, 0] [2, %14, 4] [1, 1, 1] : tensor<2x?x4xf32> into tensor<2x?x4xf32>
      scf.yield %inserted_slice, %19#2, %19#3 : tensor<2x?x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
    }
    return %12#0 : tensor<2x?x4xf32>
  }
}

