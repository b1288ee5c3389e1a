// RUN: linattn-opt %s --canonicalize --split-input-file | FileCheck %s

//===----------------------------------------------------------------------===//
// The identity map vanishes
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @identity
// CHECK-SAME: (%[[X:.+]]: tensor<2x4x6x8xf32>, %{{.+}}: tensor<2x4x6x8xf32>)
// CHECK-NEXT: return %[[X]]
func.func @identity(%x: tensor<2x4x6x8xf32>, %d: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %0 = linattn.feature_map %x into(%d) {feature_map = #linattn.feature_map<identity>} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %0 : tensor<2x4x6x8xf32>
}

// -----

// CHECK-LABEL: func.func @identity_dynamic
// CHECK-SAME: (%[[X:.+]]: tensor<?x4x?x8xf32>, %{{.+}}: tensor<?x4x?x8xf32>)
// CHECK-NEXT: return %[[X]]
func.func @identity_dynamic(%x: tensor<?x4x?x8xf32>, %d: tensor<?x4x?x8xf32>) -> tensor<?x4x?x8xf32> {
  %0 = linattn.feature_map %x into(%d) {feature_map = #linattn.feature_map<identity>} : (tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x8xf32>
  return %0 : tensor<?x4x?x8xf32>
}

// -----

// CHECK-LABEL: func.func @identity_other_type
// CHECK: linattn.feature_map
func.func @identity_other_type(%x: tensor<?x4x?x8xf32>, %d: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %0 = linattn.feature_map %x into(%d) : (tensor<?x4x?x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %0 : tensor<2x4x6x8xf32>
}

// -----

// CHECK-LABEL: func.func @identity_buffers
// CHECK: linattn.feature_map
func.func @identity_buffers(%x: memref<2x4x6x8xf32>, %d: memref<2x4x6x8xf32>) {
  linattn.feature_map %x into(%d) : (memref<2x4x6x8xf32>, memref<2x4x6x8xf32>) -> ()
  return
}

// -----

//===----------------------------------------------------------------------===//
// Feature maps of query and key move into attention and scan
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @fuse_attention
// CHECK-SAME: (%[[Q:.+]]: tensor<2x4x6x8xf32>, %[[K:.+]]: tensor<2x4x6x8xf32>, %[[V:.+]]: tensor<2x4x6x8xf32>, %{{.+}}: tensor<2x4x6x8xf32>)
// CHECK-NEXT: linattn.attention %[[Q]], %[[K]], %[[V]] {feature_map = #linattn.feature_map<elu1>}
func.func @fuse_attention(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %d: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %fq = linattn.feature_map %q into(%d) {feature_map = #linattn.feature_map<elu1>} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %fk = linattn.feature_map %k into(%d) {feature_map = #linattn.feature_map<elu1>} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %o = linattn.attention %fq, %fk, %v : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %o : tensor<2x4x6x8xf32>
}

// -----

// CHECK-LABEL: func.func @fuse_attention_dynamic
// CHECK-SAME: (%[[Q:.+]]: tensor<?x4x?x8xf32>, %[[K:.+]]: tensor<?x4x?x8xf32>, %[[V:.+]]: tensor<?x4x?x8xf32>, %{{.+}}: tensor<?x4x?x8xf32>)
// CHECK-NEXT: linattn.attention %[[Q]], %[[K]], %[[V]] {feature_map = #linattn.feature_map<elu1>}
func.func @fuse_attention_dynamic(%q: tensor<?x4x?x8xf32>, %k: tensor<?x4x?x8xf32>, %v: tensor<?x4x?x8xf32>, %d: tensor<?x4x?x8xf32>) -> tensor<?x4x?x8xf32> {
  %fq = linattn.feature_map %q into(%d) {feature_map = #linattn.feature_map<elu1>} : (tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x8xf32>
  %fk = linattn.feature_map %k into(%d) {feature_map = #linattn.feature_map<elu1>} : (tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x8xf32>
  %o = linattn.attention %fq, %fk, %v : (tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x8xf32>
  return %o : tensor<?x4x?x8xf32>
}

// -----

// Equal regions are one map.
// CHECK-LABEL: func.func @fuse_region
// CHECK-NOT: linattn.feature_map %
// CHECK: linattn.attention %arg0, %arg1, %arg2 {feature_map = #linattn.feature_map<region>} phi {
// CHECK: math.tanh
func.func @fuse_region(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %d: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %fq = linattn.feature_map %q into(%d) {feature_map = #linattn.feature_map<region>} phi {
  ^bb0(%x: f32):
    %y = math.tanh %x : f32
    linattn.yield %y : f32
  } : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %fk = linattn.feature_map %k into(%d) {feature_map = #linattn.feature_map<region>} phi {
  ^bb0(%x: f32):
    %y = math.tanh %x : f32
    linattn.yield %y : f32
  } : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %o = linattn.attention %fq, %fk, %v : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %o : tensor<2x4x6x8xf32>
}

// -----

// CHECK-LABEL: func.func @fuse_different_regions
// CHECK-COUNT-2: linattn.feature_map %
// CHECK: linattn.attention %{{.+}}, %{{.+}}, %{{.+}} :
func.func @fuse_different_regions(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %d: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %fq = linattn.feature_map %q into(%d) {feature_map = #linattn.feature_map<region>} phi {
  ^bb0(%x: f32):
    %y = math.tanh %x : f32
    linattn.yield %y : f32
  } : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %fk = linattn.feature_map %k into(%d) {feature_map = #linattn.feature_map<region>} phi {
  ^bb0(%x: f32):
    %y = math.sin %x : f32
    linattn.yield %y : f32
  } : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %o = linattn.attention %fq, %fk, %v : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %o : tensor<2x4x6x8xf32>
}

// -----

// The key has none.
// CHECK-LABEL: func.func @fuse_one_side
// CHECK-COUNT-1: linattn.feature_map %
// CHECK: linattn.attention
func.func @fuse_one_side(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %d: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %fq = linattn.feature_map %q into(%d) {feature_map = #linattn.feature_map<relu>} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %o = linattn.attention %fq, %k, %v : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %o : tensor<2x4x6x8xf32>
}

// -----

// The maps differ.
// CHECK-LABEL: func.func @fuse_different
// CHECK-COUNT-2: linattn.feature_map %
// CHECK: linattn.attention
func.func @fuse_different(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %d: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %fq = linattn.feature_map %q into(%d) {feature_map = #linattn.feature_map<relu>} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %fk = linattn.feature_map %k into(%d) {feature_map = #linattn.feature_map<elu1>} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %o = linattn.attention %fq, %fk, %v : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %o : tensor<2x4x6x8xf32>
}

// -----

// There is a map already.
// CHECK-LABEL: func.func @fuse_onto_map
// CHECK-COUNT-2: linattn.feature_map %
// CHECK: linattn.attention
func.func @fuse_onto_map(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %d: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %fq = linattn.feature_map %q into(%d) {feature_map = #linattn.feature_map<relu>} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %fk = linattn.feature_map %k into(%d) {feature_map = #linattn.feature_map<relu>} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %o = linattn.attention %fq, %fk, %v {feature_map = #linattn.feature_map<elu1>} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %o : tensor<2x4x6x8xf32>
}

// -----

// Softmax weights take no map.
// CHECK-LABEL: func.func @fuse_softmax
// CHECK-COUNT-2: linattn.feature_map %
// CHECK: linattn.attention
func.func @fuse_softmax(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %d: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %fq = linattn.feature_map %q into(%d) {feature_map = #linattn.feature_map<relu>} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %fk = linattn.feature_map %k into(%d) {feature_map = #linattn.feature_map<relu>} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %o = linattn.attention %fq, %fk, %v weights(softmax) : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %o : tensor<2x4x6x8xf32>
}

// -----

// Under normalize `exp` is stabilised, another map.
// CHECK-LABEL: func.func @fuse_exp_normalized
// CHECK-COUNT-2: linattn.feature_map %
// CHECK: linattn.attention
func.func @fuse_exp_normalized(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %d: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %fq = linattn.feature_map %q into(%d) {feature_map = #linattn.feature_map<exp>} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %fk = linattn.feature_map %k into(%d) {feature_map = #linattn.feature_map<exp>} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %o = linattn.attention %fq, %fk, %v {normalize = #linattn.normalize<>} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %o : tensor<2x4x6x8xf32>
}

// -----

// Without normalize it is the plain exponential.
// CHECK-LABEL: func.func @fuse_exp
// CHECK-NEXT: linattn.attention %arg0, %arg1, %arg2 {feature_map = #linattn.feature_map<exp>}
func.func @fuse_exp(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %d: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %fq = linattn.feature_map %q into(%d) {feature_map = #linattn.feature_map<exp>} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %fk = linattn.feature_map %k into(%d) {feature_map = #linattn.feature_map<exp>} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %o = linattn.attention %fq, %fk, %v : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %o : tensor<2x4x6x8xf32>
}

// -----

// CHECK-LABEL: func.func @fuse_scan
// CHECK-NEXT: linattn.scan %arg0, %arg1, %arg2 into(%arg3) init(%arg4) {feature_map = #linattn.feature_map<relu2>}
func.func @fuse_scan(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %d: tensor<2x4x6x8xf32>, %s: tensor<2x4x8x8xf32>) -> tensor<2x4x6x8xf32> {
  %fq = linattn.feature_map %q into(%d) {feature_map = #linattn.feature_map<relu2>} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %fk = linattn.feature_map %k into(%d) {feature_map = #linattn.feature_map<relu2>} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %r:2 = linattn.scan %fq, %fk, %v into(%d) init(%s) : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x8x8xf32>)
  return %r#0 : tensor<2x4x6x8xf32>
}

// -----

// CHECK-LABEL: func.func @fuse_scan_dynamic
// CHECK-NEXT: linattn.scan %arg0, %arg1, %arg2 into(%arg3) init(%arg4) {feature_map = #linattn.feature_map<relu2>}
func.func @fuse_scan_dynamic(%q: tensor<?x4x?x8xf32>, %k: tensor<?x4x?x8xf32>, %v: tensor<?x4x?x8xf32>, %d: tensor<?x4x?x8xf32>, %s: tensor<?x4x8x8xf32>) -> tensor<?x4x?x8xf32> {
  %fq = linattn.feature_map %q into(%d) {feature_map = #linattn.feature_map<relu2>} : (tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x8xf32>
  %fk = linattn.feature_map %k into(%d) {feature_map = #linattn.feature_map<relu2>} : (tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x8xf32>
  %r:2 = linattn.scan %fq, %fk, %v into(%d) init(%s) : (tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>, tensor<?x4x8x8xf32>) -> (tensor<?x4x?x8xf32>, tensor<?x4x8x8xf32>)
  return %r#0 : tensor<?x4x?x8xf32>
}

// -----

//===----------------------------------------------------------------------===//
// The map of keys moves into state, that of queries into read
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @fuse_state_read
// CHECK-NEXT: %[[S:.+]] = linattn.state %arg1, %arg2 init(%arg4) {feature_map = #linattn.feature_map<softmax_kernel>}
// CHECK-NEXT: linattn.read %arg0, %[[S]] into(%arg3) {feature_map = #linattn.feature_map<softmax_kernel>}
func.func @fuse_state_read(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %d: tensor<2x4x6x8xf32>, %s: tensor<2x4x8x8xf32>) -> tensor<2x4x6x8xf32> {
  %fk = linattn.feature_map %k into(%d) {feature_map = #linattn.feature_map<softmax_kernel>} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %fq = linattn.feature_map %q into(%d) {feature_map = #linattn.feature_map<softmax_kernel>} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %state = linattn.state %fk, %v init(%s) : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = linattn.read %fq, %state into(%d) : (tensor<2x4x6x8xf32>, tensor<2x4x8x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %o : tensor<2x4x6x8xf32>
}

// -----

// CHECK-LABEL: func.func @fuse_state_read_dynamic
// CHECK-NEXT: %[[S:.+]] = linattn.state %arg1, %arg2 init(%arg4) {feature_map = #linattn.feature_map<softmax_kernel>}
// CHECK-NEXT: linattn.read %arg0, %[[S]] into(%arg3) {feature_map = #linattn.feature_map<softmax_kernel>}
func.func @fuse_state_read_dynamic(%q: tensor<?x4x?x8xf32>, %k: tensor<?x4x?x8xf32>, %v: tensor<?x4x?x8xf32>, %d: tensor<?x4x?x8xf32>, %s: tensor<?x4x8x8xf32>) -> tensor<?x4x?x8xf32> {
  %fk = linattn.feature_map %k into(%d) {feature_map = #linattn.feature_map<softmax_kernel>} : (tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x8xf32>
  %fq = linattn.feature_map %q into(%d) {feature_map = #linattn.feature_map<softmax_kernel>} : (tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x8xf32>
  %state = linattn.state %fk, %v init(%s) : (tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>, tensor<?x4x8x8xf32>) -> tensor<?x4x8x8xf32>
  %o = linattn.read %fq, %state into(%d) : (tensor<?x4x?x8xf32>, tensor<?x4x8x8xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x8xf32>
  return %o : tensor<?x4x?x8xf32>
}

// -----

// CHECK-LABEL: func.func @fuse_state_read_exp_normalized
// CHECK: linattn.feature_map %arg1
// CHECK: linattn.feature_map %arg0
// CHECK: linattn.state %{{.+}}, %arg2 init(%{{.+}}) normalizer(%{{.+}}) :
// CHECK: linattn.read %{{.+}}, %{{.+}} normalizer(%{{.+}}) into(%{{.+}}) {normalize = #linattn.normalize<>}
func.func @fuse_state_read_exp_normalized(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %d: tensor<2x4x6x8xf32>, %s: tensor<2x4x8x8xf32>, %z: tensor<2x4x8xf32>) -> tensor<2x4x6x8xf32> {
  %fk = linattn.feature_map %k into(%d) {feature_map = #linattn.feature_map<exp>} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %fq = linattn.feature_map %q into(%d) {feature_map = #linattn.feature_map<exp>} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  %state:2 = linattn.state %fk, %v init(%s) normalizer(%z) : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x8x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8x8xf32>, tensor<2x4x8xf32>)
  %o = linattn.read %fq, %state#0 normalizer(%state#1) into(%d) {normalize = #linattn.normalize<>} : (tensor<2x4x6x8xf32>, tensor<2x4x8x8xf32>, tensor<2x4x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %o : tensor<2x4x6x8xf32>
}

// -----

//===----------------------------------------------------------------------===//
// A constant factor of the query becomes scale
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @scale_attention
// CHECK-NOT: arith.mulf
// CHECK: linattn.attention %arg0, %arg1, %arg1 {scale = 2.500000e-01 : f64}
func.func @scale_attention(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %c = arith.constant dense<0.25> : tensor<2x4x6x8xf32>
  %scaled = arith.mulf %q, %c : tensor<2x4x6x8xf32>
  %o = linattn.attention %scaled, %k, %k : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %o : tensor<2x4x6x8xf32>
}

// -----

// Scales multiply, whichever side the constant is on.
// CHECK-LABEL: func.func @scale_scan
// CHECK-NOT: arith.mulf
// CHECK: linattn.scan %arg0, %arg1, %arg1 into(%arg2) init(%arg3) {scale = 1.000000e+00 : f64}
func.func @scale_scan(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %d: tensor<2x4x6x8xf32>, %s: tensor<2x4x8x8xf32>) -> tensor<2x4x6x8xf32> {
  %c = arith.constant dense<0.25> : tensor<2x4x6x8xf32>
  %scaled = arith.mulf %c, %q : tensor<2x4x6x8xf32>
  %r:2 = linattn.scan %scaled, %k, %k into(%d) init(%s) {scale = 4.0 : f64} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x8x8xf32>)
  return %r#0 : tensor<2x4x6x8xf32>
}

// -----

// φ does not commute with a factor.
// CHECK-LABEL: func.func @scale_feature_map
// CHECK: arith.mulf
func.func @scale_feature_map(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %c = arith.constant dense<0.25> : tensor<2x4x6x8xf32>
  %scaled = arith.mulf %q, %c : tensor<2x4x6x8xf32>
  %o = linattn.attention %scaled, %k, %k {feature_map = #linattn.feature_map<elu1>} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %o : tensor<2x4x6x8xf32>
}

// -----

// Nothing is folded into a scale that is an operand.
// CHECK-LABEL: func.func @scale_operand
// CHECK: arith.mulf
// CHECK: scale(%arg2)
func.func @scale_operand(%q: tensor<2x4x?x8xf32>, %c: tensor<2x4x?x8xf32>, %scale: f64) -> tensor<2x4x?x8xf32> {
  %scaled = arith.mulf %q, %c : tensor<2x4x?x8xf32>
  %o = linattn.attention %scaled, %q, %q scale(%scale) : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, f64) -> tensor<2x4x?x8xf32>
  return %o : tensor<2x4x?x8xf32>
}

// -----

// CHECK-LABEL: func.func @scale_operand_static
// CHECK: arith.mulf
// CHECK: scale(%arg1)
func.func @scale_operand_static(%q: tensor<2x4x6x8xf32>, %scale: f64) -> tensor<2x4x6x8xf32> {
  %c = arith.constant dense<0.25> : tensor<2x4x6x8xf32>
  %scaled = arith.mulf %q, %c : tensor<2x4x6x8xf32>
  %o = linattn.attention %scaled, %q, %q scale(%scale) : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, f64) -> tensor<2x4x6x8xf32>
  return %o : tensor<2x4x6x8xf32>
}

// -----

// CHECK-LABEL: func.func @scale_unknown_dynamic
// CHECK: arith.mulf
func.func @scale_unknown_dynamic(%q: tensor<?x4x?x8xf32>, %k: tensor<?x4x?x8xf32>, %c: tensor<?x4x?x8xf32>) -> tensor<?x4x?x8xf32> {
  %scaled = arith.mulf %q, %c : tensor<?x4x?x8xf32>
  %o = linattn.attention %scaled, %k, %k : (tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x8xf32>
  return %o : tensor<?x4x?x8xf32>
}

// -----

// CHECK-LABEL: func.func @scale_infinite
// CHECK: arith.mulf
func.func @scale_infinite(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %c = arith.constant dense<0x7F800000> : tensor<2x4x6x8xf32>
  %scaled = arith.mulf %q, %c : tensor<2x4x6x8xf32>
  %o = linattn.attention %scaled, %k, %k : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %o : tensor<2x4x6x8xf32>
}

// -----

//===----------------------------------------------------------------------===//
// One query over one key has nothing to mask
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @causal_single
// CHECK-NEXT: linattn.attention %arg0, %arg0, %arg0 :
func.func @causal_single(%q: tensor<2x4x1x8xf32>) -> tensor<2x4x1x8xf32> {
  %o = linattn.attention %q, %q, %q {causal} : (tensor<2x4x1x8xf32>, tensor<2x4x1x8xf32>, tensor<2x4x1x8xf32>) -> tensor<2x4x1x8xf32>
  return %o : tensor<2x4x1x8xf32>
}

// -----

// CHECK-LABEL: func.func @causal_several
// CHECK: {causal}
func.func @causal_several(%q: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %o = linattn.attention %q, %q, %q {causal} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %o : tensor<2x4x6x8xf32>
}

// -----

// CHECK-LABEL: func.func @causal_dynamic
// CHECK: {causal}
func.func @causal_dynamic(%q: tensor<?x4x?x8xf32>) -> tensor<?x4x?x8xf32> {
  %o = linattn.attention %q, %q, %q {causal} : (tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x8xf32>
  return %o : tensor<?x4x?x8xf32>
}

// -----

//===----------------------------------------------------------------------===//
// A normalizer without uses is not computed
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @dead_normalizer
// CHECK-NEXT: linattn.state %arg0, %arg0 mask(%arg3) init(%arg1) {config = #linattn.config<form = token>, feature_map = #linattn.feature_map<elu1>}
func.func @dead_normalizer(%k: tensor<2x4x6x8xf32>, %s: tensor<2x4x8x8xf32>, %z: tensor<2x4x8xf32>, %mask: tensor<2x6xi1>) -> tensor<2x4x8x8xf32> {
  %r:2 = linattn.state %k, %k mask(%mask) init(%s) normalizer(%z) {feature_map = #linattn.feature_map<elu1>, config = #linattn.config<form = token>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x6xi1>, tensor<2x4x8x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8x8xf32>, tensor<2x4x8xf32>)
  return %r#0 : tensor<2x4x8x8xf32>
}

// -----

// CHECK-LABEL: func.func @dead_normalizer_dynamic
// CHECK-NEXT: linattn.state %arg0, %arg0 mask(%arg3) init(%arg1) {config = #linattn.config<form = token>, feature_map = #linattn.feature_map<elu1>}
func.func @dead_normalizer_dynamic(%k: tensor<?x4x?x8xf32>, %s: tensor<?x4x8x8xf32>, %z: tensor<?x4x8xf32>, %mask: tensor<?x?xi1>) -> tensor<?x4x8x8xf32> {
  %r:2 = linattn.state %k, %k mask(%mask) init(%s) normalizer(%z) {feature_map = #linattn.feature_map<elu1>, config = #linattn.config<form = token>}
    : (tensor<?x4x?x8xf32>, tensor<?x4x?x8xf32>, tensor<?x?xi1>, tensor<?x4x8x8xf32>, tensor<?x4x8xf32>) -> (tensor<?x4x8x8xf32>, tensor<?x4x8xf32>)
  return %r#0 : tensor<?x4x8x8xf32>
}

// -----

// CHECK-LABEL: func.func @live_normalizer
// CHECK: normalizer(
func.func @live_normalizer(%k: tensor<2x4x6x8xf32>, %s: tensor<2x4x8x8xf32>, %z: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
  %r:2 = linattn.state %k, %k init(%s) normalizer(%z) : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x8x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8x8xf32>, tensor<2x4x8xf32>)
  return %r#1 : tensor<2x4x8xf32>
}

// -----

// The running maximum rescales both sums: neither is dropped without the other.
// CHECK-LABEL: func.func @dead_normalizer_running_max
// CHECK: normalizer(
func.func @dead_normalizer_running_max(%k: tensor<2x4x6x8xf32>, %s: tensor<2x4x8x8xf32>, %z: tensor<2x4x8xf32>, %m: tensor<2x4xf32>) -> tensor<2x4x8x8xf32> {
  %r:3 = linattn.state %k, %k init(%s) normalizer(%z) running_max(%m) {feature_map = #linattn.feature_map<exp>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x8x8xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>) -> (tensor<2x4x8x8xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>)
  return %r#0 : tensor<2x4x8x8xf32>
}

// -----

//===----------------------------------------------------------------------===//
// Casts that forget static sizes
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @fold_casts_scan
// CHECK-SAME: (%[[Q:.+]]: tensor<2x4x6x8xf32>, %[[O:.+]]: tensor<2x4x6x8xf32>, %[[S:.+]]: tensor<2x4x8x8xf32>)
// CHECK-NEXT: %[[R:.+]]:2 = linattn.scan %[[Q]], %[[Q]], %[[Q]] into(%[[O]]) init(%[[S]]) {feature_map = #linattn.feature_map<elu1>} : {{.+}} -> (tensor<2x4x6x8xf32>, tensor<2x4x8x8xf32>)
// CHECK-NEXT: %[[C:.+]] = tensor.cast %[[R]]#0 : tensor<2x4x6x8xf32> to tensor<2x4x?x8xf32>
// CHECK-NEXT: return %[[C]], %[[R]]#1
func.func @fold_casts_scan(%q: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x8xf32>, %s: tensor<2x4x8x8xf32>) -> (tensor<2x4x?x8xf32>, tensor<2x4x8x8xf32>) {
  %q1 = tensor.cast %q : tensor<2x4x6x8xf32> to tensor<2x4x?x8xf32>
  %o1 = tensor.cast %o : tensor<2x4x6x8xf32> to tensor<2x4x?x8xf32>
  %r:2 = linattn.scan %q1, %q1, %q1 into(%o1) init(%s) {feature_map = #linattn.feature_map<elu1>}
    : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x8x8xf32>) -> (tensor<2x4x?x8xf32>, tensor<2x4x8x8xf32>)
  return %r#0, %r#1 : tensor<2x4x?x8xf32>, tensor<2x4x8x8xf32>
}

// -----

// CHECK-LABEL: func.func @fold_casts_quadratic
// CHECK-NEXT: linattn.quadratic %arg0, %arg0, %arg0 weights(softmax) into(%arg0) : (tensor<2x4x6x8xf32>
func.func @fold_casts_quadratic(%q: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %q1 = tensor.cast %q : tensor<2x4x6x8xf32> to tensor<?x?x?x?xf32>
  %r = linattn.quadratic %q1, %q1, %q1 weights(softmax) into(%q)
    : (tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %r : tensor<2x4x6x8xf32>
}

// -----

//===----------------------------------------------------------------------===//
// A constant scale becomes an attribute
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @constant_scale
// CHECK: linattn.attention %arg0, %arg0, %arg0 {scale = 2.500000e-01 : f64}
// CHECK: linattn.quadratic %arg0, %arg0, %arg0 into(%arg0) {scale = 2.500000e-01 : f64}
// CHECK: linattn.scan %arg0, %arg0, %arg0 into(%arg0) init(%arg1) {scale = 2.500000e-01 : f64}
// CHECK: linattn.read %arg0, %arg1 into(%arg0) {scale = 2.500000e-01 : f64}
func.func @constant_scale(%q: tensor<2x4x?x8xf32>, %s: tensor<2x4x8x8xf32>) -> (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>) {
  %c = arith.constant 0.25 : f64
  %0 = linattn.attention %q, %q, %q scale(%c) : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, f64) -> tensor<2x4x?x8xf32>
  %1 = linattn.quadratic %q, %q, %q scale(%c) into(%q) : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, f64, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  %2:2 = linattn.scan %q, %q, %q scale(%c) into(%q) init(%s) : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, f64, tensor<2x4x?x8xf32>, tensor<2x4x8x8xf32>) -> (tensor<2x4x?x8xf32>, tensor<2x4x8x8xf32>)
  %3 = linattn.read %q, %s scale(%c) into(%q) : (tensor<2x4x?x8xf32>, tensor<2x4x8x8xf32>, f64, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %0, %1, %2#0, %3 : tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>
}

// -----

// f32 does not hold it: an attribute would be refused.
// CHECK-LABEL: func.func @unusable_scale
// CHECK: scale(%{{.+}}) :
func.func @unusable_scale(%q: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %c = arith.constant 1.0e300 : f64
  %0 = linattn.attention %q, %q, %q scale(%c) : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, f64) -> tensor<2x4x6x8xf32>
  return %0 : tensor<2x4x6x8xf32>
}
