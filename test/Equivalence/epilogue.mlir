// RUN: linattn-run %s --all --open-size=0,1,7,14 --compare=reference
// RUN: linattn-run %s --all --open-size=0,1,7,14 --form=chunk:4 --compare=reference
// RUN: linattn-run %s --all --open-size=7 --compare=exact

// Norms that the kernels of scans apply against norms of their own.

func.func @gated_delta(%q: tensor<2x2x?x16xf32>, %k: tensor<2x2x?x16xf32>, %v: tensor<2x4x?x20xf32>, %d: tensor<2x4x?xf32>, %b: tensor<2x4x?xf32>, %w: tensor<20xf32>, %g: tensor<2x4x?x20xf32>, %e: tensor<2x4x?x20xf32>, %o: tensor<2x4x?x20xf32>, %s: tensor<2x4x16x20xf32>) -> (tensor<2x4x?x20xf32>, tensor<2x4x16x20xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%d) beta(%b) update(delta) into(%e) init(%s) {scale = 0.25} : (tensor<2x2x?x16xf32>, tensor<2x2x?x16xf32>, tensor<2x4x?x20xf32>, tensor<2x4x?xf32>, tensor<2x4x?xf32>, tensor<2x4x?x20xf32>, tensor<2x4x16x20xf32>) -> (tensor<2x4x?x20xf32>, tensor<2x4x16x20xf32>)
  %n = linattn.output_norm %r#0 weight(%w) gate(%g) into(%o) : (tensor<2x4x?x20xf32>, tensor<20xf32>, tensor<2x4x?x20xf32>, tensor<2x4x?x20xf32>) -> tensor<2x4x?x20xf32>
  return %n, %r#1 : tensor<2x4x?x20xf32>, tensor<2x4x16x20xf32>
}
func.func @skip(%q: tensor<2x2x?x8xf32>, %k: tensor<2x1x?x8xf32>, %v: tensor<2x4x?x36xf32>, %d: tensor<4xf32>, %c: tensor<4x36xf32>, %g: tensor<2x4x?x36xf32>, %o: tensor<2x4x?x36xf32>, %s: tensor<2x4x8x36xf32>) -> tensor<2x4x?x36xf32> {
  %c2 = arith.constant 2 : index
  %t = tensor.dim %v, %c2 : tensor<2x4x?x36xf32>
  %e = tensor.empty(%t) : tensor<2x4x?x36xf32>
  %r:2 = linattn.scan %q, %k, %v decay(%d) into(%e) init(%s) {reverse} : (tensor<2x2x?x8xf32>, tensor<2x1x?x8xf32>, tensor<2x4x?x36xf32>, tensor<4xf32>, tensor<2x4x?x36xf32>, tensor<2x4x8x36xf32>) -> (tensor<2x4x?x36xf32>, tensor<2x4x8x36xf32>)
  %n = linattn.output_norm %r#0 kind(layer) gate(%g) activation(sigmoid) skip(%v) skip_weight(%c) into(%o) {gate_first} : (tensor<2x4x?x36xf32>, tensor<2x4x?x36xf32>, tensor<2x4x?x36xf32>, tensor<4x36xf32>, tensor<2x4x?x36xf32>) -> tensor<2x4x?x36xf32>
  return %n : tensor<2x4x?x36xf32>
}
func.func @normalized(%q: tensor<1x6x?x8xf32>, %k: tensor<1x2x?x8xf32>, %v: tensor<1x2x?x5xf32>, %o: tensor<1x6x?x5xf32>, %s: tensor<1x2x8x5xf32>, %z: tensor<1x2x8xf32>) -> tensor<1x6x?x5xf32> {
  %c2 = arith.constant 2 : index
  %t = tensor.dim %v, %c2 : tensor<1x2x?x5xf32>
  %e = tensor.empty(%t) : tensor<1x6x?x5xf32>
  %r:3 = linattn.scan %q, %k, %v into(%e) init(%s) normalizer(%z) {feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<floor = 1.0>} : (tensor<1x6x?x8xf32>, tensor<1x2x?x8xf32>, tensor<1x2x?x5xf32>, tensor<1x6x?x5xf32>, tensor<1x2x8x5xf32>, tensor<1x2x8xf32>) -> (tensor<1x6x?x5xf32>, tensor<1x2x8x5xf32>, tensor<1x2x8xf32>)
  %n = linattn.output_norm %r#0 into(%o) {eps = 1.0e-2} : (tensor<1x6x?x5xf32>, tensor<1x6x?x5xf32>) -> tensor<1x6x?x5xf32>
  return %n : tensor<1x6x?x5xf32>
}
// Rows of f32 whose norm is in bf16, by the kernel of the scan and by a kernel of its own.
func.func @rounded(%q: tensor<1x2x?x16xf32>, %w: tensor<16xf32>, %g: tensor<1x2x?x16xbf16>, %o: tensor<1x2x?x16xbf16>, %s: tensor<1x2x16x16xf32>) -> (tensor<1x2x?x16xbf16>, tensor<1x2x?x16xbf16>, tensor<1x2x16x16xf32>) {
  %c2 = arith.constant 2 : index
  %t = tensor.dim %q, %c2 : tensor<1x2x?x16xf32>
  %e = tensor.empty(%t) : tensor<1x2x?x16xf32>
  %r:2 = linattn.scan %q, %q, %q into(%e) init(%s) {scale = 0.25} : (tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x16x16xf32>) -> (tensor<1x2x?x16xf32>, tensor<1x2x16x16xf32>)
  %n = linattn.output_norm %r#0 weight(%w) gate(%g) into(%o) : (tensor<1x2x?x16xf32>, tensor<16xf32>, tensor<1x2x?x16xbf16>, tensor<1x2x?x16xbf16>) -> tensor<1x2x?x16xbf16>
  %m = linattn.output_norm %q kind(none) weight(%w) into(%o) : (tensor<1x2x?x16xf32>, tensor<16xf32>, tensor<1x2x?x16xbf16>) -> tensor<1x2x?x16xbf16>
  return %n, %m, %r#1 : tensor<1x2x?x16xbf16>, tensor<1x2x?x16xbf16>, tensor<1x2x16x16xf32>
}
