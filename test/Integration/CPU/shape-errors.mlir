// RUN: not linattn-run %s --entry attend --arg random:1x2x8x4xf32 --arg random:1x2x8x4xf32 --arg random:1x2x5x4xf32 2>&1 | FileCheck %s --check-prefix=TOKENS
// RUN: not linattn-run %s --entry attend --arg random:1x2x8x4xf32 --arg random:1x2x8x4xf32 --arg random:1x2x5x4xf32 --target=reference 2>&1 | FileCheck %s --check-prefix=TOKENS
// RUN: linattn-run %s --entry attend --arg random:1x2x8x4xf32 --arg random:1x2x8x4xf32 --arg random:1x2x8x4xf32 --out %t.npy
// RUN: not linattn-run %s --entry attend --arg %t.npy --arg random:1x2x9x4xf32 --arg random:1x2x9x4xf32 2>&1 | FileCheck %s --check-prefix=NPY
// RUN: not linattn-run %s --entry matmul --arg random:3x4xf32 --arg random:5x2xf32 2>&1 | FileCheck %s --check-prefix=MATMUL

// Sizes that must agree are checked before anything runs.

// TOKENS: 'attend': expected key and value to have the same sequence length, but got 8 and 5
// NPY:    'attend': expected query and key to have the same sequence length, but got 8 and 9
func.func @attend(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  %o = linattn.attention %q, %k, %v {causal}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

// MATMUL: 'matmul': linalg.matmul: expected dimension 1 of operand 0 and dimension 0 of operand 1 to have the same size, but got 4 and 5
func.func @matmul(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %n = tensor.dim %b, %c1 : tensor<?x?xf32>
  %empty = tensor.empty(%m, %n) : tensor<?x?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x?xf32>) -> tensor<?x?xf32>
  %c = linalg.matmul ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%init : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %c : tensor<?x?xf32>
}
