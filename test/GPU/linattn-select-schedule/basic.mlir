// RUN: linattn-opt %s --linattn-select-schedule | FileCheck %s
// RUN: linattn-opt %s --linattn-select-schedule=shared=100000 | FileCheck %s --check-prefix=SMALL
// RUN: linattn-opt %s --linattn-select-schedule --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// REMARK: [Passed] select-schedule {{.*}}Remark="chunk kernel, 8 warps, 128 columns of the state: products of matrices, chunk by chunk"
// CHECK-LABEL: func.func @chunks(
// CHECK: linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 8, stages = 2, value_slice = 128>
// SMALL-LABEL: func.func @chunks(
// SMALL: linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 8, value_slice = 128>
func.func @chunks(%q: memref<2x8x?x128xbf16>, %s: memref<2x8x128x128xf32>) {
  linattn.scan %q, %q, %q into(%q) init(%s)
    : (memref<2x8x?x128xbf16>, memref<2x8x?x128xbf16>, memref<2x8x?x128xbf16>,
       memref<2x8x?x128xbf16>, memref<2x8x128x128xf32>) -> ()
  return
}

// REMARK: [Passed] select-schedule {{.*}}Remark="token kernel, 4 warps, 64 columns of the state: few tokens: one pass over the state"
// CHECK-LABEL: func.func @step(
// CHECK: linattn.schedule = #linattn.schedule<form = token, mma = fma, chunk = 1, warps = 4, value_slice = 64>
func.func @step(%q: memref<2x8x1x64xbf16>, %s: memref<2x8x64x64xf32>) {
  linattn.scan %q, %q, %q into(%q) init(%s)
    : (memref<2x8x1x64xbf16>, memref<2x8x1x64xbf16>, memref<2x8x1x64xbf16>,
       memref<2x8x1x64xbf16>, memref<2x8x64x64xf32>) -> ()
  return
}

// REMARK: [Missed] select-schedule {{.*}}Remark="not chunk: tensor cores multiply f16 and bf16"
// CHECK-LABEL: func.func @floats(
// CHECK: linattn.schedule = #linattn.schedule<form = token, mma = fma, chunk = 8, warps = 4, value_slice = 64>
func.func @floats(%q: memref<2x8x?x64xf32>, %s: memref<2x8x64x64xf32>) {
  linattn.scan %q, %q, %q into(%q) init(%s)
    : (memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>,
       memref<2x8x?x64xf32>, memref<2x8x64x64xf32>) -> ()
  return
}

// A schedule that is there stays.
// CHECK-LABEL: func.func @given(
// CHECK: linattn.schedule = #linattn.schedule<form = token, mma = fma, chunk = 4, warps = 2, value_slice = 32>
func.func @given(%q: memref<2x8x?x64xf32>, %s: memref<2x8x64x64xf32>) {
  linattn.scan %q, %q, %q into(%q) init(%s)
      {linattn.schedule = #linattn.schedule<form = token, mma = fma, chunk = 4, warps = 2, value_slice = 32>}
    : (memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>,
       memref<2x8x?x64xf32>, memref<2x8x64x64xf32>) -> ()
  return
}
