// RUN: linattn-opt %s --convert-linattn-to-linalg | FileCheck %s
// RUN: linattn-opt %s --linattn-reassociate=mode=always --convert-linattn-to-linalg | linattn-run - --all --open-size=1,3,7 --compare=%s
// RUN: linattn-opt %s --linattn-causal-to-scan --convert-linattn-to-linalg | linattn-run - --all --open-size=1,3,7 --compare=%s

// CHECK-NOT: linattn.{{[a-z]+}} %

func.func @attention(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>) -> tensor<1x2x?x3xf32> {
  %o = linattn.attention %q, %k, %v {scale = 0.5}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>) -> tensor<1x2x?x3xf32>
  return %o : tensor<1x2x?x3xf32>
}

func.func @causal(%q: tensor<2x1x7x4xf32>, %k: tensor<2x1x7x4xf32>, %v: tensor<2x1x7x4xf32>, %m: tensor<2x7xi1>) -> tensor<2x1x7x4xf32> {
  %o = linattn.attention %q, %k, %v mask(%m) {causal, feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.0e-6>}
    : (tensor<2x1x7x4xf32>, tensor<2x1x7x4xf32>, tensor<2x1x7x4xf32>, tensor<2x7xi1>) -> tensor<2x1x7x4xf32>
  return %o : tensor<2x1x7x4xf32>
}

func.func @softmax(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x4xf32>, %m: tensor<1x?xi1>) -> tensor<1x2x?x4xf32> {
  %o = linattn.attention %q, %k, %v mask(%m) weights(softmax) {scale = 0.5}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x?xi1>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

func.func @causal_softmax(%q: tensor<1x2x5x4xf64>, %k: tensor<1x2x5x4xf64>, %v: tensor<1x2x5x4xf64>) -> tensor<1x2x5x4xf64> {
  %o = linattn.attention %q, %k, %v weights(softmax) {causal}
    : (tensor<1x2x5x4xf64>, tensor<1x2x5x4xf64>, tensor<1x2x5x4xf64>) -> tensor<1x2x5x4xf64>
  return %o : tensor<1x2x5x4xf64>
}

func.func @half(%q: tensor<1x1x3x4xf16>, %k: tensor<1x1x3x4xf16>, %v: tensor<1x1x3x4xf16>) -> tensor<1x1x3x4xf16> {
  %o = linattn.attention %q, %k, %v {causal, feature_map = #linattn.feature_map<relu2>}
    : (tensor<1x1x3x4xf16>, tensor<1x1x3x4xf16>, tensor<1x1x3x4xf16>) -> tensor<1x1x3x4xf16>
  return %o : tensor<1x1x3x4xf16>
}
