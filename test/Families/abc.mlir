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
    %4 = tensor.empty() : tensor<2x4x3xf64>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%3 : tensor<2x4x3xf32>) outs(%4 : tensor<2x4x3xf64>) {
    ^bb0(%in: f32, %out: f64):
      %20 = arith.extf %in : f32 to f64
      linalg.yield %20 : f64
    } -> tensor<2x4x3xf64>
    %6 = tensor.empty(%dim) : tensor<2x4x?x3xf32>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %7:3 = scf.for %arg4 = %c0 to %dim step %c1 iter_args(%arg5 = %5, %arg6 = %6, %arg7 = %6) -> (tensor<2x4x3xf64>, tensor<2x4x?x3xf32>, tensor<2x4x?x3xf32>) {
      %extracted_slice = tensor.extract_slice %s[0, 0, %arg4, 0] [2, 4, 1, 3] [1, 1, 1, 1] : tensor<2x4x?x3xf32> to tensor<2x4x3xf32>
      %extracted_slice_1 = tensor.extract_slice %arg6[0, 0, %arg4, 0] [2, 4, 1, 3] [1, 1, 1, 1] : tensor<2x4x?x3xf32> to tensor<2x4x3xf32>
      %extracted_slice_2 = tensor.extract_slice %arg7[0, 0, %arg4, 0] [2, 4, 1, 3] [1, 1, 1, 1] : tensor<2x4x?x3xf32> to tensor<2x4x3xf32>
      %20:3 = linalg.generic {indexing_maps = [#map, #map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%extracted_slice : tensor<2x4x3xf32>) outs(%arg5, %extracted_slice_1, %extracted_slice_2 : tensor<2x4x3xf64>, tensor<2x4x3xf32>, tensor<2x4x3xf32>) {
      ^bb0(%in: f32, %out: f64, %out_4: f32, %out_5: f32):
        %21 = arith.extf %in : f32 to f64
        %22 = arith.maximumf %21, %out : f64
        %23 = arith.subf %21, %out : f64
        %24 = math.absf %23 : f64
        %25 = arith.negf %24 : f64
        %26 = arith.truncf %25 : f64 to f32
        %27 = math.exp %26 : f32
        %28 = math.log1p %27 : f32
        %29 = arith.extf %28 : f32 to f64
        %30 = arith.addf %22, %29 : f64
        %cst_6 = arith.constant 0xFFF0000000000000 : f64
        %31 = arith.cmpf oeq, %out, %cst_6 : f64
        %cst_7 = arith.constant 0.000000e+00 : f64
        %32 = arith.subf %out, %30 : f64
        %33 = arith.select %31, %cst_7, %32 : f64
        %34 = arith.subf %21, %30 : f64
        %35 = arith.truncf %34 : f64 to f32
        %36 = math.exp %35 : f32
        %37 = arith.truncf %33 : f64 to f32
        linalg.yield %30, %37, %36 : f64, f32, f32
      } -> (tensor<2x4x3xf64>, tensor<2x4x3xf32>, tensor<2x4x3xf32>)
      %inserted_slice = tensor.insert_slice %20#1 into %arg6[0, 0, %arg4, 0] [2, 4, 1, 3] [1, 1, 1, 1] : tensor<2x4x3xf32> into tensor<2x4x?x3xf32>
      %inserted_slice_3 = tensor.insert_slice %20#2 into %arg7[0, 0, %arg4, 0] [2, 4, 1, 3] [1, 1, 1, 1] : tensor<2x4x3xf32> into tensor<2x4x?x3xf32>
      scf.yield %20#0, %inserted_slice, %inserted_slice_3 : tensor<2x4x3xf64>, tensor<2x4x?x3xf32>, tensor<2x4x?x3xf32>
    }
    %8 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2x4x8x3xf32>) -> tensor<2x4x8x3xf32>
    %9 = linalg.fill ins(%cst : f32) outs(%1 : tensor<2x4x3x5xf32>) -> tensor<2x4x3x5xf32>
    %10:2 = linattn.scan %q, %k, %7#2 value_decay(%7#1) into(%6) init(%8) : (tensor<2x2x?x8xf32>, tensor<2x2x?x8xf32>, tensor<2x4x?x3xf32>, tensor<2x4x?x3xf32>, tensor<2x4x?x3xf32>, tensor<2x4x8x3xf32>) -> (tensor<2x4x?x3xf32>, tensor<2x4x8x3xf32>)
    %11 = tensor.empty(%dim) : tensor<2x4x?xf32>
    %12 = linalg.fill ins(%cst_0 : f32) outs(%11 : tensor<2x4x?xf32>) -> tensor<2x4x?xf32>
    %13 = linalg.generic {indexing_maps = [#map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%10#0 : tensor<2x4x?x3xf32>) outs(%12 : tensor<2x4x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %cst_1 = arith.constant 0.353553385 : f32
      %20 = arith.mulf %in, %cst_1 : f32
      %21 = arith.maximumf %out, %20 : f32
      linalg.yield %21 : f32
    } -> tensor<2x4x?xf32>
    %14 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%10#0, %13 : tensor<2x4x?x3xf32>, tensor<2x4x?xf32>) outs(%6 : tensor<2x4x?x3xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %cst_2 = arith.constant 0.353553385 : f32
      %20 = arith.mulf %in, %cst_2 : f32
      %21 = arith.subf %20, %in_1 : f32
      %22 = math.exp %21 : f32
      linalg.yield %22 : f32
    } -> tensor<2x4x?x3xf32>
    %15 = linalg.fill ins(%cst : f32) outs(%11 : tensor<2x4x?xf32>) -> tensor<2x4x?xf32>
    %16 = linalg.generic {indexing_maps = [#map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%14 : tensor<2x4x?x3xf32>) outs(%15 : tensor<2x4x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %20 = arith.addf %out, %in : f32
      linalg.yield %20 : f32
    } -> tensor<2x4x?xf32>
    %17 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%14, %16 : tensor<2x4x?x3xf32>, tensor<2x4x?xf32>) outs(%6 : tensor<2x4x?x3xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %20 = arith.divf %in, %in_1 : f32
      linalg.yield %20 : f32
    } -> tensor<2x4x?x3xf32>
    %18 = tensor.empty(%dim) : tensor<2x4x?x5xf32>
    %19:2 = linattn.scan %17, %7#2, %v decay(%7#1) into(%18) init(%9) : (tensor<2x4x?x3xf32>, tensor<2x4x?x3xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?x3xf32>, tensor<2x4x?x5xf32>, tensor<2x4x3x5xf32>) -> (tensor<2x4x?x5xf32>, tensor<2x4x3x5xf32>)
    return %19#0 : tensor<2x4x?x5xf32>
  }
}

