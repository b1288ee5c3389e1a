// RUN: linattn-run %s --all --open-size=0,1,7,70 --compare=reference

// Prefixes, output norms and divided columns against the naive loops.

func.func @rms(%x: tensor<2x3x?x20xf32>, %w: tensor<20xf32>, %g: tensor<2x3x?x20xf32>, %o: tensor<2x3x?x20xf32>) -> tensor<2x3x?x20xf32> {
  %r = linattn.output_norm %x weight(%w) gate(%g) into(%o) {eps = 1.0e-6} : (tensor<2x3x?x20xf32>, tensor<20xf32>, tensor<2x3x?x20xf32>, tensor<2x3x?x20xf32>) -> tensor<2x3x?x20xf32>
  return %r : tensor<2x3x?x20xf32>
}
func.func @layer(%x: tensor<1x3x?x64xf32>, %w: tensor<3x64xf32>, %b: tensor<3x64xf32>, %g: tensor<1x3x?x64xf32>, %o: tensor<1x3x?x64xf32>) -> tensor<1x3x?x64xf32> {
  %r = linattn.output_norm %x kind(layer) weight(%w) bias(%b) gate(%g) activation(sigmoid) into(%o) {gate_first} : (tensor<1x3x?x64xf32>, tensor<3x64xf32>, tensor<3x64xf32>, tensor<1x3x?x64xf32>, tensor<1x3x?x64xf32>) -> tensor<1x3x?x64xf32>
  return %r : tensor<1x3x?x64xf32>
}
func.func @mixed(%x: tensor<2x2x?x64xbf16>, %w: tensor<64xf16>, %g: tensor<2x2x?x64xf32>, %v: tensor<2x2x?x64xf32>, %d: tensor<2x64xbf16>, %o: tensor<2x2x?x64xbf16>) -> tensor<2x2x?x64xbf16> {
  %r = linattn.output_norm %x weight(%w) gate(%g) skip(%v) skip_weight(%d) into(%o) {gate_first, weight_offset = 1.0} : (tensor<2x2x?x64xbf16>, tensor<64xf16>, tensor<2x2x?x64xf32>, tensor<2x2x?x64xf32>, tensor<2x64xbf16>, tensor<2x2x?x64xbf16>) -> tensor<2x2x?x64xbf16>
  return %r : tensor<2x2x?x64xbf16>
}
func.func @no_norm(%x: tensor<1x2x?x13xf32>, %v: tensor<1x2x?x13xf32>, %d: tensor<2x13xf32>, %g: tensor<1x2x?x13xf32>, %o: tensor<1x2x?x13xf32>) -> tensor<1x2x?x13xf32> {
  %r = linattn.output_norm %x kind(none) gate(%g) skip(%v) skip_weight(%d) into(%o) : (tensor<1x2x?x13xf32>, tensor<1x2x?x13xf32>, tensor<1x2x?x13xf32>, tensor<2x13xf32>, tensor<1x2x?x13xf32>) -> tensor<1x2x?x13xf32>
  return %r : tensor<1x2x?x13xf32>
}
func.func @prefix_linear(%q: tensor<2x4x?x8xf32>, %k: tensor<2x2x?x8xf32>, %v: tensor<2x2x?x5xf32>, %m: tensor<2x?xi1>) -> tensor<2x4x?x5xf32> {
  %p = arith.constant dense<[3, 9]> : tensor<2xi64>
  %r = linattn.attention %q, %k, %v mask(%m) prefix(%p) {causal, feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.0e-6>} : (tensor<2x4x?x8xf32>, tensor<2x2x?x8xf32>, tensor<2x2x?x5xf32>, tensor<2x?xi1>, tensor<2xi64>) -> tensor<2x4x?x5xf32>
  return %r : tensor<2x4x?x5xf32>
}
func.func @prefix_exp(%q: tensor<2x4x?x8xf32>, %k: tensor<2x2x?x8xf32>, %v: tensor<2x2x?x5xf32>) -> tensor<2x4x?x5xf32> {
  %p = arith.constant dense<[3, 9]> : tensor<2xi64>
  %r = linattn.attention %q, %k, %v prefix(%p) {causal, feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<eps = 1.0e-6>} : (tensor<2x4x?x8xf32>, tensor<2x2x?x8xf32>, tensor<2x2x?x5xf32>, tensor<2xi64>) -> tensor<2x4x?x5xf32>
  return %r : tensor<2x4x?x5xf32>
}
func.func @prefix_softmax(%q: tensor<2x4x?x8xf32>, %k: tensor<2x2x?x8xf32>, %v: tensor<2x2x?x5xf32>) -> tensor<2x4x?x5xf32> {
  %p = arith.constant dense<[3, 19]> : tensor<2xi32>
  %r = linattn.attention %q, %k, %v prefix(%p) weights(softmax) {causal, scale = 0.5} : (tensor<2x4x?x8xf32>, tensor<2x2x?x8xf32>, tensor<2x2x?x5xf32>, tensor<2xi32>) -> tensor<2x4x?x5xf32>
  return %r : tensor<2x4x?x5xf32>
}
func.func @columns(%q: tensor<1x1x?x8xf32>, %v: tensor<1x1x?x100xf32>, %g: tensor<1x1x?x8xf32>, %s: tensor<1x1x8x100xf32>, %o: tensor<1x1x?x100xf32>) -> (tensor<1x1x?x100xf32>, tensor<1x1x8x100xf32>) {
  %r:2 = linattn.scan %q, %q, %v decay(%g) into(%o) init(%s) : (tensor<1x1x?x8xf32>, tensor<1x1x?x8xf32>, tensor<1x1x?x100xf32>, tensor<1x1x?x8xf32>, tensor<1x1x?x100xf32>, tensor<1x1x8x100xf32>) -> (tensor<1x1x?x100xf32>, tensor<1x1x8x100xf32>)
  return %r#0, %r#1 : tensor<1x1x?x100xf32>, tensor<1x1x8x100xf32>
}
