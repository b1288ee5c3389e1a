// RUN: linattn-opt %s --linattn-expand-form=tasks --canonicalize --cse -o %t.mlir
// RUN: linattn-run %t.mlir --all --open-size=19 --compare=%s
// RUN: linattn-run %t.mlir %s --all --open-size=19 --compare=exact

// Scans as tasks of chunks compute what the scans do: whole chunks, and tokens
// that are left over, as one chunk or one by one.

// A chunk of five tokens at the end; a tile of one vector at the end of a row.
func.func @additive(%q: tensor<1x2x21x16xf32>, %k: tensor<1x2x21x16xf32>, %v: tensor<1x2x21x48xf32>, %o: tensor<1x2x21x48xf32>, %s: tensor<1x2x16x48xf32>) -> (tensor<1x2x21x48xf32>, tensor<1x2x16x48xf32>) {
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s)
    : (tensor<1x2x21x16xf32>, tensor<1x2x21x16xf32>, tensor<1x2x21x48xf32>, tensor<1x2x21x48xf32>, tensor<1x2x16x48xf32>) -> (tensor<1x2x21x48xf32>, tensor<1x2x16x48xf32>)
  return %r#0, %r#1 : tensor<1x2x21x48xf32>, tensor<1x2x16x48xf32>
}

// Of any number of tokens, backwards, with a mask, narrow operands.
func.func @backwards(%q: tensor<2x2x?x32xbf16>, %k: tensor<2x2x?x32xbf16>, %v: tensor<2x2x?x16xbf16>, %mk: tensor<2x?xi1>, %o: tensor<2x2x?x16xbf16>, %s: tensor<2x2x32x16xf32>) -> (tensor<2x2x?x16xbf16>, tensor<2x2x32x16xf32>) {
  %r:2 = linattn.scan %q, %k, %v mask(%mk) into(%o) init(%s) {reverse, scale = 0.25}
    : (tensor<2x2x?x32xbf16>, tensor<2x2x?x32xbf16>, tensor<2x2x?x16xbf16>, tensor<2x?xi1>, tensor<2x2x?x16xbf16>, tensor<2x2x32x16xf32>) -> (tensor<2x2x?x16xbf16>, tensor<2x2x32x16xf32>)
  return %r#0, %r#1 : tensor<2x2x?x16xbf16>, tensor<2x2x32x16xf32>
}

// A decay per head, whose factors are made before the loop.
func.func @retention(%q: tensor<1x2x?x32xf32>, %k: tensor<1x2x?x32xf32>, %v: tensor<1x2x?x32xf32>, %g: tensor<2xf32>, %o: tensor<1x2x?x32xf32>, %s: tensor<1x2x32x32xf32>) -> (tensor<1x2x?x32xf32>, tensor<1x2x32x32xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) into(%o) init(%s)
    : (tensor<1x2x?x32xf32>, tensor<1x2x?x32xf32>, tensor<1x2x?x32xf32>, tensor<2xf32>, tensor<1x2x?x32xf32>, tensor<1x2x32x32xf32>) -> (tensor<1x2x?x32xf32>, tensor<1x2x32x32xf32>)
  return %r#0, %r#1 : tensor<1x2x?x32xf32>, tensor<1x2x32x32xf32>
}

// A decay per token, read before the own write.
func.func @scalar_decay(%q: tensor<1x2x35x32xf32>, %k: tensor<1x2x35x32xf32>, %v: tensor<1x2x35x32xf32>, %g: tensor<1x2x35xf32>, %o: tensor<1x2x35x32xf32>, %s: tensor<1x2x32x32xf32>) -> (tensor<1x2x35x32xf32>, tensor<1x2x32x32xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) readout(exclusive) into(%o) init(%s)
    : (tensor<1x2x35x32xf32>, tensor<1x2x35x32xf32>, tensor<1x2x35x32xf32>, tensor<1x2x35xf32>, tensor<1x2x35x32xf32>, tensor<1x2x32x32xf32>) -> (tensor<1x2x35x32xf32>, tensor<1x2x32x32xf32>)
  return %r#0, %r#1 : tensor<1x2x35x32xf32>, tensor<1x2x32x32xf32>
}

// The delta rule.
func.func @delta(%q: tensor<1x2x?x16xf32>, %k: tensor<1x2x?x16xf32>, %v: tensor<1x2x?x32xf32>, %b: tensor<1x2x?xf32>, %o: tensor<1x2x?x32xf32>, %s: tensor<1x2x16x32xf32>) -> (tensor<1x2x?x32xf32>, tensor<1x2x16x32xf32>) {
  %r:2 = linattn.scan %q, %k, %v beta(%b) update(delta) into(%o) init(%s)
    : (tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x32xf32>, tensor<1x2x?xf32>, tensor<1x2x?x32xf32>, tensor<1x2x16x32xf32>) -> (tensor<1x2x?x32xf32>, tensor<1x2x16x32xf32>)
  return %r#0, %r#1 : tensor<1x2x?x32xf32>, tensor<1x2x16x32xf32>
}

// Under a decay, of an error that meets the decayed state.
func.func @gated_delta(%q: tensor<1x2x20x64xf32>, %k: tensor<1x2x20x64xf32>, %v: tensor<1x2x20x32xf32>, %g: tensor<1x2x20xf32>, %b: tensor<1x2x20xf32>, %o: tensor<1x2x20x32xf32>, %s: tensor<1x2x64x32xf32>) -> (tensor<1x2x20x32xf32>, tensor<1x2x64x32xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) beta(%b) update(delta) into(%o) init(%s)
    : (tensor<1x2x20x64xf32>, tensor<1x2x20x64xf32>, tensor<1x2x20x32xf32>, tensor<1x2x20xf32>, tensor<1x2x20xf32>, tensor<1x2x20x32xf32>, tensor<1x2x64x32xf32>) -> (tensor<1x2x20x32xf32>, tensor<1x2x64x32xf32>)
  return %r#0, %r#1 : tensor<1x2x20x32xf32>, tensor<1x2x64x32xf32>
}

// Decays per channel, of rows whose last tile is not whole; of any number of tokens, backwards and read before the own write.
func.func @channels(%q: tensor<1x2x23x32xf32>, %k: tensor<1x2x23x32xf32>, %v: tensor<1x2x23x16xf32>, %g: tensor<1x2x23x32xf32>, %o: tensor<1x2x23x16xf32>, %s: tensor<1x2x32x16xf32>) -> (tensor<1x2x23x16xf32>, tensor<1x2x32x16xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) into(%o) init(%s) {scale = 0.5}
    : (tensor<1x2x23x32xf32>, tensor<1x2x23x32xf32>, tensor<1x2x23x16xf32>, tensor<1x2x23x32xf32>, tensor<1x2x23x16xf32>, tensor<1x2x32x16xf32>) -> (tensor<1x2x23x16xf32>, tensor<1x2x32x16xf32>)
  return %r#0, %r#1 : tensor<1x2x23x16xf32>, tensor<1x2x32x16xf32>
}
func.func @channels_before(%q: tensor<1x2x?x16xf32>, %k: tensor<1x2x?x16xf32>, %v: tensor<1x2x?x16xf32>, %g: tensor<1x2x?x16xf32>, %o: tensor<1x2x?x16xf32>, %s: tensor<1x2x16x16xf32>) -> (tensor<1x2x?x16xf32>, tensor<1x2x16x16xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) readout(exclusive) into(%o) init(%s) {reverse}
    : (tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x16x16xf32>) -> (tensor<1x2x?x16xf32>, tensor<1x2x16x16xf32>)
  return %r#0, %r#1 : tensor<1x2x?x16xf32>, tensor<1x2x16x16xf32>
}

// KDA, in f64 as well.
func.func @channel_delta(%q: tensor<1x2x?x32xf32>, %k: tensor<1x2x?x32xf32>, %v: tensor<1x2x?x48xf32>, %g: tensor<1x2x?x32xbf16>, %b: tensor<1x2x?xf32>, %o: tensor<1x2x?x48xf32>, %s: tensor<1x2x32x48xf32>) -> (tensor<1x2x?x48xf32>, tensor<1x2x32x48xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) beta(%b) update(delta) into(%o) init(%s)
    : (tensor<1x2x?x32xf32>, tensor<1x2x?x32xf32>, tensor<1x2x?x48xf32>, tensor<1x2x?x32xbf16>, tensor<1x2x?xf32>, tensor<1x2x?x48xf32>, tensor<1x2x32x48xf32>) -> (tensor<1x2x?x48xf32>, tensor<1x2x32x48xf32>)
  return %r#0, %r#1 : tensor<1x2x?x48xf32>, tensor<1x2x32x48xf32>
}
func.func @channel_delta_double(%q: tensor<1x2x33x16xf64>, %k: tensor<1x2x33x16xf64>, %v: tensor<1x2x33x16xf64>, %g: tensor<1x2x33x16xf64>, %b: tensor<1x2x33xf64>, %o: tensor<1x2x33x16xf64>, %s: tensor<1x2x16x16xf64>) -> (tensor<1x2x33x16xf64>, tensor<1x2x16x16xf64>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) beta(%b) update(delta) into(%o) init(%s)
    : (tensor<1x2x33x16xf64>, tensor<1x2x33x16xf64>, tensor<1x2x33x16xf64>, tensor<1x2x33x16xf64>, tensor<1x2x33xf64>, tensor<1x2x33x16xf64>, tensor<1x2x16x16xf64>) -> (tensor<1x2x33x16xf64>, tensor<1x2x16x16xf64>)
  return %r#0, %r#1 : tensor<1x2x33x16xf64>, tensor<1x2x16x16xf64>
}

// Two writes, of a transition that meets the state before its decay.
func.func @channel_dplr(%q: tensor<1x2x?x16xf32>, %k: tensor<1x2x?x16xf32>, %v: tensor<1x2x?x32xf32>, %g: tensor<1x2x?x16xf32>, %a: tensor<1x2x?x16xf32>, %b: tensor<1x2x?x16xf32>, %o: tensor<1x2x?x32xf32>, %s: tensor<1x2x16x32xf32>) -> (tensor<1x2x?x32xf32>, tensor<1x2x16x32xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) a(%a) b(%b) update(dplr) transition(before) into(%o) init(%s)
    : (tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x32xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x32xf32>, tensor<1x2x16x32xf32>) -> (tensor<1x2x?x32xf32>, tensor<1x2x16x32xf32>)
  return %r#0, %r#1 : tensor<1x2x?x32xf32>, tensor<1x2x16x32xf32>
}

// Gates per channel and column.
func.func @gates(%q: tensor<1x2x18x16xf32>, %k: tensor<1x2x18x16xf32>, %v: tensor<1x2x18x32xf32>, %g: tensor<1x2x18xf32>, %b: tensor<1x2x18x32xf32>, %e: tensor<1x2x18x16xf32>, %w: tensor<1x2x18x32xf32>, %o: tensor<1x2x18x32xf32>, %s: tensor<1x2x16x32xf32>) -> (tensor<1x2x18x32xf32>, tensor<1x2x16x32xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) beta(%b) erase(%e) write(%w) update(delta) into(%o) init(%s)
    : (tensor<1x2x18x16xf32>, tensor<1x2x18x16xf32>, tensor<1x2x18x32xf32>, tensor<1x2x18xf32>, tensor<1x2x18x32xf32>, tensor<1x2x18x16xf32>, tensor<1x2x18x32xf32>, tensor<1x2x18x32xf32>, tensor<1x2x16x32xf32>) -> (tensor<1x2x18x32xf32>, tensor<1x2x16x32xf32>)
  return %r#0, %r#1 : tensor<1x2x18x32xf32>, tensor<1x2x16x32xf32>
}

// A transition of its own, and two writes.
func.func @dplr(%q: tensor<1x2x?x16xf32>, %k: tensor<1x2x?x16xf32>, %v: tensor<1x2x?x32xf32>, %g: tensor<1x2x?xf32>, %a: tensor<1x2x?x16xf32>, %b: tensor<1x2x?x16xf32>, %o: tensor<1x2x?x32xf32>, %s: tensor<1x2x16x32xf32>) -> (tensor<1x2x?x32xf32>, tensor<1x2x16x32xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) a(%a) b(%b) update(dplr) into(%o) init(%s)
    : (tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x32xf32>, tensor<1x2x?xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x32xf32>, tensor<1x2x16x32xf32>) -> (tensor<1x2x?x32xf32>, tensor<1x2x16x32xf32>)
  return %r#0, %r#1 : tensor<1x2x?x32xf32>, tensor<1x2x16x32xf32>
}

// Two heads of queries to a state, and an empty sequence between two others.
func.func @packed(%q: tensor<1x4x39x32xf32>, %k: tensor<1x2x39x32xf32>, %v: tensor<1x2x39x16xf32>, %g: tensor<1x2x39xf32>, %o: tensor<1x4x39x16xf32>, %s: tensor<3x2x32x16xf32>) -> (tensor<1x4x39x16xf32>, tensor<3x2x32x16xf32>) {
  %offsets = arith.constant dense<[0, 22, 22, 39]> : tensor<4xi64>
  %r:2 = linattn.scan %q, %k, %v decay(%g) cu_seqlens(%offsets) into(%o) init(%s) {reverse}
    : (tensor<1x4x39x32xf32>, tensor<1x2x39x32xf32>, tensor<1x2x39x16xf32>, tensor<1x2x39xf32>, tensor<4xi64>, tensor<1x4x39x16xf32>, tensor<3x2x32x16xf32>) -> (tensor<1x4x39x16xf32>, tensor<3x2x32x16xf32>)
  return %r#0, %r#1 : tensor<1x4x39x16xf32>, tensor<3x2x32x16xf32>
}

// Two states to a head of queries and keys.
func.func @grouped_values(%q: tensor<2x2x?x32xf32>, %k: tensor<2x2x?x32xf32>, %v: tensor<2x4x?x32xf32>, %g: tensor<4xf32>, %b: tensor<2x4x?xf32>, %o: tensor<2x4x?x32xf32>, %s: tensor<2x4x32x32xf32>) -> (tensor<2x4x?x32xf32>, tensor<2x4x32x32xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) beta(%b) update(delta) into(%o) init(%s)
    : (tensor<2x2x?x32xf32>, tensor<2x2x?x32xf32>, tensor<2x4x?x32xf32>, tensor<4xf32>, tensor<2x4x?xf32>, tensor<2x4x?x32xf32>, tensor<2x4x32x32xf32>) -> (tensor<2x4x?x32xf32>, tensor<2x4x32x32xf32>)
  return %r#0, %r#1 : tensor<2x4x?x32xf32>, tensor<2x4x32x32xf32>
}

// Attention without a mask: all keys, and then queries of another number.
func.func @halves(%q: tensor<2x4x?x32xf32>, %k: tensor<2x2x39x32xf32>, %v: tensor<2x2x39x16xf32>, %mk: tensor<2x39xi1>, %o: tensor<2x4x?x16xf32>, %s: tensor<2x2x32x16xf32>) -> (tensor<2x4x?x16xf32>, tensor<2x2x32x16xf32>) {
  %S = linattn.state %k, %v mask(%mk) init(%s) : (tensor<2x2x39x32xf32>, tensor<2x2x39x16xf32>, tensor<2x39xi1>, tensor<2x2x32x16xf32>) -> tensor<2x2x32x16xf32>
  %r = linattn.read %q, %S into(%o) {scale = 0.3} : (tensor<2x4x?x32xf32>, tensor<2x2x32x16xf32>, tensor<2x4x?x16xf32>) -> tensor<2x4x?x16xf32>
  return %r, %S : tensor<2x4x?x16xf32>, tensor<2x2x32x16xf32>
}

// A normaliser and a feature map, with a mask and a scale; decayed, packed, backwards; decayed per channel; of attention without a mask.
func.func @normalized(%q: tensor<1x4x?x16xf32>, %k: tensor<1x2x?x16xf32>, %v: tensor<1x2x?x32xf32>, %mk: tensor<1x?xi1>, %o: tensor<1x4x?x32xf32>, %s: tensor<1x2x16x32xf32>, %z: tensor<1x2x16xf32>) -> (tensor<1x4x?x32xf32>, tensor<1x2x16x32xf32>, tensor<1x2x16xf32>) {
  %r:3 = linattn.scan %q, %k, %v mask(%mk) into(%o) init(%s) normalizer(%z) {feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.0e-6>, scale = 0.3}
    : (tensor<1x4x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x32xf32>, tensor<1x?xi1>, tensor<1x4x?x32xf32>, tensor<1x2x16x32xf32>, tensor<1x2x16xf32>) -> (tensor<1x4x?x32xf32>, tensor<1x2x16x32xf32>, tensor<1x2x16xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x4x?x32xf32>, tensor<1x2x16x32xf32>, tensor<1x2x16xf32>
}
func.func @normalized_decay(%q: tensor<1x2x39x32xf32>, %k: tensor<1x2x39x32xf32>, %v: tensor<1x2x39x16xf32>, %g: tensor<1x2x39xf32>, %o: tensor<1x2x39x16xf32>, %s: tensor<2x2x32x16xf32>, %z: tensor<2x2x32xf32>) -> (tensor<1x2x39x16xf32>, tensor<2x2x32x16xf32>, tensor<2x2x32xf32>) {
  %offsets = arith.constant dense<[0, 17, 39]> : tensor<3xi64>
  %r:3 = linattn.scan %q, %k, %v decay(%g) cu_seqlens(%offsets) into(%o) init(%s) normalizer(%z) {reverse, feature_map = #linattn.feature_map<relu2>, normalize = #linattn.normalize<abs_floor = 1.0>}
    : (tensor<1x2x39x32xf32>, tensor<1x2x39x32xf32>, tensor<1x2x39x16xf32>, tensor<1x2x39xf32>, tensor<3xi64>, tensor<1x2x39x16xf32>, tensor<2x2x32x16xf32>, tensor<2x2x32xf32>) -> (tensor<1x2x39x16xf32>, tensor<2x2x32x16xf32>, tensor<2x2x32xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x39x16xf32>, tensor<2x2x32x16xf32>, tensor<2x2x32xf32>
}
func.func @normalized_channels(%q: tensor<1x2x39x32xf32>, %k: tensor<1x2x39x32xf32>, %v: tensor<1x2x39x16xf32>, %g: tensor<1x2x39x32xf32>, %o: tensor<1x2x39x16xf32>, %s: tensor<1x2x32x16xf32>, %z: tensor<1x2x32xf32>) -> (tensor<1x2x39x16xf32>, tensor<1x2x32x16xf32>, tensor<1x2x32xf32>) {
  %r:3 = linattn.scan %q, %k, %v decay(%g) into(%o) init(%s) normalizer(%z) {normalize = #linattn.normalize<floor = 0.5, clamp = 0.5>}
    : (tensor<1x2x39x32xf32>, tensor<1x2x39x32xf32>, tensor<1x2x39x16xf32>, tensor<1x2x39x32xf32>, tensor<1x2x39x16xf32>, tensor<1x2x32x16xf32>, tensor<1x2x32xf32>) -> (tensor<1x2x39x16xf32>, tensor<1x2x32x16xf32>, tensor<1x2x32xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x39x16xf32>, tensor<1x2x32x16xf32>, tensor<1x2x32xf32>
}
func.func @normalized_halves(%q: tensor<2x4x?x32xf32>, %k: tensor<2x2x39x32xf32>, %v: tensor<2x2x39x16xf32>, %o: tensor<2x4x?x16xf32>, %s: tensor<2x2x32x16xf32>, %z: tensor<2x2x32xf32>) -> tensor<2x4x?x16xf32> {
  %S:2 = linattn.state %k, %v init(%s) normalizer(%z) {feature_map = #linattn.feature_map<elu1>} : (tensor<2x2x39x32xf32>, tensor<2x2x39x16xf32>, tensor<2x2x32x16xf32>, tensor<2x2x32xf32>) -> (tensor<2x2x32x16xf32>, tensor<2x2x32xf32>)
  %r = linattn.read %q, %S#0 normalizer(%S#1) into(%o) {feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.0e-6>} : (tensor<2x4x?x32xf32>, tensor<2x2x32x16xf32>, tensor<2x2x32xf32>, tensor<2x4x?x16xf32>) -> tensor<2x4x?x16xf32>
  return %r : tensor<2x4x?x16xf32>
}
