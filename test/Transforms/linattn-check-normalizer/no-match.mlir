// RUN: linattn-opt %s --linattn-check-normalizer=as-warnings --verify-diagnostics

// Nothing is said of these.

//===----------------------------------------------------------------------===//
// Positive maps, and maps that are not negative beside an eps or a floor.
//===----------------------------------------------------------------------===//

func.func @elu1(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  %o = linattn.attention %q, %k, %k {feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 0.0>} : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

func.func @softmax_kernel(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  %o = linattn.attention %q, %k, %k {feature_map = #linattn.feature_map<softmax_kernel>, normalize = #linattn.normalize<eps = 0.0>} : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

func.func @exp(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  %o = linattn.attention %q, %k, %k {feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<eps = 0.0>} : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

func.func @relu(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  %o = linattn.attention %q, %k, %k {feature_map = #linattn.feature_map<relu>, normalize = #linattn.normalize<>} : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

func.func @floor(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  %o = linattn.attention %q, %k, %k {normalize = #linattn.normalize<floor = 1.0e-3>} : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

func.func @unnormalized(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  %o = linattn.attention %q, %k, %k {scale = 0.5} : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

func.func @softmax_weights(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  %o = linattn.attention %q, %k, %k weights(softmax) {causal} : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

//===----------------------------------------------------------------------===//
// Regions, by intervals.
//===----------------------------------------------------------------------===//

func.func @softplus(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  %o = linattn.attention %q, %k, %k {feature_map = #linattn.feature_map<region>, normalize = #linattn.normalize<eps = 0.0>} phi {
  ^bb0(%x: f32):
    %one = arith.constant 1.0 : f32
    %e = math.exp %x : f32
    %l = math.log1p %e : f32
    linattn.yield %l : f32
  } : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

func.func @sigmoid(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  %o = linattn.attention %q, %k, %k {feature_map = #linattn.feature_map<region>, normalize = #linattn.normalize<eps = 0.0>} phi {
  ^bb0(%x: f32):
    %one = arith.constant 1.0 : f32
    %n = arith.negf %x : f32
    %e = math.exp %n : f32
    %d = arith.addf %e, %one : f32
    %y = arith.divf %one, %d : f32
    linattn.yield %y : f32
  } : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

func.func @elu1_written_out(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  %o = linattn.attention %q, %k, %k {feature_map = #linattn.feature_map<region>, normalize = #linattn.normalize<eps = 0.0>} phi {
  ^bb0(%x: f32):
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %p = arith.cmpf ogt, %x, %zero : f32
    %l = arith.addf %x, %one : f32
    %e = math.exp %x : f32
    %y = arith.select %p, %l, %e : f32
    linattn.yield %y : f32
  } : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

func.func @square_plus(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  %o = linattn.attention %q, %k, %k {feature_map = #linattn.feature_map<region>, normalize = #linattn.normalize<eps = 0.0>} phi {
  ^bb0(%x: f32):
    %one = arith.constant 1.0 : f32
    %s = arith.mulf %x, %x : f32
    %y = arith.addf %s, %one : f32
    linattn.yield %y : f32
  } : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

func.func @tanh_plus(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  %o = linattn.attention %q, %k, %k {feature_map = #linattn.feature_map<region>, normalize = #linattn.normalize<>} phi {
  ^bb0(%x: f32):
    %one = arith.constant 1.0 : f32
    %t = math.tanh %x : f32
    %y = arith.addf %t, %one : f32
    linattn.yield %y : f32
  } : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

func.func @relu_written_out(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  %o = linattn.attention %q, %k, %k {feature_map = #linattn.feature_map<region>, normalize = #linattn.normalize<>} phi {
  ^bb0(%x: f32):
    %zero = arith.constant 0.0 : f32
    %y = arith.maximumf %x, %zero : f32
    linattn.yield %y : f32
  } : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

func.func @absolute(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  %o = linattn.attention %q, %k, %k {feature_map = #linattn.feature_map<region>, normalize = #linattn.normalize<>} phi {
  ^bb0(%x: f32):
    %y = math.absf %x : f32
    linattn.yield %y : f32
  } : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

func.func @root(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  %o = linattn.attention %q, %k, %k {feature_map = #linattn.feature_map<region>, normalize = #linattn.normalize<>} phi {
  ^bb0(%x: f32):
    %a = math.absf %x : f32
    %y = math.sqrt %a : f32
    linattn.yield %y : f32
  } : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

//===----------------------------------------------------------------------===//
// Maps of whole tokens: both sides count, and kernels may be positive though features are not.
//===----------------------------------------------------------------------===//

func.func @favor(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %w: tensor<6x4xf32>, %d: tensor<1x2x?x6xf32>) -> tensor<1x2x?x4xf32> {
  %fq = linattn.feature_map %q params(%w) into(%d) {feature_map = #linattn.feature_map<favor>} : (tensor<1x2x?x4xf32>, tensor<6x4xf32>, tensor<1x2x?x6xf32>) -> tensor<1x2x?x6xf32>
  %fk = linattn.feature_map %k params(%w) into(%d) {feature_map = #linattn.feature_map<favor>} : (tensor<1x2x?x4xf32>, tensor<6x4xf32>, tensor<1x2x?x6xf32>) -> tensor<1x2x?x6xf32>
  %o = linattn.attention %fq, %fk, %k {normalize = #linattn.normalize<eps = 0.0>} : (tensor<1x2x?x6xf32>, tensor<1x2x?x6xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

func.func @favor_log(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %w: tensor<6x4xf32>, %d: tensor<1x2x?x6xf32>) -> tensor<1x2x?x4xf32> {
  %fq = linattn.feature_map %q params(%w) into(%d) {feature_map = #linattn.feature_map<favor, log = true>} : (tensor<1x2x?x4xf32>, tensor<6x4xf32>, tensor<1x2x?x6xf32>) -> tensor<1x2x?x6xf32>
  %fk = linattn.feature_map %k params(%w) into(%d) {feature_map = #linattn.feature_map<favor, log = true>} : (tensor<1x2x?x4xf32>, tensor<6x4xf32>, tensor<1x2x?x6xf32>) -> tensor<1x2x?x6xf32>
  %o = linattn.attention %fq, %fk, %k {feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<eps = 0.0>} : (tensor<1x2x?x6xf32>, tensor<1x2x?x6xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

func.func @taylor(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %w: tensor<6x4xf32>, %d: tensor<1x2x?x15xf32>) -> tensor<1x2x?x4xf32> {
  %fq = linattn.feature_map %q into(%d) {feature_map = #linattn.feature_map<taylor>} : (tensor<1x2x?x4xf32>, tensor<1x2x?x15xf32>) -> tensor<1x2x?x15xf32>
  %fk = linattn.feature_map %k into(%d) {feature_map = #linattn.feature_map<taylor>} : (tensor<1x2x?x4xf32>, tensor<1x2x?x15xf32>) -> tensor<1x2x?x15xf32>
  %o = linattn.attention %fq, %fk, %k {normalize = #linattn.normalize<eps = 0.0>} : (tensor<1x2x?x15xf32>, tensor<1x2x?x15xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

func.func @dpfp(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %w: tensor<6x4xf32>, %d: tensor<1x2x?x8xf32>) -> tensor<1x2x?x4xf32> {
  %fq = linattn.feature_map %q into(%d) {feature_map = #linattn.feature_map<dpfp>} : (tensor<1x2x?x4xf32>, tensor<1x2x?x8xf32>) -> tensor<1x2x?x8xf32>
  %fk = linattn.feature_map %k into(%d) {feature_map = #linattn.feature_map<dpfp>} : (tensor<1x2x?x4xf32>, tensor<1x2x?x8xf32>) -> tensor<1x2x?x8xf32>
  %o = linattn.attention %fq, %fk, %k {normalize = #linattn.normalize<>} : (tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}

func.func @t2r(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %w: tensor<6x4xf32>, %d: tensor<1x2x?x6xf32>) -> tensor<1x2x?x4xf32> {
  %fq = linattn.feature_map %q params(%w) into(%d) {feature_map = #linattn.feature_map<t2r>} : (tensor<1x2x?x4xf32>, tensor<6x4xf32>, tensor<1x2x?x6xf32>) -> tensor<1x2x?x6xf32>
  %fk = linattn.feature_map %k params(%w) into(%d) {feature_map = #linattn.feature_map<favor>} : (tensor<1x2x?x4xf32>, tensor<6x4xf32>, tensor<1x2x?x6xf32>) -> tensor<1x2x?x6xf32>
  %o = linattn.attention %fq, %fk, %k {normalize = #linattn.normalize<>} : (tensor<1x2x?x6xf32>, tensor<1x2x?x6xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}
