// RUN: linattn-opt %s --split-input-file --verify-diagnostics

// linattn.feature_map with maps of whole tokens: one function per numbered
// constraint. (F1) on sizes and (F2) are in errors.mlir.

func.func @f1_wide(%x: tensor<2x3x5x8xf32>, %o: tensor<2x3x5x8xf64>) {
  // expected-error @+1 {{expected output to have element type 'f32', but got 'f64'}}
  %r = linattn.feature_map %x into(%o) {feature_map = #linattn.feature_map<relu>} : (tensor<2x3x5x8xf32>, tensor<2x3x5x8xf64>) -> tensor<2x3x5x8xf64>
  return
}

// -----

func.func @f1_narrow(%x: tensor<2x3x5x8xf16>, %o: tensor<2x3x5x8xbf16>) {
  // expected-error @+1 {{expected output to have element type 'f16' or 'f32', but got 'bf16'}}
  %r = linattn.feature_map %x into(%o) {feature_map = #linattn.feature_map<relu>} : (tensor<2x3x5x8xf16>, tensor<2x3x5x8xbf16>) -> tensor<2x3x5x8xbf16>
  return
}

// -----

func.func @f3_rows(%x: tensor<2x3x5x8xf32>, %w: tensor<6x8xf32>, %o: tensor<2x3x5x8xf32>) {
  // expected-error @+1 {{expected output to have the features that favor makes of the rows of W, 6, but got 8}}
  %r = linattn.feature_map %x params(%w) into(%o) {feature_map = #linattn.feature_map<favor>} : (tensor<2x3x5x8xf32>, tensor<6x8xf32>, tensor<2x3x5x8xf32>) -> tensor<2x3x5x8xf32>
  return
}

// -----

func.func @f3_twice(%x: tensor<2x3x5x8xf32>, %w: tensor<6x8xf32>, %o: tensor<2x3x5x6xf32>) {
  // expected-error @+1 {{expected output to have the features that random_fourier makes of the rows of W, 6, but got 6}}
  %r = linattn.feature_map %x params(%w) into(%o) {feature_map = #linattn.feature_map<random_fourier>} : (tensor<2x3x5x8xf32>, tensor<6x8xf32>, tensor<2x3x5x6xf32>) -> tensor<2x3x5x6xf32>
  return
}

// -----

func.func @f3_taylor(%x: tensor<2x3x5x8xf32>, %o: tensor<2x3x5x44xf32>) {
  // expected-error @+1 {{expected output to have the features that taylor makes of the head size of input, 8, but got 44}}
  %r = linattn.feature_map %x into(%o) {feature_map = #linattn.feature_map<taylor>} : (tensor<2x3x5x8xf32>, tensor<2x3x5x44xf32>) -> tensor<2x3x5x44xf32>
  return
}

// -----

func.func @f3_dpfp(%x: tensor<2x3x5x8xf32>, %o: tensor<2x3x5x16xf32>) {
  // expected-error @+1 {{expected output to have the features that dpfp makes of the head size of input, 8, but got 16}}
  %r = linattn.feature_map %x into(%o) {feature_map = #linattn.feature_map<dpfp, shifts = 2>} : (tensor<2x3x5x8xf32>, tensor<2x3x5x16xf32>) -> tensor<2x3x5x16xf32>
  return
}

// -----

func.func @f3_softmax(%x: tensor<2x3x5x8xf32>, %o: tensor<2x3x5x9xf32>) {
  // expected-error @+1 {{expected input and output to have the same head size, but got 8 and 9}}
  %r = linattn.feature_map %x into(%o) {feature_map = #linattn.feature_map<softmax>} : (tensor<2x3x5x8xf32>, tensor<2x3x5x9xf32>) -> tensor<2x3x5x9xf32>
  return
}

// -----

func.func @f4_missing(%x: tensor<2x3x5x8xf32>, %o: tensor<2x3x5x6xf32>) {
  // expected-error @+1 {{expected favor to have params W, but got 0}}
  %r = linattn.feature_map %x into(%o) {feature_map = #linattn.feature_map<favor>} : (tensor<2x3x5x8xf32>, tensor<2x3x5x6xf32>) -> tensor<2x3x5x6xf32>
  return
}

// -----

func.func @f4_missing_second(%x: tensor<2x3x5x8xf32>, %w: tensor<6x8xf32>, %o: tensor<2x3x5x6xf32>) {
  // expected-error @+1 {{expected hadamard to have params W1, W2, but got 1}}
  %r = linattn.feature_map %x params(%w) into(%o) {feature_map = #linattn.feature_map<hadamard>} : (tensor<2x3x5x8xf32>, tensor<6x8xf32>, tensor<2x3x5x6xf32>) -> tensor<2x3x5x6xf32>
  return
}

// -----

func.func @f4_too_many(%x: tensor<2x3x5x8xf32>, %w: tensor<6x8xf32>, %w1: tensor<6x8xf32>, %w2: tensor<6x8xf32>, %o: tensor<2x3x5x6xf32>) {
  // expected-error @+1 {{expected t2r to have params W, b (optional), but got 3}}
  %r = linattn.feature_map %x params(%w, %w1, %w2) into(%o) {feature_map = #linattn.feature_map<t2r>} : (tensor<2x3x5x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>, tensor<2x3x5x6xf32>) -> tensor<2x3x5x6xf32>
  return
}

// -----

func.func @f4_none(%x: tensor<2x3x5x8xf32>, %w: tensor<6x8xf32>, %o: tensor<2x3x5x8xf32>) {
  // expected-error @+1 {{expected relu to have no params, but got 1}}
  %r = linattn.feature_map %x params(%w) into(%o) {feature_map = #linattn.feature_map<relu>} : (tensor<2x3x5x8xf32>, tensor<6x8xf32>, tensor<2x3x5x8xf32>) -> tensor<2x3x5x8xf32>
  return
}

// -----

func.func @f4_matrix_rank(%x: tensor<2x3x5x8xf32>, %w: tensor<8xf32>, %o: tensor<2x3x5x6xf32>) {
  // expected-error @+1 {{expected W to be [m, d] or [H, m, d], but got 'tensor<8xf32>'}}
  %r = linattn.feature_map %x params(%w) into(%o) {feature_map = #linattn.feature_map<favor>} : (tensor<2x3x5x8xf32>, tensor<8xf32>, tensor<2x3x5x6xf32>) -> tensor<2x3x5x6xf32>
  return
}

// -----

func.func @f4_vector_rank(%x: tensor<2x3x5x8xf32>, %g: tensor<8xf32>, %b: tensor<1x3x8xf32>, %o: tensor<2x3x5x36xf32>) {
  // expected-error @+1 {{expected beta to be [d] or [H, d], but got 'tensor<1x3x8xf32>'}}
  %r = linattn.feature_map %x params(%g, %b) into(%o) {feature_map = #linattn.feature_map<rebased>} : (tensor<2x3x5x8xf32>, tensor<8xf32>, tensor<1x3x8xf32>, tensor<2x3x5x36xf32>) -> tensor<2x3x5x36xf32>
  return
}

// -----

func.func @f4_columns(%x: tensor<2x3x5x8xf32>, %w: tensor<6x9xf32>, %o: tensor<2x3x5x6xf32>) {
  // expected-error @+1 {{expected W and input to have the same head size, but got 9 and 8}}
  %r = linattn.feature_map %x params(%w) into(%o) {feature_map = #linattn.feature_map<favor>} : (tensor<2x3x5x8xf32>, tensor<6x9xf32>, tensor<2x3x5x6xf32>) -> tensor<2x3x5x6xf32>
  return
}

// -----

func.func @f4_square(%x: tensor<2x3x5x8xf32>, %w: tensor<6x8xf32>, %o: tensor<2x3x5x16xf32>) {
  // expected-error @+1 {{expected W and input to have the same head size, but got 6 and 8}}
  %r = linattn.feature_map %x params(%w) into(%o) {feature_map = #linattn.feature_map<hedgehog>} : (tensor<2x3x5x8xf32>, tensor<6x8xf32>, tensor<2x3x5x16xf32>) -> tensor<2x3x5x16xf32>
  return
}

// -----

func.func @f4_rows(%x: tensor<2x3x5x8xf32>, %w: tensor<6x8xf32>, %w1: tensor<7x8xf32>, %o: tensor<2x3x5x6xf32>) {
  // expected-error @+1 {{expected W1 and W2 to have the same number of rows, but got 6 and 7}}
  %r = linattn.feature_map %x params(%w, %w1) into(%o) {feature_map = #linattn.feature_map<hadamard>} : (tensor<2x3x5x8xf32>, tensor<6x8xf32>, tensor<7x8xf32>, tensor<2x3x5x6xf32>) -> tensor<2x3x5x6xf32>
  return
}

// -----

func.func @f4_bias(%x: tensor<2x3x5x8xf32>, %w: tensor<6x8xf32>, %b: tensor<8xf32>, %o: tensor<2x3x5x6xf32>) {
  // expected-error @+1 {{expected W and b to have the same number of rows, but got 6 and 8}}
  %r = linattn.feature_map %x params(%w, %b) into(%o) {feature_map = #linattn.feature_map<t2r>} : (tensor<2x3x5x8xf32>, tensor<6x8xf32>, tensor<8xf32>, tensor<2x3x5x6xf32>) -> tensor<2x3x5x6xf32>
  return
}

// -----

func.func @f4_norm(%x: tensor<2x3x5x8xf32>, %g: tensor<7xf32>, %b: tensor<8xf32>, %o: tensor<2x3x5x36xf32>) {
  // expected-error @+1 {{expected gamma and input to have the same head size, but got 7 and 8}}
  %r = linattn.feature_map %x params(%g, %b) into(%o) {feature_map = #linattn.feature_map<rebased>} : (tensor<2x3x5x8xf32>, tensor<7xf32>, tensor<8xf32>, tensor<2x3x5x36xf32>) -> tensor<2x3x5x36xf32>
  return
}

// -----

func.func @f4_heads(%x: tensor<2x3x5x8xf32>, %w: tensor<4x6x8xf32>, %o: tensor<2x3x5x6xf32>) {
  // expected-error @+1 {{expected W and input to have the same head count, but got 4 and 3}}
  %r = linattn.feature_map %x params(%w) into(%o) {feature_map = #linattn.feature_map<favor>} : (tensor<2x3x5x8xf32>, tensor<4x6x8xf32>, tensor<2x3x5x6xf32>) -> tensor<2x3x5x6xf32>
  return
}

// -----

func.func @f5_missing(%x: tensor<2x3x5x8xf32>, %o: tensor<2x3x5x16xf32>) {
  // expected-error @+1 {{expected positions exactly with feature map cosformer, but got none}}
  %r = linattn.feature_map %x into(%o) {feature_map = #linattn.feature_map<cosformer, max_length = 9>} : (tensor<2x3x5x8xf32>, tensor<2x3x5x16xf32>) -> tensor<2x3x5x16xf32>
  return
}

// -----

func.func @f5_unused(%x: tensor<2x3x5x8xf32>, %p: tensor<5xi32>, %o: tensor<2x3x5x8xf32>) {
  // expected-error @+1 {{expected positions exactly with feature map cosformer, but got some with softmax}}
  %r = linattn.feature_map %x positions(%p) into(%o) {feature_map = #linattn.feature_map<softmax>} : (tensor<2x3x5x8xf32>, tensor<5xi32>, tensor<2x3x5x8xf32>) -> tensor<2x3x5x8xf32>
  return
}

// -----

func.func @f5_tokens(%x: tensor<2x3x5x8xf32>, %p: tensor<4xi32>, %o: tensor<2x3x5x16xf32>) {
  // expected-error @+1 {{expected positions and input to have the same sequence length, but got 4 and 5}}
  %r = linattn.feature_map %x positions(%p) into(%o) {feature_map = #linattn.feature_map<cosformer, max_length = 9>} : (tensor<2x3x5x8xf32>, tensor<4xi32>, tensor<2x3x5x16xf32>) -> tensor<2x3x5x16xf32>
  return
}

// -----

func.func @f5_batch(%x: tensor<2x3x5x8xf32>, %p: tensor<3x5xi32>, %o: tensor<2x3x5x16xf32>) {
  // expected-error @+1 {{expected positions and input to have the same batch size, but got 3 and 2}}
  %r = linattn.feature_map %x positions(%p) into(%o) {feature_map = #linattn.feature_map<cosformer, max_length = 9>} : (tensor<2x3x5x8xf32>, tensor<3x5xi32>, tensor<2x3x5x16xf32>) -> tensor<2x3x5x16xf32>
  return
}

// -----

// expected-error @+1 {{expected log only with favor, favor_hyperbolic or hedgehog_exp, but got taylor}}
func.func private @attribute_log() attributes {a = #linattn.feature_map<taylor, log = true>}

// -----

// expected-error @+1 {{expected shifts only with dpfp, but got taylor}}
func.func private @attribute_shifts() attributes {a = #linattn.feature_map<taylor, shifts = 2>}

// -----

// expected-error @+1 {{expected shifts from 1 to 1048576, but got 0}}
func.func private @attribute_shifts_range() attributes {a = #linattn.feature_map<dpfp, shifts = 0>}

// -----

// expected-error @+1 {{expected max_length only with cosformer, but got dpfp}}
func.func private @attribute_max_length() attributes {a = #linattn.feature_map<dpfp, max_length = 2>}

// -----

// expected-error @+1 {{expected cosformer with a max_length from 1 to 1099511627776, but got 0}}
func.func private @attribute_max_length_missing() attributes {a = #linattn.feature_map<cosformer>}

// -----

// expected-error @+1 {{expected scale only with a map of whole tokens, but got relu}}
func.func private @attribute_scale() attributes {a = #linattn.feature_map<relu, scale = 2.0>}

// -----

// expected-error @+1 {{expected scale to be finite, but got}}
func.func private @attribute_scale_finite() attributes {a = #linattn.feature_map<favor, scale = 0x7FF0000000000000 : f64>}

// -----

// expected-error @+1 {{expected eps only with l2norm, sum_norm or rebased, but got favor}}
func.func private @attribute_eps() attributes {a = #linattn.feature_map<favor, eps = 1.0>}

// -----

// expected-error @+1 {{expected eps to be finite and not negative, but got -1}}
func.func private @attribute_eps_negative() attributes {a = #linattn.feature_map<l2norm, eps = -1.0>}

// -----

// As (A8): a consumer takes no map of whole tokens.
func.func @attention_a8(%q: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expected feature map taylor only in linattn.feature_map, since it needs whole tokens}}
  %r = linattn.attention %q, %q, %q {feature_map = #linattn.feature_map<taylor>} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return
}

// -----

func.func @scan_s10(%q: tensor<2x4x6x8xf32>, %s: tensor<2x4x8x8xf32>) {
  // expected-error @+1 {{expected feature map l2norm only in linattn.feature_map, since it needs whole tokens}}
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) {feature_map = #linattn.feature_map<l2norm>} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x8x8xf32>)
  return
}
