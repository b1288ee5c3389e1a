// RUN: grep -v '^//' %s | grep . > %t.file
// RUN: linattn-families --emit=rwkv4 | grep . > %t.emitted
// RUN: diff %t.file %t.emitted
// RUN: FileCheck %s < %t.emitted
// RUN: linattn-run %s --open-size=1,7 --compare=reference

// CHECK-LABEL: func.func @rwkv4(
// CHECK: linattn.wkv4 
module {
  func.func @rwkv4(%k: tensor<2x?x4xf32>, %v: tensor<2x?x4xf32>, %w: tensor<4xf32>, %u: tensor<4xf32>) -> tensor<2x?x4xf32> {
    %c1 = arith.constant 1 : index
    %dim = tensor.dim %k, %c1 : tensor<2x?x4xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<2x4xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2x4xf32>) -> tensor<2x4xf32>
    %cst_0 = arith.constant 0xFF800000 : f32
    %2 = linalg.fill ins(%cst_0 : f32) outs(%0 : tensor<2x4xf32>) -> tensor<2x4xf32>
    %3 = tensor.empty() : tensor<2x3x4xf32>
    %inserted_slice = tensor.insert_slice %1 into %3[0, 0, 0] [2, 1, 4] [1, 1, 1] : tensor<2x4xf32> into tensor<2x3x4xf32>
    %inserted_slice_1 = tensor.insert_slice %1 into %inserted_slice[0, 1, 0] [2, 1, 4] [1, 1, 1] : tensor<2x4xf32> into tensor<2x3x4xf32>
    %inserted_slice_2 = tensor.insert_slice %2 into %inserted_slice_1[0, 2, 0] [2, 1, 4] [1, 1, 1] : tensor<2x4xf32> into tensor<2x3x4xf32>
    %4 = tensor.empty(%dim) : tensor<2x?x4xf32>
    %5:2 = linattn.wkv4 %k, %v decay(%w) bonus(%u) into(%4) init(%inserted_slice_2) : (tensor<2x?x4xf32>, tensor<2x?x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2x?x4xf32>, tensor<2x3x4xf32>) -> (tensor<2x?x4xf32>, tensor<2x3x4xf32>)
    return %5#0 : tensor<2x?x4xf32>
  }
}

