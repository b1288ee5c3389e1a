// RUN: linattn-opt %s --split-input-file --verify-diagnostics

// One function per numbered constraint of the ops' descriptions: its name ends in
// the number.

//===----------------------------------------------------------------------===//
// feature_map, yield
//===----------------------------------------------------------------------===//

func.func @feature_map_f1_type(%x: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x8xf16>) {
  // expected-error @+1 {{expected output to have element type 'f32', but got 'f16'}}
  %r = linattn.feature_map %x into(%o)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf16>) -> tensor<2x4x6x8xf16>
  return
}

// -----

func.func @feature_map_f1_batch(%x: tensor<2x4x6x8xf32>, %o: tensor<3x4x6x8xf32>) {
  // expected-error @+1 {{expected input and output to have the same batch size, but got 2 and 3}}
  %r = linattn.feature_map %x into(%o)
    : (tensor<2x4x6x8xf32>, tensor<3x4x6x8xf32>) -> tensor<3x4x6x8xf32>
  return
}

// -----

func.func @feature_map_f1_heads(%x: tensor<2x4x6x8xf32>, %o: tensor<2x3x6x8xf32>) {
  // expected-error @+1 {{expected input and output to have the same head count, but got 4 and 3}}
  %r = linattn.feature_map %x into(%o)
    : (tensor<2x4x6x8xf32>, tensor<2x3x6x8xf32>) -> tensor<2x3x6x8xf32>
  return
}

// -----

func.func @feature_map_f1_tokens(%x: tensor<2x4x6x8xf32>, %o: tensor<2x4x3x8xf32>) {
  // expected-error @+1 {{expected input and output to have the same sequence length, but got 6 and 3}}
  %r = linattn.feature_map %x into(%o)
    : (tensor<2x4x6x8xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32>
  return
}

// -----

func.func @feature_map_f1_features(%x: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x3xf32>) {
  // expected-error @+1 {{expected input and output to have the same head size, but got 8 and 3}}
  %r = linattn.feature_map %x into(%o)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x3xf32>) -> tensor<2x4x6x3xf32>
  return
}

// -----

func.func @feature_map_f2_missing(%x: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected a phi region with feature map region, but got none}}
  %r = linattn.feature_map %x into(%o) {feature_map = #linattn.feature_map<region>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @feature_map_f2_unused(%x: tensor<2x4x6x8xf32>, %o: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected a phi region only with feature map region, but got feature map relu2}}
  %r = linattn.feature_map %x into(%o) {feature_map = #linattn.feature_map<relu2>} phi {
  ^bb0(%x1: f32):
    linattn.yield %x1 : f32
  }
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @yield_parent(%x: f32) {
  // expected-error @+1 {{expects parent op to be one of 'linattn.attention, linattn.quadratic, linattn.scan, linattn.state, linattn.read, linattn.feature_map'}}
  linattn.yield %x : f32
}

// -----

//===----------------------------------------------------------------------===//
// attributes
//===----------------------------------------------------------------------===//

// expected-error @+1 {{expected either eps or floor, but got both}}
func.func private @normalize_both() attributes {a = #linattn.normalize<eps = 1.0e-6, floor = 1.0>}

// -----

// expected-error @+1 {{expected eps to be finite and not negative, but got -1}}
func.func private @normalize_eps() attributes {a = #linattn.normalize<eps = -1.0>}

// -----

// expected-error @+1 {{expected eps to be finite and not negative, but got nan}}
func.func private @normalize_eps_nan() attributes {a = #linattn.normalize<eps = 0x7FF8000000000000 : f64>}

// -----

// expected-error @+1 {{expected floor to be finite and positive, but got 0}}
func.func private @normalize_floor() attributes {a = #linattn.normalize<floor = 0.0>}

// -----

// expected-error @+1 {{expected clamp to be finite and positive, but got -2.5}}
func.func private @normalize_clamp() attributes {a = #linattn.normalize<clamp = -2.5>}

// -----

// expected-error @+1 {{expected clamp to be finite and positive, but got INF}}
func.func private @normalize_clamp_infinite() attributes {a = #linattn.normalize<clamp = 0x7FF0000000000000 : f64>}

// -----

// expected-error @+1 {{expected chunk to be between 0 and 1048576, but got -1}}
func.func private @config_chunk() attributes {a = #linattn.config<form = chunk, chunk = -1>}

// -----

// expected-error @+1 {{expected rows to be between 0 and 64, but got 65}}
func.func private @config_rows() attributes {a = #linattn.config<form = state_tile, rows = 65>}

// -----

// expected-error @+1 {{expected cols to be between 0 and 256, but got 257}}
func.func private @config_cols() attributes {a = #linattn.config<form = state_tile, cols = 257>}

// -----

// expected-error @+1 {{expected block to be between 0 and 4096, but got 4097}}
func.func private @config_block() attributes {a = #linattn.config<form = state_tile, block = 4097>}

// -----

// expected-error @+1 {{expected whole to be between 0 and 256, but got 257}}
func.func private @config_whole() attributes {a = #linattn.config<form = chunk, whole = 257>}

// -----

// expected-error @+1 {{expected few to be between 0 and 64, but got 65}}
func.func private @config_few() attributes {a = #linattn.config<form = chunk, few = 65>}

// -----

// expected-error @+2 {{expected ::mlir::linattn::Form to be one of: auto, quadratic, token, state_tile, chunk}}
// expected-error @+1 {{failed to parse LinAttn_ConfigAttr parameter 'form'}}
func.func private @config_form() attributes {a = #linattn.config<form = spiral>}

// -----

// expected-error @+2 {{expected ::mlir::linattn::FeatureMapKind to be one of: identity, relu, relu2, elu1, softmax_kernel, exp, region, softmax, }}
// expected-error @+1 {{failed to parse LinAttn_FeatureMapAttr parameter 'kind'}}
func.func private @feature_map_kind() attributes {a = #linattn.feature_map<gelu>}
