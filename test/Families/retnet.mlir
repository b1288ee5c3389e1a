// RUN: grep -v '^//' %s | grep . > %t.file
// RUN: linattn-families --emit=retnet | grep . > %t.emitted
// RUN: diff %t.file %t.emitted
// RUN: FileCheck %s < %t.emitted
// RUN: linattn-run %s --open-size=1,7 --compare=reference

// CHECK-LABEL: func.func @retnet(
// CHECK: linattn.scan {{.*}}decay({{.*}}) into
module {
  func.func @retnet(%q: tensor<2x2x?x8xf32>, %k: tensor<2x2x?x8xf32>, %v: tensor<2x4x?x5xf32>) -> tensor<2x4x?x5xf32> {
    %c2 = arith.constant 2 : index
    %dim = tensor.dim %q, %c2 : tensor<2x2x?x8xf32>
    %cst = arith.constant dense<[-0.0317486972, -0.0157483574, -0.00784317776, -0.00391389942]> : tensor<4xf32>
    %cst_0 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<2x4x8x5xf32>
    %1 = linalg.fill ins(%cst_0 : f32) outs(%0 : tensor<2x4x8x5xf32>) -> tensor<2x4x8x5xf32>
    %2 = tensor.empty(%dim) : tensor<2x4x?x5xf32>
    %3:2 = linattn.scan %q, %k, %v decay(%cst) into(%2) init(%1) {scale = 0.35355339059327373 : f64} : (tensor<2x2x?x8xf32>, tensor<2x2x?x8xf32>, tensor<2x4x?x5xf32>, tensor<4xf32>, tensor<2x4x?x5xf32>, tensor<2x4x8x5xf32>) -> (tensor<2x4x?x5xf32>, tensor<2x4x8x5xf32>)
    return %3#0 : tensor<2x4x?x5xf32>
  }
}

