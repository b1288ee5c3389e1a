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
    %0 = tensor.empty() : tensor<4xf64>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%nu_log : tensor<4xf32>) outs(%0 : tensor<4xf64>) {
    ^bb0(%nu_log_0: f32, %out: f64):
      %16 = arith.extf %nu_log_0 : f32 to f64
      %17 = math.exp %16 : f64
      %18 = arith.negf %17 : f64
      linalg.yield %18 : f64
    } -> tensor<4xf64>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%theta_log : tensor<4xf32>) outs(%0 : tensor<4xf64>) {
    ^bb0(%theta_log_0: f32, %out: f64):
      %16 = arith.extf %theta_log_0 : f32 to f64
      %17 = math.exp %16 : f64
      linalg.yield %17 : f64
    } -> tensor<4xf64>
    %3 = tensor.empty() : tensor<4xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%1 : tensor<4xf64>) outs(%3 : tensor<4xf32>) {
    ^bb0(%in: f64, %out: f32):
      %16 = arith.truncf %in : f64 to f32
      %17 = arith.addf %16, %16 : f32
      %18 = math.expm1 %17 : f32
      %19 = arith.negf %18 : f32
      %20 = math.sqrt %19 : f32
      linalg.yield %20 : f32
    } -> tensor<4xf32>
    %5 = tensor.empty() : tensor<4x4xf32>
    %6 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel"]} ins(%B_re, %4 : tensor<4x4xf32>, tensor<4xf32>) outs(%5 : tensor<4x4xf32>) {
    ^bb0(%B_re_0: f32, %in: f32, %out: f32):
      %16 = arith.mulf %B_re_0, %in : f32
      linalg.yield %16 : f32
    } -> tensor<4x4xf32>
    %7 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel"]} ins(%B_im, %4 : tensor<4x4xf32>, tensor<4xf32>) outs(%5 : tensor<4x4xf32>) {
    ^bb0(%B_im_0: f32, %in: f32, %out: f32):
      %16 = arith.mulf %B_im_0, %in : f32
      linalg.yield %16 : f32
    } -> tensor<4x4xf32>
    %8 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%C_re : tensor<4x4xf32>) outs(%5 : tensor<4x4xf32>) {
    ^bb0(%C_re_0: f32, %out: f32):
      linalg.yield %C_re_0 : f32
    } -> tensor<4x4xf32>
    %9 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%C_im : tensor<4x4xf32>) outs(%5 : tensor<4x4xf32>) {
    ^bb0(%C_im_0: f32, %out: f32):
      %16 = arith.negf %C_im_0 : f32
      linalg.yield %16 : f32
    } -> tensor<4x4xf32>
    %10 = tensor.empty(%dim) : tensor<2x?x4xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %11 = tensor.empty() : tensor<2x4xf32>
    %12 = linalg.fill ins(%cst : f32) outs(%11 : tensor<2x4xf32>) -> tensor<2x4xf32>
    %13 = tensor.empty() : tensor<2x4xf64>
    %14 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%12 : tensor<2x4xf32>) outs(%13 : tensor<2x4xf64>) {
    ^bb0(%in: f32, %out: f64):
      %16 = arith.extf %in : f32 to f64
      linalg.yield %16 : f64
    } -> tensor<2x4xf64>
    %c64 = arith.constant 64 : index
    %c0 = arith.constant 0 : index
    %15:3 = scf.for %arg7 = %c0 to %dim step %c64 iter_args(%arg8 = %10, %arg9 = %14, %arg10 = %14) -> (tensor<2x?x4xf32>, tensor<2x4xf64>, tensor<2x4xf64>) {
      %16 = arith.subi %dim, %arg7 : index
      %17 = arith.minsi %16, %c64 : index
      %extracted_slice = tensor.extract_slice %u[0, %arg7, 0] [2, %17, 4] [1, 1, 1] : tensor<2x?x4xf32> to tensor<2x?x4xf32>
      %18 = tensor.empty(%17) : tensor<2x?x4xf32>
      %19 = linalg.fill ins(%cst : f32) outs(%18 : tensor<2x?x4xf32>) -> tensor<2x?x4xf32>
      %20 = linalg.generic {indexing_maps = [#map3, #map4, #map5], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%extracted_slice, %6 : tensor<2x?x4xf32>, tensor<4x4xf32>) outs(%19 : tensor<2x?x4xf32>) {
      ^bb0(%in: f32, %in_0: f32, %out: f32):
        %26 = arith.mulf %in, %in_0 : f32
        %27 = arith.addf %out, %26 : f32
        linalg.yield %27 : f32
      } -> tensor<2x?x4xf32>
      %21 = linalg.generic {indexing_maps = [#map3, #map4, #map5], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%extracted_slice, %7 : tensor<2x?x4xf32>, tensor<4x4xf32>) outs(%19 : tensor<2x?x4xf32>) {
      ^bb0(%in: f32, %in_0: f32, %out: f32):
        %26 = arith.mulf %in, %in_0 : f32
        %27 = arith.addf %out, %26 : f32
        linalg.yield %27 : f32
      } -> tensor<2x?x4xf32>
      %22:4 = linattn.diagonal_scan %20 imag(%21) decay(%1) phase(%2) into(%18) into_imag(%18) init(%arg9) init_imag(%arg10) : (tensor<2x?x4xf32>, tensor<2x?x4xf32>, tensor<4xf64>, tensor<4xf64>, tensor<2x?x4xf32>, tensor<2x?x4xf32>, tensor<2x4xf64>, tensor<2x4xf64>) -> (tensor<2x?x4xf32>, tensor<2x?x4xf32>, tensor<2x4xf64>, tensor<2x4xf64>)
      %23 = linalg.generic {indexing_maps = [#map3, #map4, #map5], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%22#0, %8 : tensor<2x?x4xf32>, tensor<4x4xf32>) outs(%19 : tensor<2x?x4xf32>) {
      ^bb0(%in: f32, %in_0: f32, %out: f32):
        %26 = arith.mulf %in, %in_0 : f32
        %27 = arith.addf %out, %26 : f32
        linalg.yield %27 : f32
      } -> tensor<2x?x4xf32>
      %24 = linalg.generic {indexing_maps = [#map3, #map4, #map5], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%22#1, %9 : tensor<2x?x4xf32>, tensor<4x4xf32>) outs(%23 : tensor<2x?x4xf32>) {
      ^bb0(%in: f32, %in_0: f32, %out: f32):
        %26 = arith.mulf %in, %in_0 : f32
        %27 = arith.addf %out, %26 : f32
        linalg.yield %27 : f32
      } -> tensor<2x?x4xf32>
      %25 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = ["parallel", "parallel", "parallel"]} ins(%24 : tensor<2x?x4xf32>) outs(%18 : tensor<2x?x4xf32>) {
      ^bb0(%in: f32, %out: f32):
        linalg.yield %in : f32
      } -> tensor<2x?x4xf32>
      %inserted_slice = tensor.insert_slice %25 into %arg8[0, %arg7, 0] [2, %17, 4] [1, 1, 1] : tensor<2x?x4xf32> into tensor<2x?x4xf32>
      scf.yield %inserted_slice, %22#2, %22#3 : tensor<2x?x4xf32>, tensor<2x4xf64>, tensor<2x4xf64>
    }
    return %15#0 : tensor<2x?x4xf32>
  }
}
