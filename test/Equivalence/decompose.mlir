// RUN: linattn-opt %s --linattn-decompose | FileCheck %s
// RUN: linattn-opt %s --linattn-decompose | linattn-run - --all --open-size=1,3,7 --compare=%s
// RUN: linattn-opt %s --linattn-chunk=chunk-size=3 --linattn-decompose | linattn-run - --all --open-size=1,3,7 --compare=%s

// Each structured op and the linalg ops it stands for.

// CHECK-NOT: linattn.{{[a-z]+}} %

func.func @scan(%q: tensor<2x3x?x4xf32>, %k: tensor<2x3x?x4xf32>, %v: tensor<2x3x?x5xf32>, %m: tensor<2x?xi1>, %o: tensor<2x3x?x5xf32>, %s: tensor<2x3x4x5xf32>) -> (tensor<2x3x?x5xf32>, tensor<2x3x4x5xf32>) {
  %r:2 = linattn.scan %q, %k, %v mask(%m) into(%o) init(%s) {scale = 0.5, feature_map = #linattn.feature_map<relu>}
    : (tensor<2x3x?x4xf32>, tensor<2x3x?x4xf32>, tensor<2x3x?x5xf32>, tensor<2x?xi1>, tensor<2x3x?x5xf32>, tensor<2x3x4x5xf32>) -> (tensor<2x3x?x5xf32>, tensor<2x3x4x5xf32>)
  return %r#0, %r#1 : tensor<2x3x?x5xf32>, tensor<2x3x4x5xf32>
}

func.func @scan_normalized(%q: tensor<1x2x7x4xf32>, %k: tensor<1x2x7x4xf32>, %v: tensor<1x2x7x5xf32>) -> (tensor<1x2x7x5xf32>, tensor<1x2x4x5xf32>, tensor<1x2x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2x7x5xf32>
  %es = tensor.empty() : tensor<1x2x4x5xf32>
  %s = linalg.fill ins(%zero : f32) outs(%es : tensor<1x2x4x5xf32>) -> tensor<1x2x4x5xf32>
  %ez = tensor.empty() : tensor<1x2x4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%ez : tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %r:3 = linattn.scan %q, %k, %v into(%e) init(%s) normalizer(%z) {feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.0e-6>, scale = 2.0}
    : (tensor<1x2x7x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x5xf32>, tensor<1x2x7x5xf32>, tensor<1x2x4x5xf32>, tensor<1x2x4xf32>) -> (tensor<1x2x7x5xf32>, tensor<1x2x4x5xf32>, tensor<1x2x4xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x7x5xf32>, tensor<1x2x4x5xf32>, tensor<1x2x4xf32>
}

func.func @scan_bf16(%q: tensor<1x1x5x4xbf16>, %k: tensor<1x1x5x4xbf16>, %v: tensor<1x1x5x3xbf16>, %o: tensor<1x1x5x3xbf16>, %s: tensor<1x1x4x3xf32>) -> (tensor<1x1x5x3xbf16>, tensor<1x1x4x3xf32>) {
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s) {feature_map = #linattn.feature_map<softmax_kernel>}
    : (tensor<1x1x5x4xbf16>, tensor<1x1x5x4xbf16>, tensor<1x1x5x3xbf16>, tensor<1x1x5x3xbf16>, tensor<1x1x4x3xf32>) -> (tensor<1x1x5x3xbf16>, tensor<1x1x4x3xf32>)
  return %r#0, %r#1 : tensor<1x1x5x3xbf16>, tensor<1x1x4x3xf32>
}

func.func @state(%k: tensor<2x3x?x4xf32>, %v: tensor<2x3x?x5xf32>, %m: tensor<2x?xi1>, %s: tensor<2x3x4x5xf32>, %z: tensor<2x3x4xf32>) -> (tensor<2x3x4x5xf32>, tensor<2x3x4xf32>) {
  %r:2 = linattn.state %k, %v mask(%m) init(%s) normalizer(%z) {feature_map = #linattn.feature_map<elu1>}
    : (tensor<2x3x?x4xf32>, tensor<2x3x?x5xf32>, tensor<2x?xi1>, tensor<2x3x4x5xf32>, tensor<2x3x4xf32>) -> (tensor<2x3x4x5xf32>, tensor<2x3x4xf32>)
  return %r#0, %r#1 : tensor<2x3x4x5xf32>, tensor<2x3x4xf32>
}

func.func @read(%q: tensor<2x3x?x4xf32>, %s: tensor<2x3x4x5xf32>, %o: tensor<2x3x?x5xf32>) -> tensor<2x3x?x5xf32> {
  %r = linattn.read %q, %s into(%o) {feature_map = #linattn.feature_map<relu2>, scale = 0.25}
    : (tensor<2x3x?x4xf32>, tensor<2x3x4x5xf32>, tensor<2x3x?x5xf32>) -> tensor<2x3x?x5xf32>
  return %r : tensor<2x3x?x5xf32>
}

func.func @read_normalized(%q: tensor<1x2x3x4xf32>, %s: tensor<1x2x4x4xf32>, %o: tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32> {
  %one = arith.constant 1.0 : f32
  %ez = tensor.empty() : tensor<1x2x4xf32>
  %z = linalg.fill ins(%one : f32) outs(%ez : tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %r = linattn.read %q, %s normalizer(%z) into(%o) {feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<floor = 0.5, clamp = 1.0>}
    : (tensor<1x2x3x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  return %r : tensor<1x2x3x4xf32>
}

func.func @quadratic(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %m: tensor<1x?xi1>, %o: tensor<1x2x?x3xf32>) -> tensor<1x2x?x3xf32> {
  %r = linattn.quadratic %q, %k, %v mask(%m) into(%o) {causal, feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.0e-6>}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x?xi1>, tensor<1x2x?x3xf32>) -> tensor<1x2x?x3xf32>
  return %r : tensor<1x2x?x3xf32>
}

// Queries over a cache of keys: the last query sees the last key.
func.func @softmax(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x7x4xf32>, %v: tensor<1x2x7x5xf32>, %m: tensor<1x7xi1>, %o: tensor<1x2x3x5xf32>) -> tensor<1x2x3x5xf32> {
  %r = linattn.quadratic %q, %k, %v mask(%m) weights(softmax) into(%o) {causal, scale = 0.5}
    : (tensor<1x2x3x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x5xf32>, tensor<1x7xi1>, tensor<1x2x3x5xf32>) -> tensor<1x2x3x5xf32>
  return %r : tensor<1x2x3x5xf32>
}

func.func @feature_map(%x: tensor<?x2x?x4xf32>, %o: tensor<?x2x?x4xf32>) -> tensor<?x2x?x4xf32> {
  %r = linattn.feature_map %x into(%o) {feature_map = #linattn.feature_map<softmax_kernel>}
    : (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x?x4xf32>
  return %r : tensor<?x2x?x4xf32>
}

func.func @feature_region(%x: tensor<1x2x3x4xf64>, %o: tensor<1x2x3x4xf64>) -> tensor<1x2x3x4xf64> {
  %r = linattn.feature_map %x into(%o) {feature_map = #linattn.feature_map<region>} phi {
  ^bb0(%a: f64):
    %b = math.tanh %a : f64
    linattn.yield %b : f64
  } : (tensor<1x2x3x4xf64>, tensor<1x2x3x4xf64>) -> tensor<1x2x3x4xf64>
  return %r : tensor<1x2x3x4xf64>
}
