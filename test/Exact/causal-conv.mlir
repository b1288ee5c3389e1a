// RUN: linattn-run %s --all --open-size=0,1,7,70 --compare=exact

// Vectors against the naive loops, without tolerance: in prime fields.

func.func @mamba(%x: tensor<2x?x70xf32>, %w: tensor<70x4xf32>, %b: tensor<70xf32>, %o: tensor<2x?x70xf32>, %s: tensor<2x70x3xf32>) -> (tensor<2x?x70xf32>, tensor<2x70x3xf32>) {
  %r:2 = linattn.causal_conv %x, %w bias(%b) activation(silu) into(%o) init(%s) : (tensor<2x?x70xf32>, tensor<70x4xf32>, tensor<70xf32>, tensor<2x?x70xf32>, tensor<2x70x3xf32>) -> (tensor<2x?x70xf32>, tensor<2x70x3xf32>)
  return %r#0, %r#1 : tensor<2x?x70xf32>, tensor<2x70x3xf32>
}
func.func @pairs(%x: tensor<2x?x70xbf16>, %w: tensor<70x4xbf16>, %b: tensor<70xbf16>, %o: tensor<2x?x70xbf16>, %s: tensor<2x70x3xbf16>) -> (tensor<2x?x70xbf16>, tensor<2x70x3xbf16>) {
  %r:2 = linattn.causal_conv %x, %w bias(%b) activation(silu) into(%o) init(%s) : (tensor<2x?x70xbf16>, tensor<70x4xbf16>, tensor<70xbf16>, tensor<2x?x70xbf16>, tensor<2x70x3xbf16>) -> (tensor<2x?x70xbf16>, tensor<2x70x3xbf16>)
  return %r#0, %r#1 : tensor<2x?x70xbf16>, tensor<2x70x3xbf16>
}
func.func @dilated(%x: tensor<2x?x20xf32>, %w: tensor<20x3xf32>, %b: tensor<20xf32>, %o: tensor<2x?x20xf32>, %s: tensor<2x20x9xf32>) -> (tensor<2x?x20xf32>, tensor<2x20x9xf32>) {
  %r:2 = linattn.causal_conv %x, %w bias(%b) activation(sigmoid) into(%o) init(%s) {dilation = 4 : i64} : (tensor<2x?x20xf32>, tensor<20x3xf32>, tensor<20xf32>, tensor<2x?x20xf32>, tensor<2x20x9xf32>) -> (tensor<2x?x20xf32>, tensor<2x20x9xf32>)
  return %r#0, %r#1 : tensor<2x?x20xf32>, tensor<2x20x9xf32>
}
func.func @packed_reverse(%x: tensor<1x21x40xf32>, %w: tensor<40x4xf32>, %o: tensor<1x21x40xf32>, %s: tensor<5x40x3xf32>) -> (tensor<1x21x40xf32>, tensor<5x40x3xf32>) {
  %n = arith.constant dense<[0, 2, 2, 9, 20, 21]> : tensor<6xi64>
  %r:2 = linattn.causal_conv %x, %w cu_seqlens(%n) into(%o) init(%s) {reverse} : (tensor<1x21x40xf32>, tensor<40x4xf32>, tensor<6xi64>, tensor<1x21x40xf32>, tensor<5x40x3xf32>) -> (tensor<1x21x40xf32>, tensor<5x40x3xf32>)
  return %r#0, %r#1 : tensor<1x21x40xf32>, tensor<5x40x3xf32>
}
