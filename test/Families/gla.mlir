// RUN: grep -v '^//' %s | grep . > %t.file
// RUN: linattn-families --emit=gla --with=g | grep . > %t.emitted
// RUN: diff %t.file %t.emitted
// RUN: FileCheck %s < %t.emitted
// RUN: linattn-run %s --open-size=1,7 --compare=reference

// CHECK-LABEL: func.func @gla(
// CHECK: linattn.scan {{.*}}decay(%g)
module {
  func.func @gla(%q: tensor<2x2x?x8xf32>, %k: tensor<2x2x?x8xf32>, %v: tensor<2x4x?x5xf32>, %g: tensor<2x4x?x8xf32>) -> tensor<2x4x?x5xf32> {
    %c2 = arith.constant 2 : index
    %dim = tensor.dim %q, %c2 : tensor<2x2x?x8xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<2x4x8x5xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2x4x8x5xf32>) -> tensor<2x4x8x5xf32>
    %2 = tensor.empty(%dim) : tensor<2x4x?x5xf32>
    %3:2 = linattn.scan %q, %k, %v decay(%g) into(%2) init(%1) {scale = 0.35355339059327373 : f64} : (tensor<2x2x?x8xf32>, tensor<2x2x?x8xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>, tensor<2x4x8x5xf32>) -> (tensor<2x4x?x5xf32>, tensor<2x4x8x5xf32>)
    return %3#0 : tensor<2x4x?x5xf32>
  }
}

