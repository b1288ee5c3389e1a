// RUN: grep -v '^//' %s | grep . > %t.file
// RUN: linattn-families --emit=mamba2 --with=D,dt_bias --set=dt_softplus=1 | grep . > %t.emitted
// RUN: diff %t.file %t.emitted
// RUN: FileCheck %s < %t.emitted
// RUN: linattn-run %s --open-size=1,7 --compare=reference

// CHECK-LABEL: func.func @mamba2(
// CHECK: linattn.scan %C, %B
#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d1)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d1)>
module {
  func.func @mamba2(%x: tensor<2x4x?x5xf32>, %B: tensor<2x2x?x8xf32>, %C: tensor<2x2x?x8xf32>, %dt: tensor<2x4x?xf32>, %A: tensor<4xf32>, %D: tensor<4xf32>, %dt_bias: tensor<4xf32>) -> tensor<2x4x?x5xf32> {
    %c2 = arith.constant 2 : index
    %dim = tensor.dim %x, %c2 : tensor<2x4x?x5xf32>
    %0 = tensor.empty(%dim) : tensor<2x4x?xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%dt, %dt_bias : tensor<2x4x?xf32>, tensor<4xf32>) outs(%0 : tensor<2x4x?xf32>) {
    ^bb0(%dt_0: f32, %dt_bias_1: f32, %out: f32):
      %9 = arith.addf %dt_0, %dt_bias_1 : f32
      %cst_2 = arith.constant 0.000000e+00 : f32
      %10 = math.absf %9 : f32
      %11 = arith.negf %10 : f32
      %12 = math.exp %11 : f32
      %13 = arith.maximumf %9, %cst_2 : f32
      %14 = math.log1p %12 : f32
      %15 = arith.addf %13, %14 : f32
      linalg.yield %15 : f32
    } -> tensor<2x4x?xf32>
    %2 = tensor.empty(%dim) : tensor<2x4x?x5xf32>
    %3 = linalg.generic {indexing_maps = [#map2, #map3, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x, %1 : tensor<2x4x?x5xf32>, tensor<2x4x?xf32>) outs(%2 : tensor<2x4x?x5xf32>) {
    ^bb0(%x_0: f32, %in: f32, %out: f32):
      %9 = arith.mulf %x_0, %in : f32
      linalg.yield %9 : f32
    } -> tensor<2x4x?x5xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%1, %A : tensor<2x4x?xf32>, tensor<4xf32>) outs(%0 : tensor<2x4x?xf32>) {
    ^bb0(%in: f32, %A_0: f32, %out: f32):
      %9 = arith.mulf %in, %A_0 : f32
      linalg.yield %9 : f32
    } -> tensor<2x4x?xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %5 = tensor.empty() : tensor<2x4x8x5xf32>
    %6 = linalg.fill ins(%cst : f32) outs(%5 : tensor<2x4x8x5xf32>) -> tensor<2x4x8x5xf32>
    %7:2 = linattn.scan %C, %B, %3 decay(%4) into(%2) init(%6) : (tensor<2x2x?x8xf32>, tensor<2x2x?x8xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?xf32>, tensor<2x4x?x5xf32>, tensor<2x4x8x5xf32>) -> (tensor<2x4x?x5xf32>, tensor<2x4x8x5xf32>)
    %8 = linalg.generic {indexing_maps = [#map2, #map2, #map4, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%7#0, %x, %D : tensor<2x4x?x5xf32>, tensor<2x4x?x5xf32>, tensor<4xf32>) outs(%2 : tensor<2x4x?x5xf32>) {
    ^bb0(%in: f32, %x_0: f32, %D_1: f32, %out: f32):
      %9 = arith.mulf %x_0, %D_1 : f32
      %10 = arith.addf %in, %9 : f32
      linalg.yield %10 : f32
    } -> tensor<2x4x?x5xf32>
    return %8 : tensor<2x4x?x5xf32>
  }
}

