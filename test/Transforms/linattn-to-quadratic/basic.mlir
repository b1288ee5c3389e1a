// RUN: linattn-opt %s --linattn-to-quadratic | FileCheck %s --implicit-check-not=linattn.attention

// CHECK-LABEL: func.func @softmax(
// CHECK-SAME:    %[[Q:[^:]+]]: tensor<1x4x7x8xf32>, %[[K:[^:]+]]: tensor<1x2x7x8xf32>, %[[V:[^:]+]]: tensor<1x2x7x5xf32>, %[[M:[^:]+]]: tensor<1x7xi1>
// CHECK:         %[[DEST:.+]] = tensor.empty() : tensor<1x4x7x5xf32>
// CHECK:         %[[O:.+]] = linattn.quadratic %[[Q]], %[[K]], %[[V]] mask(%[[M]]) weights(softmax) into(%[[DEST]]) {causal, scale = 1.250000e-01 : f64}
// CHECK:         return %[[O]]
func.func @softmax(%q: tensor<1x4x7x8xf32>, %k: tensor<1x2x7x8xf32>, %v: tensor<1x2x7x5xf32>, %m: tensor<1x7xi1>) -> tensor<1x4x7x5xf32> {
  %o = linattn.attention %q, %k, %v mask(%m) weights(softmax) {causal, scale = 0.125}
    : (tensor<1x4x7x8xf32>, tensor<1x2x7x8xf32>, tensor<1x2x7x5xf32>, tensor<1x7xi1>) -> tensor<1x4x7x5xf32>
  return %o : tensor<1x4x7x5xf32>
}

// The result may know more than the operands.

// CHECK-LABEL: func.func @dynamic(
// CHECK-SAME:    %[[Q:[^:]+]]: tensor<1x2x?x8xf32>
// CHECK:         %[[T:.+]] = tensor.dim %[[Q]]
// CHECK:         tensor.empty(%[[T]]) : tensor<1x2x?x8xf32>
// CHECK:         linattn.quadratic {{.*}} {feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<floor =
func.func @dynamic(%q: tensor<1x2x?x8xf32>) -> tensor<1x2x?x8xf32> {
  %o = linattn.attention %q, %q, %q {feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<floor = 0.5>}
    : (tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>) -> tensor<1x2x?x8xf32>
  return %o : tensor<1x2x?x8xf32>
}

// CHECK-LABEL: func.func @region(
// CHECK:         linattn.quadratic {{.*}} phi {
// CHECK:           math.absf
func.func @region(%q: tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32> {
  %o = linattn.attention %q, %q, %q {feature_map = #linattn.feature_map<region>} phi {
  ^bb0(%x: f32):
    %y = math.absf %x : f32
    linattn.yield %y : f32
  } : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
  return %o : tensor<1x2x4x8xf32>
}

// CHECK-LABEL: func.func @others(
// CHECK-NEXT:    linattn.state
func.func @others(%k: tensor<1x2x4x8xf32>, %s: tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32> {
  %r = linattn.state %k, %k init(%s) : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32>
  return %r : tensor<1x2x8x8xf32>
}
