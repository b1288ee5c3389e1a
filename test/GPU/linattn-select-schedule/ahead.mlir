// RUN: linattn-opt %s "--linattn-select-schedule=chip=sm_90 math=fast" | FileCheck %s --check-prefixes=CHECK,FAST
// RUN: linattn-opt %s "--linattn-select-schedule=chip=sm_90" | FileCheck %s --check-prefixes=CHECK,STRICT
// RUN: linattn-opt %s "--linattn-select-schedule=chip=sm_90" --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// One block on a multiprocessor: other warps make the scores of the next chunk.
// REMARK: Remark="chunk kernel, 8 warps, 64 columns of the state: products of matrices, chunk by chunk; predicted {{.*}}; considered [4 warps, 64 columns: {{.*}} us] [8 warps, 64 columns: {{.*}} us] [token
// CHECK-LABEL: func.func @gated_delta(
// CHECK: #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 8, stages = 3, value_slice = 64
func.func @gated_delta(%q: memref<8x16x4096x64xbf16>, %g: memref<8x16x4096xf32>, %s: memref<8x16x64x64xf32>) {
  linattn.scan %q, %q, %q decay(%g) beta(%g) update(delta) into(%q) init(%s)
    : (memref<8x16x4096x64xbf16>, memref<8x16x4096x64xbf16>, memref<8x16x4096x64xbf16>, memref<8x16x4096xf32>,
       memref<8x16x4096xf32>, memref<8x16x4096x64xbf16>, memref<8x16x64x64xf32>) -> ()
  return
}

// Rows of a score that no system couples are finished by all of eight warps.
// CHECK-LABEL: func.func @gla(
// FAST: chunk = 64, warps = 12, stages = 3, value_slice = 64, summands = 1>
// STRICT: chunk = 64, warps = 12, stages = 3, value_slice = 64>
func.func @gla(%q: memref<8x16x4096x64xbf16>, %g: memref<8x16x4096x64xf32>, %s: memref<8x16x64x64xf32>) {
  linattn.scan %q, %q, %q decay(%g) into(%q) init(%s)
    : (memref<8x16x4096x64xbf16>, memref<8x16x4096x64xbf16>, memref<8x16x4096x64xbf16>, memref<8x16x4096x64xf32>,
       memref<8x16x4096x64xbf16>, memref<8x16x64x64xf32>) -> ()
  return
}

// With many heads the blocks of a multiprocessor hide each other's latency.
// CHECK-LABEL: func.func @many_heads(
// CHECK: warps = 4, stages = 2, value_slice = 64
func.func @many_heads(%q: memref<32x32x4096x64xbf16>, %g: memref<32x32x4096xf32>, %s: memref<32x32x64x64xf32>) {
  linattn.scan %q, %q, %q decay(%g) beta(%g) update(delta) into(%q) init(%s)
    : (memref<32x32x4096x64xbf16>, memref<32x32x4096x64xbf16>, memref<32x32x4096x64xbf16>, memref<32x32x4096xf32>,
       memref<32x32x4096xf32>, memref<32x32x4096x64xbf16>, memref<32x32x64x64xf32>) -> ()
  return
}

// The state's warps have registers for 128 rows where products are few.
// CHECK-LABEL: func.func @d128(
// FAST: chunk = 64, warps = 12, stages = 3, value_slice = 128, summands = 1>
// STRICT: chunk = 64, warps = 8, stages = 2, value_slice = 128>
func.func @d128(%q: memref<8x16x4096x128xbf16>, %g: memref<8x16x4096xf32>, %s: memref<8x16x128x128xf32>) {
  linattn.scan %q, %q, %q decay(%g) beta(%g) update(delta) into(%q) init(%s)
    : (memref<8x16x4096x128xbf16>, memref<8x16x4096x128xbf16>, memref<8x16x4096x128xbf16>, memref<8x16x4096xf32>,
       memref<8x16x4096xf32>, memref<8x16x4096x128xbf16>, memref<8x16x128x128xf32>) -> ()
  return
}

// Given updates fill the shared memory.
// CHECK-LABEL: func.func @given(
// CHECK: warps = 4, {{(stages = 2, )?}}value_slice = 64
func.func @given(%q: memref<8x16x4096x64xbf16>, %g: memref<8x16x4096x64xf32>, %s: memref<8x16x64x64xf32>) {
  linattn.scan %q, %q, %q decay(%g) a(%g) b(%g) update(dplr) into(%q) init(%s)
    : (memref<8x16x4096x64xbf16>, memref<8x16x4096x64xbf16>, memref<8x16x4096x64xbf16>, memref<8x16x4096x64xf32>,
       memref<8x16x4096x64xf32>, memref<8x16x4096x64xf32>, memref<8x16x4096x64xbf16>, memref<8x16x64x64xf32>) -> ()
  return
}
