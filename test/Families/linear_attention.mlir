// RUN: grep -v '^//' %s | grep . > %t.file
// RUN: linattn-families --emit=linear_attention | grep . > %t.emitted
// RUN: diff %t.file %t.emitted
// RUN: FileCheck %s < %t.emitted
// RUN: linattn-run %s --open-size=1,7 --compare=reference

// CHECK-LABEL: func.func @linear_attention(
// CHECK: linattn.scan {{.*}}init({{.*}}) normalizer({{.*}}) {feature_map = #linattn.feature_map<elu1>, normalize
module {
  func.func @linear_attention(%q: tensor<2x2x?x8xf32>, %k: tensor<2x2x?x8xf32>, %v: tensor<2x4x?x5xf32>) -> tensor<2x4x?x5xf32> {
    %c2 = arith.constant 2 : index
    %dim = tensor.dim %q, %c2 : tensor<2x2x?x8xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<2x4x8x5xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2x4x8x5xf32>) -> tensor<2x4x8x5xf32>
    %2 = tensor.empty() : tensor<2x4x8xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %4 = tensor.empty(%dim) : tensor<2x4x?x5xf32>
    %5:3 = linattn.scan %q, %k, %v into(%4) init(%1) normalizer(%3) {feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 9.9999999999999995E-7 : f64>, scale = 0.35355339059327373 : f64} : (tensor<2x2x?x8xf32>, tensor<2x2x?x8xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?x5xf32>, tensor<2x4x8x5xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x?x5xf32>, tensor<2x4x8x5xf32>, tensor<2x4x8xf32>)
    return %5#0 : tensor<2x4x?x5xf32>
  }
}

