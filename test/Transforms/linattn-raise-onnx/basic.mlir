// RUN: linattn-opt %s --allow-unregistered-dialect --linattn-raise-onnx --split-input-file | FileCheck %s
// RUN: linattn-opt %s --allow-unregistered-dialect --linattn-raise-onnx --split-input-file --remarks-filter=linattn 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: remark: [Passed] raise-onnx | Category:linattn | {{.*}}LinearAttention with update_rule linear runs as a scan

// Packed tokens are seen as [B, H, T, D]; query heads share the KV heads.

// CHECK-LABEL: func.func @linear
// CHECK-SAME: (%[[Q:.+]]: tensor<2x5x32xf32>, %[[K:.+]]: tensor<2x5x16xf32>, %[[V:.+]]: tensor<2x5x12xf32>)
func.func @linear(%q: tensor<2x5x32xf32>, %k: tensor<2x5x16xf32>, %v: tensor<2x5x12xf32>) -> (tensor<2x5x24xf32>, tensor<2x2x8x6xf32>) {
  // CHECK: %[[QE:.+]] = tensor.expand_shape %[[Q]] {{\[\[}}0], [1], [2, 3]] output_shape [2, 5, 4, 8]
  // CHECK: %[[QH:.+]] = linattn.permute %[[QE]] [0, 2, 1, 3] : tensor<2x5x4x8xf32> to tensor<2x4x5x8xf32>
  // CHECK: %[[KE:.+]] = tensor.expand_shape %[[K]] {{.*}} into tensor<2x5x2x8xf32>
  // CHECK: %[[KH:.+]] = linattn.permute %[[KE]] [0, 2, 1, 3]
  // CHECK: %[[VE:.+]] = tensor.expand_shape %[[V]] {{.*}} into tensor<2x5x2x6xf32>
  // CHECK: %[[VH:.+]] = linattn.permute %[[VE]] [0, 2, 1, 3]
  // CHECK: %[[S:.+]] = linalg.fill {{.*}} -> tensor<2x2x8x6xf32>
  // CHECK: %[[D:.+]] = tensor.empty() : tensor<2x4x5x6xf32>
  // CHECK: %[[R:.+]]:2 = linattn.scan %[[QH]], %[[KH]], %[[VH]] into(%[[D]]) init(%[[S]]) {scale = 0.3535533{{.*}} : f64}
  // CHECK: %[[P:.+]] = linattn.permute %[[R]]#0 [0, 2, 1, 3] : tensor<2x4x5x6xf32> to tensor<2x5x4x6xf32>
  // CHECK: %[[O:.+]] = tensor.collapse_shape %[[P]] {{\[\[}}0], [1], [2, 3]]
  // CHECK: return %[[O]], %[[R]]#1
  %o, %s = "onnx.LinearAttention"(%q, %k, %v) {q_num_heads = 4 : si64, kv_num_heads = 2 : si64, update_rule = "linear"}
    : (tensor<2x5x32xf32>, tensor<2x5x16xf32>, tensor<2x5x12xf32>) -> (tensor<2x5x24xf32>, tensor<2x2x8x6xf32>)
  return %o, %s : tensor<2x5x24xf32>, tensor<2x2x8x6xf32>
}

// -----

// The default rule, with everything; scale as given; chunk_size is a hint.

// CHECK-LABEL: func.func @gated_delta
// CHECK-SAME: %[[S:[a-z0-9]+]]: tensor<1x2x8x6xf32>, %[[G:[a-z0-9]+]]: tensor<1x5x16xf32>, %[[B:[a-z0-9]+]]: tensor<1x5x2xf32>
func.func @gated_delta(%q: tensor<1x5x16xf32>, %v: tensor<1x5x12xf32>, %s: tensor<1x2x8x6xf32>, %g: tensor<1x5x16xf32>, %b: tensor<1x5x2xf32>) -> (tensor<1x5x12xf32>, tensor<1x2x8x6xf32>) {
  // CHECK: tensor.expand_shape %[[G]] {{.*}} into tensor<1x5x2x8xf32>
  // CHECK: %[[GH:.+]] = linattn.permute %{{.+}} [0, 2, 1, 3] : tensor<1x5x2x8xf32> to tensor<1x2x5x8xf32>
  // CHECK: %[[BH:.+]] = linattn.permute %[[B]] [0, 2, 1] : tensor<1x5x2xf32> to tensor<1x2x5xf32>
  // CHECK: linattn.scan {{.*}} decay(%[[GH]]) beta(%[[BH]]) update(delta) into({{.*}}) init(%[[S]]) {scale = 5.000000e-01 : f64}
  %o, %s1 = "onnx.LinearAttention"(%q, %q, %v, %s, %g, %b) <{q_num_heads = 2 : i64, kv_num_heads = 2 : i64, scale = 0.5 : f32, chunk_size = 16 : i64}>
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x12xf32>, tensor<1x2x8x6xf32>, tensor<1x5x16xf32>, tensor<1x5x2xf32>) -> (tensor<1x5x12xf32>, tensor<1x2x8x6xf32>)
  return %o, %s1 : tensor<1x5x12xf32>, tensor<1x2x8x6xf32>
}

// -----

// A decay per head is tried first; absent operands are of type none.

// CHECK-LABEL: func.func @gated
func.func @gated(%q: tensor<1x5x16xf32>, %g: tensor<1x5x2xf32>) -> tensor<1x5x16xf32> {
  // CHECK-NOT: onnx.NoValue
  // CHECK: %[[GH:.+]] = linattn.permute %arg1 [0, 2, 1] : tensor<1x5x2xf32> to tensor<1x2x5xf32>
  // CHECK: linattn.scan {{.*}} decay(%[[GH]]) into
  %none = "onnx.NoValue"() {value} : () -> none
  %o, %s = "onnx.LinearAttention"(%q, %q, %q, %none, %g, %none) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "gated", onnx_node_name = "x"}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>, none, tensor<1x5x2xf32>, none) -> (tensor<1x5x16xf32>, none)
  return %o : tensor<1x5x16xf32>
}

// -----

// A beta that all heads share is written once per head. States of tokens of 16
// bits are f32; the present state has the type of the past one, or of the query.

// CHECK-LABEL: func.func @half
func.func @half(%q: tensor<1x5x16xf16>, %s: tensor<1x2x8x8xbf16>, %b: tensor<1x5x1xf16>) -> (tensor<1x5x16xf16>, tensor<1x2x8x8xbf16>, tensor<1x2x8x8xf16>) {
  %none = "onnx.NoValue"() {value} : () -> none
  // CHECK: %[[S:.+]] = arith.extf %arg1 : tensor<1x2x8x8xbf16> to tensor<1x2x8x8xf32>
  // CHECK: %[[FLAT:.+]] = tensor.collapse_shape %arg2 {{\[\[}}0], [1, 2]] : tensor<1x5x1xf16> into tensor<1x5xf16>
  // CHECK: %[[B:.+]] = linalg.broadcast ins(%[[FLAT]] : tensor<1x5xf16>) outs(%{{.+}} : tensor<1x2x5xf16>) dimensions = [1]
  // CHECK: %[[R:.+]]:2 = linattn.scan {{.*}} beta(%[[B]]) update(delta) into({{.*}}) init(%[[S]])
  // CHECK: %[[P:.+]] = arith.truncf %[[R]]#1 : tensor<1x2x8x8xf32> to tensor<1x2x8x8xbf16>
  %o, %s1 = "onnx.LinearAttention"(%q, %q, %q, %s, %none, %b) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "delta"}
    : (tensor<1x5x16xf16>, tensor<1x5x16xf16>, tensor<1x5x16xf16>, tensor<1x2x8x8xbf16>, none, tensor<1x5x1xf16>) -> (tensor<1x5x16xf16>, tensor<1x2x8x8xbf16>)
  // CHECK: arith.truncf %{{.+}} : tensor<1x2x8x8xf32> to tensor<1x2x8x8xf16>
  %o2, %s2 = "onnx.LinearAttention"(%o, %q, %q) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "linear"}
    : (tensor<1x5x16xf16>, tensor<1x5x16xf16>, tensor<1x5x16xf16>) -> (tensor<1x5x16xf16>, tensor<1x2x8x8xf16>)
  return %o2, %s1, %s2 : tensor<1x5x16xf16>, tensor<1x2x8x8xbf16>, tensor<1x2x8x8xf16>
}

// -----

// The erase gate of later versions.

// CHECK-LABEL: func.func @erase
func.func @erase(%q: tensor<1x5x16xf32>, %b: tensor<1x5x2xf32>) -> tensor<1x5x16xf32> {
  // CHECK: linattn.scan {{.*}} beta(%{{.+}}) erase(%{{.+}}) update(delta) into
  %none = "onnx.NoValue"() {value} : () -> none
  %o, %s = "onnx.LinearAttention"(%q, %q, %q, %none, %none, %b, %q) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "delta"}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>, none, none, tensor<1x5x2xf32>, tensor<1x5x16xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return %o : tensor<1x5x16xf32>
}

// -----

// As torch-mlir carries operators that it does not know.

// CHECK-LABEL: func.func @torch
func.func @torch(%q: tensor<1x5x16xf32>, %g: tensor<1x5x2xf32>) -> tensor<1x5x16xf32> {
  // CHECK-NOT: torch
  // CHECK: linattn.scan {{.*}} decay(
  %none = "torch.constant.none"() : () -> !torch.none
  %o, %s = "torch.operator"(%q, %q, %q, %none, %g) <{name = "onnx.LinearAttention"}> {torch.onnx.q_num_heads = 2 : si64, torch.onnx.kv_num_heads = 2 : si64, torch.onnx.update_rule = "gated"}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>, !torch.none, tensor<1x5x2xf32>) -> (tensor<1x5x16xf32>, tensor<1x2x8x8xf32>)
  return %o : tensor<1x5x16xf32>
}

// -----

// Absent operands as a front end with segments leaves them.

// CHECK-LABEL: func.func @segments
func.func @segments(%q: tensor<1x5x16xf32>, %b: tensor<1x5x2xf32>) -> tensor<1x5x16xf32> {
  // CHECK: linattn.scan {{.*}} beta(%{{.+}}) update(delta)
  %o = "onnx.LinearAttention"(%q, %q, %q, %b) {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "delta", operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 1>}
    : (tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x16xf32>, tensor<1x5x2xf32>) -> tensor<1x5x16xf32>
  return %o : tensor<1x5x16xf32>
}
