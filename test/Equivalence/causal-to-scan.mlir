// RUN: linattn-opt %s --linattn-causal-to-scan | FileCheck %s
// RUN: linattn-opt %s --linattn-causal-to-scan | linattn-run - --all --open-size=1,3,7 --compare=%s

// CHECK-NOT: linattn.attention
// CHECK: linattn.scan
// CHECK-NOT: linattn.attention

func.func @plain(%q: tensor<1x2x7x4xf32>, %k: tensor<1x2x7x4xf32>, %v: tensor<1x2x7x3xf32>) -> tensor<1x2x7x3xf32> {
  %o = linattn.attention %q, %k, %v {causal}
    : (tensor<1x2x7x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x3xf32>) -> tensor<1x2x7x3xf32>
  return %o : tensor<1x2x7x3xf32>
}

func.func @normalized(%q: tensor<2x3x?x4xf32>, %k: tensor<2x3x?x4xf32>, %v: tensor<2x3x?x5xf32>, %m: tensor<2x?xi1>) -> tensor<2x3x?x5xf32> {
  %o = linattn.attention %q, %k, %v mask(%m) {causal, feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.0e-6>, scale = 0.5}
    : (tensor<2x3x?x4xf32>, tensor<2x3x?x4xf32>, tensor<2x3x?x5xf32>, tensor<2x?xi1>) -> tensor<2x3x?x5xf32>
  return %o : tensor<2x3x?x5xf32>
}

func.func @all_dynamic(%q: tensor<?x?x?x?xf32>, %k: tensor<?x?x?x?xf32>, %v: tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32> {
  %o = linattn.attention %q, %k, %v {causal, feature_map = #linattn.feature_map<relu>}
    : (tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32>
  return %o : tensor<?x?x?x?xf32>
}

func.func @grouped_queries(%q: tensor<2x6x5x4xf32>, %k: tensor<2x2x5x4xf32>, %v: tensor<2x2x5x4xf32>) -> tensor<2x6x5x4xf32> {
  %o = linattn.attention %q, %k, %v {causal, feature_map = #linattn.feature_map<relu2>, normalize = #linattn.normalize<floor = 0.01, clamp = 0.5>}
    : (tensor<2x6x5x4xf32>, tensor<2x2x5x4xf32>, tensor<2x2x5x4xf32>) -> tensor<2x6x5x4xf32>
  return %o : tensor<2x6x5x4xf32>
}

func.func @grouped_values(%q: tensor<1x1x3x4xf32>, %k: tensor<1x2x3x4xf32>, %v: tensor<1x4x3x4xf32>) -> tensor<1x4x3x4xf32> {
  %o = linattn.attention %q, %k, %v {causal, feature_map = #linattn.feature_map<softmax_kernel>}
    : (tensor<1x1x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x4x3x4xf32>) -> tensor<1x4x3x4xf32>
  return %o : tensor<1x4x3x4xf32>
}

// The running maximum of a scan leaves the result as it is.
func.func @exponential(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  %o = linattn.attention %q, %k, %v {causal, feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<eps = 0.0>}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

func.func @region(%q: tensor<1x2x5x4xf16>, %k: tensor<1x2x5x4xf16>, %v: tensor<1x2x5x4xf16>) -> tensor<1x2x5x4xf16> {
  %o = linattn.attention %q, %k, %v {causal, feature_map = #linattn.feature_map<region>} phi {
  ^bb0(%x: f32):
    %y = math.absf %x : f32
    linattn.yield %y : f32
  } : (tensor<1x2x5x4xf16>, tensor<1x2x5x4xf16>, tensor<1x2x5x4xf16>) -> tensor<1x2x5x4xf16>
  return %o : tensor<1x2x5x4xf16>
}

func.func @double_precision(%q: tensor<1x2x?x4xf64>, %k: tensor<1x2x?x4xf64>, %v: tensor<1x2x?x4xf64>) -> tensor<1x2x?x4xf64> {
  %o = linattn.attention %q, %k, %v {causal}
    : (tensor<1x2x?x4xf64>, tensor<1x2x?x4xf64>, tensor<1x2x?x4xf64>) -> tensor<1x2x?x4xf64>
  return %o : tensor<1x2x?x4xf64>
}
