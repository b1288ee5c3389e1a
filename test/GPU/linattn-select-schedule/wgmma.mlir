// RUN: linattn-opt %s --linattn-select-schedule=chip=sm_90a | FileCheck %s
// RUN: linattn-opt %s --linattn-select-schedule=chip=sm_90a --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: linattn-opt %s --linattn-select-schedule=chip=sm_90 --remarks-filter=linattn 2>&1 | FileCheck %s --check-prefix=OLDER --implicit-check-not=wgmma,
// RUN: linattn-opt %s --linattn-select-schedule=chip=sm_100 | FileCheck %s --check-prefix=NEWER --implicit-check-not=wgmma

// Two warpgroups share the tiles of keys and values.
// REMARK: Remark="quadratic kernel, 8 warps, 64 tokens at a time, wgmma"
// OLDER: Remark="quadratic kernel, 4 warps, 64 tokens at a time; mma_sync: wgmma is code for the chip sm_90a"
// NEWER: func.func @softmax(
// NEWER: mma = mma_sync
// CHECK-LABEL: func.func @softmax(
// CHECK: linattn.schedule = #linattn.schedule<form = quadratic, mma = wgmma, chunk = 64, warps = 8, stages = 2>
func.func @softmax(%q: memref<2x8x?x64xbf16>, %k: memref<2x2x?x64xbf16>) {
  linattn.quadratic %q, %k, %k weights(softmax) into(%q) {causal, scale = 0.125}
    : (memref<2x8x?x64xbf16>, memref<2x2x?x64xbf16>, memref<2x2x?x64xbf16>, memref<2x8x?x64xbf16>) -> ()
  return
}

// CHECK-LABEL: func.func @linear(
// CHECK: linattn.schedule = #linattn.schedule<form = quadratic, mma = wgmma, chunk = 64, warps = 8, stages = 2>
func.func @linear(%q: memref<?x8x?x128xf16>) {
  linattn.quadratic %q, %q, %q into(%q)
    : (memref<?x8x?x128xf16>, memref<?x8x?x128xf16>, memref<?x8x?x128xf16>, memref<?x8x?x128xf16>) -> ()
  return
}

// One warpgroup is enough for few queries.
// CHECK-LABEL: func.func @few(
// CHECK: linattn.schedule = #linattn.schedule<form = quadratic, mma = wgmma, chunk = 64, warps = 4, stages = 2>
func.func @few(%q: memref<2x8x40x64xbf16>, %k: memref<2x8x?x64xbf16>) {
  linattn.quadratic %q, %k, %k weights(softmax) into(%q)
    : (memref<2x8x40x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x40x64xbf16>) -> ()
  return
}

// Outputs of many columns leave registers for the scores of fewer keys.
// CHECK-LABEL: func.func @wide(
// CHECK: linattn.schedule = #linattn.schedule<form = quadratic, mma = wgmma, chunk = 32, warps = 8, stages = 2>
func.func @wide(%q: memref<2x8x?x256xbf16>) {
  linattn.quadratic %q, %q, %q weights(softmax) into(%q)
    : (memref<2x8x?x256xbf16>, memref<2x8x?x256xbf16>, memref<2x8x?x256xbf16>, memref<2x8x?x256xbf16>) -> ()
  return
}

// REMARK: Remark="chunk kernel, 8 warps, 64 tokens at a time; mma_sync: wgmma has kernels of quadratic attention in 16 bits and of scans by rows only"
// CHECK-LABEL: func.func @state(
// CHECK: mma = mma_sync
func.func @state(%k: memref<2x8x?x128xbf16>, %s: memref<2x8x128x128xf32>) {
  linattn.state %k, %k init(%s)
    : (memref<2x8x?x128xbf16>, memref<2x8x?x128xbf16>, memref<2x8x128x128xf32>) -> ()
  return
}

// f32 has the products of a warp on any chip.
// REMARK: Remark="quadratic kernel, 4 warps, 32 tokens at a time; mma_sync: wgmma has kernels of quadratic attention in 16 bits and of scans by rows only"
// OLDER: Remark="quadratic kernel, 4 warps, 32 tokens at a time"
// NEWER: func.func @f32(
// NEWER: mma = mma_sync
// CHECK-LABEL: func.func @f32(
// CHECK: linattn.schedule = #linattn.schedule<form = quadratic, mma = mma_sync, chunk = 32, warps = 4, stages = 2>
func.func @f32(%q: memref<2x8x?x128xf32>) {
  linattn.quadratic %q, %q, %q weights(softmax) into(%q)
    : (memref<2x8x?x128xf32>, memref<2x8x?x128xf32>, memref<2x8x?x128xf32>, memref<2x8x?x128xf32>) -> ()
  return
}
