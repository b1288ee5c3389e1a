// RUN: linattn-opt %s --linattn-to-kernel --split-input-file --verify-diagnostics

func.func @f32_chunks(%q: memref<2x8x?x64xf32>, %s: memref<2x8x64x64xf32>) {
  // expected-error @+1 {{cannot run with #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 4, stages = 2, value_slice = 64>: tensor cores multiply f16 and bf16}}
  linattn.scan %q, %q, %q into(%q) init(%s)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 4, stages = 2, value_slice = 64>}
    : (memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>,
       memref<2x8x?x64xf32>, memref<2x8x64x64xf32>) -> ()
  return
}

// -----

func.func @slice(%q: memref<2x8x?x64xf32>, %s: memref<2x8x64x64xf32>) {
  // expected-error @+1 {{a warp of the token kernel owns 16 columns, 4 warps do not own 32}}
  linattn.scan %q, %q, %q into(%q) init(%s)
      {linattn.schedule = #linattn.schedule<form = token, mma = fma, chunk = 8, warps = 4, value_slice = 32>}
    : (memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>,
       memref<2x8x?x64xf32>, memref<2x8x64x64xf32>) -> ()
  return
}

// -----

func.func @split(%q: memref<2x8x?x64xf32>, %s: memref<2x8x64x64xf32>) {
  // expected-error @+1 {{no kernel runs segments of T in parallel}}
  linattn.scan %q, %q, %q into(%q) init(%s)
      {linattn.schedule = #linattn.schedule<form = token, mma = fma, chunk = 8, warps = 4, value_slice = 64, split = 2>}
    : (memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>,
       memref<2x8x?x64xf32>, memref<2x8x64x64xf32>) -> ()
  return
}

// -----

func.func @chunk_warps(%q: memref<2x8x?x64xbf16>, %s: memref<2x8x64x64xf32>) {
  // expected-error @+1 {{the chunk kernel has chunks of 64 tokens, four warps for 32 or 64 columns, and one or two stages}}
  linattn.scan %q, %q, %q into(%q) init(%s)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 6, stages = 2, value_slice = 64>}
    : (memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>,
       memref<2x8x?x64xbf16>, memref<2x8x64x64xf32>) -> ()
  return
}

// -----

func.func @not_a_schedule(%q: memref<2x8x?x64xf32>, %s: memref<2x8x64x64xf32>) {
  // expected-error @+1 {{expected linattn.schedule to be a schedule, but got 3 : i64}}
  linattn.scan %q, %q, %q into(%q) init(%s) {linattn.schedule = 3}
    : (memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>,
       memref<2x8x?x64xf32>, memref<2x8x64x64xf32>) -> ()
  return
}
