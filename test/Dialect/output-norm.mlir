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

// -----

func.func @N1(%x: tensor<2x3x8x4xf32>, %g: tensor<2x3x7x4xf32>) -> tensor<2x3x8x4xf32> {
  // expected-error @+1 {{expected input and gate to have the same sequence length, but got 8 and 7}}
  %r = linattn.output_norm %x gate(%g) into(%x) : (tensor<2x3x8x4xf32>, tensor<2x3x7x4xf32>, tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32>
  return %r : tensor<2x3x8x4xf32>
}

// -----

func.func @N2(%x: tensor<2x3x8x4xf32>, %o: tensor<2x3x8x4xf16>) -> tensor<2x3x8x4xf16> {
  // expected-error @+1 {{expected input and output to have the same element type, but got 'f32' and 'f16'}}
  %r = linattn.output_norm %x into(%o) : (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf16>) -> tensor<2x3x8x4xf16>
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
