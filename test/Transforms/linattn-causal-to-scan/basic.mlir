// RUN: linattn-opt %s --linattn-causal-to-scan --split-input-file | FileCheck %s
// RUN: linattn-opt %s --linattn-causal-to-scan --split-input-file --remarks-filter=linattn 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-COUNT-5: remark: [Passed] causal-to-scan | Category:linattn | {{.*}}causal attention runs as a scan over a state of fixed size

// The scan starts from a zero state of one matrix per head.

// CHECK-LABEL: func.func @plain
// CHECK-SAME: (%[[Q:.+]]: tensor<2x8x16x64xf32>, %[[K:.+]]: tensor<2x8x16x64xf32>, %[[V:.+]]: tensor<2x8x16x32xf32>)
func.func @plain(%q: tensor<2x8x16x64xf32>, %k: tensor<2x8x16x64xf32>, %v: tensor<2x8x16x32xf32>) -> tensor<2x8x16x32xf32> {
  // CHECK-NOT: linattn.attention
  // CHECK: %[[EMPTY:.+]] = tensor.empty() : tensor<2x8x64x32xf32>
  // CHECK: %[[ZERO:.+]] = arith.constant 0.000000e+00 : f32
  // CHECK: %[[S:.+]] = linalg.fill ins(%[[ZERO]] : f32) outs(%[[EMPTY]] : tensor<2x8x64x32xf32>)
  // CHECK: %[[DEST:.+]] = tensor.empty() : tensor<2x8x16x32xf32>
  // CHECK: %[[O:.+]]:2 = linattn.scan %[[Q]], %[[K]], %[[V]] into(%[[DEST]]) init(%[[S]]) :
  // CHECK: return %[[O]]#0
  %o = linattn.attention %q, %k, %v {causal} : (tensor<2x8x16x64xf32>, tensor<2x8x16x64xf32>, tensor<2x8x16x32xf32>) -> tensor<2x8x16x32xf32>
  return %o : tensor<2x8x16x32xf32>
}

// -----

// Everything that belongs to the attention stays: mask, map, normalize, scale,
// config. Grouped heads have max(Hk, Hv) = 4 states.

// CHECK-LABEL: func.func @normalized
func.func @normalized(%q: tensor<2x8x16x64xf32>, %k: tensor<2x2x16x64xf32>, %v: tensor<2x4x16x32xf32>, %mask: tensor<2x16xi1>) -> tensor<2x8x16x32xf32> {
  // CHECK: %[[S:.+]] = linalg.fill {{.*}} -> tensor<2x4x64x32xf32>
  // CHECK: %[[Z:.+]] = linalg.fill {{.*}} -> tensor<2x4x64xf32>
  // CHECK: linattn.scan %arg0, %arg1, %arg2 mask(%arg3) into(%{{.+}}) init(%[[S]]) normalizer(%[[Z]])
  // CHECK-SAME: config = #linattn.config<form = token>
  // CHECK-SAME: feature_map = #linattn.feature_map<elu1>
  // CHECK-SAME: normalize = #linattn.normalize<eps = 1.000000e-05 : f64>
  // CHECK-SAME: scale = 5.000000e-01 : f64
  %o = linattn.attention %q, %k, %v mask(%mask) {causal, feature_map = #linattn.feature_map<elu1>,
      normalize = #linattn.normalize<eps = 1.0e-5>, scale = 0.5 : f64, config = #linattn.config<form = token>}
    : (tensor<2x8x16x64xf32>, tensor<2x2x16x64xf32>, tensor<2x4x16x32xf32>, tensor<2x16xi1>) -> tensor<2x8x16x32xf32>
  return %o : tensor<2x8x16x32xf32>
}

// -----

// The stabilised exponential carries its running maximum, which starts at the
// lowest finite value; sums of half-precision tokens are f32.

// CHECK-LABEL: func.func @exponential
func.func @exponential(%q: tensor<2x8x16x64xbf16>) -> tensor<2x8x16x64xbf16> {
  // CHECK: %[[S:.+]] = linalg.fill {{.*}} -> tensor<2x8x64x64xf32>
  // CHECK: %[[Z:.+]] = linalg.fill {{.*}} -> tensor<2x8x64xf32>
  // CHECK: %[[LOWEST:.+]] = arith.constant -3.40282347E+38 : f32
  // CHECK: %[[M:.+]] = linalg.fill ins(%[[LOWEST]] : f32) {{.*}} -> tensor<2x8xf32>
  // CHECK: linattn.scan {{.*}} init(%[[S]]) normalizer(%[[Z]]) running_max(%[[M]])
  %o = linattn.attention %q, %q, %q {causal, feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<>}
    : (tensor<2x8x16x64xbf16>, tensor<2x8x16x64xbf16>, tensor<2x8x16x64xbf16>) -> tensor<2x8x16x64xbf16>
  return %o : tensor<2x8x16x64xbf16>
}

// -----

// CHECK-LABEL: func.func @plain_exponential
func.func @plain_exponential(%q: tensor<2x8x16x64xf32>) -> tensor<2x8x16x64xf32> {
  // CHECK: linattn.scan {{.*}} init(%{{.+}}) {feature_map = #linattn.feature_map<exp>} :
  %o = linattn.attention %q, %q, %q {causal, feature_map = #linattn.feature_map<exp>}
    : (tensor<2x8x16x64xf32>, tensor<2x8x16x64xf32>, tensor<2x8x16x64xf32>) -> tensor<2x8x16x64xf32>
  return %o : tensor<2x8x16x64xf32>
}

// -----

// CHECK-LABEL: func.func @region
func.func @region(%q: tensor<1x1x2x4xf64>) -> tensor<1x1x2x4xf64> {
  // CHECK: linattn.scan {{.*}} {feature_map = #linattn.feature_map<region>} phi {
  // CHECK-NEXT: ^bb0(%[[X:.+]]: f64):
  // CHECK-NEXT: %[[Y:.+]] = math.tanh %[[X]] : f64
  // CHECK-NEXT: linattn.yield %[[Y]] : f64
  %o = linattn.attention %q, %q, %q {causal, feature_map = #linattn.feature_map<region>} phi {
  ^bb0(%x: f64):
    %y = math.tanh %x : f64
    linattn.yield %y : f64
  } : (tensor<1x1x2x4xf64>, tensor<1x1x2x4xf64>, tensor<1x1x2x4xf64>) -> tensor<1x1x2x4xf64>
  return %o : tensor<1x1x2x4xf64>
}
