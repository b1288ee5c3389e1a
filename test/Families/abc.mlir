// RUN: grep -v '^//' %s | grep . > %t.file
// RUN: linattn-families --emit=abc | grep . > %t.emitted
// RUN: diff %t.file %t.emitted
// RUN: FileCheck %s < %t.emitted
// RUN: linattn-run %s --open-size=1,7 --compare=reference

// CHECK-LABEL: func.func @abc(
// CHECK: math.log1p
// CHECK: linattn.scan
// CHECK: linattn.scan
#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
module {
  func.func @abc(%q: tensor<2x2x?x8xf32>, %k: tensor<2x2x?x8xf32>, %v: tensor<2x4x?x5xf32>, %s: tensor<2x4x?x3xf32>) -> tensor<2x4x?x5xf32> {
    %c2 = arith.constant 2 : index
    %dim = tensor.dim %q, %c2 : tensor<2x2x?x8xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<2x4x8x3xf32>
    %1 = tensor.empty() : tensor<2x4x3x5xf32>
    %cst_0 = arith.constant 0xFF800000 : f32
    %2 = tensor.empty() : tensor<2x4x3xf32>
    %3 = linalg.fill ins(%cst_0 : f32) outs(%2 : tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %4 = tensor.empty(%dim) : tensor<2x4x?x3xf32>
    %5:3 = scf.for %arg4 = %c0 to %dim step %c1 iter_args(%arg5 = %3, %arg6 = %4, %arg7 = %4) -> (tensor<2x4x3xf32>, tensor<2x4x?x3xf32>, tensor<2x4x?x3xf32>) {
      %extracted_slice = tensor.extract_slice %arg6[0, 0, %arg4, 0] [2, 4, 1, 3] [1, 1, 1, 1] : tensor<2x4x?x3xf32> to tensor<2x4x3xf32>
      %extracted_slice_1 = tensor.extract_slice %arg7[0, 0, %arg4, 0] [2, 4, 1, 3] [1, 1, 1, 1] : tensor<2x4x?x3xf32> to tensor<2x4x3xf32>
      %extracted_slice_2 = tensor.extract_slice %s[0, 0, %arg4, 0] [2, 4, 1, 3] [1, 1, 1, 1] : tensor<2x4x?x3xf32> to tensor<2x4x3xf32>
      %18:3 = linalg.generic {indexing_maps = [#map, #map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%extracted_slice_2 : tensor<2x4x3xf32>) outs(%arg5, %extracted_slice, %extracted_slice_1 : tensor<2x4x3xf32>, tensor<2x4x3xf32>, tensor<2x4x3xf32>) {
      ^bb0(%in: f32, %out: f32, %out_4: f32, %out_5: f32):
        %19 = arith.maximumf %in, %out : f32
        %20 = arith.subf %in, %out : f32
        %21 = math.absf %20 : f32
        %22 = arith.negf %21 : f32
        %23 = math.exp %22 : f32
        %24 = math.log1p %23 : f32
        %25 = arith.addf %19, %24 : f32
        %26 = arith.cmpf oeq, %out, %cst_0 : f32
        %27 = arith.subf %out, %25 : f32
        %28 = arith.select %26, %cst, %27 : f32
        %29 = arith.subf %in, %25 : f32
        %30 = math.exp %29 : f32
        linalg.yield %25, %28, %30 : f32, f32, f32
      } -> (tensor<2x4x3xf32>, tensor<2x4x3xf32>, tensor<2x4x3xf32>)
      %inserted_slice = tensor.insert_slice %18#1 into %arg6[0, 0, %arg4, 0] [2, 4, 1, 3] [1, 1, 1, 1] : tensor<2x4x3xf32> into tensor<2x4x?x3xf32>
      %inserted_slice_3 = tensor.insert_slice %18#2 into %arg7[0, 0, %arg4, 0] [2, 4, 1, 3] [1, 1, 1, 1] : tensor<2x4x3xf32> into tensor<2x4x?x3xf32>
      scf.yield %18#0, %inserted_slice, %inserted_slice_3 : tensor<2x4x3xf32>, tensor<2x4x?x3xf32>, tensor<2x4x?x3xf32>
    }
    %6 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2x4x8x3xf32>) -> tensor<2x4x8x3xf32>
    %7 = linalg.fill ins(%cst : f32) outs(%1 : tensor<2x4x3x5xf32>) -> tensor<2x4x3x5xf32>
    %8:2 = linattn.scan %q, %k, %5#2 value_decay(%5#1) into(%4) init(%6) : (tensor<2x2x?x8xf32>, tensor<2x2x?x8xf32>, tensor<2x4x?x3xf32>, tensor<2x4x?x3xf32>, tensor<2x4x?x3xf32>, tensor<2x4x8x3xf32>) -> (tensor<2x4x?x3xf32>, tensor<2x4x8x3xf32>)
    %9 = tensor.empty(%dim) : tensor<2x4x?xf32>
    %10 = linalg.fill ins(%cst_0 : f32) outs(%9 : tensor<2x4x?xf32>) -> tensor<2x4x?xf32>
    %11 = linalg.generic {indexing_maps = [#map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%8#0 : tensor<2x4x?x3xf32>) outs(%10 : tensor<2x4x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %cst_1 = arith.constant 0.353553385 : f32
      %18 = arith.mulf %in, %cst_1 : f32
      %19 = arith.maximumf %out, %18 : f32
      linalg.yield %19 : f32
    } -> tensor<2x4x?xf32>
    %12 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%8#0, %11 : tensor<2x4x?x3xf32>, tensor<2x4x?xf32>) outs(%4 : tensor<2x4x?x3xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %cst_2 = arith.constant 0.353553385 : f32
      %18 = arith.mulf %in, %cst_2 : f32
      %19 = arith.subf %18, %in_1 : f32
      %20 = math.exp %19 : f32
      linalg.yield %20 : f32
    } -> tensor<2x4x?x3xf32>
    %13 = linalg.fill ins(%cst : f32) outs(%9 : tensor<2x4x?xf32>) -> tensor<2x4x?xf32>
    %14 = linalg.generic {indexing_maps = [#map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%12 : tensor<2x4x?x3xf32>) outs(%13 : tensor<2x4x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %18 = arith.addf %out, %in : f32
      linalg.yield %18 : f32
    } -> tensor<2x4x?xf32>
    %15 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%12, %14 : tensor<2x4x?x3xf32>, tensor<2x4x?xf32>) outs(%4 : tensor<2x4x?x3xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %18 = arith.divf %in, %in_1 : f32
      linalg.yield %18 : f32
    } -> tensor<2x4x?x3xf32>
    %16 = tensor.empty(%dim) : tensor<2x4x?x5xf32>
    %17:2 = linattn.scan %15, %5#2, %v decay(%5#1) into(%16) init(%7) : (tensor<2x4x?x3xf32>, tensor<2x4x?x3xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?x3xf32>, tensor<2x4x?x5xf32>, tensor<2x4x3x5xf32>) -> (tensor<2x4x?x5xf32>, tensor<2x4x3x5xf32>)
    return %17#0 : tensor<2x4x?x5xf32>
  }
}

