// RUN: linattn-run %s --all --open-size=1,3,37 --target=reference --compare=%s
// RUN: linattn-run %s %s --all --open-size=7 --target=linalg --form=chunk:3 --compare=exact
// RUN: linattn-opt %s --linattn-decompose | linattn-run - --all --open-size=1,3,37 --compare=%s
// RUN: linattn-opt %s --linattn-chunk=chunk-size=4 | linattn-run - --all --open-size=1,3,37 --compare=%s
// RUN: linattn-opt %s --linattn-reassociate --linattn-causal-to-scan | linattn-run - --all --open-size=1,3,37 --compare=%s
// RUN: linattn-opt %s --linattn-expand-form | linattn-run - --all --open-size=1,3,37 --compare=%s
// RUN: linattn-opt %s --linattn-split-segments | linattn-run - --all --open-size=1,3,37 --compare=%s

// A scale that is an argument, in every form.

func.func @attention(%q: tensor<2x3x?x4xf32>, %k: tensor<2x3x?x4xf32>, %v: tensor<2x3x?x5xf32>, %scale: f64) -> tensor<2x3x?x5xf32> {
  %r = linattn.attention %q, %k, %v scale(%scale)
    : (tensor<2x3x?x4xf32>, tensor<2x3x?x4xf32>, tensor<2x3x?x5xf32>, f64) -> tensor<2x3x?x5xf32>
  return %r : tensor<2x3x?x5xf32>
}

func.func @causal(%q: tensor<2x3x?x4xf32>, %k: tensor<2x3x?x4xf32>, %v: tensor<2x3x?x5xf32>, %scale: f64) -> tensor<2x3x?x5xf32> {
  %r = linattn.attention %q, %k, %v scale(%scale) {causal}
    : (tensor<2x3x?x4xf32>, tensor<2x3x?x4xf32>, tensor<2x3x?x5xf32>, f64) -> tensor<2x3x?x5xf32>
  return %r : tensor<2x3x?x5xf32>
}

func.func @softmax(%q: tensor<2x3x?x4xf32>, %k: tensor<2x3x?x4xf32>, %v: tensor<2x3x?x5xf32>, %o: tensor<2x3x?x5xf32>, %scale: f64) -> tensor<2x3x?x5xf32> {
  %r = linattn.quadratic %q, %k, %v scale(%scale) weights(softmax) into(%o) {causal}
    : (tensor<2x3x?x4xf32>, tensor<2x3x?x4xf32>, tensor<2x3x?x5xf32>, f64, tensor<2x3x?x5xf32>) -> tensor<2x3x?x5xf32>
  return %r : tensor<2x3x?x5xf32>
}

func.func @scan(%q: tensor<2x3x?x4xf32>, %k: tensor<2x3x?x4xf32>, %v: tensor<2x3x?x5xf32>, %m: tensor<2x?xi1>, %scale: f64, %o: tensor<2x3x?x5xf32>, %s: tensor<2x3x4x5xf32>) -> (tensor<2x3x?x5xf32>, tensor<2x3x4x5xf32>) {
  %r:2 = linattn.scan %q, %k, %v mask(%m) scale(%scale) into(%o) init(%s) {feature_map = #linattn.feature_map<relu>, config = #linattn.config<form = chunk, chunk = 8>}
    : (tensor<2x3x?x4xf32>, tensor<2x3x?x4xf32>, tensor<2x3x?x5xf32>, tensor<2x?xi1>, f64, tensor<2x3x?x5xf32>, tensor<2x3x4x5xf32>) -> (tensor<2x3x?x5xf32>, tensor<2x3x4x5xf32>)
  return %r#0, %r#1 : tensor<2x3x?x5xf32>, tensor<2x3x4x5xf32>
}

func.func @segments(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x4xf32>, %scale: f64, %o: tensor<1x2x?x4xf32>, %s: tensor<1x2x4x4xf32>) -> (tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>) {
  %r:2 = linattn.scan %q, %k, %v scale(%scale) into(%o) init(%s) {config = #linattn.config<form = segments, segment = 8>}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, f64, tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0, %r#1 : tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>
}

func.func @read(%q: tensor<2x3x?x4xbf16>, %s: tensor<2x3x4x5xf32>, %scale: f64, %o: tensor<2x3x?x5xbf16>) -> tensor<2x3x?x5xbf16> {
  %r = linattn.read %q, %s scale(%scale) into(%o)
    : (tensor<2x3x?x4xbf16>, tensor<2x3x4x5xf32>, f64, tensor<2x3x?x5xbf16>) -> tensor<2x3x?x5xbf16>
  return %r : tensor<2x3x?x5xbf16>
}
