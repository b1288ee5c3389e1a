// A constant of 16 bits is an argument of a kernel: the zeros that a sequence
// without a state gives.

// RUN: linattn-run %s --all --target=nvvm-emulated --open-size=5 --compare=reference | FileCheck %s

// CHECK-COUNT-2: result 0: agrees with the reference

func.func @f16(%q: tensor<3x1x?x4xf16>, %v: tensor<3x1x?x3xf16>, %b: tensor<3x1x?xf16>, %o: tensor<3x1x?x3xf16>, %s: tensor<5x1x4x3xf32>) -> (tensor<3x1x?x3xf16>, tensor<5x1x4x3xf32>) {
  %i = arith.constant dense<[4, -1, 2]> : tensor<3xi64>
  %r:2 = linattn.scan %q, %q, %v beta(%b) state_indices(%i) update(oja) into(%o) init(%s)
    : (tensor<3x1x?x4xf16>, tensor<3x1x?x4xf16>, tensor<3x1x?x3xf16>, tensor<3x1x?xf16>, tensor<3xi64>, tensor<3x1x?x3xf16>, tensor<5x1x4x3xf32>) -> (tensor<3x1x?x3xf16>, tensor<5x1x4x3xf32>)
  return %r#0, %r#1 : tensor<3x1x?x3xf16>, tensor<5x1x4x3xf32>
}

func.func @bf16(%q: tensor<3x1x?x4xbf16>, %v: tensor<3x1x?x3xbf16>, %b: tensor<3x1x?xbf16>, %o: tensor<3x1x?x3xbf16>, %s: tensor<5x1x4x3xf32>) -> (tensor<3x1x?x3xbf16>, tensor<5x1x4x3xf32>) {
  %i = arith.constant dense<[4, -1, 2]> : tensor<3xi64>
  %r:2 = linattn.scan %q, %q, %v beta(%b) state_indices(%i) update(oja) into(%o) init(%s)
    : (tensor<3x1x?x4xbf16>, tensor<3x1x?x4xbf16>, tensor<3x1x?x3xbf16>, tensor<3x1x?xbf16>, tensor<3xi64>, tensor<3x1x?x3xbf16>, tensor<5x1x4x3xf32>) -> (tensor<3x1x?x3xbf16>, tensor<5x1x4x3xf32>)
  return %r#0, %r#1 : tensor<3x1x?x3xbf16>, tensor<5x1x4x3xf32>
}
