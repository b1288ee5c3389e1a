// RUN: linattn-run %s --all --open-size=0,1,2,7,300 --compare=reference

// Vectors against the naive loops: widths, states that are longer than needed,
// dilation, both directions, odd numbers of channels and tokens.

func.func @mamba(%x: tensor<2x?x70xf32>, %w: tensor<70x4xf32>, %b: tensor<70xf32>, %o: tensor<2x?x70xf32>, %s: tensor<2x70x3xf32>) -> (tensor<2x?x70xf32>, tensor<2x70x3xf32>) {
  %r:2 = linattn.causal_conv %x, %w bias(%b) activation(silu) into(%o) init(%s) : (tensor<2x?x70xf32>, tensor<70x4xf32>, tensor<70xf32>, tensor<2x?x70xf32>, tensor<2x70x3xf32>) -> (tensor<2x?x70xf32>, tensor<2x70x3xf32>)
  return %r#0, %r#1 : tensor<2x?x70xf32>, tensor<2x70x3xf32>
}
func.func @hold(%x: tensor<2x?x33xf32>, %w: tensor<33x3xf32>, %b: tensor<33xf32>, %o: tensor<2x?x33xf32>, %s: tensor<2x33x3xf32>) -> (tensor<2x?x33xf32>, tensor<2x33x3xf32>) {
  %r:2 = linattn.causal_conv %x, %w bias(%b) into(%o) init(%s) : (tensor<2x?x33xf32>, tensor<33x3xf32>, tensor<33xf32>, tensor<2x?x33xf32>, tensor<2x33x3xf32>) -> (tensor<2x?x33xf32>, tensor<2x33x3xf32>)
  return %r#0, %r#1 : tensor<2x?x33xf32>, tensor<2x33x3xf32>
}
func.func @single(%x: tensor<1x?x5xf32>, %w: tensor<5x1xf32>, %o: tensor<1x?x5xf32>, %s: tensor<1x5x0xf32>) -> (tensor<1x?x5xf32>, tensor<1x5x0xf32>) {
  %r:2 = linattn.causal_conv %x, %w activation(sigmoid) into(%o) init(%s) : (tensor<1x?x5xf32>, tensor<5x1xf32>, tensor<1x?x5xf32>, tensor<1x5x0xf32>) -> (tensor<1x?x5xf32>, tensor<1x5x0xf32>)
  return %r#0, %r#1 : tensor<1x?x5xf32>, tensor<1x5x0xf32>
}
func.func @widest(%x: tensor<1x?x17xf32>, %w: tensor<17x16xf32>, %o: tensor<1x?x17xf32>, %s: tensor<1x17x15xf32>) -> (tensor<1x?x17xf32>, tensor<1x17x15xf32>) {
  %r:2 = linattn.causal_conv %x, %w activation(silu) into(%o) init(%s) : (tensor<1x?x17xf32>, tensor<17x16xf32>, tensor<1x?x17xf32>, tensor<1x17x15xf32>) -> (tensor<1x?x17xf32>, tensor<1x17x15xf32>)
  return %r#0, %r#1 : tensor<1x?x17xf32>, tensor<1x17x15xf32>
}
func.func @dilated(%x: tensor<2x?x20xf32>, %w: tensor<20x3xf32>, %b: tensor<20xf32>, %o: tensor<2x?x20xf32>, %s: tensor<2x20x40xf32>) -> (tensor<2x?x20xf32>, tensor<2x20x40xf32>) {
  %r:2 = linattn.causal_conv %x, %w bias(%b) activation(silu) into(%o) init(%s) {dilation = 19 : i64} : (tensor<2x?x20xf32>, tensor<20x3xf32>, tensor<20xf32>, tensor<2x?x20xf32>, tensor<2x20x40xf32>) -> (tensor<2x?x20xf32>, tensor<2x20x40xf32>)
  return %r#0, %r#1 : tensor<2x?x20xf32>, tensor<2x20x40xf32>
}
func.func @reverse(%x: tensor<2x?x40xf32>, %w: tensor<40x4xf32>, %b: tensor<40xf32>, %o: tensor<2x?x40xf32>, %s: tensor<2x40x3xf32>) -> (tensor<2x?x40xf32>, tensor<2x40x3xf32>) {
  %r:2 = linattn.causal_conv %x, %w bias(%b) activation(silu) into(%o) init(%s) {reverse} : (tensor<2x?x40xf32>, tensor<40x4xf32>, tensor<40xf32>, tensor<2x?x40xf32>, tensor<2x40x3xf32>) -> (tensor<2x?x40xf32>, tensor<2x40x3xf32>)
  return %r#0, %r#1 : tensor<2x?x40xf32>, tensor<2x40x3xf32>
}
func.func @wide(%x: tensor<2x?x24xf64>, %w: tensor<24x4xf64>, %b: tensor<24xf64>, %o: tensor<2x?x24xf64>, %s: tensor<2x24x3xf64>) -> (tensor<2x?x24xf64>, tensor<2x24x3xf64>) {
  %r:2 = linattn.causal_conv %x, %w bias(%b) activation(silu) into(%o) init(%s) : (tensor<2x?x24xf64>, tensor<24x4xf64>, tensor<24xf64>, tensor<2x?x24xf64>, tensor<2x24x3xf64>) -> (tensor<2x?x24xf64>, tensor<2x24x3xf64>)
  return %r#0, %r#1 : tensor<2x?x24xf64>, tensor<2x24x3xf64>
}
func.func @half(%x: tensor<2x?x40xf16>, %w: tensor<40x4xf16>, %b: tensor<40xf32>, %o: tensor<2x?x40xf16>, %s: tensor<2x40x3xf16>) -> (tensor<2x?x40xf16>, tensor<2x40x3xf16>) {
  %r:2 = linattn.causal_conv %x, %w bias(%b) activation(silu) into(%o) init(%s) : (tensor<2x?x40xf16>, tensor<40x4xf16>, tensor<40xf32>, tensor<2x?x40xf16>, tensor<2x40x3xf16>) -> (tensor<2x?x40xf16>, tensor<2x40x3xf16>)
  return %r#0, %r#1 : tensor<2x?x40xf16>, tensor<2x40x3xf16>
}
func.func @brain(%x: tensor<2x?x70xbf16>, %w: tensor<70x4xbf16>, %b: tensor<70xbf16>, %o: tensor<2x?x70xbf16>, %s: tensor<2x70x3xbf16>) -> (tensor<2x?x70xbf16>, tensor<2x70x3xbf16>) {
  %r:2 = linattn.causal_conv %x, %w bias(%b) activation(silu) into(%o) init(%s) : (tensor<2x?x70xbf16>, tensor<70x4xbf16>, tensor<70xbf16>, tensor<2x?x70xbf16>, tensor<2x70x3xbf16>) -> (tensor<2x?x70xbf16>, tensor<2x70x3xbf16>)
  return %r#0, %r#1 : tensor<2x?x70xbf16>, tensor<2x70x3xbf16>
}
func.func @any(%x: tensor<?x?x?xf32>, %w: tensor<?x4xf32>, %b: tensor<?xf32>, %o: tensor<?x?x?xf32>, %s: tensor<?x?x3xf32>) -> (tensor<?x?x?xf32>, tensor<?x?x3xf32>) {
  %r:2 = linattn.causal_conv %x, %w bias(%b) activation(silu) into(%o) init(%s) : (tensor<?x?x?xf32>, tensor<?x4xf32>, tensor<?xf32>, tensor<?x?x?xf32>, tensor<?x?x3xf32>) -> (tensor<?x?x?xf32>, tensor<?x?x3xf32>)
  return %r#0, %r#1 : tensor<?x?x?xf32>, tensor<?x?x3xf32>
}
func.func @packed(%x: tensor<1x21x40xf32>, %w: tensor<40x4xf32>, %b: tensor<40xf32>, %o: tensor<1x21x40xf32>, %s: tensor<5x40x3xf32>) -> (tensor<1x21x40xf32>, tensor<5x40x3xf32>) {
  %n = arith.constant dense<[0, 2, 2, 9, 20, 21]> : tensor<6xi64>
  %r:2 = linattn.causal_conv %x, %w bias(%b) activation(silu) cu_seqlens(%n) into(%o) init(%s) : (tensor<1x21x40xf32>, tensor<40x4xf32>, tensor<40xf32>, tensor<6xi64>, tensor<1x21x40xf32>, tensor<5x40x3xf32>) -> (tensor<1x21x40xf32>, tensor<5x40x3xf32>)
  return %r#0, %r#1 : tensor<1x21x40xf32>, tensor<5x40x3xf32>
}
func.func @packed_reverse(%x: tensor<1x21x40xbf16>, %w: tensor<40x4xbf16>, %b: tensor<40xf32>, %o: tensor<1x21x40xbf16>, %s: tensor<5x40x3xbf16>) -> (tensor<1x21x40xbf16>, tensor<5x40x3xbf16>) {
  %n = arith.constant dense<[0, 2, 2, 9, 20, 21]> : tensor<6xi64>
  %r:2 = linattn.causal_conv %x, %w bias(%b) activation(silu) cu_seqlens(%n) into(%o) init(%s) {reverse} : (tensor<1x21x40xbf16>, tensor<40x4xbf16>, tensor<40xf32>, tensor<6xi64>, tensor<1x21x40xbf16>, tensor<5x40x3xbf16>) -> (tensor<1x21x40xbf16>, tensor<5x40x3xbf16>)
  return %r#0, %r#1 : tensor<1x21x40xbf16>, tensor<5x40x3xbf16>
}
