// RUN: linattn-opt %s --allow-unregistered-dialect --linattn-raise-onnx --remarks-filter=linattn 2>&1 | FileCheck %s

// CHECK-NOT: remark:

// Other operators stay, and so do values that somebody else uses.

// CHECK-LABEL: func.func @others
func.func @others(%q: tensor<1x5x16xf32>) -> tensor<1x5x16xf32> {
  // CHECK-NEXT: %[[NONE:.+]] = "onnx.NoValue"
  // CHECK-NEXT: "onnx.Attention"(%arg0, %arg0, %arg0, %[[NONE]])
  // CHECK-NEXT: "torch.operator"{{.*}}name = "onnx.Relu"
  // CHECK-NEXT: return
  %none = "onnx.NoValue"() {value} : () -> none
  %0 = "onnx.Attention"(%q, %q, %q, %none) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64} : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>, none) -> tensor<1x5x16xf32>
  %1 = "torch.operator"(%0) <{name = "onnx.Relu"}> : (tensor<1x5x16xf32>) -> tensor<1x5x16xf32>
  return %1 : tensor<1x5x16xf32>
}
