// RUN: linattn-opt %s --split-input-file --verify-diagnostics | linattn-opt --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @plain(
// CHECK:         %{{.*}}:6 = linattn.sweep_selective %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} start(%{{.*}}) cotangent(%{{.*}}) into(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) init(%{{.*}}) : (tensor<2x?x8xf32>,
func.func @plain(%u: tensor<2x?x8xf32>, %delta: tensor<2x?x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x?x4xf32>, %c: tensor<2x?x4xf32>, %start: tensor<2x8x4xf32>, %dy: tensor<2x?x8xf32>, %o0: tensor<2x?x8xf32>, %o1: tensor<2x?x8xf32>, %o2: tensor<8x4xf32>, %o3: tensor<2x?x4xf32>, %o4: tensor<2x?x4xf32>, %s: tensor<2x8x4xf32>) {
  %r:6 = linattn.sweep_selective %u, %delta, %a, %b, %c start(%start) cotangent(%dy) into(%o0, %o1, %o2, %o3, %o4) init(%s)
    : (tensor<2x?x8xf32>, tensor<2x?x8xf32>, tensor<8x4xf32>, tensor<2x?x4xf32>, tensor<2x?x4xf32>, tensor<2x8x4xf32>, tensor<2x?x8xf32>, tensor<2x?x8xf32>, tensor<2x?x8xf32>, tensor<8x4xf32>, tensor<2x?x4xf32>, tensor<2x?x4xf32>, tensor<2x8x4xf32>) -> (tensor<2x?x8xf32>, tensor<2x?x8xf32>, tensor<8x4xf32>, tensor<2x?x4xf32>, tensor<2x?x4xf32>, tensor<2x8x4xf32>)
  return
}

// CHECK-LABEL: func.func @packed(
// CHECK:         linattn.sweep_selective {{.*}} cu_seqlens(%{{.*}}) into({{.*}}) init(%{{.*}}) {reverse} : (memref<1x6x8xf64>,
func.func @packed(%u: memref<1x6x8xf64>, %delta: memref<1x6x8xf64>, %a: memref<8x4xf64>, %b: memref<1x2x6x4xf64>, %c: memref<1x2x6x4xf64>, %start: memref<?x8x4xf64>, %dy: memref<1x6x8xf64>, %o0: memref<1x6x8xf64>, %o1: memref<1x6x8xf64>, %o2: memref<8x4xf64>, %o3: memref<1x2x6x4xf64>, %o4: memref<1x2x6x4xf64>, %s: memref<?x8x4xf64>, %n: memref<?xi64>) {
  linattn.sweep_selective %u, %delta, %a, %b, %c start(%start) cotangent(%dy) cu_seqlens(%n) into(%o0, %o1, %o2, %o3, %o4) init(%s) {reverse}
    : (memref<1x6x8xf64>, memref<1x6x8xf64>, memref<8x4xf64>, memref<1x2x6x4xf64>, memref<1x2x6x4xf64>, memref<?x8x4xf64>, memref<1x6x8xf64>, memref<?xi64>, memref<1x6x8xf64>, memref<1x6x8xf64>, memref<8x4xf64>, memref<1x2x6x4xf64>, memref<1x2x6x4xf64>, memref<?x8x4xf64>) -> ()
  return
}

// -----

func.func @S1_delta(%u: tensor<2x6x8xf32>, %delta: tensor<2x5x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %start: tensor<2x8x4xf32>, %dy: tensor<2x6x8xf32>, %o0: tensor<2x6x8xf32>, %o1: tensor<2x6x8xf32>, %o2: tensor<8x4xf32>, %o3: tensor<2x6x4xf32>, %o4: tensor<2x6x4xf32>, %s: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected input and delta to have the same sequence length, but got 6 and 5}}
  %r:6 = linattn.sweep_selective %u, %delta, %a, %b, %c start(%start) cotangent(%dy) into(%o0, %o1, %o2, %o3, %o4) init(%s)
    : (tensor<2x6x8xf32>, tensor<2x5x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @S1_cotangent(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %start: tensor<2x8x4xf32>, %dy: tensor<2x5x8xf32>, %o0: tensor<2x6x8xf32>, %o1: tensor<2x6x8xf32>, %o2: tensor<8x4xf32>, %o3: tensor<2x6x4xf32>, %o4: tensor<2x6x4xf32>, %s: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected input and cotangent to have the same sequence length, but got 6 and 5}}
  %r:6 = linattn.sweep_selective %u, %delta, %a, %b, %c start(%start) cotangent(%dy) into(%o0, %o1, %o2, %o3, %o4) init(%s)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>, tensor<2x5x8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @S1_output(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %start: tensor<2x8x4xf32>, %dy: tensor<2x6x8xf32>, %o0: tensor<2x5x8xf32>, %o1: tensor<2x6x8xf32>, %o2: tensor<8x4xf32>, %o3: tensor<2x6x4xf32>, %o4: tensor<2x6x4xf32>, %s: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected input and output to have the same sequence length, but got 6 and 5}}
  %r:6 = linattn.sweep_selective %u, %delta, %a, %b, %c start(%start) cotangent(%dy) into(%o0, %o1, %o2, %o3, %o4) init(%s)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>, tensor<2x6x8xf32>, tensor<2x5x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>) -> (tensor<2x5x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @S1_delta_output(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %start: tensor<2x8x4xf32>, %dy: tensor<2x6x8xf32>, %o0: tensor<2x6x8xf32>, %o1: tensor<2x5x8xf32>, %o2: tensor<8x4xf32>, %o3: tensor<2x6x4xf32>, %o4: tensor<2x6x4xf32>, %s: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected input and delta_output to have the same sequence length, but got 6 and 5}}
  %r:6 = linattn.sweep_selective %u, %delta, %a, %b, %c start(%start) cotangent(%dy) into(%o0, %o1, %o2, %o3, %o4) init(%s)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<2x5x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x5x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @S2_a(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<7x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %start: tensor<2x8x4xf32>, %dy: tensor<2x6x8xf32>, %o0: tensor<2x6x8xf32>, %o1: tensor<2x6x8xf32>, %o2: tensor<7x4xf32>, %o3: tensor<2x6x4xf32>, %o4: tensor<2x6x4xf32>, %s: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected a and input to have the same channel count, but got 7 and 8}}
  %r:6 = linattn.sweep_selective %u, %delta, %a, %b, %c start(%start) cotangent(%dy) into(%o0, %o1, %o2, %o3, %o4) init(%s)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<7x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<7x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<7x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @S2_a_output(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %start: tensor<2x8x4xf32>, %dy: tensor<2x6x8xf32>, %o0: tensor<2x6x8xf32>, %o1: tensor<2x6x8xf32>, %o2: tensor<8x3xf32>, %o3: tensor<2x6x4xf32>, %o4: tensor<2x6x4xf32>, %s: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected a_output and a to have the same state size, but got 3 and 4}}
  %r:6 = linattn.sweep_selective %u, %delta, %a, %b, %c start(%start) cotangent(%dy) into(%o0, %o1, %o2, %o3, %o4) init(%s)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x3xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x3xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @S3_states(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x3xf32>, %c: tensor<2x6x4xf32>, %start: tensor<2x8x4xf32>, %dy: tensor<2x6x8xf32>, %o0: tensor<2x6x8xf32>, %o1: tensor<2x6x8xf32>, %o2: tensor<8x4xf32>, %o3: tensor<2x6x4xf32>, %o4: tensor<2x6x4xf32>, %s: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected b and a to have the same state size, but got 3 and 4}}
  %r:6 = linattn.sweep_selective %u, %delta, %a, %b, %c start(%start) cotangent(%dy) into(%o0, %o1, %o2, %o3, %o4) init(%s)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x3xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @S3_fixed(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<8x4xf32>, %c: tensor<2x6x4xf32>, %start: tensor<2x8x4xf32>, %dy: tensor<2x6x8xf32>, %o0: tensor<2x6x8xf32>, %o1: tensor<2x6x8xf32>, %o2: tensor<8x4xf32>, %o3: tensor<2x6x4xf32>, %o4: tensor<2x6x4xf32>, %s: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected b to be [B, T, N] or [B, G, T, N], but got rank 2}}
  %r:6 = linattn.sweep_selective %u, %delta, %a, %b, %c start(%start) cotangent(%dy) into(%o0, %o1, %o2, %o3, %o4) init(%s)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @S3_rank(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x1x6x4xf32>, %start: tensor<2x8x4xf32>, %dy: tensor<2x6x8xf32>, %o0: tensor<2x6x8xf32>, %o1: tensor<2x6x8xf32>, %o2: tensor<8x4xf32>, %o3: tensor<2x6x4xf32>, %o4: tensor<2x6x4xf32>, %s: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected c to have the rank of b, 3, but got 4}}
  %r:6 = linattn.sweep_selective %u, %delta, %a, %b, %c start(%start) cotangent(%dy) into(%o0, %o1, %o2, %o3, %o4) init(%s)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x1x6x4xf32>, tensor<2x8x4xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @S3_shape(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %start: tensor<2x8x4xf32>, %dy: tensor<2x6x8xf32>, %o0: tensor<2x6x8xf32>, %o1: tensor<2x6x8xf32>, %o2: tensor<8x4xf32>, %o3: tensor<2x6x4xf32>, %o4: tensor<2x5x4xf32>, %s: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected c_output and b to have the same shape, but got 5 and 6}}
  %r:6 = linattn.sweep_selective %u, %delta, %a, %b, %c start(%start) cotangent(%dy) into(%o0, %o1, %o2, %o3, %o4) init(%s)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x5x4xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x5x4xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @S3_groups(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x3x6x4xf32>, %c: tensor<2x3x6x4xf32>, %start: tensor<2x8x4xf32>, %dy: tensor<2x6x8xf32>, %o0: tensor<2x6x8xf32>, %o1: tensor<2x6x8xf32>, %o2: tensor<8x4xf32>, %o3: tensor<2x3x6x4xf32>, %o4: tensor<2x3x6x4xf32>, %s: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected channel or group counts of b and input to divide one another, but got 3 and 8}}
  %r:6 = linattn.sweep_selective %u, %delta, %a, %b, %c start(%start) cotangent(%dy) into(%o0, %o1, %o2, %o3, %o4) init(%s)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x3x6x4xf32>, tensor<2x3x6x4xf32>, tensor<2x8x4xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x3x6x4xf32>, tensor<2x3x6x4xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x3x6x4xf32>, tensor<2x3x6x4xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @S4_start(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %start: tensor<2x7x4xf32>, %dy: tensor<2x6x8xf32>, %o0: tensor<2x6x8xf32>, %o1: tensor<2x6x8xf32>, %o2: tensor<8x4xf32>, %o3: tensor<2x6x4xf32>, %o4: tensor<2x6x4xf32>, %s: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected start and input to have the same channel count, but got 7 and 8}}
  %r:6 = linattn.sweep_selective %u, %delta, %a, %b, %c start(%start) cotangent(%dy) into(%o0, %o1, %o2, %o3, %o4) init(%s)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x7x4xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @S4_state(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %start: tensor<2x8x4xf32>, %dy: tensor<2x6x8xf32>, %o0: tensor<2x6x8xf32>, %o1: tensor<2x6x8xf32>, %o2: tensor<8x4xf32>, %o3: tensor<2x6x4xf32>, %o4: tensor<2x6x4xf32>, %s: tensor<2x8x3xf32>) {
  // expected-error @+1 {{expected state and a to have the same state size, but got 3 and 4}}
  %r:6 = linattn.sweep_selective %u, %delta, %a, %b, %c start(%start) cotangent(%dy) into(%o0, %o1, %o2, %o3, %o4) init(%s)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x3xf32>) -> (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x3xf32>)
  return
}

// -----

func.func @S5_half(%u: tensor<2x6x8xf16>, %delta: tensor<2x6x8xf16>, %a: tensor<8x4xf16>, %b: tensor<2x6x4xf16>, %c: tensor<2x6x4xf16>, %start: tensor<2x8x4xf16>, %dy: tensor<2x6x8xf16>, %o0: tensor<2x6x8xf16>, %o1: tensor<2x6x8xf16>, %o2: tensor<8x4xf16>, %o3: tensor<2x6x4xf16>, %o4: tensor<2x6x4xf16>, %s: tensor<2x8x4xf16>) {
  // expected-error @+1 {{expected input to have element type f32 or f64, but got 'f16'}}
  %r:6 = linattn.sweep_selective %u, %delta, %a, %b, %c start(%start) cotangent(%dy) into(%o0, %o1, %o2, %o3, %o4) init(%s)
    : (tensor<2x6x8xf16>, tensor<2x6x8xf16>, tensor<8x4xf16>, tensor<2x6x4xf16>, tensor<2x6x4xf16>, tensor<2x8x4xf16>, tensor<2x6x8xf16>, tensor<2x6x8xf16>, tensor<2x6x8xf16>, tensor<8x4xf16>, tensor<2x6x4xf16>, tensor<2x6x4xf16>, tensor<2x8x4xf16>) -> (tensor<2x6x8xf16>, tensor<2x6x8xf16>, tensor<8x4xf16>, tensor<2x6x4xf16>, tensor<2x6x4xf16>, tensor<2x8x4xf16>)
  return
}

// -----

func.func @S5_mixed(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf64>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %start: tensor<2x8x4xf32>, %dy: tensor<2x6x8xf32>, %o0: tensor<2x6x8xf32>, %o1: tensor<2x6x8xf32>, %o2: tensor<8x4xf32>, %o3: tensor<2x6x4xf32>, %o4: tensor<2x6x4xf32>, %s: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected input and delta to have the same element type, but got 'f32' and 'f64'}}
  %r:6 = linattn.sweep_selective %u, %delta, %a, %b, %c start(%start) cotangent(%dy) into(%o0, %o1, %o2, %o3, %o4) init(%s)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf64>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>)
  return
}

// -----

func.func @S6_batch(%u: tensor<2x6x8xf32>, %delta: tensor<2x6x8xf32>, %a: tensor<8x4xf32>, %b: tensor<2x6x4xf32>, %c: tensor<2x6x4xf32>, %start: tensor<2x8x4xf32>, %dy: tensor<2x6x8xf32>, %o0: tensor<2x6x8xf32>, %o1: tensor<2x6x8xf32>, %o2: tensor<8x4xf32>, %o3: tensor<2x6x4xf32>, %o4: tensor<2x6x4xf32>, %s: tensor<2x8x4xf32>, %n: tensor<?xi64>) {
  // expected-error @+1 {{expected batch size 1 with cu_seqlens, but got 2}}
  %r:6 = linattn.sweep_selective %u, %delta, %a, %b, %c start(%start) cotangent(%dy) cu_seqlens(%n) into(%o0, %o1, %o2, %o3, %o4) init(%s)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>, tensor<2x6x8xf32>, tensor<?xi64>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>) -> (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<2x8x4xf32>)
  return
}
