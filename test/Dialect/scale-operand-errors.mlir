// RUN: linattn-opt %s --split-input-file --verify-diagnostics

func.func @attention_a14(%q: tensor<2x4x6x8xf32>, %scale: f64) {
  // expected-error @+1 {{expected the scale as an attribute or as an operand, but got both}}
  %r = linattn.attention %q, %q, %q scale(%scale) {scale = 2.0}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, f64) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @quadratic_a14(%q: tensor<2x4x?x8xf32>, %scale: f64) {
  // expected-error @+1 {{expected the scale as an attribute or as an operand, but got both}}
  %r = linattn.quadratic %q, %q, %q scale(%scale) into(%q) {scale = 1.0}
    : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, f64, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return
}

// -----

func.func @scan_s33(%q: tensor<2x4x6x8xf32>, %scale: f64, %s: tensor<2x4x8x8xf32>) {
  // expected-error @+1 {{expected the scale as an attribute or as an operand, but got both}}
  %r:2 = linattn.scan %q, %q, %q scale(%scale) into(%q) init(%s) {scale = 2.0}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, f64, tensor<2x4x6x8xf32>, tensor<2x4x8x8xf32>)
    -> (tensor<2x4x6x8xf32>, tensor<2x4x8x8xf32>)
  return
}

// -----

func.func @read_r10(%q: tensor<2x4x6x8xf32>, %s: tensor<2x4x8x8xf32>, %scale: f64) {
  // expected-error @+1 {{expected the scale as an attribute or as an operand, but got both}}
  %r = linattn.read %q, %s scale(%scale) into(%q) {scale = 2.0}
    : (tensor<2x4x6x8xf32>, tensor<2x4x8x8xf32>, f64, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @pack_cp7(%x: tensor<2x4x6x8xf32>, %scale: f64) {
  // expected-error @+1 {{expected the scale as an attribute or as an operand, but got both}}
  %r = linattn.chunk.pack %x scale(%scale) into(%x) {scale = 2.0}
    : (tensor<2x4x6x8xf32>, f64, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @scale_type(%q: tensor<2x4x6x8xf32>, %scale: f32) {
  // expected-error @+1 {{operand #3 must be 64-bit float, but got 'f32'}}
  %r = linattn.attention %q, %q, %q scale(%scale)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, f32) -> tensor<2x4x6x8xf32>
  return
}
