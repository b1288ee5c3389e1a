// RUN: linattn-opt %s --convert-linattn-to-linalg | FileCheck %s --implicit-check-not='linattn.{{[a-z.]+}} %'

// CHECK-LABEL: func.func @state(
// CHECK-SAME:    %[[K:[^:]+]]: tensor<1x2x?x4xf32>, %[[V:[^:]+]]: tensor<1x2x?x5xf32>, %[[S:[^:]+]]: tensor<1x2x4x5xf32>
// CHECK:         %[[R:.+]] = scf.for {{.*}} iter_args(%[[ST:.+]] = %[[S]])
// CHECK:           %[[W:.+]] = linalg.generic {{.*}}"reduction"
// CHECK:           %[[NEXT:.+]] = linalg.generic {{.*}} ins(%[[W]] : {{.*}}) outs(%[[ST]] :
// CHECK:           scf.yield %[[NEXT]]
// CHECK:         return %[[R]]
func.func @state(%k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x5xf32>, %s: tensor<1x2x4x5xf32>) -> tensor<1x2x4x5xf32> {
  %r = linattn.state %k, %v init(%s) : (tensor<1x2x?x4xf32>, tensor<1x2x?x5xf32>, tensor<1x2x4x5xf32>) -> tensor<1x2x4x5xf32>
  return %r : tensor<1x2x4x5xf32>
}

// Attention in its quadratic form: the scores exist.

// CHECK-LABEL: func.func @attention(
// CHECK:         tensor.empty() : tensor<1x2x7x9xf32>
// CHECK:         linalg.generic
// CHECK:         return {{.*}} : tensor<1x2x7x5xf32>
func.func @attention(%q: tensor<1x2x7x4xf32>, %k: tensor<1x2x9x4xf32>, %v: tensor<1x2x9x5xf32>) -> tensor<1x2x7x5xf32> {
  %o = linattn.attention %q, %k, %v : (tensor<1x2x7x4xf32>, tensor<1x2x9x4xf32>, tensor<1x2x9x5xf32>) -> tensor<1x2x7x5xf32>
  return %o : tensor<1x2x7x5xf32>
}

// CHECK-LABEL: func.func @softmax(
// CHECK:         math.exp
func.func @softmax(%q: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  %o = linattn.attention %q, %q, %q weights(softmax) {causal} : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

// A user's φ becomes the body.

// CHECK-LABEL: func.func @region(
// CHECK:         linalg.generic
// CHECK:           math.tanh
func.func @region(%x: tensor<1x2x3x4xf32>, %y: tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32> {
  %r = linattn.feature_map %x into(%y) {feature_map = #linattn.feature_map<region>} phi {
  ^bb0(%a: f32):
    %b = math.tanh %a : f32
    linattn.yield %b : f32
  } : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  return %r : tensor<1x2x3x4xf32>
}
