// RUN: grep -v '^//' %s | grep . > %t.file
// RUN: linattn-families --emit=lightnet | grep . > %t.emitted
// RUN: diff %t.file %t.emitted
// RUN: FileCheck %s < %t.emitted
// RUN: linattn-run %s --open-size=1,7 --compare=reference

// CHECK-LABEL: func.func @lightnet(
// CHECK: math.log1p
// CHECK: linattn.scan {{.*}}decay(
#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
  func.func @lightnet(%q: tensor<2x2x?x8xf32>, %k: tensor<2x4x?x8xf32>, %v: tensor<2x4x?x5xf32>) -> tensor<2x4x?x5xf32> {
    %c2 = arith.constant 2 : index
    %dim = tensor.dim %q, %c2 : tensor<2x2x?x8xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<2x4x8x5xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2x4x8x5xf32>) -> tensor<2x4x8x5xf32>
    %cst_0 = arith.constant 0xFF800000 : f32
    %2 = tensor.empty() : tensor<2x4x8xf32>
    %3 = linalg.fill ins(%cst_0 : f32) outs(%2 : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %4 = tensor.empty() : tensor<2x4x8xf64>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%3 : tensor<2x4x8xf32>) outs(%4 : tensor<2x4x8xf64>) {
    ^bb0(%in: f32, %out: f64):
      %10 = arith.extf %in : f32 to f64
      linalg.yield %10 : f64
    } -> tensor<2x4x8xf64>
    %6 = tensor.empty(%dim) : tensor<2x4x?x8xf32>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %7:3 = scf.for %arg3 = %c0 to %dim step %c1 iter_args(%arg4 = %5, %arg5 = %6, %arg6 = %6) -> (tensor<2x4x8xf64>, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) {
      %extracted_slice = tensor.extract_slice %k[0, 0, %arg3, 0] [2, 4, 1, 8] [1, 1, 1, 1] : tensor<2x4x?x8xf32> to tensor<2x4x8xf32>
      %extracted_slice_1 = tensor.extract_slice %arg5[0, 0, %arg3, 0] [2, 4, 1, 8] [1, 1, 1, 1] : tensor<2x4x?x8xf32> to tensor<2x4x8xf32>
      %extracted_slice_2 = tensor.extract_slice %arg6[0, 0, %arg3, 0] [2, 4, 1, 8] [1, 1, 1, 1] : tensor<2x4x?x8xf32> to tensor<2x4x8xf32>
      %10:3 = linalg.generic {indexing_maps = [#map, #map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%extracted_slice : tensor<2x4x8xf32>) outs(%arg4, %extracted_slice_1, %extracted_slice_2 : tensor<2x4x8xf64>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) {
      ^bb0(%in: f32, %out: f64, %out_4: f32, %out_5: f32):
        %11 = arith.extf %in : f32 to f64
        %12 = arith.maximumf %11, %out : f64
        %13 = arith.subf %11, %out : f64
        %14 = math.absf %13 : f64
        %15 = arith.negf %14 : f64
        %16 = arith.truncf %15 : f64 to f32
        %17 = math.exp %16 : f32
        %18 = math.log1p %17 : f32
        %19 = arith.extf %18 : f32 to f64
        %20 = arith.addf %12, %19 : f64
        %cst_6 = arith.constant 0xFFF0000000000000 : f64
        %21 = arith.cmpf oeq, %out, %cst_6 : f64
        %cst_7 = arith.constant 0.000000e+00 : f64
        %22 = arith.subf %out, %20 : f64
        %23 = arith.select %21, %cst_7, %22 : f64
        %24 = arith.subf %11, %20 : f64
        %25 = arith.truncf %24 : f64 to f32
        %26 = math.exp %25 : f32
        %27 = arith.truncf %23 : f64 to f32
        linalg.yield %20, %27, %26 : f64, f32, f32
      } -> (tensor<2x4x8xf64>, tensor<2x4x8xf32>, tensor<2x4x8xf32>)
      %inserted_slice = tensor.insert_slice %10#1 into %arg5[0, 0, %arg3, 0] [2, 4, 1, 8] [1, 1, 1, 1] : tensor<2x4x8xf32> into tensor<2x4x?x8xf32>
      %inserted_slice_3 = tensor.insert_slice %10#2 into %arg6[0, 0, %arg3, 0] [2, 4, 1, 8] [1, 1, 1, 1] : tensor<2x4x8xf32> into tensor<2x4x?x8xf32>
      scf.yield %10#0, %inserted_slice, %inserted_slice_3 : tensor<2x4x8xf64>, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>
    }
    %8 = tensor.empty(%dim) : tensor<2x4x?x5xf32>
    %9:2 = linattn.scan %q, %7#2, %v decay(%7#1) into(%8) init(%1) {scale = 0.35355339059327373 : f64} : (tensor<2x2x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>, tensor<2x4x8x5xf32>) -> (tensor<2x4x?x5xf32>, tensor<2x4x8x5xf32>)
    return %9#0 : tensor<2x4x?x5xf32>
  }
}

