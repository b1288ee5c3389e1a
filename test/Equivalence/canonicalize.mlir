// RUN: linattn-opt %s --canonicalize | FileCheck %s
// RUN: linattn-opt %s --canonicalize | linattn-run - --all --open-size=1,3,7 --compare=%s

// CHECK-LABEL: func.func @fuse_feature_maps
// CHECK-NOT: linattn.feature_map %
// CHECK: linattn.attention
func.func @fuse_feature_maps(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x4xf32>, %dq: tensor<1x2x?x4xf32>, %dk: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  %fq = linattn.feature_map %q into(%dq) {feature_map = #linattn.feature_map<elu1>} : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  %fk = linattn.feature_map %k into(%dk) {feature_map = #linattn.feature_map<elu1>} : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  %o = linattn.attention %fq, %fk, %v {causal, normalize = #linattn.normalize<eps = 1.0e-6>}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

// CHECK-LABEL: func.func @fuse_regions
// CHECK-NOT: linattn.feature_map %
func.func @fuse_regions(%q: tensor<1x1x3x4xf32>, %k: tensor<1x1x3x4xf32>, %v: tensor<1x1x3x4xf32>, %d: tensor<1x1x3x4xf32>, %s: tensor<1x1x4x4xf32>) -> (tensor<1x1x3x4xf32>, tensor<1x1x4x4xf32>) {
  %fq = linattn.feature_map %q into(%d) {feature_map = #linattn.feature_map<region>} phi {
  ^bb0(%x: f32):
    %y = math.absf %x : f32
    linattn.yield %y : f32
  } : (tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>) -> tensor<1x1x3x4xf32>
  %fk = linattn.feature_map %k into(%d) {feature_map = #linattn.feature_map<region>} phi {
  ^bb0(%x: f32):
    %y = math.absf %x : f32
    linattn.yield %y : f32
  } : (tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>) -> tensor<1x1x3x4xf32>
  %r:2 = linattn.scan %fq, %fk, %v into(%d) init(%s)
    : (tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>, tensor<1x1x4x4xf32>) -> (tensor<1x1x3x4xf32>, tensor<1x1x4x4xf32>)
  return %r#0, %r#1 : tensor<1x1x3x4xf32>, tensor<1x1x4x4xf32>
}

// CHECK-LABEL: func.func @fuse_into_state
// CHECK-NOT: linattn.feature_map %
func.func @fuse_into_state(%k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x4xf32>, %d: tensor<1x2x?x4xf32>, %s: tensor<1x2x4x4xf32>, %z: tensor<1x2x4xf32>) -> tensor<1x2x4x4xf32> {
  %fk = linattn.feature_map %k into(%d) {feature_map = #linattn.feature_map<relu2>} : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  %r:2 = linattn.state %fk, %v init(%s) normalizer(%z)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4xf32>)
  return %r#0 : tensor<1x2x4x4xf32>
}

// CHECK-LABEL: func.func @fold_scale
// CHECK-NOT: arith.mulf
// CHECK: scale = 1.500000e+00
func.func @fold_scale(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x3x4xf32>, %v: tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32> {
  %c = arith.constant dense<3.0> : tensor<1x2x3x4xf32>
  %scaled = arith.mulf %q, %c : tensor<1x2x3x4xf32>
  %o = linattn.attention %scaled, %k, %v {scale = 0.5}
    : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  return %o : tensor<1x2x3x4xf32>
}

// eps is not scaled with the query.
// CHECK-LABEL: func.func @fold_scale_normalized
func.func @fold_scale_normalized(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x3x4xf32>, %v: tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32> {
  %c = arith.constant dense<0.001> : tensor<1x2x3x4xf32>
  %abs = math.absf %q : tensor<1x2x3x4xf32>
  %keys = math.absf %k : tensor<1x2x3x4xf32>
  %scaled = arith.mulf %c, %abs : tensor<1x2x3x4xf32>
  %o = linattn.attention %scaled, %keys, %v {causal, normalize = #linattn.normalize<eps = 1.0e-3>}
    : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  return %o : tensor<1x2x3x4xf32>
}

// CHECK-LABEL: func.func @fold_scale_softmax
func.func @fold_scale_softmax(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x3x4xf32>, %v: tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32> {
  %c = arith.constant dense<0.25> : tensor<1x2x3x4xf32>
  %scaled = arith.mulf %q, %c : tensor<1x2x3x4xf32>
  %o = linattn.attention %scaled, %k, %v weights(softmax)
    : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  return %o : tensor<1x2x3x4xf32>
}

// CHECK-LABEL: func.func @single_token
// CHECK-NOT: causal
func.func @single_token(%q: tensor<2x4x1x3xf32>, %k: tensor<2x2x1x3xf32>, %v: tensor<2x2x1x5xf32>) -> tensor<2x4x1x5xf32> {
  %o = linattn.attention %q, %k, %v {causal, feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.0e-6>}
    : (tensor<2x4x1x3xf32>, tensor<2x2x1x3xf32>, tensor<2x2x1x5xf32>) -> tensor<2x4x1x5xf32>
  return %o : tensor<2x4x1x5xf32>
}
