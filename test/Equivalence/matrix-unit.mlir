// RUN: linattn-run %s %s --all --open-size=85 --matrix-unit=emulated --compare=exact
// RUN: linattn-run %s %s --all --open-size=109 --matrix-unit=emulated --compare=exact

// Scans of 16-bit tokens in the tiles of an emulated matrix unit compute what
// scans do, and exactly that in prime fields. Errors are those of
// MatrixUnitTest.cpp.

// Whole chunks of 64, and a chunk of 16.
func.func @additive(%q: tensor<1x2x80x32xbf16>, %k: tensor<1x2x80x32xbf16>, %v: tensor<1x2x80x48xbf16>, %o: tensor<1x2x80x48xbf16>, %s: tensor<1x2x32x48xf32>) -> (tensor<1x2x80x48xbf16>, tensor<1x2x32x48xf32>) {
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s)
    : (tensor<1x2x80x32xbf16>, tensor<1x2x80x32xbf16>, tensor<1x2x80x48xbf16>, tensor<1x2x80x48xbf16>, tensor<1x2x32x48xf32>) -> (tensor<1x2x80x48xbf16>, tensor<1x2x32x48xf32>)
  return %r#0, %r#1 : tensor<1x2x80x48xbf16>, tensor<1x2x32x48xf32>
}

// Of any number of tokens, backwards, with a mask and a scale.
func.func @backwards(%q: tensor<1x2x?x32xbf16>, %k: tensor<1x2x?x32xbf16>, %v: tensor<1x2x?x16xbf16>, %mk: tensor<1x?xi1>, %o: tensor<1x2x?x16xbf16>, %s: tensor<1x2x32x16xf32>) -> (tensor<1x2x?x16xbf16>, tensor<1x2x32x16xf32>) {
  %r:2 = linattn.scan %q, %k, %v mask(%mk) into(%o) init(%s) {reverse, scale = 0.3}
    : (tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x?x16xbf16>, tensor<1x?xi1>, tensor<1x2x?x16xbf16>, tensor<1x2x32x16xf32>) -> (tensor<1x2x?x16xbf16>, tensor<1x2x32x16xf32>)
  return %r#0, %r#1 : tensor<1x2x?x16xbf16>, tensor<1x2x32x16xf32>
}

// A decay per head, tokens of f16.
func.func @retention(%q: tensor<1x2x?x128xf16>, %k: tensor<1x2x?x128xf16>, %v: tensor<1x2x?x32xf16>, %g: tensor<2xf32>, %o: tensor<1x2x?x32xf16>, %s: tensor<1x2x128x32xf32>) -> (tensor<1x2x?x32xf16>, tensor<1x2x128x32xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) into(%o) init(%s)
    : (tensor<1x2x?x128xf16>, tensor<1x2x?x128xf16>, tensor<1x2x?x32xf16>, tensor<2xf32>, tensor<1x2x?x32xf16>, tensor<1x2x128x32xf32>) -> (tensor<1x2x?x32xf16>, tensor<1x2x128x32xf32>)
  return %r#0, %r#1 : tensor<1x2x?x32xf16>, tensor<1x2x128x32xf32>
}

// A decay per token, read before the own write.
func.func @scalar_decay(%q: tensor<1x2x96x32xbf16>, %k: tensor<1x2x96x32xbf16>, %v: tensor<1x2x96x32xbf16>, %g: tensor<1x2x96xf32>, %o: tensor<1x2x96x32xbf16>, %s: tensor<1x2x32x32xf32>) -> (tensor<1x2x96x32xbf16>, tensor<1x2x32x32xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) readout(exclusive) into(%o) init(%s)
    : (tensor<1x2x96x32xbf16>, tensor<1x2x96x32xbf16>, tensor<1x2x96x32xbf16>, tensor<1x2x96xf32>, tensor<1x2x96x32xbf16>, tensor<1x2x32x32xf32>) -> (tensor<1x2x96x32xbf16>, tensor<1x2x32x32xf32>)
  return %r#0, %r#1 : tensor<1x2x96x32xbf16>, tensor<1x2x32x32xf32>
}

// The gated delta rule, of an error that meets the decayed state.
func.func @gated_delta(%q: tensor<1x2x48x64xbf16>, %k: tensor<1x2x48x64xbf16>, %v: tensor<1x2x48x32xbf16>, %g: tensor<1x2x48xf32>, %b: tensor<1x2x48xf32>, %o: tensor<1x2x48x32xbf16>, %s: tensor<1x2x64x32xf32>) -> (tensor<1x2x48x32xbf16>, tensor<1x2x64x32xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) beta(%b) update(delta) into(%o) init(%s)
    : (tensor<1x2x48x64xbf16>, tensor<1x2x48x64xbf16>, tensor<1x2x48x32xbf16>, tensor<1x2x48xf32>, tensor<1x2x48xf32>, tensor<1x2x48x32xbf16>, tensor<1x2x64x32xf32>) -> (tensor<1x2x48x32xbf16>, tensor<1x2x64x32xf32>)
  return %r#0, %r#1 : tensor<1x2x48x32xbf16>, tensor<1x2x64x32xf32>
}

// A last state that is not read, of any number of tokens: from a state, and from zeros.
func.func @unread_state(%q: tensor<1x2x?x64xbf16>, %k: tensor<1x2x?x64xbf16>, %v: tensor<1x2x?x64xbf16>, %g: tensor<1x2x?xf32>, %b: tensor<1x2x?xf32>, %o: tensor<1x2x?x64xbf16>, %s: tensor<1x2x64x64xf32>) -> tensor<1x2x?x64xbf16> {
  %r:2 = linattn.scan %q, %k, %v decay(%g) beta(%b) update(delta) into(%o) init(%s)
    : (tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?xf32>, tensor<1x2x?xf32>, tensor<1x2x?x64xbf16>, tensor<1x2x64x64xf32>) -> (tensor<1x2x?x64xbf16>, tensor<1x2x64x64xf32>)
  return %r#0 : tensor<1x2x?x64xbf16>
}
func.func @from_zeros(%q: tensor<1x2x?x64xbf16>, %k: tensor<1x2x?x64xbf16>, %v: tensor<1x2x?x64xbf16>, %o: tensor<1x2x?x64xbf16>) -> tensor<1x2x?x64xbf16> {
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2x64x64xf32>
  %s = linalg.fill ins(%c : f32) outs(%e : tensor<1x2x64x64xf32>) -> tensor<1x2x64x64xf32>
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s)
    : (tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x64x64xf32>) -> (tensor<1x2x?x64xbf16>, tensor<1x2x64x64xf32>)
  return %r#0 : tensor<1x2x?x64xbf16>
}

// A decay per channel: scores within 16 tokens are vectors.
func.func @channels(%q: tensor<1x2x80x128xbf16>, %k: tensor<1x2x80x128xbf16>, %v: tensor<1x2x80x32xbf16>, %g: tensor<1x2x80x128xf32>, %o: tensor<1x2x80x32xbf16>, %s: tensor<1x2x128x32xf32>) -> (tensor<1x2x80x32xbf16>, tensor<1x2x128x32xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) into(%o) init(%s)
    : (tensor<1x2x80x128xbf16>, tensor<1x2x80x128xbf16>, tensor<1x2x80x32xbf16>, tensor<1x2x80x128xf32>, tensor<1x2x80x32xbf16>, tensor<1x2x128x32xf32>) -> (tensor<1x2x80x32xbf16>, tensor<1x2x128x32xf32>)
  return %r#0, %r#1 : tensor<1x2x80x32xbf16>, tensor<1x2x128x32xf32>
}

// KDA, with a half step of features.
func.func @kda(%q: tensor<1x2x64x144xbf16>, %k: tensor<1x2x64x144xbf16>, %v: tensor<1x2x64x16xbf16>, %g: tensor<1x2x64x144xf32>, %b: tensor<1x2x64xf32>, %o: tensor<1x2x64x16xbf16>, %s: tensor<1x2x144x16xf32>) -> (tensor<1x2x64x16xbf16>, tensor<1x2x144x16xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) beta(%b) update(delta) into(%o) init(%s)
    : (tensor<1x2x64x144xbf16>, tensor<1x2x64x144xbf16>, tensor<1x2x64x16xbf16>, tensor<1x2x64x144xf32>, tensor<1x2x64xf32>, tensor<1x2x64x16xbf16>, tensor<1x2x144x16xf32>) -> (tensor<1x2x64x16xbf16>, tensor<1x2x144x16xf32>)
  return %r#0, %r#1 : tensor<1x2x64x16xbf16>, tensor<1x2x144x16xf32>
}

// A decay per channel that a token's own row is read before.
func.func @before(%q: tensor<1x1x64x128xbf16>, %k: tensor<1x1x64x128xbf16>, %v: tensor<1x1x64x16xbf16>, %g: tensor<1x1x64x128xf32>, %o: tensor<1x1x64x16xbf16>, %s: tensor<1x1x128x16xf32>) -> (tensor<1x1x64x16xbf16>, tensor<1x1x128x16xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) readout(exclusive) into(%o) init(%s)
    : (tensor<1x1x64x128xbf16>, tensor<1x1x64x128xbf16>, tensor<1x1x64x16xbf16>, tensor<1x1x64x128xf32>, tensor<1x1x64x16xbf16>, tensor<1x1x128x16xf32>) -> (tensor<1x1x64x16xbf16>, tensor<1x1x128x16xf32>)
  return %r#0, %r#1 : tensor<1x1x64x16xbf16>, tensor<1x1x128x16xf32>
}

// A transition of its own, and two writes.
func.func @dplr(%q: tensor<1x1x40x16xbf16>, %k: tensor<1x1x40x16xbf16>, %v: tensor<1x1x40x32xbf16>, %g: tensor<1x1x40xf32>, %a: tensor<1x1x40x16xbf16>, %b: tensor<1x1x40x16xbf16>, %o: tensor<1x1x40x32xbf16>, %s: tensor<1x1x16x32xf32>) -> (tensor<1x1x40x32xbf16>, tensor<1x1x16x32xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) a(%a) b(%b) update(dplr) into(%o) init(%s)
    : (tensor<1x1x40x16xbf16>, tensor<1x1x40x16xbf16>, tensor<1x1x40x32xbf16>, tensor<1x1x40xf32>, tensor<1x1x40x16xbf16>, tensor<1x1x40x16xbf16>, tensor<1x1x40x32xbf16>, tensor<1x1x16x32xf32>) -> (tensor<1x1x40x32xbf16>, tensor<1x1x16x32xf32>)
  return %r#0, %r#1 : tensor<1x1x40x32xbf16>, tensor<1x1x16x32xf32>
}

// Two heads of queries to a state, and an empty sequence between two others.
func.func @packed(%q: tensor<1x4x84x32xbf16>, %k: tensor<1x2x84x32xbf16>, %v: tensor<1x2x84x16xbf16>, %g: tensor<1x2x84xf32>, %o: tensor<1x4x84x16xbf16>, %s: tensor<3x2x32x16xf32>) -> (tensor<1x4x84x16xbf16>, tensor<3x2x32x16xf32>) {
  %offsets = arith.constant dense<[0, 18, 18, 84]> : tensor<4xi64>
  %r:2 = linattn.scan %q, %k, %v decay(%g) cu_seqlens(%offsets) into(%o) init(%s) {reverse}
    : (tensor<1x4x84x32xbf16>, tensor<1x2x84x32xbf16>, tensor<1x2x84x16xbf16>, tensor<1x2x84xf32>, tensor<4xi64>, tensor<1x4x84x16xbf16>, tensor<3x2x32x16xf32>) -> (tensor<1x4x84x16xbf16>, tensor<3x2x32x16xf32>)
  return %r#0, %r#1 : tensor<1x4x84x16xbf16>, tensor<3x2x32x16xf32>
}

// Attention without a mask: all keys, and then queries of another number.
func.func @halves(%q: tensor<1x4x32x32xbf16>, %k: tensor<1x2x64x32xbf16>, %v: tensor<1x2x64x16xbf16>, %mk: tensor<1x64xi1>, %o: tensor<1x4x32x16xbf16>, %s: tensor<1x2x32x16xf32>) -> (tensor<1x4x32x16xbf16>, tensor<1x2x32x16xf32>) {
  %S = linattn.state %k, %v mask(%mk) init(%s) : (tensor<1x2x64x32xbf16>, tensor<1x2x64x16xbf16>, tensor<1x64xi1>, tensor<1x2x32x16xf32>) -> tensor<1x2x32x16xf32>
  %r = linattn.read %q, %S into(%o) {scale = 0.3} : (tensor<1x4x32x32xbf16>, tensor<1x2x32x16xf32>, tensor<1x4x32x16xbf16>) -> tensor<1x4x32x16xbf16>
  return %r, %S : tensor<1x4x32x16xbf16>, tensor<1x2x32x16xf32>
}

// A normaliser and a map that keeps elements; a map that needs summands, of any number of tokens; both halves of attention without a mask.
func.func @normalized(%q: tensor<1x4x80x32xbf16>, %k: tensor<1x2x80x32xbf16>, %v: tensor<1x2x80x16xbf16>, %mk: tensor<1x80xi1>, %o: tensor<1x4x80x16xbf16>, %s: tensor<1x2x32x16xf32>, %z: tensor<1x2x32xf32>) -> (tensor<1x4x80x16xbf16>, tensor<1x2x32x16xf32>, tensor<1x2x32xf32>) {
  %r:3 = linattn.scan %q, %k, %v mask(%mk) into(%o) init(%s) normalizer(%z) {feature_map = #linattn.feature_map<relu>, normalize = #linattn.normalize<eps = 1.0e-6>, scale = 0.3}
    : (tensor<1x4x80x32xbf16>, tensor<1x2x80x32xbf16>, tensor<1x2x80x16xbf16>, tensor<1x80xi1>, tensor<1x4x80x16xbf16>, tensor<1x2x32x16xf32>, tensor<1x2x32xf32>) -> (tensor<1x4x80x16xbf16>, tensor<1x2x32x16xf32>, tensor<1x2x32xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x4x80x16xbf16>, tensor<1x2x32x16xf32>, tensor<1x2x32xf32>
}
func.func @mapped(%q: tensor<1x1x?x128xbf16>, %k: tensor<1x1x?x128xbf16>, %v: tensor<1x1x?x16xbf16>, %g: tensor<1x1x?xf32>, %o: tensor<1x1x?x16xbf16>, %s: tensor<1x1x128x16xf32>, %z: tensor<1x1x128xf32>) -> (tensor<1x1x?x16xbf16>, tensor<1x1x128x16xf32>, tensor<1x1x128xf32>) {
  %r:3 = linattn.scan %q, %k, %v decay(%g) into(%o) init(%s) normalizer(%z) {feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<abs_floor = 1.0>}
    : (tensor<1x1x?x128xbf16>, tensor<1x1x?x128xbf16>, tensor<1x1x?x16xbf16>, tensor<1x1x?xf32>, tensor<1x1x?x16xbf16>, tensor<1x1x128x16xf32>, tensor<1x1x128xf32>) -> (tensor<1x1x?x16xbf16>, tensor<1x1x128x16xf32>, tensor<1x1x128xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x1x?x16xbf16>, tensor<1x1x128x16xf32>, tensor<1x1x128xf32>
}
func.func @normalized_halves(%q: tensor<1x4x32x128xbf16>, %k: tensor<1x2x64x128xbf16>, %v: tensor<1x2x64x16xbf16>, %o: tensor<1x4x32x16xbf16>, %s: tensor<1x2x128x16xf32>, %z: tensor<1x2x128xf32>) -> tensor<1x4x32x16xbf16> {
  %S:2 = linattn.state %k, %v init(%s) normalizer(%z) {feature_map = #linattn.feature_map<elu1>} : (tensor<1x2x64x128xbf16>, tensor<1x2x64x16xbf16>, tensor<1x2x128x16xf32>, tensor<1x2x128xf32>) -> (tensor<1x2x128x16xf32>, tensor<1x2x128xf32>)
  %r = linattn.read %q, %S#0 normalizer(%S#1) into(%o) {feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.0e-6>} : (tensor<1x4x32x128xbf16>, tensor<1x2x128x16xf32>, tensor<1x2x128xf32>, tensor<1x4x32x16xbf16>) -> tensor<1x4x32x16xbf16>
  return %r : tensor<1x4x32x16xbf16>
}

// Rows that a norm adds to and weighs before they are rounded, of two heads of queries to a state, of any number of tokens, backwards.
func.func @normed(%q: tensor<1x4x?x32xbf16>, %k: tensor<1x2x?x32xbf16>, %v: tensor<1x2x?x48xbf16>, %u: tensor<1x4x?x48xbf16>, %w: tensor<4x48xf32>, %b: tensor<48xf32>, %o: tensor<1x4x?x48xbf16>, %s: tensor<1x2x32x48xf32>) -> (tensor<1x4x?x48xbf16>, tensor<1x2x32x48xf32>) {
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s) {reverse}
    : (tensor<1x4x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x?x48xbf16>, tensor<1x4x?x48xbf16>, tensor<1x2x32x48xf32>) -> (tensor<1x4x?x48xbf16>, tensor<1x2x32x48xf32>)
  %n = linattn.output_norm %r#0 kind(none) weight(%w) bias(%b) skip(%u) skip_weight(%w) into(%o)
    : (tensor<1x4x?x48xbf16>, tensor<4x48xf32>, tensor<48xf32>, tensor<1x4x?x48xbf16>, tensor<4x48xf32>, tensor<1x4x?x48xbf16>) -> tensor<1x4x?x48xbf16>
  return %n, %r#1 : tensor<1x4x?x48xbf16>, tensor<1x2x32x48xf32>
}

// Head sizes that zeros fill up to whole tiles: of tokens, outputs, states, a normaliser and gates of columns.
func.func @filled(%q: tensor<1x2x80x60xbf16>, %k: tensor<1x2x80x60xbf16>, %v: tensor<1x2x80x100xbf16>, %mk: tensor<1x80xi1>, %o: tensor<1x2x80x100xbf16>, %s: tensor<1x2x60x100xf32>, %z: tensor<1x2x60xf32>) -> (tensor<1x2x80x100xbf16>, tensor<1x2x60x100xf32>, tensor<1x2x60xf32>) {
  %r:3 = linattn.scan %q, %k, %v mask(%mk) into(%o) init(%s) normalizer(%z) {feature_map = #linattn.feature_map<relu>, normalize = #linattn.normalize<eps = 1.0e-6>}
    : (tensor<1x2x80x60xbf16>, tensor<1x2x80x60xbf16>, tensor<1x2x80x100xbf16>, tensor<1x80xi1>, tensor<1x2x80x100xbf16>, tensor<1x2x60x100xf32>, tensor<1x2x60xf32>) -> (tensor<1x2x80x100xbf16>, tensor<1x2x60x100xf32>, tensor<1x2x60xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x80x100xbf16>, tensor<1x2x60x100xf32>, tensor<1x2x60xf32>
}
func.func @filled_delta(%q: tensor<1x4x?x36xbf16>, %k: tensor<1x2x?x36xbf16>, %v: tensor<1x2x?x50xbf16>, %g: tensor<1x2x?xf32>, %b: tensor<1x2x?x50xf32>, %o: tensor<1x4x?x50xbf16>, %s: tensor<1x2x36x50xf32>) -> (tensor<1x4x?x50xbf16>, tensor<1x2x36x50xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) beta(%b) update(delta) into(%o) init(%s) {reverse}
    : (tensor<1x4x?x36xbf16>, tensor<1x2x?x36xbf16>, tensor<1x2x?x50xbf16>, tensor<1x2x?xf32>, tensor<1x2x?x50xf32>, tensor<1x4x?x50xbf16>, tensor<1x2x36x50xf32>) -> (tensor<1x4x?x50xbf16>, tensor<1x2x36x50xf32>)
  return %r#0, %r#1 : tensor<1x4x?x50xbf16>, tensor<1x2x36x50xf32>
}
func.func @filled_halves(%q: tensor<1x4x32x40xbf16>, %k: tensor<1x2x64x40xbf16>, %v: tensor<1x2x64x40xbf16>, %o: tensor<1x4x32x40xbf16>, %s: tensor<1x2x40x40xf32>) -> (tensor<1x4x32x40xbf16>, tensor<1x2x40x40xf32>) {
  %S = linattn.state %k, %v init(%s) : (tensor<1x2x64x40xbf16>, tensor<1x2x64x40xbf16>, tensor<1x2x40x40xf32>) -> tensor<1x2x40x40xf32>
  %r = linattn.read %q, %S into(%o) : (tensor<1x4x32x40xbf16>, tensor<1x2x40x40xf32>, tensor<1x4x32x40xbf16>) -> tensor<1x4x32x40xbf16>
  return %r, %S : tensor<1x4x32x40xbf16>, tensor<1x2x40x40xf32>
}
