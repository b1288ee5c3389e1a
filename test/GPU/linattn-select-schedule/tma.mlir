// RUN: linattn-opt %s "--linattn-select-schedule=chip=sm_90a copy=tma" | FileCheck %s
// RUN: linattn-opt %s "--linattn-select-schedule=chip=sm_90a copy=tma" --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: linattn-opt %s "--linattn-select-schedule=chip=sm_90 copy=tma" --remarks-filter=linattn 2>&1 | FileCheck %s --check-prefix=OLDER --implicit-check-not="copy = tma"
// RUN: linattn-opt %s --linattn-select-schedule=chip=sm_90a | FileCheck %s --check-prefix=CHOSEN --implicit-check-not="copy = tma"
// RUN: not linattn-opt %s --linattn-select-schedule=copy=dma 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// UNKNOWN: Cannot find option named 'dma'

// REMARK: Remark="quadratic kernel, 8 warps, 64 tokens at a time, wgmma, tma"
// OLDER: Remark="quadratic kernel, 4 warps, 64 tokens at a time; mma_sync: wgmma is code for the chip sm_90a; cp_async, no tma: it copies for wgmma alone"
// CHOSEN-LABEL: func.func @softmax(
// CHOSEN: mma = wgmma
// CHECK-LABEL: func.func @softmax(
// CHECK: linattn.schedule = #linattn.schedule<form = quadratic, mma = wgmma, chunk = 64, warps = 8, stages = 2, copy = tma>
func.func @softmax(%q: memref<2x8x?x64xbf16>, %k: memref<2x2x?x64xbf16>) {
  linattn.quadratic %q, %k, %k weights(softmax) into(%q) {causal, scale = 0.125}
    : (memref<2x8x?x64xbf16>, memref<2x2x?x64xbf16>, memref<2x2x?x64xbf16>, memref<2x8x?x64xbf16>) -> ()
  return
}

// REMARK: Remark="quadratic kernel, 8 warps, 64 tokens at a time, wgmma; cp_async, no tma: tensor maps take rows of multiples of 16 bytes, and 60 columns are 120 bytes"
// CHECK-LABEL: func.func @odd_rows(
// CHECK: linattn.schedule = #linattn.schedule<form = quadratic, mma = wgmma, chunk = 64, warps = 8, stages = 2>
func.func @odd_rows(%q: memref<2x8x?x60xbf16>) {
  linattn.quadratic %q, %q, %q weights(softmax) into(%q)
    : (memref<2x8x?x60xbf16>, memref<2x8x?x60xbf16>, memref<2x8x?x60xbf16>, memref<2x8x?x60xbf16>) -> ()
  return
}

// REMARK: Remark="quadratic kernel, 4 warps, 16 tokens at a time; mma_sync: wgmma has kernels of quadratic attention in 16 bits and of scans by rows only; cp_async, no tma: it copies for wgmma alone"
// CHECK-LABEL: func.func @wide(
// CHECK: mma = mma_sync
// CHECK-NOT: copy = tma
func.func @wide(%q: memref<2x8x?x64xf32>) {
  linattn.quadratic %q, %q, %q weights(softmax) into(%q)
    : (memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>) -> ()
  return
}

// Only quadratic ops have this choice.
// CHECK-LABEL: func.func @state(
// CHECK: mma = mma_sync
// CHECK-NOT: copy = tma
func.func @state(%k: memref<2x8x?x128xbf16>, %s: memref<2x8x128x128xf32>) {
  linattn.state %k, %k init(%s)
    : (memref<2x8x?x128xbf16>, memref<2x8x?x128xbf16>, memref<2x8x128x128xf32>) -> ()
  return
}
