// RUN: grep -v '^//' %s | grep . > %t.file
// RUN: linattn-families --emit=mlstm | grep . > %t.emitted
// RUN: diff %t.file %t.emitted
// RUN: FileCheck %s < %t.emitted
// RUN: linattn-run %s --open-size=1,7 --compare=reference

// CHECK-LABEL: func.func @mlstm(
// CHECK: linattn.scan {{.*}}input_gate(%i)
#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
  func.func @mlstm(%q: tensor<2x2x?x8xf32>, %k: tensor<2x2x?x8xf32>, %v: tensor<2x4x?x5xf32>, %i: tensor<2x4x?xf32>, %f: tensor<2x4x?xf32>) -> tensor<2x4x?x5xf32> {
    %c2 = arith.constant 2 : index
    %dim = tensor.dim %q, %c2 : tensor<2x2x?x8xf32>
    %0 = tensor.empty(%dim) : tensor<2x4x?xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%f : tensor<2x4x?xf32>) outs(%0 : tensor<2x4x?xf32>) {
    ^bb0(%f_1: f32, %out: f32):
      %10 = arith.negf %f_1 : f32
      %cst_2 = arith.constant 0.000000e+00 : f32
      %11 = math.absf %10 : f32
      %12 = arith.negf %11 : f32
      %13 = math.exp %12 : f32
      %14 = arith.maximumf %10, %cst_2 : f32
      %15 = math.log1p %13 : f32
      %16 = arith.addf %14, %15 : f32
      %17 = arith.negf %16 : f32
      linalg.yield %17 : f32
    } -> tensor<2x4x?xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %2 = tensor.empty() : tensor<2x4x8x5xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<2x4x8x5xf32>) -> tensor<2x4x8x5xf32>
    %4 = tensor.empty() : tensor<2x4x8xf32>
    %5 = linalg.fill ins(%cst : f32) outs(%4 : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %cst_0 = arith.constant 0xFF800000 : f32
    %6 = tensor.empty() : tensor<2x4xf32>
    %7 = linalg.fill ins(%cst_0 : f32) outs(%6 : tensor<2x4xf32>) -> tensor<2x4xf32>
    %8 = tensor.empty(%dim) : tensor<2x4x?x5xf32>
    %9:4 = linattn.scan %q, %k, %v decay(%1) input_gate(%i) into(%8) init(%3) normalizer(%5) running_max(%7) {normalize = #linattn.normalize<abs_floor = 1.000000e+00 : f64>, scale = 0.35355339059327373 : f64} : (tensor<2x2x?x8xf32>, tensor<2x2x?x8xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?xf32>, tensor<2x4x?xf32>, tensor<2x4x?x5xf32>, tensor<2x4x8x5xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>) -> (tensor<2x4x?x5xf32>, tensor<2x4x8x5xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>)
    return %9#0 : tensor<2x4x?x5xf32>
  }
}

