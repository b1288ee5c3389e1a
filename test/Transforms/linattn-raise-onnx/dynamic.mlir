// RUN: linattn-opt %s --allow-unregistered-dialect --linattn-raise-onnx --canonicalize --cse --split-input-file | FileCheck %s

// Batch and sequence length come from the operands.

// CHECK-LABEL: func.func @length
// CHECK-SAME: (%[[Q:.+]]: tensor<?x?x32xf32>, %[[K:.+]]: tensor<?x?x16xf32>, %[[V:.+]]: tensor<?x?x12xf32>, %[[B:.+]]: tensor<?x?x1xf32>)
func.func @length(%q: tensor<?x?x32xf32>, %k: tensor<?x?x16xf32>, %v: tensor<?x?x12xf32>, %b: tensor<?x?x1xf32>) -> (tensor<?x?x24xf32>, tensor<?x2x8x6xf32>) {
  // CHECK-DAG: %[[N:.+]] = tensor.dim %[[Q]], %c0
  // CHECK-DAG: %[[T:.+]] = tensor.dim %[[Q]], %c1
  // CHECK-DAG: tensor.expand_shape %[[Q]] {{.*}} output_shape [%[[N]], %[[T]], 4, 8] : tensor<?x?x32xf32> into tensor<?x?x4x8xf32>
  // CHECK-DAG: tensor.empty(%[[N]], %[[T]]) : tensor<?x4x?x6xf32>
  // CHECK-DAG: tensor.empty(%[[N]]) : tensor<?x2x8x6xf32>
  // CHECK: linattn.scan {{.*}} beta(%{{.+}}) update(delta) into
  %none = "onnx.NoValue"() {value} : () -> none
  %o, %s = "onnx.LinearAttention"(%q, %k, %v, %none, %none, %b) {q_num_heads = 4 : i64, kv_num_heads = 2 : i64, update_rule = "delta"}
    : (tensor<?x?x32xf32>, tensor<?x?x16xf32>, tensor<?x?x12xf32>, none, none, tensor<?x?x1xf32>) -> (tensor<?x?x24xf32>, tensor<?x2x8x6xf32>)
  return %o, %s : tensor<?x?x24xf32>, tensor<?x2x8x6xf32>
}

// -----

// The size of a head comes from whichever operand tells it.

// CHECK-LABEL: func.func @sizes
func.func @sizes(%q: tensor<?x?x?xf32>, %k: tensor<?x?x?xf32>, %v: tensor<?x?x?xf32>, %s: tensor<?x?x8x6xf32>) -> (tensor<?x?x?xf32>, tensor<?x?x?x?xf32>) {
  // CHECK-DAG: tensor.cast %arg0 : tensor<?x?x?xf32> to tensor<?x?x32xf32>
  // CHECK-DAG: tensor.cast %arg1 : tensor<?x?x?xf32> to tensor<?x?x16xf32>
  // CHECK-DAG: tensor.cast %arg2 : tensor<?x?x?xf32> to tensor<?x?x12xf32>
  // CHECK-DAG: tensor.cast %arg3 : tensor<?x?x8x6xf32> to tensor<?x2x8x6xf32>
  // CHECK: linattn.scan {{.*}} {scale = 0.3535533{{.*}} : f64}
  // CHECK-DAG: tensor.cast %{{.+}} : tensor<?x?x24xf32> to tensor<?x?x?xf32>
  // CHECK-DAG: tensor.cast %{{.+}} : tensor<?x2x8x6xf32> to tensor<?x?x?x?xf32>
  %o, %s1 = "onnx.LinearAttention"(%q, %k, %v, %s) {q_num_heads = 4 : i64, kv_num_heads = 2 : i64, update_rule = "linear"}
    : (tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?x?x8x6xf32>) -> (tensor<?x?x?xf32>, tensor<?x?x?x?xf32>)
  return %o, %s1 : tensor<?x?x?xf32>, tensor<?x?x?x?xf32>
}

// -----

// Or it is computed, when the scale does not need it.

// CHECK-LABEL: func.func @unknown
// CHECK-SAME: (%[[Q:.+]]: tensor<?x?x?xf32>, %[[K:.+]]: tensor<?x?x?xf32>, %[[V:.+]]: tensor<?x?x?xf32>, %[[G:.+]]: tensor<?x?x2xf32>)
func.func @unknown(%q: tensor<?x?x?xf32>, %k: tensor<?x?x?xf32>, %v: tensor<?x?x?xf32>, %g: tensor<?x?x2xf32>) -> (tensor<?x?x?xf32>, tensor<?x2x?x?xf32>) {
  // CHECK-DAG: %[[FQ:.+]] = tensor.dim %[[Q]], %c2
  // CHECK-DAG: %[[DQ:.+]] = arith.divui %[[FQ]], %c4
  // CHECK-DAG: tensor.expand_shape %[[Q]] {{.*}} output_shape [%{{.+}}, %{{.+}}, 4, %[[DQ]]]
  // CHECK: linattn.permute %[[G]] [0, 2, 1] : tensor<?x?x2xf32> to tensor<?x2x?xf32>
  %none = "onnx.NoValue"() {value} : () -> none
  %o, %s = "onnx.LinearAttention"(%q, %k, %v, %none, %g) {q_num_heads = 4 : i64, kv_num_heads = 2 : i64, update_rule = "gated", scale = 0.5 : f32}
    : (tensor<?x?x?xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>, none, tensor<?x?x2xf32>) -> (tensor<?x?x?xf32>, tensor<?x2x?x?xf32>)
  return %o, %s : tensor<?x?x?xf32>, tensor<?x2x?x?xf32>
}
