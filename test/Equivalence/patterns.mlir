// RUN: linattn-run %s --all --open-size=0,1,7,70 --compare=reference
// RUN: linattn-opt %s --linattn-to-quadratic --linattn-decompose | linattn-run - --all --open-size=0,1,7,70 --compare=%s

// Patterns and scores in vectors and as linalg ops, against the naive loops.

func.func @window(%q: tensor<2x4x?x8xf32>, %k: tensor<2x2x?x8xf32>, %v: tensor<2x2x?x5xf32>, %m: tensor<2x?xi1>) -> tensor<2x4x?x5xf32> {
  %r = linattn.attention %q, %k, %v mask(%m) weights(softmax) {causal, pattern = #linattn.pattern<window = 5, globals = 2>} : (tensor<2x4x?x8xf32>, tensor<2x2x?x8xf32>, tensor<2x2x?x5xf32>, tensor<2x?xi1>) -> tensor<2x4x?x5xf32>
  return %r : tensor<2x4x?x5xf32>
}
func.func @both_ways(%q: tensor<2x4x?x8xf32>, %k: tensor<2x2x?x8xf32>, %v: tensor<2x2x?x5xf32>) -> tensor<2x4x?x5xf32> {
  %r = linattn.attention %q, %k, %v weights(softmax) {pattern = #linattn.pattern<window = 3, dilation = 2, globals = 2>} : (tensor<2x4x?x8xf32>, tensor<2x2x?x8xf32>, tensor<2x2x?x5xf32>) -> tensor<2x4x?x5xf32>
  return %r : tensor<2x4x?x5xf32>
}
func.func @linear(%q: tensor<2x4x?x8xf32>, %k: tensor<2x2x?x8xf32>, %v: tensor<2x2x?x5xf32>) -> tensor<2x4x?x5xf32> {
  %r = linattn.attention %q, %k, %v {causal, feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.0e-6>, pattern = #linattn.pattern<window = 6>} : (tensor<2x4x?x8xf32>, tensor<2x2x?x8xf32>, tensor<2x2x?x5xf32>) -> tensor<2x4x?x5xf32>
  return %r : tensor<2x4x?x5xf32>
}
func.func @scores(%q: tensor<2x4x?x8xf32>, %k: tensor<2x2x?x8xf32>, %v: tensor<2x2x?x5xf32>, %h: tensor<4xf32>, %s: tensor<4xbf16>) -> tensor<2x4x?x5xf32> {
  %r = linattn.attention %q, %k, %v slopes(%h) sinks(%s) weights(softmax) {causal, softcap = 3.0, scale = 0.5} : (tensor<2x4x?x8xf32>, tensor<2x2x?x8xf32>, tensor<2x2x?x5xf32>, tensor<4xf32>, tensor<4xbf16>) -> tensor<2x4x?x5xf32>
  return %r : tensor<2x4x?x5xf32>
}
