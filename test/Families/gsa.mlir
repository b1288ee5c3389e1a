// RUN: grep -v '^//' %s | grep . > %t.file
// RUN: linattn-families --emit=gsa | grep . > %t.emitted
// RUN: diff %t.file %t.emitted
// RUN: FileCheck %s < %t.emitted
// RUN: linattn-run %s --open-size=1,7 --compare=reference

// CHECK-LABEL: func.func @gsa(
// CHECK: value_decay(%g)
// CHECK: math.exp
// CHECK: linattn.scan
#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
module {
  func.func @gsa(%q: tensor<2x2x?x8xf32>, %k: tensor<2x2x?x8xf32>, %v: tensor<2x4x?x5xf32>, %s: tensor<2x4x?x3xf32>, %g: tensor<2x4x?x3xf32>) -> tensor<2x4x?x5xf32> {
    %c2 = arith.constant 2 : index
    %dim = tensor.dim %q, %c2 : tensor<2x2x?x8xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<2x4x8x3xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2x4x8x3xf32>) -> tensor<2x4x8x3xf32>
    %2 = tensor.empty() : tensor<2x4x3x5xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<2x4x3x5xf32>) -> tensor<2x4x3x5xf32>
    %4 = tensor.empty(%dim) : tensor<2x4x?x3xf32>
    %5:2 = linattn.scan %q, %k, %s value_decay(%g) into(%4) init(%1) : (tensor<2x2x?x8xf32>, tensor<2x2x?x8xf32>, tensor<2x4x?x3xf32>, tensor<2x4x?x3xf32>, tensor<2x4x?x3xf32>, tensor<2x4x8x3xf32>) -> (tensor<2x4x?x3xf32>, tensor<2x4x8x3xf32>)
    %cst_0 = arith.constant 0xFF800000 : f32
    %6 = tensor.empty(%dim) : tensor<2x4x?xf32>
    %7 = linalg.fill ins(%cst_0 : f32) outs(%6 : tensor<2x4x?xf32>) -> tensor<2x4x?xf32>
    %8 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%5#0 : tensor<2x4x?x3xf32>) outs(%7 : tensor<2x4x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %cst_1 = arith.constant 0.353553385 : f32
      %15 = arith.mulf %in, %cst_1 : f32
      %16 = arith.maximumf %out, %15 : f32
      linalg.yield %16 : f32
    } -> tensor<2x4x?xf32>
    %9 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%5#0, %8 : tensor<2x4x?x3xf32>, tensor<2x4x?xf32>) outs(%4 : tensor<2x4x?x3xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %cst_2 = arith.constant 0.353553385 : f32
      %15 = arith.mulf %in, %cst_2 : f32
      %16 = arith.subf %15, %in_1 : f32
      %17 = math.exp %16 : f32
      linalg.yield %17 : f32
    } -> tensor<2x4x?x3xf32>
    %10 = linalg.fill ins(%cst : f32) outs(%6 : tensor<2x4x?xf32>) -> tensor<2x4x?xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%9 : tensor<2x4x?x3xf32>) outs(%10 : tensor<2x4x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %15 = arith.addf %out, %in : f32
      linalg.yield %15 : f32
    } -> tensor<2x4x?xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%9, %11 : tensor<2x4x?x3xf32>, tensor<2x4x?xf32>) outs(%4 : tensor<2x4x?x3xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %15 = arith.divf %in, %in_1 : f32
      linalg.yield %15 : f32
    } -> tensor<2x4x?x3xf32>
    %13 = tensor.empty(%dim) : tensor<2x4x?x5xf32>
    %14:2 = linattn.scan %12, %s, %v decay(%g) into(%13) init(%3) : (tensor<2x4x?x3xf32>, tensor<2x4x?x3xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?x3xf32>, tensor<2x4x?x5xf32>, tensor<2x4x3x5xf32>) -> (tensor<2x4x?x5xf32>, tensor<2x4x3x5xf32>)
    return %14#0 : tensor<2x4x?x5xf32>
  }
}

