// RUN: linattn-opt %s --split-input-file --verify-diagnostics | linattn-opt --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @plain(
// CHECK:         linattn.output_norm %{{.*}} into(%{{.*}}) : (tensor<2x3x?x4xf32>, tensor<2x3x?x4xf32>) -> tensor<2x3x?x4xf32>
func.func @plain(%x: tensor<2x3x?x4xf32>, %o: tensor<2x3x?x4xf32>) -> tensor<2x3x?x4xf32> {
  %r = linattn.output_norm %x kind(rms) into(%o) {eps = 1.0e-5} : (tensor<2x3x?x4xf32>, tensor<2x3x?x4xf32>) -> tensor<2x3x?x4xf32>
  return %r : tensor<2x3x?x4xf32>
}

// CHECK-LABEL: func.func @all(
// CHECK:         linattn.output_norm %{{.*}} kind(layer) weight(%{{.*}}) bias(%{{.*}}) gate(%{{.*}}) activation(sigmoid) into(%{{.*}}) {eps = 1.000000e-03 : f64, gate_first}
func.func @all(%x: memref<?x?x?x?xbf16>, %w: memref<?xf32>, %b: memref<?x?xbf16>) {
  linattn.output_norm %x kind(layer) weight(%w) bias(%b) gate(%x) activation(sigmoid) into(%x) {gate_first, eps = 1.0e-3}
    : (memref<?x?x?x?xbf16>, memref<?xf32>, memref<?x?xbf16>, memref<?x?x?x?xbf16>, memref<?x?x?x?xbf16>) -> ()
  return
}

// CHECK-LABEL: func.func @skip(
// CHECK:         linattn.output_norm %{{.*}} kind(none) weight(%{{.*}}) gate(%{{.*}}) skip(%{{.*}}) skip_weight(%{{.*}}) into(%{{.*}}) {weight_offset = 1.000000e+00 : f64}
func.func @skip(%x: tensor<2x3x?x4xbf16>, %w: tensor<4xf16>, %g: tensor<2x3x?x4xf32>, %v: tensor<2x3x?x4xf16>, %d: tensor<3x4xf32>) -> tensor<2x3x?x4xbf16> {
  %r = linattn.output_norm %x kind(none) weight(%w) gate(%g) skip(%v) skip_weight(%d) into(%x) {weight_offset = 1.0}
    : (tensor<2x3x?x4xbf16>, tensor<4xf16>, tensor<2x3x?x4xf32>, tensor<2x3x?x4xf16>, tensor<3x4xf32>, tensor<2x3x?x4xbf16>) -> tensor<2x3x?x4xbf16>
  return %r : tensor<2x3x?x4xbf16>
}

// Rows of the accumulation type are rounded behind the norm.
// CHECK-LABEL: func.func @rounded(
// CHECK:         linattn.output_norm %{{.*}} into(%{{.*}}) : (tensor<2x3x?x4xf32>, tensor<2x3x?x4xbf16>) -> tensor<2x3x?x4xbf16>
func.func @rounded(%x: tensor<2x3x?x4xf32>, %o: tensor<2x3x?x4xbf16>) -> tensor<2x3x?x4xbf16> {
  %r = linattn.output_norm %x into(%o) : (tensor<2x3x?x4xf32>, tensor<2x3x?x4xbf16>) -> tensor<2x3x?x4xbf16>
  return %r : tensor<2x3x?x4xbf16>
}

// -----

func.func @N1(%x: tensor<2x3x8x4xf32>, %g: tensor<2x3x7x4xf32>) -> tensor<2x3x8x4xf32> {
  // expected-error @+1 {{expected input and gate to have the same sequence length, but got 8 and 7}}
  %r = linattn.output_norm %x gate(%g) into(%x) : (tensor<2x3x8x4xf32>, tensor<2x3x7x4xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32>
  return %r : tensor<2x3x8x4xf32>
}

// -----

func.func @N1_skip(%x: tensor<2x3x8x4xf32>, %v: tensor<2x1x8x4xf32>, %d: tensor<4xf32>) -> tensor<2x3x8x4xf32> {
  // expected-error @+1 {{expected input and skip to have the same head count, but got 3 and 1}}
  %r = linattn.output_norm %x skip(%v) skip_weight(%d) into(%x) : (tensor<2x3x8x4xf32>, tensor<2x1x8x4xf32>, tensor<4xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32>
  return %r : tensor<2x3x8x4xf32>
}

// -----

func.func @N2(%x: tensor<2x3x8x4xf64>, %o: tensor<2x3x8x4xf16>) -> tensor<2x3x8x4xf16> {
  // expected-error @+1 {{expected input and output to have the same element type, but got 'f64' and 'f16'}}
  %r = linattn.output_norm %x into(%o) : (tensor<2x3x8x4xf64>, tensor<2x3x8x4xf16>) -> tensor<2x3x8x4xf16>
  return %r : tensor<2x3x8x4xf16>
}

// -----

func.func @N3(%x: tensor<2x3x8x4xf32>, %w: tensor<2x4xf32>) -> tensor<2x3x8x4xf32> {
  // expected-error @+1 {{expected input and weight to have the same head count, but got 3 and 2}}
  %r = linattn.output_norm %x weight(%w) into(%x) : (tensor<2x3x8x4xf32>, tensor<2x4xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32>
  return %r : tensor<2x3x8x4xf32>
}

// -----

func.func @N3_size(%x: tensor<2x3x8x4xf32>, %w: tensor<5xf32>) -> tensor<2x3x8x4xf32> {
  // expected-error @+1 {{expected input and bias to have the same head size, but got 4 and 5}}
  %r = linattn.output_norm %x bias(%w) into(%x) : (tensor<2x3x8x4xf32>, tensor<5xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32>
  return %r : tensor<2x3x8x4xf32>
}

// -----

func.func @N4(%x: tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32> {
  // expected-error @+1 {{expected gate_first only with a gate, but got none}}
  %r = linattn.output_norm %x into(%x) {gate_first} : (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32>
  return %r : tensor<2x3x8x4xf32>
}

// -----

func.func @N5(%x: tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32> {
  // expected-error @+1 {{expected eps to be finite and not negative, but got -1.000000e+00}}
  %r = linattn.output_norm %x into(%x) {eps = -1.0} : (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32>
  return %r : tensor<2x3x8x4xf32>
}

// -----

func.func @N3_skip(%x: tensor<2x3x8x4xf32>, %d: tensor<5xf32>) -> tensor<2x3x8x4xf32> {
  // expected-error @+1 {{expected input and skip_weight to have the same head size, but got 4 and 5}}
  %r = linattn.output_norm %x skip(%x) skip_weight(%d) into(%x) : (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>, tensor<5xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32>
  return %r : tensor<2x3x8x4xf32>
}

// -----

func.func @N6(%x: tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32> {
  // expected-error @+1 {{expected weight_offset only with a weight, but got 1.000000e+00 without}}
  %r = linattn.output_norm %x into(%x) {weight_offset = 1.0} : (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32>
  return %r : tensor<2x3x8x4xf32>
}

// -----

func.func @N6_finite(%x: tensor<2x3x8x4xf32>, %w: tensor<4xf32>) -> tensor<2x3x8x4xf32> {
  // expected-error @+1 {{expected weight_offset to be finite, but got INF}}
  %r = linattn.output_norm %x weight(%w) into(%x) {weight_offset = 0x7FF0000000000000 : f64} : (tensor<2x3x8x4xf32>, tensor<4xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32>
  return %r : tensor<2x3x8x4xf32>
}

// -----

func.func @N7(%x: tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32> {
  // expected-error @+1 {{expected skip and skip_weight together, but got only skip}}
  %r = linattn.output_norm %x skip(%x) into(%x) : (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32>
  return %r : tensor<2x3x8x4xf32>
}
