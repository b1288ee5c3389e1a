// RUN: linattn-opt %s --linattn-check-normalizer=as-warnings --verify-diagnostics
// RUN: linattn-opt %s --linattn-check-normalizer --remarks-filter=linattn 2>&1 | FileCheck %s

// CHECK: check-normalizer
// CHECK-SAME: the denominator may vanish or turn negative

//===----------------------------------------------------------------------===//
// named maps
//===----------------------------------------------------------------------===//

func.func @identity(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  // expected-warning @+1 {{the denominator may vanish or turn negative}}
  %o = linattn.attention %q, %k, %k {normalize = #linattn.normalize<>} : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

func.func @relu_without_eps(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  // expected-warning @+1 {{the denominator may vanish: the weights}}
  %o = linattn.attention %q, %k, %k {feature_map = #linattn.feature_map<relu>, normalize = #linattn.normalize<eps = 0.0>} : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

func.func @relu2_without_eps(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  // expected-warning @+1 {{the denominator may vanish: the weights}}
  %o = linattn.attention %q, %k, %k {feature_map = #linattn.feature_map<relu2>, normalize = #linattn.normalize<eps = 0.0>} : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

//===----------------------------------------------------------------------===//
// Regions whose features may be negative: their argument, a difference, a sine.
//===----------------------------------------------------------------------===//

func.func @shifted(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  // expected-warning @+1 {{the denominator may vanish or turn negative}}
  %o = linattn.attention %q, %k, %k {feature_map = #linattn.feature_map<region>, normalize = #linattn.normalize<>} phi {
  ^bb0(%x: f32):
    %one = arith.constant 1.0 : f32
    %y = arith.addf %x, %one : f32
    linattn.yield %y : f32
  } : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

func.func @difference(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  // expected-warning @+1 {{the denominator may vanish or turn negative}}
  %o = linattn.attention %q, %k, %k {feature_map = #linattn.feature_map<region>, normalize = #linattn.normalize<>} phi {
  ^bb0(%x: f32):
    %two = arith.constant 2.0 : f32
    %e = math.exp %x : f32
    %y = arith.subf %e, %two : f32
    linattn.yield %y : f32
  } : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

func.func @sine(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  // expected-warning @+1 {{the denominator may vanish or turn negative}}
  %o = linattn.attention %q, %k, %k {feature_map = #linattn.feature_map<region>, normalize = #linattn.normalize<>} phi {
  ^bb0(%x: f32):
    %y = math.sin %x : f32
    linattn.yield %y : f32
  } : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

func.func @leaky(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  // expected-warning @+1 {{the denominator may vanish or turn negative}}
  %o = linattn.attention %q, %k, %k {feature_map = #linattn.feature_map<region>, normalize = #linattn.normalize<>} phi {
  ^bb0(%x: f32):
    %zero = arith.constant 0.0 : f32
    %slope = arith.constant 0.1 : f32
    %p = arith.cmpf ogt, %x, %zero : f32
    %s = arith.mulf %x, %slope : f32
    %y = arith.select %p, %x, %s : f32
    linattn.yield %y : f32
  } : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

func.func @branches_the_wrong_way(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  // expected-warning @+1 {{the denominator may vanish or turn negative}}
  %o = linattn.attention %q, %k, %k {feature_map = #linattn.feature_map<region>, normalize = #linattn.normalize<>} phi {
  ^bb0(%x: f32):
    %zero = arith.constant 0.0 : f32
    %p = arith.cmpf olt, %x, %zero : f32
    %e = math.exp %x : f32
    %y = arith.select %p, %x, %e : f32
    linattn.yield %y : f32
  } : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

func.func @square_without_eps(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  // expected-warning @+1 {{the denominator may vanish: the weights}}
  %o = linattn.attention %q, %k, %k {feature_map = #linattn.feature_map<region>, normalize = #linattn.normalize<eps = 0.0>} phi {
  ^bb0(%x: f32):
    %y = arith.mulf %x, %x : f32
    linattn.yield %y : f32
  } : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

//===----------------------------------------------------------------------===//
// Maps of whole tokens.
//===----------------------------------------------------------------------===//

func.func @random_fourier(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %w: tensor<6x4xf32>, %d: tensor<1x2x?x12xf32>) -> tensor<1x2x?x4xf32> {
  %fq = linattn.feature_map %q params(%w) into(%d) {feature_map = #linattn.feature_map<random_fourier>} : (tensor<1x2x?x4xf32>, tensor<6x4xf32>, tensor<1x2x?x12xf32>) -> tensor<1x2x?x12xf32>
  %fk = linattn.feature_map %k params(%w) into(%d) {feature_map = #linattn.feature_map<random_fourier>} : (tensor<1x2x?x4xf32>, tensor<6x4xf32>, tensor<1x2x?x12xf32>) -> tensor<1x2x?x12xf32>
  // expected-warning @+1 {{the denominator may vanish or turn negative}}
  %o = linattn.attention %fq, %fk, %k {normalize = #linattn.normalize<>} : (tensor<1x2x?x12xf32>, tensor<1x2x?x12xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

func.func @t2r_without_eps(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %w: tensor<6x4xf32>, %d: tensor<1x2x?x6xf32>) -> tensor<1x2x?x4xf32> {
  %fq = linattn.feature_map %q params(%w) into(%d) {feature_map = #linattn.feature_map<t2r>} : (tensor<1x2x?x4xf32>, tensor<6x4xf32>, tensor<1x2x?x6xf32>) -> tensor<1x2x?x6xf32>
  %fk = linattn.feature_map %k params(%w) into(%d) {feature_map = #linattn.feature_map<t2r>} : (tensor<1x2x?x4xf32>, tensor<6x4xf32>, tensor<1x2x?x6xf32>) -> tensor<1x2x?x6xf32>
  // expected-warning @+1 {{the denominator may vanish: the weights}}
  %o = linattn.attention %fq, %fk, %k {normalize = #linattn.normalize<eps = 0.0>} : (tensor<1x2x?x6xf32>, tensor<1x2x?x6xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

func.func @mixed(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %w: tensor<6x4xf32>, %d: tensor<1x2x?x15xf32>) -> tensor<1x2x?x4xf32> {
  %fq = linattn.feature_map %q into(%d) {feature_map = #linattn.feature_map<taylor>} : (tensor<1x2x?x4xf32>, tensor<1x2x?x15xf32>) -> tensor<1x2x?x15xf32>
  %fk = linattn.feature_map %k into(%d) {feature_map = #linattn.feature_map<taylor, scale = 2.0>} : (tensor<1x2x?x4xf32>, tensor<1x2x?x15xf32>) -> tensor<1x2x?x15xf32>
  // expected-warning @+1 {{the denominator may vanish or turn negative}}
  %o = linattn.attention %fq, %fk, %k {normalize = #linattn.normalize<>} : (tensor<1x2x?x15xf32>, tensor<1x2x?x15xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

// The other ops that divide: scan, quadratic, and a state that is read.
func.func @scan(%q: tensor<1x2x?x4xf32>, %s: tensor<1x2x4x4xf32>, %z: tensor<1x2x4xf32>) -> tensor<1x2x?x4xf32> {
  // expected-warning @+1 {{the denominator may vanish or turn negative}}
  %r:3 = linattn.scan %q, %q, %q into(%q) init(%s) normalizer(%z) {normalize = #linattn.normalize<>} : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4xf32>) -> (tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4xf32>)
  return %r#0 : tensor<1x2x?x4xf32>
}

func.func @quadratic(%q: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  // expected-warning @+1 {{the denominator may vanish or turn negative}}
  %r = linattn.quadratic %q, %q, %q into(%q) {normalize = #linattn.normalize<>} : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %r : tensor<1x2x?x4xf32>
}

func.func @read(%q: tensor<1x2x?x4xf32>, %s: tensor<1x2x4x4xf32>, %z: tensor<1x2x4xf32>) -> tensor<1x2x?x4xf32> {
  // expected-warning @+1 {{the denominator may vanish or turn negative}}
  %r = linattn.read %q, %s normalizer(%z) into(%q) {normalize = #linattn.normalize<>} : (tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %r : tensor<1x2x?x4xf32>
}
