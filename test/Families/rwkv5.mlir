// RUN: grep -v '^//' %s | grep . > %t.file
// RUN: linattn-families --emit=rwkv5 | grep . > %t.emitted
// RUN: diff %t.file %t.emitted
// RUN: FileCheck %s < %t.emitted
// RUN: linattn-run %s --open-size=1,7 --compare=reference

// CHECK-LABEL: func.func @rwkv5(
// CHECK: linattn.scan {{.*}}bonus(%u) readout(exclusive)
#map = affine_map<(d0, d1, d2, d3) -> (d1, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
module {
  func.func @rwkv5(%r: tensor<2x2x?x8xf32>, %k: tensor<2x2x?x8xf32>, %v: tensor<2x4x?x5xf32>, %w: tensor<4x8xf32>, %u: tensor<4x8xf32>) -> tensor<2x4x?x5xf32> {
    %c2 = arith.constant 2 : index
    %dim = tensor.dim %r, %c2 : tensor<2x2x?x8xf32>
    %0 = tensor.empty(%dim) : tensor<2x4x?x8xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%w : tensor<4x8xf32>) outs(%0 : tensor<2x4x?x8xf32>) {
    ^bb0(%w_0: f32, %out: f32):
      linalg.yield %w_0 : f32
    } -> tensor<2x4x?x8xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %2 = tensor.empty() : tensor<2x4x8x5xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<2x4x8x5xf32>) -> tensor<2x4x8x5xf32>
    %4 = tensor.empty(%dim) : tensor<2x4x?x5xf32>
    %5:2 = linattn.scan %r, %k, %v decay(%1) bonus(%u) readout(exclusive) into(%4) init(%3) {scale = 0.35355339059327373 : f64} : (tensor<2x2x?x8xf32>, tensor<2x2x?x8xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?x8xf32>, tensor<4x8xf32>, tensor<2x4x?x5xf32>, tensor<2x4x8x5xf32>) -> (tensor<2x4x?x5xf32>, tensor<2x4x8x5xf32>)
    return %5#0 : tensor<2x4x?x5xf32>
  }
}

