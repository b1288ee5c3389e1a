// RUN: linattn-opt %s --split-input-file --verify-diagnostics | FileCheck %s
// RUN: linattn-opt %s --split-input-file --verify-diagnostics --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

// The states of a scan after every so many tokens.

// CHECK-LABEL: func.func @static
// CHECK:         linattn.scan %{{.*}}, %{{.*}}, %{{.*}} into(%{{.*}}) init(%{{.*}}) snapshots(%{{.*}}) {every = 4 : i64}
// GENERIC:       operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1>
func.func @static(%q: tensor<2x4x10x8xf32>, %s: tensor<2x4x8x8xf32>, %p: tensor<2x2x4x8x8xf32>) -> tensor<2x2x4x8x8xf32> {
  %r:3 = linattn.scan %q, %q, %q into(%q) init(%s) snapshots(%p) {every = 4}
    : (tensor<2x4x10x8xf32>, tensor<2x4x10x8xf32>, tensor<2x4x10x8xf32>, tensor<2x4x10x8xf32>, tensor<2x4x8x8xf32>, tensor<2x2x4x8x8xf32>) -> (tensor<2x4x10x8xf32>, tensor<2x4x8x8xf32>, tensor<2x2x4x8x8xf32>)
  return %r#2 : tensor<2x2x4x8x8xf32>
}

// With all that a state carries, on buffers of unknown sizes.
// CHECK-LABEL: func.func @parts
// CHECK:         normalizer(%{{.*}}) running_max(%{{.*}}) snapshots(%{{.*}}, %{{.*}}, %{{.*}}) {every = 1 : i64
func.func @parts(%q: memref<?x?x?x?xf32>, %s: memref<?x?x?x?xf32>, %z: memref<?x?x?xf32>, %m: memref<?x?xf32>, %ps: memref<?x?x?x?x?xf32>, %pz: memref<?x?x?x?xf32>, %pm: memref<?x?x?xf32>) {
  linattn.scan %q, %q, %q into(%q) init(%s) normalizer(%z) running_max(%m) snapshots(%ps, %pz, %pm)
    {every = 1, feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<>}
    : (memref<?x?x?x?xf32>, memref<?x?x?x?xf32>, memref<?x?x?x?xf32>, memref<?x?x?x?xf32>, memref<?x?x?x?xf32>, memref<?x?x?xf32>, memref<?x?xf32>, memref<?x?x?x?x?xf32>, memref<?x?x?x?xf32>, memref<?x?x?xf32>) -> ()
  return
}

// -----

func.func @s29(%q: tensor<2x4x10x8xf32>, %s: tensor<2x4x8x8xf32>, %z: tensor<2x4x8xf32>, %p: tensor<2x2x4x8x8xf32>) {
  // expected-error @+1 {{expected 2 snapshots, one for each part of the state, but got 1}}
  %r:4 = linattn.scan %q, %q, %q into(%q) init(%s) normalizer(%z) snapshots(%p) {every = 4, normalize = #linattn.normalize<>}
    : (tensor<2x4x10x8xf32>, tensor<2x4x10x8xf32>, tensor<2x4x10x8xf32>, tensor<2x4x10x8xf32>, tensor<2x4x8x8xf32>, tensor<2x4x8xf32>, tensor<2x2x4x8x8xf32>) -> (tensor<2x4x10x8xf32>, tensor<2x4x8x8xf32>, tensor<2x4x8xf32>, tensor<2x2x4x8x8xf32>)
  return
}

// -----

func.func @s30_count(%q: tensor<2x4x10x8xf32>, %s: tensor<2x4x8x8xf32>, %p: tensor<2x3x4x8x8xf32>) {
  // expected-error @+1 {{expected snapshots to have as many states as the sequence length of query (10) divided by 4, but got 3}}
  %r:3 = linattn.scan %q, %q, %q into(%q) init(%s) snapshots(%p) {every = 4}
    : (tensor<2x4x10x8xf32>, tensor<2x4x10x8xf32>, tensor<2x4x10x8xf32>, tensor<2x4x10x8xf32>, tensor<2x4x8x8xf32>, tensor<2x3x4x8x8xf32>) -> (tensor<2x4x10x8xf32>, tensor<2x4x8x8xf32>, tensor<2x3x4x8x8xf32>)
  return
}

// -----

func.func @s30_size(%q: tensor<2x4x10x8xf32>, %s: tensor<2x4x8x8xf32>, %p: tensor<2x2x4x8x9xf32>) {
  // expected-error @+1 {{expected snapshots and state to have the same value size, but got 9 and 8}}
  %r:3 = linattn.scan %q, %q, %q into(%q) init(%s) snapshots(%p) {every = 4}
    : (tensor<2x4x10x8xf32>, tensor<2x4x10x8xf32>, tensor<2x4x10x8xf32>, tensor<2x4x10x8xf32>, tensor<2x4x8x8xf32>, tensor<2x2x4x8x9xf32>) -> (tensor<2x4x10x8xf32>, tensor<2x4x8x8xf32>, tensor<2x2x4x8x9xf32>)
  return
}

// -----

func.func @s30_rank(%q: tensor<2x4x10x8xf32>, %s: tensor<2x4x8x8xf32>, %p: tensor<2x4x8x8xf32>) {
  // expected-error @+1 {{expected snapshots to be [B, P, H, K, V], but got 'tensor<2x4x8x8xf32>'}}
  %r:3 = linattn.scan %q, %q, %q into(%q) init(%s) snapshots(%p) {every = 4}
    : (tensor<2x4x10x8xf32>, tensor<2x4x10x8xf32>, tensor<2x4x10x8xf32>, tensor<2x4x10x8xf32>, tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>) -> (tensor<2x4x10x8xf32>, tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>)
  return
}

// -----

func.func @s30_type(%q: tensor<2x4x10x8xf32>, %s: tensor<2x4x8x8xf32>, %p: tensor<2x2x4x8x8xf64>) {
  // expected-error @+1 {{expected state and snapshots to have the same element type, but got 'f32' and 'f64'}}
  %r:3 = linattn.scan %q, %q, %q into(%q) init(%s) snapshots(%p) {every = 4}
    : (tensor<2x4x10x8xf32>, tensor<2x4x10x8xf32>, tensor<2x4x10x8xf32>, tensor<2x4x10x8xf32>, tensor<2x4x8x8xf32>, tensor<2x2x4x8x8xf64>) -> (tensor<2x4x10x8xf32>, tensor<2x4x8x8xf32>, tensor<2x2x4x8x8xf64>)
  return
}

// -----

func.func @s31_zero(%q: tensor<2x4x10x8xf32>, %s: tensor<2x4x8x8xf32>, %p: tensor<2x2x4x8x8xf32>) {
  // expected-error @+1 {{expected every to be at least 1, but got 0}}
  %r:3 = linattn.scan %q, %q, %q into(%q) init(%s) snapshots(%p) {every = 0}
    : (tensor<2x4x10x8xf32>, tensor<2x4x10x8xf32>, tensor<2x4x10x8xf32>, tensor<2x4x10x8xf32>, tensor<2x4x8x8xf32>, tensor<2x2x4x8x8xf32>) -> (tensor<2x4x10x8xf32>, tensor<2x4x8x8xf32>, tensor<2x2x4x8x8xf32>)
  return
}

// -----

func.func @s31_none(%q: tensor<2x4x10x8xf32>, %s: tensor<2x4x8x8xf32>, %p: tensor<2x2x4x8x8xf32>) {
  // expected-error @+1 {{expected every exactly with snapshots, but got none}}
  %r:3 = linattn.scan %q, %q, %q into(%q) init(%s) snapshots(%p)
    : (tensor<2x4x10x8xf32>, tensor<2x4x10x8xf32>, tensor<2x4x10x8xf32>, tensor<2x4x10x8xf32>, tensor<2x4x8x8xf32>, tensor<2x2x4x8x8xf32>) -> (tensor<2x4x10x8xf32>, tensor<2x4x8x8xf32>, tensor<2x2x4x8x8xf32>)
  return
}

// -----

func.func @s31_alone(%q: tensor<2x4x10x8xf32>, %s: tensor<2x4x8x8xf32>) {
  // expected-error @+1 {{expected every exactly with snapshots, but got it without}}
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) {every = 4}
    : (tensor<2x4x10x8xf32>, tensor<2x4x10x8xf32>, tensor<2x4x10x8xf32>, tensor<2x4x10x8xf32>, tensor<2x4x8x8xf32>) -> (tensor<2x4x10x8xf32>, tensor<2x4x8x8xf32>)
  return
}

// -----

func.func @s32(%q: tensor<1x4x10x8xf32>, %c: tensor<3xi64>, %s: tensor<2x4x8x8xf32>, %p: tensor<2x2x4x8x8xf32>) {
  // expected-error @+1 {{expected snapshots without cu_seqlens, but got both}}
  %r:3 = linattn.scan %q, %q, %q cu_seqlens(%c) into(%q) init(%s) snapshots(%p) {every = 4}
    : (tensor<1x4x10x8xf32>, tensor<1x4x10x8xf32>, tensor<1x4x10x8xf32>, tensor<3xi64>, tensor<1x4x10x8xf32>, tensor<2x4x8x8xf32>, tensor<2x2x4x8x8xf32>) -> (tensor<1x4x10x8xf32>, tensor<2x4x8x8xf32>, tensor<2x2x4x8x8xf32>)
  return
}

// -----

func.func @s32_pool(%q: tensor<2x4x10x8xf32>, %i: tensor<2xi64>, %s: tensor<9x4x8x8xf32>, %p: tensor<9x2x4x8x8xf32>) {
  // expected-error @+1 {{expected snapshots without state_indices, but got both}}
  %r:3 = linattn.scan %q, %q, %q state_indices(%i) into(%q) init(%s) snapshots(%p) {every = 4}
    : (tensor<2x4x10x8xf32>, tensor<2x4x10x8xf32>, tensor<2x4x10x8xf32>, tensor<2xi64>, tensor<2x4x10x8xf32>, tensor<9x4x8x8xf32>, tensor<9x2x4x8x8xf32>) -> (tensor<2x4x10x8xf32>, tensor<9x4x8x8xf32>, tensor<9x2x4x8x8xf32>)
  return
}
