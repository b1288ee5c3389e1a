// RUN: linattn-opt %s --linattn-select-schedule --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s
// RUN: linattn-opt %s --linattn-select-schedule=math=fast --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=FAST
// RUN: linattn-opt %s --linattn-select-schedule=chip=sm_90a --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=HOPPER

// The prediction for attention without a recurrence: 3 us and the waves of
// blocks, each of which takes its tiles one after the other, at 1 us or more.

// A causal block of 128 queries sees 66 of the tiles of 32 keys on average, and
// the weights of bf16 are two summands. Five waves of two blocks a
// multiprocessor: 3 + 5 (66 · 2.178 + 3.471), bound by products. wgmma has its
// own rate.
// HOPPER: Remark="quadratic kernel, 8 warps, 64 tokens at a time, wgmma; predicted 353.6 us: 1174.41 MB, 1024 blocks on 132 multiprocessors"
// CHECK: Remark="quadratic kernel, 4 warps, 32 tokens at a time; predicted 739.0 us: 1174.41 MB, 1024 blocks on 108 multiprocessors"
func.func @softmax(%q: memref<2x16x4096x128xbf16>) {
  linattn.quadratic %q, %q, %q weights(softmax) into(%q) {causal}
    : (memref<2x16x4096x128xbf16>, memref<2x16x4096x128xbf16>, memref<2x16x4096x128xbf16>, memref<2x16x4096x128xbf16>) -> ()
  return
}

// A block for each state: 3 + 64 · 1.089 + 0.868, bound by the six products of
// three summands of f32. With three products a tile takes its 1 us.
// CHECK: Remark="chunk kernel, 4 warps, 64 tokens at a time; predicted 73.6 us: 34.08 MB, 16 blocks on 108 multiprocessors"
// FAST: Remark="chunk kernel, 4 warps, 64 tokens at a time; math=fast: products take 2 summands of f32, 16 bits; predicted 67.9 us: 34.08 MB, 16 blocks
func.func @state(%k: memref<2x8x4096x64xf32>, %s: memref<2x8x64x64xf32>) {
  linattn.state %k, %k init(%s)
    : (memref<2x8x4096x64xf32>, memref<2x8x4096x64xf32>, memref<2x8x64x64xf32>) -> ()
  return
}

// Eight tiles a block, two blocks a multiprocessor: 3 + 8 · 2.178 + 0.868. With
// three products the memory bounds, at 2039 GB/s: 3 + 17.5.
// CHECK: Remark="chunk kernel, 4 warps, 64 tokens at a time; predicted 21.3 us: 35.65 MB, 128 blocks on 108 multiprocessors"
// FAST: predicted 20.5 us: 35.65 MB, 128 blocks
func.func @read(%q: memref<2x8x4096x64xf32>, %s: memref<2x8x64x64xf32>) {
  linattn.read %q, %s into(%q)
    : (memref<2x8x4096x64xf32>, memref<2x8x64x64xf32>, memref<2x8x4096x64xf32>) -> ()
  return
}

// Nothing without the number of sequences or of tokens.
// CHECK: Remark="quadratic kernel, 4 warps, 64 tokens at a time"
func.func @dynamic(%q: memref<?x8x4096x64xbf16>) {
  linattn.quadratic %q, %q, %q weights(softmax) into(%q)
    : (memref<?x8x4096x64xbf16>, memref<?x8x4096x64xbf16>, memref<?x8x4096x64xbf16>, memref<?x8x4096x64xbf16>) -> ()
  return
}
