// RUN: linattn-opt %s "--linattn-select-schedule=chip=sm_90a scan-mma=wgmma" | FileCheck %s
// RUN: linattn-opt %s "--linattn-select-schedule=chip=sm_90a scan-mma=wgmma" --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: linattn-opt %s "--linattn-select-schedule=chip=sm_90 scan-mma=wgmma" --remarks-filter=linattn 2>&1 | FileCheck %s --check-prefix=OLDER --implicit-check-not="mma = wgmma"
// RUN: linattn-opt %s "--linattn-select-schedule=chip=sm_90a" --remarks-filter=linattn 2>&1 | FileCheck %s --check-prefix=DEFAULT --implicit-check-not="mma = wgmma"

// Four warps for the state, four for the outputs, as many stages as there may be.
// REMARK: Remark="chunk kernel, 8 warps, 64 columns of the state: products of matrices, chunk by chunk, wgmma"
// OLDER: [Missed] select-schedule {{.*}}Remark="no wgmma: the chip does not have it, as sm_90a does"
// OLDER: [Passed] select-schedule {{.*}}Remark="chunk kernel, 4 warps, 64 columns of the state
// DEFAULT: [Passed] select-schedule {{.*}}mma_sync: scan-mma=wgmma selects warpgroups
// CHECK-LABEL: func.func @d64(
// CHECK: #linattn.schedule<form = chunk, mma = wgmma, chunk = 64, warps = 8, stages = 4, value_slice = 64>
func.func @d64(%q: memref<2x8x?x64xbf16>, %s: memref<2x8x64x64xf32>) {
  linattn.scan %q, %q, %q into(%q) init(%s)
    : (memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x64x64xf32>) -> ()
  return
}

// Two warpgroups hold 128 rows of the state.
// CHECK-LABEL: func.func @d128(
// CHECK: #linattn.schedule<form = chunk, mma = wgmma, chunk = 64, warps = 12, stages = 2, value_slice = 128>
func.func @d128(%q: memref<2x8x?x128xf16>, %g: memref<2x8x?xf32>, %s: memref<2x8x128x128xf32>) {
  linattn.scan %q, %q, %q decay(%g) into(%q) init(%s)
    : (memref<2x8x?x128xf16>, memref<2x8x?x128xf16>, memref<2x8x?x128xf16>, memref<2x8x?xf32>, memref<2x8x?x128xf16>,
       memref<2x8x128x128xf32>) -> ()
  return
}

// 160 columns are two slices of 80.
// CHECK-LABEL: func.func @slices(
// CHECK: mma = wgmma, chunk = 64, warps = 8, stages = 4, value_slice = 80>
func.func @slices(%q: memref<2x8x?x64xbf16>, %v: memref<2x8x?x160xbf16>, %s: memref<2x8x64x160xf32>) {
  linattn.scan %q, %q, %v into(%v) init(%s)
    : (memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x160xbf16>, memref<2x8x?x160xbf16>, memref<2x8x64x160xf32>) -> ()
  return
}

// REMARK: [Missed] select-schedule {{.*}}Remark="no wgmma: the chunk kernel of wgmma holds 128 rows of a state at most"
// CHECK-LABEL: func.func @many_rows(
// CHECK: mma = mma_sync
func.func @many_rows(%q: memref<2x8x?x192xbf16>, %v: memref<2x8x?x64xbf16>, %s: memref<2x8x192x64xf32>) {
  linattn.scan %q, %q, %v into(%v) init(%s)
    : (memref<2x8x?x192xbf16>, memref<2x8x?x192xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x192x64xf32>) -> ()
  return
}

// REMARK: [Missed] select-schedule {{.*}}Remark="no wgmma: the scan needs a chunk kernel by columns"
// CHECK-LABEL: func.func @delta(
// CHECK: mma = mma_sync
func.func @delta(%q: memref<2x8x?x64xbf16>, %b: memref<2x8x?xf32>, %s: memref<2x8x64x64xf32>) {
  linattn.scan %q, %q, %q beta(%b) update(delta) into(%q) init(%s)
    : (memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?xf32>, memref<2x8x?x64xbf16>,
       memref<2x8x64x64xf32>) -> ()
  return
}
