// RUN: linattn-opt %s --allow-unregistered-dialect --linattn-raise-onnx --canonicalize --split-input-file --verify-diagnostics | FileCheck %s

// Channels come first, by strides alone; without a state it starts from zeros.

// CHECK-LABEL: func.func @basic(
// CHECK-SAME: %[[X:.+]]: tensor<2x6x5xf32>, %[[W:.+]]: tensor<6x1x4xf32>, %[[B:.+]]: tensor<6xf32>
// CHECK-DAG: %[[XT:.+]] = linattn.permute %[[X]] [0, 2, 1] : tensor<2x6x5xf32> to tensor<2x5x6xf32>
// CHECK-DAG: %[[K:.+]] = tensor.collapse_shape %[[W]] {{\[\[}}0], [1, 2]] : tensor<6x1x4xf32> into tensor<6x4xf32>
// CHECK-DAG: %[[S:.+]] = linalg.fill {{.*}} -> tensor<2x6x3xf32>
// CHECK: %[[R:.+]]:2 = linattn.causal_conv %[[XT]], %[[K]] bias(%[[B]]) activation(silu) into(%{{.+}}) init(%[[S]])
// CHECK: %[[Y:.+]] = linattn.permute %[[R]]#0 [0, 2, 1] : tensor<2x5x6xf32> to tensor<2x6x5xf32>
// CHECK: return %[[Y]], %[[R]]#1
func.func @basic(%x: tensor<2x6x5xf32>, %w: tensor<6x1x4xf32>, %b: tensor<6xf32>) -> (tensor<2x6x5xf32>, tensor<2x6x3xf32>) {
  %y, %s = "onnx.CausalConvWithState"(%x, %w, %b) {activation = "swish"} : (tensor<2x6x5xf32>, tensor<6x1x4xf32>, tensor<6xf32>) -> (tensor<2x6x5xf32>, tensor<2x6x3xf32>)
  return %y, %s : tensor<2x6x5xf32>, tensor<2x6x3xf32>
}

// -----

// Sizes of the call; what is absent; as torch-mlir carries it.

// CHECK-LABEL: func.func @dynamic(
// CHECK-NOT: onnx
// CHECK-NOT: bias
// CHECK: linattn.causal_conv %{{.+}}, %{{.+}} into(%{{.+}}) init(%arg2) : (tensor<?x?x6xbf16>,
func.func @dynamic(%x: tensor<?x6x?xbf16>, %w: tensor<6x1x3xbf16>, %s: tensor<?x6x2xbf16>) -> (tensor<?x6x?xbf16>, tensor<?x6x2xbf16>) {
  %none = "torch.constant.none"() : () -> !torch.none
  %y, %s1 = "torch.operator"(%x, %w, %none, %s) <{name = "onnx.CausalConvWithState"}> {torch.onnx.activation = "none"} : (tensor<?x6x?xbf16>, tensor<6x1x3xbf16>, !torch.none, tensor<?x6x2xbf16>) -> (tensor<?x6x?xbf16>, tensor<?x6x2xbf16>)
  return %y, %s1 : tensor<?x6x?xbf16>, tensor<?x6x2xbf16>
}

// -----

func.func @C1(%x: tensor<2x6x5xf32>) {
  // expected-error @+1 {{expected weight, but got none}}
  %y = "onnx.CausalConvWithState"(%x) : (tensor<2x6x5xf32>) -> tensor<2x6x5xf32>
  return
}

// -----

func.func @C1_results(%x: tensor<2x6x5xf32>, %w: tensor<6x1x4xf32>) {
  // expected-error @+1 {{expected the results output and present_state, but got 3 results}}
  %y:3 = "onnx.CausalConvWithState"(%x, %w) : (tensor<2x6x5xf32>, tensor<6x1x4xf32>) -> (tensor<2x6x5xf32>, tensor<2x6x3xf32>, i32)
  return
}

// -----

func.func @C2(%x: tensor<2x6x5xf32>, %w: tensor<6x4xf32>) {
  // expected-error @+1 {{expected weight to be [C, 1, k], but got 'tensor<6x4xf32>'}}
  %y = "onnx.CausalConvWithState"(%x, %w) : (tensor<2x6x5xf32>, tensor<6x4xf32>) -> tensor<2x6x5xf32>
  return
}

// -----

func.func @C2_type(%x: tensor<2x6x5xf32>, %w: tensor<6x1x4xf16>) {
  // expected-error @+1 {{expected weight to have the element type of input, f32, but got 'f16'}}
  %y = "onnx.CausalConvWithState"(%x, %w) : (tensor<2x6x5xf32>, tensor<6x1x4xf16>) -> tensor<2x6x5xf32>
  return
}

// -----

func.func @C2_channels(%x: tensor<2x6x5xf32>, %w: tensor<6x1x4xf32>, %b: tensor<5xf32>) {
  // expected-error @+1 {{expected the channels of bias to be 6, but got 5}}
  %y = "onnx.CausalConvWithState"(%x, %w, %b) : (tensor<2x6x5xf32>, tensor<6x1x4xf32>, tensor<5xf32>) -> tensor<2x6x5xf32>
  return
}

// -----

func.func @C2_state(%x: tensor<2x6x5xf32>, %w: tensor<6x1x4xf32>, %s: tensor<2x6x4xf32>) {
  %none = "onnx.NoValue"() {value} : () -> none
  // expected-error @+1 {{expected the inputs of past_state to be 3, but got 4}}
  %y = "onnx.CausalConvWithState"(%x, %w, %none, %s) : (tensor<2x6x5xf32>, tensor<6x1x4xf32>, none, tensor<2x6x4xf32>) -> tensor<2x6x5xf32>
  return
}

// -----

func.func @C3(%x: tensor<2x6x5xf32>, %w: tensor<6x1x?xf32>) {
  // expected-error @+1 {{expected weight to have a fixed width from 1 to 16, but got ?}}
  %y = "onnx.CausalConvWithState"(%x, %w) : (tensor<2x6x5xf32>, tensor<6x1x?xf32>) -> tensor<2x6x5xf32>
  return
}

// -----

func.func @C4(%x: tensor<2x6x5xf32>, %w: tensor<6x1x4xf32>) {
  // expected-error @+1 {{expected activation to be none, silu or swish, but got "relu"}}
  %y = "onnx.CausalConvWithState"(%x, %w) {activation = "relu"} : (tensor<2x6x5xf32>, tensor<6x1x4xf32>) -> tensor<2x6x5xf32>
  return
}

// -----

func.func @C5(%x: tensor<2x6x5xf32>, %w: tensor<6x1x4xf32>) {
  // expected-error @+1 {{expected the attribute activation, but got 'ndim'}}
  %y = "onnx.CausalConvWithState"(%x, %w) {ndim = 1 : i64} : (tensor<2x6x5xf32>, tensor<6x1x4xf32>) -> tensor<2x6x5xf32>
  return
}

// -----

func.func @C6(%x: tensor<2x6x5xf32>, %w: tensor<6x1x4xf32>) {
  // expected-error @+1 {{expected dimension 2 of present_state to be 3, but got 4}}
  %y:2 = "onnx.CausalConvWithState"(%x, %w) : (tensor<2x6x5xf32>, tensor<6x1x4xf32>) -> (tensor<2x6x5xf32>, tensor<2x6x4xf32>)
  return
}
