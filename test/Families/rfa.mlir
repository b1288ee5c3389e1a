// RUN: grep -v '^//' %s | grep . > %t.file
// RUN: linattn-families --emit=rfa | grep . > %t.emitted
// RUN: diff %t.file %t.emitted
// RUN: FileCheck %s < %t.emitted
// Sums of both signs make denominators close to 0: only sums in the order of the
// reference agree to the last digits.
// RUN: linattn-run %s --open-size=1,7 --form=token --compare=reference

// CHECK-LABEL: func.func @rfa(
// CHECK: linattn.scan {{.*}}decay(%g)
// CHECK-SAME: normalizer
#map = affine_map<(d0, d1, d2, d3) -> (d0, d1 floordiv 2, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
module {
  func.func @rfa(%q: tensor<2x2x?x8xf32>, %k: tensor<2x2x?x8xf32>, %v: tensor<2x4x?x5xf32>, %g: tensor<2x4x?xf32>) -> tensor<2x4x?x5xf32> {
    %c2 = arith.constant 2 : index
    %dim = tensor.dim %q, %c2 : tensor<2x2x?x8xf32>
    %0 = tensor.empty(%dim) : tensor<2x4x?x8xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%k, %g : tensor<2x2x?x8xf32>, tensor<2x4x?xf32>) outs(%0 : tensor<2x4x?x8xf32>) {
    ^bb0(%k_0: f32, %g_1: f32, %out: f32):
      %8 = math.expm1 %g_1 : f32
      %9 = arith.negf %8 : f32
      %10 = arith.mulf %k_0, %9 : f32
      linalg.yield %10 : f32
    } -> tensor<2x4x?x8xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %2 = tensor.empty() : tensor<2x4x8x5xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<2x4x8x5xf32>) -> tensor<2x4x8x5xf32>
    %4 = tensor.empty() : tensor<2x4x8xf32>
    %5 = linalg.fill ins(%cst : f32) outs(%4 : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %6 = tensor.empty(%dim) : tensor<2x4x?x5xf32>
    %7:3 = linattn.scan %q, %1, %v decay(%g) into(%6) init(%3) normalizer(%5) {normalize = #linattn.normalize<eps = 9.9999999999999995E-7 : f64>, scale = 0.35355339059327373 : f64} : (tensor<2x2x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?xf32>, tensor<2x4x?x5xf32>, tensor<2x4x8x5xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x?x5xf32>, tensor<2x4x8x5xf32>, tensor<2x4x8xf32>)
    return %7#0 : tensor<2x4x?x5xf32>
  }
}

