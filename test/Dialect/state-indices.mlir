// RUN: linattn-opt %s --split-input-file --verify-diagnostics | linattn-opt --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @pool
// CHECK:         linattn.scan %{{.*}}, %{{.*}}, %{{.*}} state_indices(%{{.*}}) into(%{{.*}}) init(%{{.*}}) normalizer(%{{.*}}) {normalize
func.func @pool(%q: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %i: tensor<2xi64>, %o: tensor<2x4x6x16xf32>, %s: tensor<9x4x8x16xf32>, %z: tensor<9x4x8xf32>) -> tensor<9x4x8x16xf32> {
  %r:3 = linattn.scan %q, %q, %v state_indices(%i) into(%o) init(%s) normalizer(%z) {normalize = #linattn.normalize<>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2xi64>, tensor<2x4x6x16xf32>, tensor<9x4x8x16xf32>, tensor<9x4x8xf32>) -> (tensor<2x4x6x16xf32>, tensor<9x4x8x16xf32>, tensor<9x4x8xf32>)
  return %r#1 : tensor<9x4x8x16xf32>
}

// Packed sequences, on buffers, all sizes open.
// CHECK-LABEL: func.func @packed
// CHECK:         linattn.scan %{{.*}}, %{{.*}}, %{{.*}} cu_seqlens(%{{.*}}) state_indices(%{{.*}}) into
func.func @packed(%q: memref<1x?x?x8xf32>, %c: memref<?xi32>, %i: memref<?xi32>, %s: memref<?x?x8x8xf32>) {
  linattn.scan %q, %q, %q cu_seqlens(%c) state_indices(%i) into(%q) init(%s)
    : (memref<1x?x?x8xf32>, memref<1x?x?x8xf32>, memref<1x?x?x8xf32>, memref<?xi32>, memref<?xi32>, memref<1x?x?x8xf32>, memref<?x?x8x8xf32>) -> ()
  return
}

// -----

func.func @s28_batch(%q: tensor<2x4x6x8xf32>, %i: tensor<3xi64>, %s: tensor<9x4x8x8xf32>) {
  // expected-error @+1 {{expected query and state_indices to have the same batch size, but got 2 and 3}}
  %r:2 = linattn.scan %q, %q, %q state_indices(%i) into(%q) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<3xi64>, tensor<2x4x6x8xf32>, tensor<9x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<9x4x8x8xf32>)
  return
}

// -----

func.func @s28_packed(%q: tensor<1x4x6x8xf32>, %c: tensor<4xi64>, %i: tensor<4xi64>, %s: tensor<9x4x8x8xf32>) {
  // expected-error @+1 {{expected the batch size of state_indices to be one less than the length of cu_seqlens (4), but got 4}}
  %r:2 = linattn.scan %q, %q, %q cu_seqlens(%c) state_indices(%i) into(%q) init(%s)
    : (tensor<1x4x6x8xf32>, tensor<1x4x6x8xf32>, tensor<1x4x6x8xf32>, tensor<4xi64>, tensor<4xi64>, tensor<1x4x6x8xf32>, tensor<9x4x8x8xf32>) -> (tensor<1x4x6x8xf32>, tensor<9x4x8x8xf32>)
  return
}

// -----

func.func @s28_type(%q: tensor<2x4x6x8xf32>, %i: tensor<2xi8>, %s: tensor<9x4x8x8xf32>) {
  // expected-error @+1 {{must be [N] indices of states as a ranked tensor or memref of i32 or i64, but got 'tensor<2xi8>'}}
  %r:2 = linattn.scan %q, %q, %q state_indices(%i) into(%q) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2xi8>, tensor<2x4x6x8xf32>, tensor<9x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<9x4x8x8xf32>)
  return
}

// -----

// Without indices the states are the batch's.
func.func @s6(%q: tensor<2x4x6x8xf32>, %s: tensor<9x4x8x8xf32>) {
  // expected-error @+1 {{expected query and state to have the same batch size, but got 2 and 9}}
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<9x4x8x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<9x4x8x8xf32>)
  return
}

// -----

func.func @s6_size(%q: tensor<2x4x6x8xf32>, %i: tensor<2xi64>, %s: tensor<9x4x8x9xf32>) {
  // expected-error @+1 {{expected value and state to have the same head size, but got 8 and 9}}
  %r:2 = linattn.scan %q, %q, %q state_indices(%i) into(%q) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2xi64>, tensor<2x4x6x8xf32>, tensor<9x4x8x9xf32>) -> (tensor<2x4x6x8xf32>, tensor<9x4x8x9xf32>)
  return
}
