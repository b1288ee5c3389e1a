// RUN: linattn-opt %s --split-input-file --verify-diagnostics | linattn-opt --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @plain(
// CHECK:         %{{.*}}:2 = linattn.causal_conv %{{.*}}, %{{.*}} into(%{{.*}}) init(%{{.*}}) : (tensor<2x?x6xf32>, tensor<6x4xf32>, tensor<2x?x6xf32>, tensor<2x6x3xf32>) -> (tensor<2x?x6xf32>, tensor<2x6x3xf32>)
func.func @plain(%x: tensor<2x?x6xf32>, %w: tensor<6x4xf32>, %o: tensor<2x?x6xf32>, %s: tensor<2x6x3xf32>) -> (tensor<2x?x6xf32>, tensor<2x6x3xf32>) {
  %y, %s1 = linattn.causal_conv %x, %w into(%o) init(%s) {dilation = 1 : i64} : (tensor<2x?x6xf32>, tensor<6x4xf32>, tensor<2x?x6xf32>, tensor<2x6x3xf32>) -> (tensor<2x?x6xf32>, tensor<2x6x3xf32>)
  return %y, %s1 : tensor<2x?x6xf32>, tensor<2x6x3xf32>
}

// CHECK-LABEL: func.func @all(
// CHECK:         linattn.causal_conv %{{.*}}, %{{.*}} bias(%{{.*}}) activation(silu) cu_seqlens(%{{.*}}) into(%{{.*}}) init(%{{.*}}) {dilation = 2 : i64, reverse}
func.func @all(%x: memref<?x?x?xbf16>, %w: memref<?x3xf32>, %b: memref<?xf16>, %n: memref<?xi32>, %o: memref<?x?x?xbf16>, %s: memref<?x?x5xbf16>) {
  linattn.causal_conv %x, %w bias(%b) activation(silu) cu_seqlens(%n) into(%o) init(%s) {reverse, dilation = 2 : i64}
    : (memref<?x?x?xbf16>, memref<?x3xf32>, memref<?xf16>, memref<?xi32>, memref<?x?x?xbf16>, memref<?x?x5xbf16>) -> ()
  return
}

// One weight needs no inputs from before.

// CHECK-LABEL: func.func @single(
// CHECK:         activation(sigmoid)
func.func @single(%x: memref<1x4x2xf64>, %w: memref<2x1xf64>, %s: memref<1x2x0xf64>) {
  linattn.causal_conv %x, %w activation(sigmoid) into(%x) init(%s)
    : (memref<1x4x2xf64>, memref<2x1xf64>, memref<1x4x2xf64>, memref<1x2x0xf64>) -> ()
  return
}

// -----

func.func @K1(%x: memref<2x5x6xf32>, %w: memref<6x4xf32>, %o: memref<2x4x6xf32>, %s: memref<2x6x3xf32>) {
  // expected-error @+1 {{expected input and output to have the same sequence length, but got 5 and 4}}
  linattn.causal_conv %x, %w into(%o) init(%s) : (memref<2x5x6xf32>, memref<6x4xf32>, memref<2x4x6xf32>, memref<2x6x3xf32>) -> ()
  return
}

// -----

func.func @K1_type(%x: memref<2x5x6xf32>, %w: memref<6x4xf32>, %o: memref<2x5x6xf16>, %s: memref<2x6x3xf32>) {
  // expected-error @+1 {{expected input and output to have the same element type, but got 'f32' and 'f16'}}
  linattn.causal_conv %x, %w into(%o) init(%s) : (memref<2x5x6xf32>, memref<6x4xf32>, memref<2x5x6xf16>, memref<2x6x3xf32>) -> ()
  return
}

// -----

func.func @K2(%x: memref<2x5x6xf32>, %w: memref<5x4xf32>, %s: memref<2x6x3xf32>) {
  // expected-error @+1 {{expected weight and input to have the same channel count, but got 5 and 6}}
  linattn.causal_conv %x, %w into(%x) init(%s) : (memref<2x5x6xf32>, memref<5x4xf32>, memref<2x5x6xf32>, memref<2x6x3xf32>) -> ()
  return
}

// -----

func.func @K2_width(%x: memref<2x5x6xf32>, %w: memref<6x17xf32>, %s: memref<2x6x16xf32>) {
  // expected-error @+1 {{expected weight to have a fixed width from 1 to 16, but got 17}}
  linattn.causal_conv %x, %w into(%x) init(%s) : (memref<2x5x6xf32>, memref<6x17xf32>, memref<2x5x6xf32>, memref<2x6x16xf32>) -> ()
  return
}

// -----

func.func @K2_dynamic(%x: memref<2x5x6xf32>, %w: memref<6x?xf32>, %s: memref<2x6x16xf32>) {
  // expected-error @+1 {{expected weight to have a fixed width from 1 to 16, but got ?}}
  linattn.causal_conv %x, %w into(%x) init(%s) : (memref<2x5x6xf32>, memref<6x?xf32>, memref<2x5x6xf32>, memref<2x6x16xf32>) -> ()
  return
}

// -----

func.func @K3(%x: memref<2x5x6xf32>, %w: memref<6x4xf32>, %b: memref<7xf32>, %s: memref<2x6x3xf32>) {
  // expected-error @+1 {{expected bias and input to have the same channel count, but got 7 and 6}}
  linattn.causal_conv %x, %w bias(%b) into(%x) init(%s) : (memref<2x5x6xf32>, memref<6x4xf32>, memref<7xf32>, memref<2x5x6xf32>, memref<2x6x3xf32>) -> ()
  return
}

// -----

func.func @K4(%x: memref<2x5x6xf32>, %w: memref<6x4xf32>, %s: memref<3x6x3xf32>) {
  // expected-error @+1 {{expected input and state to have the same batch size, but got 2 and 3}}
  linattn.causal_conv %x, %w into(%x) init(%s) : (memref<2x5x6xf32>, memref<6x4xf32>, memref<2x5x6xf32>, memref<3x6x3xf32>) -> ()
  return
}

// -----

func.func @K4_type(%x: memref<2x5x6xbf16>, %w: memref<6x4xf32>, %s: memref<2x6x3xf32>) {
  // expected-error @+1 {{expected input and state to have the same element type, but got 'bf16' and 'f32'}}
  linattn.causal_conv %x, %w into(%x) init(%s) : (memref<2x5x6xbf16>, memref<6x4xf32>, memref<2x5x6xbf16>, memref<2x6x3xf32>) -> ()
  return
}

// -----

func.func @K4_length(%x: memref<2x5x6xf32>, %w: memref<6x4xf32>, %s: memref<2x6x5xf32>) {
  // expected-error @+1 {{expected the state to hold at least the 3 · 2 inputs that the next output has, but got 5}}
  linattn.causal_conv %x, %w into(%x) init(%s) {dilation = 2 : i64} : (memref<2x5x6xf32>, memref<6x4xf32>, memref<2x5x6xf32>, memref<2x6x5xf32>) -> ()
  return
}

// -----

func.func @K4_dynamic(%x: memref<2x5x6xf32>, %w: memref<6x4xf32>, %s: memref<2x6x?xf32>) {
  // expected-error @+1 {{expected the state to hold a fixed number of inputs, but got ?}}
  linattn.causal_conv %x, %w into(%x) init(%s) : (memref<2x5x6xf32>, memref<6x4xf32>, memref<2x5x6xf32>, memref<2x6x?xf32>) -> ()
  return
}

// -----

func.func @K5(%x: memref<2x5x6xf32>, %w: memref<6x4xf32>, %s: memref<2x6x3xf32>) {
  // expected-error @+1 {{expected dilation to be at least 1, but got 0}}
  linattn.causal_conv %x, %w into(%x) init(%s) {dilation = 0 : i64} : (memref<2x5x6xf32>, memref<6x4xf32>, memref<2x5x6xf32>, memref<2x6x3xf32>) -> ()
  return
}

// -----

func.func @K6(%x: memref<2x5x6xf32>, %w: memref<6x4xf32>, %n: memref<3xi32>, %s: memref<2x6x3xf32>) {
  // expected-error @+1 {{expected batch size 1 with cu_seqlens, but got 2}}
  linattn.causal_conv %x, %w cu_seqlens(%n) into(%x) init(%s) : (memref<2x5x6xf32>, memref<6x4xf32>, memref<3xi32>, memref<2x5x6xf32>, memref<2x6x3xf32>) -> ()
  return
}

// -----

func.func @K6_count(%x: memref<1x5x6xf32>, %w: memref<6x4xf32>, %n: memref<3xi32>, %s: memref<3x6x3xf32>) {
  // expected-error @+1 {{expected the first dimension of state to be one less than the length of cu_seqlens (3), but got 3}}
  linattn.causal_conv %x, %w cu_seqlens(%n) into(%x) init(%s) : (memref<1x5x6xf32>, memref<6x4xf32>, memref<3xi32>, memref<1x5x6xf32>, memref<3x6x3xf32>) -> ()
  return
}
