// RUN: grep -v '^//' %s | grep . > %t.file
// RUN: linattn-families --emit=hgrn | grep . > %t.emitted
// RUN: diff %t.file %t.emitted
// RUN: FileCheck %s < %t.emitted
// RUN: linattn-run %s --open-size=1,7 --compare=reference

// CHECK-LABEL: func.func @hgrn(
// CHECK: linattn.scan {{.*}}value_decay(%g)
module {
  func.func @hgrn(%x: tensor<2x1x?x5xf32>, %g: tensor<2x1x?x5xf32>) -> tensor<2x1x?x5xf32> {
    %c2 = arith.constant 2 : index
    %dim = tensor.dim %x, %c2 : tensor<2x1x?x5xf32>
    %cst = arith.constant 1.000000e+00 : f32
    %0 = tensor.empty(%dim) : tensor<2x1x?x1xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2x1x?x1xf32>) -> tensor<2x1x?x1xf32>
    %cst_0 = arith.constant 0.000000e+00 : f32
    %2 = tensor.empty() : tensor<2x1x1x5xf32>
    %3 = linalg.fill ins(%cst_0 : f32) outs(%2 : tensor<2x1x1x5xf32>) -> tensor<2x1x1x5xf32>
    %4 = tensor.empty(%dim) : tensor<2x1x?x5xf32>
    %5:2 = linattn.scan %1, %1, %x value_decay(%g) into(%4) init(%3) : (tensor<2x1x?x1xf32>, tensor<2x1x?x1xf32>, tensor<2x1x?x5xf32>, tensor<2x1x?x5xf32>, tensor<2x1x?x5xf32>, tensor<2x1x1x5xf32>) -> (tensor<2x1x?x5xf32>, tensor<2x1x1x5xf32>)
    return %5#0 : tensor<2x1x?x5xf32>
  }
}

