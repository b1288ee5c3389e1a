// RUN: linattn-opt %s --linattn-reassociate | FileCheck %s --implicit-check-not=linattn.state
// RUN: linattn-opt %s --linattn-reassociate --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: linattn-opt %s --linattn-reassociate=mode=always | FileCheck %s --check-prefix=ALWAYS

// CHECK-LABEL: func.func @short(
// CHECK-NEXT:    linattn.attention
// REMARK:        remark: [Missed] reassociate {{.*}}"the sequence is too short for Q(KᵀV) to be cheaper"
// ALWAYS-LABEL:  func.func @short(
// ALWAYS:          linattn.state
func.func @short(%q: tensor<1x1x4x64xf32>) -> tensor<1x1x4x64xf32> {
  %o = linattn.attention %q, %q, %q : (tensor<1x1x4x64xf32>, tensor<1x1x4x64xf32>, tensor<1x1x4x64xf32>) -> tensor<1x1x4x64xf32>
  return %o : tensor<1x1x4x64xf32>
}

// Attention other than a product of three matrices stays one op, even on demand.

// CHECK-LABEL: func.func @softmax(
// CHECK-NEXT:    linattn.attention
// REMARK:        remark: [Missed] reassociate {{.*}}"softmax weights do not factor: (QKᵀ)V stays quadratic"
// ALWAYS-LABEL:  func.func @softmax(
// ALWAYS-NEXT:     linattn.attention
func.func @softmax(%q: tensor<1x1x?x4xf32>) -> tensor<1x1x?x4xf32> {
  %o = linattn.attention %q, %q, %q weights(softmax) : (tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>, tensor<1x1x?x4xf32>) -> tensor<1x1x?x4xf32>
  return %o : tensor<1x1x?x4xf32>
}

// CHECK-LABEL: func.func @causal(
// CHECK-NEXT:    linattn.attention
// REMARK:        remark: [Missed] reassociate {{.*}}"causal attention masks the product: it is a scan, not Q(KᵀV)"
// ALWAYS-LABEL:  func.func @causal(
// ALWAYS-NEXT:     linattn.attention
func.func @causal(%q: tensor<1x1x128x4xf32>) -> tensor<1x1x128x4xf32> {
  %o = linattn.attention %q, %q, %q {causal} : (tensor<1x1x128x4xf32>, tensor<1x1x128x4xf32>, tensor<1x1x128x4xf32>) -> tensor<1x1x128x4xf32>
  return %o : tensor<1x1x128x4xf32>
}

// CHECK-LABEL: func.func @asked(
// CHECK-NEXT:    linattn.attention
// REMARK:        remark: [Missed] reassociate {{.*}}"the quadratic form was requested"
// ALWAYS-LABEL:  func.func @asked(
// ALWAYS-NEXT:     linattn.attention
func.func @asked(%q: tensor<1x1x128x4xf32>) -> tensor<1x1x128x4xf32> {
  %o = linattn.attention %q, %q, %q {config = #linattn.config<form = quadratic>} : (tensor<1x1x128x4xf32>, tensor<1x1x128x4xf32>, tensor<1x1x128x4xf32>) -> tensor<1x1x128x4xf32>
  return %o : tensor<1x1x128x4xf32>
}

// CHECK-LABEL: func.func @dynamic_head_size(
// CHECK-NEXT:    linattn.attention
// REMARK:        remark: [Missed] reassociate {{.*}}"head sizes are dynamic: the cheaper form is unknown"
// ALWAYS-LABEL:  func.func @dynamic_head_size(
// ALWAYS:          linattn.state
func.func @dynamic_head_size(%q: tensor<1x1x128x?xf32>) -> tensor<1x1x128x?xf32> {
  %o = linattn.attention %q, %q, %q : (tensor<1x1x128x?xf32>, tensor<1x1x128x?xf32>, tensor<1x1x128x?xf32>) -> tensor<1x1x128x?xf32>
  return %o : tensor<1x1x128x?xf32>
}
