// RUN: grep -v '^//' %s | grep . > %t.file
// RUN: linattn-families --emit=log_linear | grep . > %t.emitted
// RUN: diff %t.file %t.emitted
// RUN: FileCheck %s < %t.emitted
// RUN: linattn-run %s --open-size=1,7 --compare=reference

// CHECK-LABEL: func.func @log_linear(
// CHECK: linattn.log_linear 
#map = affine_map<(d0) -> (d0)>
module {
  func.func @log_linear(%q: tensor<2x2x?x8xf32>, %k: tensor<2x2x?x8xf32>, %v: tensor<2x4x?x5xf32>, %g: tensor<2x4x?xf32>, %level_scales: tensor<2x4x?x4xf32>) -> tensor<2x4x?x5xf32> {
    %c2 = arith.constant 2 : index
    %dim = tensor.dim %q, %c2 : tensor<2x2x?x8xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<2x4x4x8x5xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2x4x4x8x5xf32>) -> tensor<2x4x4x8x5xf32>
    %2 = tensor.empty() : tensor<2xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<2xf32>) -> tensor<2xf32>
    %4 = tensor.empty() : tensor<2xi64>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%3 : tensor<2xf32>) outs(%4 : tensor<2xi64>) {
    ^bb0(%in: f32, %out: i64):
      %10 = arith.fptosi %in : f32 to i64
      linalg.yield %10 : i64
    } -> tensor<2xi64>
    %6 = tensor.empty(%dim) : tensor<2x4x?x5xf32>
    %7:2 = linattn.log_linear %q, %k, %v decay(%g) levels(%level_scales) position(%5) into(%6) init(%1) {scale = 0.35355339059327373 : f64} : (tensor<2x2x?x8xf32>, tensor<2x2x?x8xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?xf32>, tensor<2x4x?x4xf32>, tensor<2xi64>, tensor<2x4x?x5xf32>, tensor<2x4x4x8x5xf32>) -> (tensor<2x4x?x5xf32>, tensor<2x4x4x8x5xf32>)
    %8 = arith.index_cast %dim : index to i64
    %9 = arith.sitofp %8 : i64 to f32
    return %7#0 : tensor<2x4x?x5xf32>
  }
}

