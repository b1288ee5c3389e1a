// RUN: linattn-opt %s --split-input-file --verify-diagnostics | linattn-opt --split-input-file --verify-diagnostics | FileCheck %s

// The state half of a scan: gates, sequences and direction.

// CHECK-LABEL: func.func @all(
// CHECK:         linattn.state %{{.*}}, %{{.*}} decay(%{{.*}}) value_decay(%{{.*}}) mask(%{{.*}}) cu_seqlens(%{{.*}}) init(%{{.*}}) {reverse}
func.func @all(%k: tensor<1x2x8x4xf32>, %v: tensor<1x2x8x5xf32>, %g: tensor<1x2x8x4xf32>, %h: tensor<1x2x8x5xf32>, %m: tensor<1x8xi1>, %c: tensor<4xi32>, %s: tensor<3x2x4x5xf32>) -> tensor<3x2x4x5xf32> {
  %r = linattn.state %k, %v decay(%g) value_decay(%h) mask(%m) cu_seqlens(%c) init(%s) {reverse}
    : (tensor<1x2x8x4xf32>, tensor<1x2x8x5xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x5xf32>, tensor<1x8xi1>, tensor<4xi32>, tensor<3x2x4x5xf32>) -> tensor<3x2x4x5xf32>
  return %r : tensor<3x2x4x5xf32>
}

// CHECK-LABEL: func.func @buffers(
// CHECK:         linattn.state %{{.*}}, %{{.*}} decay(%{{.*}}) init(%{{.*}}) normalizer(%{{.*}})
func.func @buffers(%k: memref<?x2x?x4xf32>, %g: memref<2xf32>, %s: memref<?x2x4x4xf32>, %z: memref<?x2x4xf32>) {
  linattn.state %k, %k decay(%g) init(%s) normalizer(%z) : (memref<?x2x?x4xf32>, memref<?x2x?x4xf32>, memref<2xf32>, memref<?x2x4x4xf32>, memref<?x2x4xf32>) -> ()
  return
}

// -----

func.func @T8_rank(%k: tensor<1x2x8x4xf32>, %h: tensor<1x2x8xf32>, %s: tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> {
  // expected-error @+1 {{expected value_decay to be [B, H, T, V], but got 'tensor<1x2x8xf32>'}}
  %r = linattn.state %k, %k value_decay(%h) init(%s) : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  return %r : tensor<1x2x4x4xf32>
}

// -----

func.func @T8_size(%k: tensor<1x2x8x4xf32>, %g: tensor<1x2x7xf32>, %s: tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> {
  // expected-error @+1 {{expected decay and key to have the same sequence length, but got 7 and 8}}
  %r = linattn.state %k, %k decay(%g) init(%s) : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x7xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  return %r : tensor<1x2x4x4xf32>
}

// -----

func.func @T8_normalizer(%k: tensor<1x2x8x4xf32>, %s: tensor<1x2x4x4xf32>, %z: tensor<1x2x4xf32>) -> tensor<1x2x4x4xf32> {
  // expected-error @+1 {{expected value_decay only without a normalizer, but got both}}
  %r:2 = linattn.state %k, %k value_decay(%k) init(%s) normalizer(%z) : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4xf32>)
  return %r#0 : tensor<1x2x4x4xf32>
}

// -----

func.func @T9_batch(%k: tensor<2x2x8x4xf32>, %c: tensor<3xi32>, %s: tensor<2x2x4x4xf32>) -> tensor<2x2x4x4xf32> {
  // expected-error @+1 {{expected batch size 1 with cu_seqlens, but got 2}}
  %r = linattn.state %k, %k cu_seqlens(%c) init(%s) : (tensor<2x2x8x4xf32>, tensor<2x2x8x4xf32>, tensor<3xi32>, tensor<2x2x4x4xf32>) -> tensor<2x2x4x4xf32>
  return %r : tensor<2x2x4x4xf32>
}

// -----

func.func @T9_count(%k: tensor<1x2x8x4xf32>, %c: tensor<3xi32>, %s: tensor<3x2x4x4xf32>) -> tensor<3x2x4x4xf32> {
  // expected-error @+1 {{expected the batch size of state to be one less than the length of cu_seqlens (3), but got 3}}
  %r = linattn.state %k, %k cu_seqlens(%c) init(%s) : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<3xi32>, tensor<3x2x4x4xf32>) -> tensor<3x2x4x4xf32>
  return %r : tensor<3x2x4x4xf32>
}
