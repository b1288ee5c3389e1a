// RUN: linattn-run %s --all --open-size=0,1,33,150,300 --matrix-unit=emulated --compare=reference
// RUN: linattn-run %s %s --entry=linear --open-size=150 --matrix-unit=emulated --compare=exact
// RUN: linattn-run %s %s --entry=prefixed --open-size=33 --matrix-unit=emulated --compare=exact
// RUN: linattn-run %s %s --entry=windowed --open-size=300 --matrix-unit=emulated --compare=exact
// RUN: linattn-run %s %s --entry=across --matrix-unit=emulated --compare=exact

// Attention over keys in the tiles of an emulated matrix unit, against the naive loops, and exactly where its weights are
// no exponentials. More queries than a task has, more keys than a block, and parts of both.

// Grouped heads, a scale other than a power of two.
func.func @softmax(%q: tensor<2x4x?x64xbf16>, %k: tensor<2x2x?x64xbf16>, %v: tensor<2x2x?x48xbf16>) -> tensor<2x4x?x48xbf16> {
  %r = linattn.attention %q, %k, %v weights(softmax) {causal, scale = 0.3} : (tensor<2x4x?x64xbf16>, tensor<2x2x?x64xbf16>, tensor<2x2x?x48xbf16>) -> tensor<2x4x?x48xbf16>
  return %r : tensor<2x4x?x48xbf16>
}
// Half of a step of features, one column of tiles; keys that are left out, also all of a sequence's.
func.func @masked(%q: tensor<2x2x?x16xbf16>, %k: tensor<2x2x?x16xbf16>, %v: tensor<2x2x?x16xbf16>, %m: tensor<2x?xi1>) -> tensor<2x2x?x16xbf16> {
  %r = linattn.attention %q, %k, %v mask(%m) weights(softmax) : (tensor<2x2x?x16xbf16>, tensor<2x2x?x16xbf16>, tensor<2x2x?x16xbf16>, tensor<2x?xi1>) -> tensor<2x2x?x16xbf16>
  return %r : tensor<2x2x?x16xbf16>
}
func.func @window(%q: tensor<2x2x?x80xbf16>, %k: tensor<2x2x?x80xbf16>, %v: tensor<2x2x?x80xbf16>, %m: tensor<2x?xi1>) -> tensor<2x2x?x80xbf16> {
  %r = linattn.attention %q, %k, %v mask(%m) weights(softmax) {causal, pattern = #linattn.pattern<window = 50, globals = 2>} : (tensor<2x2x?x80xbf16>, tensor<2x2x?x80xbf16>, tensor<2x2x?x80xbf16>, tensor<2x?xi1>) -> tensor<2x2x?x80xbf16>
  return %r : tensor<2x2x?x80xbf16>
}
func.func @both_ways(%q: tensor<2x2x?x32xbf16>, %k: tensor<2x2x?x32xbf16>, %v: tensor<2x2x?x32xbf16>) -> tensor<2x2x?x32xbf16> {
  %r = linattn.attention %q, %k, %v weights(softmax) {pattern = #linattn.pattern<window = 3, dilation = 2, globals = 2>} : (tensor<2x2x?x32xbf16>, tensor<2x2x?x32xbf16>, tensor<2x2x?x32xbf16>) -> tensor<2x2x?x32xbf16>
  return %r : tensor<2x2x?x32xbf16>
}
// A scale that is an operand, and scores that depend on a key's place.
func.func @scores(%q: tensor<2x4x?x32xbf16>, %k: tensor<2x2x?x32xbf16>, %v: tensor<2x2x?x32xbf16>, %h: tensor<4xf32>, %s: tensor<4xbf16>) -> tensor<2x4x?x32xbf16> {
  %r = linattn.attention %q, %k, %v slopes(%h) sinks(%s) weights(softmax) {causal, softcap = 3.0, scale = 0.5} : (tensor<2x4x?x32xbf16>, tensor<2x2x?x32xbf16>, tensor<2x2x?x32xbf16>, tensor<4xf32>, tensor<4xbf16>) -> tensor<2x4x?x32xbf16>
  return %r : tensor<2x4x?x32xbf16>
}
func.func @scale(%q: tensor<1x2x?x32xbf16>, %k: tensor<1x2x?x32xbf16>, %v: tensor<1x2x?x32xbf16>, %s: f64) -> tensor<1x2x?x32xbf16> {
  %r = linattn.attention %q, %k, %v scale(%s) weights(softmax) {causal} : (tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, f64) -> tensor<1x2x?x32xbf16>
  return %r : tensor<1x2x?x32xbf16>
}
// Keys in front of the queries, of which the last one is the last key.
func.func @across(%q: tensor<1x2x40x32xbf16>, %k: tensor<1x2x200x32xbf16>, %v: tensor<1x2x200x96xbf16>, %o: tensor<1x2x40x96xbf16>) -> tensor<1x2x40x96xbf16> {
  %r = linattn.quadratic %q, %k, %v into(%o) {causal} : (tensor<1x2x40x32xbf16>, tensor<1x2x200x32xbf16>, tensor<1x2x200x96xbf16>, tensor<1x2x40x96xbf16>) -> tensor<1x2x40x96xbf16>
  return %r : tensor<1x2x40x96xbf16>
}
func.func @linear(%q: tensor<1x2x?x64xbf16>, %k: tensor<1x2x?x64xbf16>, %v: tensor<1x2x?x48xbf16>, %o: tensor<1x2x?x48xbf16>) -> tensor<1x2x?x48xbf16> {
  %r = linattn.quadratic %q, %k, %v into(%o) {causal, scale = 0.5} : (tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x48xbf16>, tensor<1x2x?x48xbf16>) -> tensor<1x2x?x48xbf16>
  return %r : tensor<1x2x?x48xbf16>
}
func.func @prefixed(%q: tensor<2x2x?x16xbf16>, %k: tensor<2x2x?x16xbf16>, %v: tensor<2x2x?x16xbf16>, %o: tensor<2x2x?x16xbf16>) -> tensor<2x2x?x16xbf16> {
  %p = arith.constant dense<[0, 20]> : tensor<2xi64>
  %r = linattn.quadratic %q, %k, %v prefix(%p) into(%o) {causal} : (tensor<2x2x?x16xbf16>, tensor<2x2x?x16xbf16>, tensor<2x2x?x16xbf16>, tensor<2xi64>, tensor<2x2x?x16xbf16>) -> tensor<2x2x?x16xbf16>
  return %r : tensor<2x2x?x16xbf16>
}
func.func @windowed(%q: tensor<1x2x?x32xbf16>, %k: tensor<1x2x?x32xbf16>, %v: tensor<1x2x?x32xbf16>, %o: tensor<1x2x?x32xbf16>) -> tensor<1x2x?x32xbf16> {
  %r = linattn.quadratic %q, %k, %v into(%o) {pattern = #linattn.pattern<window = 70>} : (tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>) -> tensor<1x2x?x32xbf16>
  return %r : tensor<1x2x?x32xbf16>
}
