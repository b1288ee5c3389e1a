// RUN: linattn-opt %s --linattn-reassociate=mode=always | FileCheck %s
// RUN: linattn-opt %s --linattn-reassociate=mode=always | linattn-run - --all --open-size=1,3,5 --compare=%s
// RUN: linattn-opt %s --linattn-reassociate | linattn-run - --all --open-size=1,3,33 --compare=%s

// The rewritten program has the same results.

// CHECK-NOT: linattn.attention

// CHECK-LABEL: func.func @plain
// CHECK: linattn.state
// CHECK: linattn.read
func.func @plain(%q: tensor<1x2x7x4xf32>, %k: tensor<1x2x9x4xf32>, %v: tensor<1x2x9x3xf32>) -> tensor<1x2x7x3xf32> {
  %o = linattn.attention %q, %k, %v
    : (tensor<1x2x7x4xf32>, tensor<1x2x9x4xf32>, tensor<1x2x9x3xf32>) -> tensor<1x2x7x3xf32>
  return %o : tensor<1x2x7x3xf32>
}

func.func @one_token(%q: tensor<1x1x1x1xf32>, %k: tensor<1x1x1x1xf32>, %v: tensor<1x1x1x1xf32>) -> tensor<1x1x1x1xf32> {
  %o = linattn.attention %q, %k, %v {scale = 0.5}
    : (tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x1x1xf32>
  return %o : tensor<1x1x1x1xf32>
}

// CHECK-LABEL: func.func @dynamic
// CHECK: linattn.read
func.func @dynamic(%q: tensor<2x3x?x4xf32>, %k: tensor<2x3x?x4xf32>, %v: tensor<2x3x?x5xf32>) -> tensor<2x3x?x5xf32> {
  %o = linattn.attention %q, %k, %v {feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.0e-6>, scale = 0.5}
    : (tensor<2x3x?x4xf32>, tensor<2x3x?x4xf32>, tensor<2x3x?x5xf32>) -> tensor<2x3x?x5xf32>
  return %o : tensor<2x3x?x5xf32>
}

func.func @all_dynamic(%q: tensor<?x?x?x?xf32>, %k: tensor<?x?x?x?xf32>, %v: tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32> {
  %o = linattn.attention %q, %k, %v {feature_map = #linattn.feature_map<relu2>}
    : (tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32>
  return %o : tensor<?x?x?x?xf32>
}

// CHECK-LABEL: func.func @grouped_queries
func.func @grouped_queries(%q: tensor<2x6x5x4xf32>, %k: tensor<2x2x5x4xf32>, %v: tensor<2x2x5x4xf32>, %m: tensor<2x5xi1>) -> tensor<2x6x5x4xf32> {
  %o = linattn.attention %q, %k, %v mask(%m) {feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<floor = 1.0e-3, clamp = 0.25>}
    : (tensor<2x6x5x4xf32>, tensor<2x2x5x4xf32>, tensor<2x2x5x4xf32>, tensor<2x5xi1>) -> tensor<2x6x5x4xf32>
  return %o : tensor<2x6x5x4xf32>
}

// CHECK-LABEL: func.func @grouped_values
func.func @grouped_values(%q: tensor<1x1x3x4xf32>, %k: tensor<1x2x5x4xf32>, %v: tensor<1x4x5x4xf32>) -> tensor<1x4x3x4xf32> {
  %o = linattn.attention %q, %k, %v {feature_map = #linattn.feature_map<softmax_kernel>, normalize = #linattn.normalize<eps = 1.0e-6>}
    : (tensor<1x1x3x4xf32>, tensor<1x2x5x4xf32>, tensor<1x4x5x4xf32>) -> tensor<1x4x3x4xf32>
  return %o : tensor<1x4x3x4xf32>
}

func.func @exponential(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  %o = linattn.attention %q, %k, %v {feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<eps = 0.0>}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

func.func @region(%q: tensor<1x2x5x4xbf16>, %k: tensor<1x2x5x4xbf16>, %v: tensor<1x2x5x4xbf16>) -> tensor<1x2x5x4xbf16> {
  %o = linattn.attention %q, %k, %v {feature_map = #linattn.feature_map<region>} phi {
  ^bb0(%x: f32):
    %y = math.absf %x : f32
    linattn.yield %y : f32
  } : (tensor<1x2x5x4xbf16>, tensor<1x2x5x4xbf16>, tensor<1x2x5x4xbf16>) -> tensor<1x2x5x4xbf16>
  return %o : tensor<1x2x5x4xbf16>
}

func.func @double_precision(%q: tensor<1x2x?x4xf64>, %k: tensor<1x2x?x4xf64>, %v: tensor<1x2x?x4xf64>, %m: tensor<1x?xi1>) -> tensor<1x2x?x4xf64> {
  %o = linattn.attention %q, %k, %v mask(%m) {feature_map = #linattn.feature_map<relu>}
    : (tensor<1x2x?x4xf64>, tensor<1x2x?x4xf64>, tensor<1x2x?x4xf64>, tensor<1x?xi1>) -> tensor<1x2x?x4xf64>
  return %o : tensor<1x2x?x4xf64>
}
