// RUN: linattn-run %s --entry elu --target=cpu --print | FileCheck %s --check-prefix=ELU
// RUN: linattn-run %s --entry elu --target=reference --print | FileCheck %s --check-prefix=ELU
// RUN: linattn-run %s --entry softmax --target=cpu --print | FileCheck %s --check-prefix=SOFTMAX
// RUN: linattn-run %s --entry softmax --target=reference --print | FileCheck %s --check-prefix=SOFTMAX
// RUN: linattn-run %s --entry causal --target=cpu --print | FileCheck %s --check-prefix=CAUSAL
// RUN: linattn-run %s --entry causal --target=reference --print | FileCheck %s --check-prefix=CAUSAL
// RUN: linattn-run %s --entry relu --target=cpu --print | FileCheck %s --check-prefix=RELU
// RUN: linattn-run %s --entry relu --target=reference --print | FileCheck %s --check-prefix=RELU
// RUN: linattn-run %s --entry states --target=cpu --print | FileCheck %s --check-prefix=STATES
// RUN: linattn-run %s --entry states --target=reference --print | FileCheck %s --check-prefix=STATES
// RUN: linattn-run %s --entry maps --target=cpu --print | FileCheck %s --check-prefix=MAPS
// RUN: linattn-run %s --entry maps --target=reference --print | FileCheck %s --check-prefix=MAPS
// RUN: linattn-run %s --entry normalizers --target=cpu --print | FileCheck %s --check-prefix=NORMALIZERS
// RUN: linattn-run %s --entry normalizers --target=reference --print | FileCheck %s --check-prefix=NORMALIZERS

// Small attentions with published digits, through the fast and the naive pipeline.
// Q, K and V of examples 1 to 5 are the same.

// Examples 1 and 2: elu + 1.
// Numerators.
// ELU: result 0: 1x1x5x4 f32 {{\[\[\[}}[12.75, 14.75, 13.75, 13.75], [16.75, 13.75, 15.75, 14.75], [15.25, 16.25, 16.25, 15.25], [13.5, 13.5, 12.5, 14.5], [13.75, 13.75, 13.75, 13.75]]]]
// Outputs.
// ELU-NEXT: result 1: 1x1x5x4 f32 {{\[\[\[}}[0.2802{{[0-9]*}}, 0.3241{{[0-9]*}}, 0.3021{{[0-9]*}}, 0.3021{{[0-9]*}}], [0.3252{{[0-9]*}}, 0.2669{{[0-9]*}}, 0.3058{{[0-9]*}}, 0.2864{{[0-9]*}}], [0.2904{{[0-9]*}}, 0.3095{{[0-9]*}}, 0.3095{{[0-9]*}}, 0.2904{{[0-9]*}}], [0.3, 0.3, 0.2777{{[0-9]*}}, 0.3222{{[0-9]*}}], [0.3021{{[0-9]*}}, 0.3021{{[0-9]*}}, 0.3021{{[0-9]*}}, 0.3021{{[0-9]*}}]]]]
// Unit vectors as values: the scores,
// ELU-NEXT: result 2: 1x1x5x5 f32 {{\[\[\[}}[8, 10, 9, 9, 9.5], [12, 9, 11, 10, 9.5], [10, 11, 11, 10, 10.5], [9, 9, 8, 10, 9], [9, 9, 9, 9, 9.5]]]]
// and the implicit weights.
// ELU-NEXT: result 3: 1x1x5x5 f32 {{\[\[\[}}[0.1758{{[0-9]*}}, 0.2197{{[0-9]*}}, 0.1978{{[0-9]*}}, 0.1978{{[0-9]*}}, 0.2087{{[0-9]*}}], [0.2330{{[0-9]*}}, 0.1747{{[0-9]*}}, 0.2135{{[0-9]*}}, 0.1941{{[0-9]*}}, 0.1844{{[0-9]*}}], [0.1904{{[0-9]*}}, 0.2095{{[0-9]*}}, 0.2095{{[0-9]*}}, 0.1904{{[0-9]*}}, 0.2], [0.2, 0.2, 0.1777{{[0-9]*}}, 0.2222{{[0-9]*}}, 0.2], [0.1978{{[0-9]*}}, 0.1978{{[0-9]*}}, 0.1978{{[0-9]*}}, 0.1978{{[0-9]*}}, 0.2087{{[0-9]*}}]]]]
func.func @elu() -> (tensor<1x1x5x4xf32>, tensor<1x1x5x4xf32>, tensor<1x1x5x5xf32>, tensor<1x1x5x5xf32>) {
  %q = arith.constant dense<[[[[1.0, 0.0, 1.0, 0.0], [0.0, 2.0, 0.0, 1.0], [1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0], [1.0, 0.0, 0.0, 1.0]]]]> : tensor<1x1x5x4xf32>
  %k = arith.constant dense<[[[[0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0], [1.0, 0.0, 0.5, 0.5]]]]> : tensor<1x1x5x4xf32>
  %v = arith.constant dense<[[[[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0], [0.5, 0.5, 0.5, 0.5]]]]> : tensor<1x1x5x4xf32>
  %units = arith.constant dense<[[[[1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0]]]]> : tensor<1x1x5x5xf32>
  %r0 = linattn.attention %q, %k, %v {feature_map = #linattn.feature_map<elu1>} : (tensor<1x1x5x4xf32>, tensor<1x1x5x4xf32>, tensor<1x1x5x4xf32>) -> tensor<1x1x5x4xf32>
  %r1 = linattn.attention %q, %k, %v {feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 0.0>} : (tensor<1x1x5x4xf32>, tensor<1x1x5x4xf32>, tensor<1x1x5x4xf32>) -> tensor<1x1x5x4xf32>
  %r2 = linattn.attention %q, %k, %units {feature_map = #linattn.feature_map<elu1>} : (tensor<1x1x5x4xf32>, tensor<1x1x5x4xf32>, tensor<1x1x5x5xf32>) -> tensor<1x1x5x5xf32>
  %r3 = linattn.attention %q, %k, %units {feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 0.0>} : (tensor<1x1x5x4xf32>, tensor<1x1x5x4xf32>, tensor<1x1x5x5xf32>) -> tensor<1x1x5x5xf32>
  return %r0, %r1, %r2, %r3 : tensor<1x1x5x4xf32>, tensor<1x1x5x4xf32>, tensor<1x1x5x5xf32>, tensor<1x1x5x5xf32>
}

// Example 3: softmax(QKᵀ/2).
// Outputs.
// SOFTMAX: result 0: 1x1x5x4 f32 {{\[\[\[}}[0.2253{{[0-9]*}}, 0.4135{{[0-9]*}}, 0.2964{{[0-9]*}}, 0.2964{{[0-9]*}}], [0.4602{{[0-9]*}}, 0.1474{{[0-9]*}}, 0.3018{{[0-9]*}}, 0.2057{{[0-9]*}}], [0.2494{{[0-9]*}}, 0.3480{{[0-9]*}}, 0.3480{{[0-9]*}}, 0.2494{{[0-9]*}}], [0.2854{{[0-9]*}}, 0.2854{{[0-9]*}}, 0.2105{{[0-9]*}}, 0.4088{{[0-9]*}}], [0.3107{{[0-9]*}}, 0.3107{{[0-9]*}}, 0.3107{{[0-9]*}}, 0.3107{{[0-9]*}}]]]]
// Weights.
// SOFTMAX-NEXT: result 1: 1x1x5x5 f32 {{\[\[\[}}[0.1094{{[0-9]*}}, 0.2976{{[0-9]*}}, 0.1805{{[0-9]*}}, 0.1805{{[0-9]*}}, 0.2318{{[0-9]*}}], [0.4025{{[0-9]*}}, 0.0898{{[0-9]*}}, 0.2441{{[0-9]*}}, 0.1480{{[0-9]*}}, 0.1153{{[0-9]*}}], [0.1519{{[0-9]*}}, 0.2505{{[0-9]*}}, 0.2505{{[0-9]*}}, 0.1519{{[0-9]*}}, 0.1950{{[0-9]*}}], [0.1902{{[0-9]*}}, 0.1902{{[0-9]*}}, 0.1154{{[0-9]*}}, 0.3137{{[0-9]*}}, 0.1902{{[0-9]*}}], [0.1892{{[0-9]*}}, 0.1892{{[0-9]*}}, 0.1892{{[0-9]*}}, 0.1892{{[0-9]*}}, 0.2430{{[0-9]*}}]]]]
func.func @softmax() -> (tensor<1x1x5x4xf32>, tensor<1x1x5x5xf32>) {
  %q = arith.constant dense<[[[[1.0, 0.0, 1.0, 0.0], [0.0, 2.0, 0.0, 1.0], [1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0], [1.0, 0.0, 0.0, 1.0]]]]> : tensor<1x1x5x4xf32>
  %k = arith.constant dense<[[[[0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0], [1.0, 0.0, 0.5, 0.5]]]]> : tensor<1x1x5x4xf32>
  %v = arith.constant dense<[[[[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0], [0.5, 0.5, 0.5, 0.5]]]]> : tensor<1x1x5x4xf32>
  %units = arith.constant dense<[[[[1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0]]]]> : tensor<1x1x5x5xf32>
  %r0 = linattn.attention %q, %k, %v weights(softmax) {scale = 0.5 : f64} : (tensor<1x1x5x4xf32>, tensor<1x1x5x4xf32>, tensor<1x1x5x4xf32>) -> tensor<1x1x5x4xf32>
  %r1 = linattn.attention %q, %k, %units weights(softmax) {scale = 0.5 : f64} : (tensor<1x1x5x4xf32>, tensor<1x1x5x4xf32>, tensor<1x1x5x5xf32>) -> tensor<1x1x5x5xf32>
  return %r0, %r1 : tensor<1x1x5x4xf32>, tensor<1x1x5x5xf32>
}

// Example 4: causal elu + 1.
// Outputs.
// CAUSAL: result 0: 1x1x5x4 f32 {{\[\[\[}}[1, 0, 0, 0], [0.5714{{[0-9]*}}, 0.4285{{[0-9]*}}, 0, 0], [0.3125, 0.34375, 0.34375, 0], [0.25, 0.25, 0.2222{{[0-9]*}}, 0.2777{{[0-9]*}}], [0.3021{{[0-9]*}}, 0.3021{{[0-9]*}}, 0.3021{{[0-9]*}}, 0.3021{{[0-9]*}}]]]]
// Weights.
// CAUSAL-NEXT: result 1: 1x1x5x5 f32 {{\[\[\[}}[1, 0, 0, 0, 0], [0.5714{{[0-9]*}}, 0.4285{{[0-9]*}}, 0, 0, 0], [0.3125, 0.34375, 0.34375, 0, 0], [0.25, 0.25, 0.2222{{[0-9]*}}, 0.2777{{[0-9]*}}, 0], [0.1978{{[0-9]*}}, 0.1978{{[0-9]*}}, 0.1978{{[0-9]*}}, 0.1978{{[0-9]*}}, 0.2087{{[0-9]*}}]]]]
func.func @causal() -> (tensor<1x1x5x4xf32>, tensor<1x1x5x5xf32>) {
  %q = arith.constant dense<[[[[1.0, 0.0, 1.0, 0.0], [0.0, 2.0, 0.0, 1.0], [1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0], [1.0, 0.0, 0.0, 1.0]]]]> : tensor<1x1x5x4xf32>
  %k = arith.constant dense<[[[[0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0], [1.0, 0.0, 0.5, 0.5]]]]> : tensor<1x1x5x4xf32>
  %v = arith.constant dense<[[[[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0], [0.5, 0.5, 0.5, 0.5]]]]> : tensor<1x1x5x4xf32>
  %units = arith.constant dense<[[[[1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0]]]]> : tensor<1x1x5x5xf32>
  %r0 = linattn.attention %q, %k, %v {causal, feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 0.0>} : (tensor<1x1x5x4xf32>, tensor<1x1x5x4xf32>, tensor<1x1x5x4xf32>) -> tensor<1x1x5x4xf32>
  %r1 = linattn.attention %q, %k, %units {causal, feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 0.0>} : (tensor<1x1x5x4xf32>, tensor<1x1x5x4xf32>, tensor<1x1x5x5xf32>) -> tensor<1x1x5x5xf32>
  return %r0, %r1 : tensor<1x1x5x4xf32>, tensor<1x1x5x5xf32>
}

// Example 5: relu, with a denominator of 0.
// Denominators.
// RELU: result 0: 1x1x5x1 f32 {{\[\[\[}}[5.5], [6.5], [7.5], [5], [5.5]]]]
// Outputs.
// RELU-NEXT: result 1: 1x1x5x4 f32 {{\[\[\[}}[0.1363{{[0-9]*}}, 0.5, 0.3181{{[0-9]*}}, 0.3181{{[0-9]*}}], [0.5, 0.0384{{[0-9]*}}, 0.3461{{[0-9]*}}, 0.1923{{[0-9]*}}], [0.2333{{[0-9]*}}, 0.3666{{[0-9]*}}, 0.3666{{[0-9]*}}, 0.2333{{[0-9]*}}], [0.3, 0.3, 0.1, 0.5], [0.3181{{[0-9]*}}, 0.3181{{[0-9]*}}, 0.3181{{[0-9]*}}, 0.3181{{[0-9]*}}]]]]
// Causal denominators, the first of them 0:
// RELU-NEXT: result 2: 1x1x5x1 f32 {{\[\[\[}}[0], [3], [5], [4], [5.5]]]]
// its row is 0, not NaN.
// RELU-NEXT: result 3: 1x1x5x1 f32 {{\[\[\[}}[0], [1], [1], [1], [1]]]]
func.func @relu() -> (tensor<1x1x5x1xf32>, tensor<1x1x5x4xf32>, tensor<1x1x5x1xf32>, tensor<1x1x5x1xf32>) {
  %q = arith.constant dense<[[[[1.0, 0.0, 1.0, 0.0], [0.0, 2.0, 0.0, 1.0], [1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0], [1.0, 0.0, 0.0, 1.0]]]]> : tensor<1x1x5x4xf32>
  %k = arith.constant dense<[[[[0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0], [1.0, 0.0, 0.5, 0.5]]]]> : tensor<1x1x5x4xf32>
  %v = arith.constant dense<[[[[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0], [0.5, 0.5, 0.5, 0.5]]]]> : tensor<1x1x5x4xf32>
  %ones = arith.constant dense<[[[[1.0], [1.0], [1.0], [1.0], [1.0]]]]> : tensor<1x1x5x1xf32>
  %r0 = linattn.attention %q, %k, %ones {feature_map = #linattn.feature_map<relu>} : (tensor<1x1x5x4xf32>, tensor<1x1x5x4xf32>, tensor<1x1x5x1xf32>) -> tensor<1x1x5x1xf32>
  %r1 = linattn.attention %q, %k, %v {feature_map = #linattn.feature_map<relu>, normalize = #linattn.normalize<eps = 0.0>} : (tensor<1x1x5x4xf32>, tensor<1x1x5x4xf32>, tensor<1x1x5x4xf32>) -> tensor<1x1x5x4xf32>
  %r2 = linattn.attention %q, %k, %ones {causal, feature_map = #linattn.feature_map<relu>} : (tensor<1x1x5x4xf32>, tensor<1x1x5x4xf32>, tensor<1x1x5x1xf32>) -> tensor<1x1x5x1xf32>
  %r3 = linattn.attention %q, %k, %ones {causal, feature_map = #linattn.feature_map<relu>, normalize = #linattn.normalize<eps = 0.0>} : (tensor<1x1x5x4xf32>, tensor<1x1x5x4xf32>, tensor<1x1x5x1xf32>) -> tensor<1x1x5x1xf32>
  return %r0, %r1, %r2, %r3 : tensor<1x1x5x1xf32>, tensor<1x1x5x4xf32>, tensor<1x1x5x1xf32>, tensor<1x1x5x1xf32>
}

// Example 6: without normalizer.
// Causal.
// STATES: result 0: 1x1x3x2 f32 {{\[\[\[}}[10, 20], [30, 40], [140, 180]]]]
// Non-causal.
// STATES-NEXT: result 1: 1x1x3x2 f32 {{\[\[\[}}[60, 80], [80, 100], [140, 180]]]]
// Half of both keys.
// STATES-NEXT: result 2: 1x1x1x2 f32 {{\[\[\[}}[20, 30]]]]
// The same as a scan, and its final state.
// STATES-NEXT: result 3: 1x1x3x2 f32 {{\[\[\[}}[10, 20], [30, 40], [140, 180]]]]
// STATES-NEXT: result 4: 1x1x2x2 f32 {{\[\[\[}}[60, 80], [80, 100]]]]
func.func @states() -> (tensor<1x1x3x2xf32>, tensor<1x1x3x2xf32>, tensor<1x1x1x2xf32>, tensor<1x1x3x2xf32>, tensor<1x1x2x2xf32>) {
  %k = arith.constant dense<[[[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]]]> : tensor<1x1x3x2xf32>
  %v = arith.constant dense<[[[[10.0, 20.0], [30.0, 40.0], [50.0, 60.0]]]]> : tensor<1x1x3x2xf32>
  %half = arith.constant dense<[[[[0.5, 0.5]]]]> : tensor<1x1x1x2xf32>
  %k2 = arith.constant dense<[[[[1.0, 0.0], [0.0, 1.0]]]]> : tensor<1x1x2x2xf32>
  %v2 = arith.constant dense<[[[[10.0, 20.0], [30.0, 40.0]]]]> : tensor<1x1x2x2xf32>
  %r0 = linattn.attention %k, %k, %v {causal} : (tensor<1x1x3x2xf32>, tensor<1x1x3x2xf32>, tensor<1x1x3x2xf32>) -> tensor<1x1x3x2xf32>
  %r1 = linattn.attention %k, %k, %v : (tensor<1x1x3x2xf32>, tensor<1x1x3x2xf32>, tensor<1x1x3x2xf32>) -> tensor<1x1x3x2xf32>
  %r2 = linattn.attention %half, %k2, %v2 : (tensor<1x1x1x2xf32>, tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x1x2xf32>
  %zero = arith.constant dense<[[[[0.0, 0.0], [0.0, 0.0]]]]> : tensor<1x1x2x2xf32>
  %into = arith.constant dense<[[[[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]]]> : tensor<1x1x3x2xf32>
  %s:2 = linattn.scan %k, %k, %v into(%into) init(%zero) : (tensor<1x1x3x2xf32>, tensor<1x1x3x2xf32>, tensor<1x1x3x2xf32>, tensor<1x1x3x2xf32>, tensor<1x1x2x2xf32>) -> (tensor<1x1x3x2xf32>, tensor<1x1x2x2xf32>)
  return %r0, %r1, %r2, %s#0, %s#1 : tensor<1x1x3x2xf32>, tensor<1x1x3x2xf32>, tensor<1x1x1x2xf32>, tensor<1x1x3x2xf32>, tensor<1x1x2x2xf32>
}

// Example 7: softmax_kernel is not exp.
// MAPS: result 0: 1x1x1x2 f32 {{\[\[\[}}[0.6378{{[0-9]*}}, 0.3621{{[0-9]*}}]]]]
// MAPS-NEXT: result 1: 1x1x1x2 f32 {{\[\[\[}}[0.1925{{[0-9]*}}, 0.8074{{[0-9]*}}]]]]
func.func @maps() -> (tensor<1x1x1x2xf32>, tensor<1x1x1x2xf32>) {
  %q = arith.constant dense<[[[[0.0, 0.0]]]]> : tensor<1x1x1x2xf32>
  %k = arith.constant dense<[[[[0.0, 0.0], [2.0, 0.0]]]]> : tensor<1x1x2x2xf32>
  %units = arith.constant dense<[[[[1.0, 0.0], [0.0, 1.0]]]]> : tensor<1x1x2x2xf32>
  %r0 = linattn.attention %q, %k, %units {feature_map = #linattn.feature_map<softmax_kernel>, normalize = #linattn.normalize<eps = 0.0>} : (tensor<1x1x1x2xf32>, tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x1x2xf32>
  %r1 = linattn.attention %q, %k, %units {feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<eps = 0.0>} : (tensor<1x1x1x2xf32>, tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x1x2xf32>
  return %r0, %r1 : tensor<1x1x1x2xf32>, tensor<1x1x1x2xf32>
}

// One key of size 1: den = q, num = q v.
// num / (den + eps): 3 / (1 + 0.5).
// NORMALIZERS: result 0: 1x1x1x1 f32 {{\[\[\[}}[2]]]]
// −1 / −0.5 without eps.
// NORMALIZERS-NEXT: result 1: 1x1x1x1 f32 {{\[\[\[}}[2]]]]
// −1 / max(−0.5, 1e-4).
// NORMALIZERS-NEXT: result 2: 1x1x1x1 f32 {{\[\[\[}}[-10000]]]]
// The clamp comes last.
// NORMALIZERS-NEXT: result 3: 1x1x1x1 f32 {{\[\[\[}}[-10]]]]
// 0 / (0 + eps).
// NORMALIZERS-NEXT: result 4: 1x1x1x1 f32 {{\[\[\[}}[0]]]]
// 0 / 0 is 0.
// NORMALIZERS-NEXT: result 5: 1x1x1x1 f32 {{\[\[\[}}[0]]]]
func.func @normalizers() -> (tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>) {
  %half = arith.constant dense<[[[[-0.5]]]]> : tensor<1x1x1x1xf32>
  %one = arith.constant dense<[[[[1.0]]]]> : tensor<1x1x1x1xf32>
  %zero = arith.constant dense<[[[[0.0]]]]> : tensor<1x1x1x1xf32>
  %two = arith.constant dense<[[[[2.0]]]]> : tensor<1x1x1x1xf32>
  %three = arith.constant dense<[[[[3.0]]]]> : tensor<1x1x1x1xf32>
  %r0 = linattn.attention %one, %one, %three {normalize = #linattn.normalize<eps = 0.5>} : (tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x1x1xf32>
  %r1 = linattn.attention %half, %one, %two {normalize = #linattn.normalize<eps = 0.0>} : (tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x1x1xf32>
  %r2 = linattn.attention %half, %one, %two {normalize = #linattn.normalize<floor = 1.0e-4>} : (tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x1x1xf32>
  %r3 = linattn.attention %half, %one, %two {normalize = #linattn.normalize<floor = 1.0e-4, clamp = 10.0>} : (tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x1x1xf32>
  %r4 = linattn.attention %zero, %one, %three {normalize = #linattn.normalize<eps = 1.0e-6>} : (tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x1x1xf32>
  %r5 = linattn.attention %zero, %one, %three {normalize = #linattn.normalize<eps = 0.0>} : (tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x1x1xf32>
  return %r0, %r1, %r2, %r3, %r4, %r5 : tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>
}
