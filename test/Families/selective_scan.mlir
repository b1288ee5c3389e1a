// RUN: grep -v '^//' %s | grep . > %t.file
// RUN: linattn-families --emit=selective_scan | grep . > %t.emitted
// RUN: diff %t.file %t.emitted
// RUN: FileCheck %s < %t.emitted
// RUN: linattn-run %s --open-size=1,7 --compare=reference

// CHECK-LABEL: func.func @selective_scan(
// CHECK: linattn.selective_scan 
module {
  func.func @selective_scan(%u: tensor<2x?x4xf32>, %delta: tensor<2x?x4xf32>, %A: tensor<4x4xf32>, %B: tensor<2x?x4xf32>, %C: tensor<2x?x4xf32>) -> tensor<2x?x4xf32> {
    %c1 = arith.constant 1 : index
    %dim = tensor.dim %u, %c1 : tensor<2x?x4xf32>
    %0 = tensor.empty(%dim) : tensor<2x?x4xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %1 = tensor.empty() : tensor<2x4x4xf32>
    %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
    %3:2 = linattn.selective_scan %u, %delta, %A, %B, %C into(%0) init(%2) : (tensor<2x?x4xf32>, tensor<2x?x4xf32>, tensor<4x4xf32>, tensor<2x?x4xf32>, tensor<2x?x4xf32>, tensor<2x?x4xf32>, tensor<2x4x4xf32>) -> (tensor<2x?x4xf32>, tensor<2x4x4xf32>)
    return %3#0 : tensor<2x?x4xf32>
  }
}

