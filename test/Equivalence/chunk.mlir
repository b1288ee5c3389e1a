// RUN: linattn-opt %s --linattn-chunk=chunk-size=3 | FileCheck %s
// RUN: linattn-opt %s --linattn-chunk=chunk-size=2 | linattn-run - --all --open-size=1,3,7,14 --compare=%s

// Every family of scans, cut where chunks divide the tokens and where not.

// CHECK-LABEL: func.func @add
// CHECK: scf.for
// CHECK: linattn.scan
func.func @add(%q: tensor<2x3x?x4xf32>, %k: tensor<2x3x?x4xf32>, %v: tensor<2x3x?x5xf32>, %o: tensor<2x3x?x5xf32>, %s: tensor<2x3x4x5xf32>) -> (tensor<2x3x?x5xf32>, tensor<2x3x4x5xf32>) {
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s) {scale = 0.5}
    : (tensor<2x3x?x4xf32>, tensor<2x3x?x4xf32>, tensor<2x3x?x5xf32>, tensor<2x3x?x5xf32>, tensor<2x3x4x5xf32>) -> (tensor<2x3x?x5xf32>, tensor<2x3x4x5xf32>)
  return %r#0, %r#1 : tensor<2x3x?x5xf32>, tensor<2x3x4x5xf32>
}

// CHECK-LABEL: func.func @normalized
// CHECK: scf.for
func.func @normalized(%q: tensor<1x4x7x4xf32>, %k: tensor<1x2x7x4xf32>, %v: tensor<1x2x7x5xf32>, %m: tensor<1x7xi1>) -> (tensor<1x4x7x5xf32>, tensor<1x2x4x5xf32>, tensor<1x2x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4x7x5xf32>
  %es = tensor.empty() : tensor<1x2x4x5xf32>
  %s = linalg.fill ins(%zero : f32) outs(%es : tensor<1x2x4x5xf32>) -> tensor<1x2x4x5xf32>
  %ez = tensor.empty() : tensor<1x2x4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%ez : tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %r:3 = linattn.scan %q, %k, %v mask(%m) into(%e) init(%s) normalizer(%z) {feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.0e-6>}
    : (tensor<1x4x7x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x5xf32>, tensor<1x7xi1>, tensor<1x4x7x5xf32>, tensor<1x2x4x5xf32>, tensor<1x2x4xf32>) -> (tensor<1x4x7x5xf32>, tensor<1x2x4x5xf32>, tensor<1x2x4xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x4x7x5xf32>, tensor<1x2x4x5xf32>, tensor<1x2x4xf32>
}

// The running maximum is carried from chunk to chunk.
func.func @running_max(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x4xf32>, %o: tensor<1x2x?x4xf32>) -> (tensor<1x2x?x4xf32>, tensor<1x2xf32>) {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant -3.40282347E+38 : f32
  %es = tensor.empty() : tensor<1x2x4x4xf32>
  %s = linalg.fill ins(%zero : f32) outs(%es : tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %ez = tensor.empty() : tensor<1x2x4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%ez : tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %em = tensor.empty() : tensor<1x2xf32>
  %m = linalg.fill ins(%lowest : f32) outs(%em : tensor<1x2xf32>) -> tensor<1x2xf32>
  %r:4 = linattn.scan %q, %k, %v into(%o) init(%s) normalizer(%z) running_max(%m) {feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<eps = 0.0>}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4xf32>, tensor<1x2xf32>) -> (tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4xf32>, tensor<1x2xf32>)
  return %r#0, %r#3 : tensor<1x2x?x4xf32>, tensor<1x2xf32>
}

func.func @head_decay(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x4xf32>, %g: tensor<2xf32>, %o: tensor<1x2x?x4xf32>, %s: tensor<1x2x4x4xf32>) -> (tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) into(%o) init(%s)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<2xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0, %r#1 : tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>
}

func.func @token_decay(%q: tensor<1x2x7x4xf32>, %k: tensor<1x2x7x4xf32>, %v: tensor<1x2x7x3xf32>, %g: tensor<1x2x7xf32>, %h: tensor<1x2x7x3xf32>, %o: tensor<1x2x7x3xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x7x3xf32>, tensor<1x2x4x3xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) value_decay(%h) into(%o) init(%s)
    : (tensor<1x2x7x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x3xf32>, tensor<1x2x7xf32>, tensor<1x2x7x3xf32>, tensor<1x2x7x3xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x7x3xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1 : tensor<1x2x7x3xf32>, tensor<1x2x4x3xf32>
}

// Reads before it writes, with a bonus for the token itself.
func.func @exclusive(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x4xf32>, %g: tensor<1x2x?x4xf32>, %u: tensor<2x4xf32>, %o: tensor<1x2x?x4xf32>, %s: tensor<1x2x4x4xf32>) -> (tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) bonus(%u) readout(exclusive) into(%o) init(%s)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<2x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0, %r#1 : tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>
}

func.func @delta(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x4xf32>, %g: tensor<1x2x?xf32>, %b: tensor<1x2x?xf32>, %o: tensor<1x2x?x4xf32>, %s: tensor<1x2x4x4xf32>) -> (tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) beta(%b) update(delta) into(%o) init(%s)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?xf32>, tensor<1x2x?xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0, %r#1 : tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>
}

func.func @dplr(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x4xf32>, %g: tensor<1x2x?x4xf32>, %a: tensor<1x2x?x4xf32>, %b: tensor<1x2x?x4xf32>, %o: tensor<1x2x?x4xf32>, %s: tensor<1x2x4x4xf32>) -> (tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) a(%a) b(%b) update(dplr) transition(before) into(%o) init(%s)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0, %r#1 : tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>
}
