// RUN: linattn-opt %s --linattn-to-kernel --split-input-file --verify-diagnostics

func.func @column_beta_chunks(%q: memref<2x8x?x64xf32>, %s: memref<2x8x64x64xf32>) {
  // expected-error @+1 {{cannot run with #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 4, stages = 2, value_slice = 64>: a beta per value column gives every column a system of its own}}
  linattn.scan %q, %q, %q beta(%q) update(delta) into(%q) init(%s)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 4, stages = 2, value_slice = 64>}
    : (memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>,
       memref<2x8x?x64xf32>, memref<2x8x64x64xf32>) -> ()
  return
}

// -----

func.func @columns(%q: memref<2x8x?x64xf32>, %s: memref<2x8x64x64xf32>) {
  // expected-error @+1 {{this chunk kernel has chunks of 16, 32 or 64 tokens, and four to eight warps of 16 columns, with none, four or eight more for scores}}
  linattn.scan %q, %q, %q into(%q) init(%s)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 4, stages = 2, value_slice = 32>}
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
  // expected-error @+1 {{the token kernel runs no segments of T in parallel}}
  linattn.scan %q, %q, %q into(%q) init(%s)
      {linattn.schedule = #linattn.schedule<form = token, mma = fma, chunk = 8, warps = 4, value_slice = 64, split = 2>}
    : (memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>,
       memref<2x8x?x64xf32>, memref<2x8x64x64xf32>) -> ()
  return
}

// -----

func.func @split_erase(%q: memref<2x8x?x128xf32>, %b: memref<2x8x?xf32>, %s: memref<2x8x128x128xf32>) {
  // expected-error @+1 {{beside an erase gate of f32 tokens the registers hold 96 channels of a segment}}
  linattn.scan %q, %q, %q erase(%q) update(delta) into(%q) init(%s)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 16, warps = 8, stages = 2, value_slice = 128, split = 2>}
    : (memref<2x8x?x128xf32>, memref<2x8x?x128xf32>, memref<2x8x?x128xf32>, memref<2x8x?x128xf32>,
       memref<2x8x?x128xf32>, memref<2x8x128x128xf32>) -> ()
  return
}

// -----

func.func @chunk_warps(%q: memref<2x8x?x64xbf16>, %s: memref<2x8x64x64xf32>) {
  // expected-error @+1 {{the chunk kernel has chunks of 64 tokens, and four warps for 32 or 64 columns}}
  linattn.scan %q, %q, %q into(%q) init(%s)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 6, stages = 2, value_slice = 64>}
    : (memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>,
       memref<2x8x?x64xbf16>, memref<2x8x64x64xf32>) -> ()
  return
}

// -----

func.func @warpgroups(%q: memref<2x8x?x64xbf16>, %s: memref<2x8x64x64xf32>) {
  // expected-error @+1 {{the chunk kernel of wgmma has chunks of 64 tokens, four warps for every 64 rows of the state and four more, and 32 to 128 columns, in sixteens}}
  linattn.scan %q, %q, %q into(%q) init(%s)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = wgmma, chunk = 64, warps = 4, stages = 2, value_slice = 64>}
    : (memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x64x64xf32>) -> ()
  return
}

// -----

func.func @warpgroups_columns(%q: memref<2x8x?x64xbf16>, %s: memref<2x8x64x64xf32>) {
  // expected-error @+1 {{the chunk kernel of wgmma has chunks of 64 tokens, four warps for every 64 rows of the state and four more, and 32 to 128 columns, in sixteens}}
  linattn.scan %q, %q, %q into(%q) init(%s)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = wgmma, chunk = 64, warps = 8, stages = 2, value_slice = 256>}
    : (memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x64x64xf32>) -> ()
  return
}

// -----

func.func @warpgroups_segments(%q: memref<2x8x?x64xbf16>, %s: memref<2x8x64x64xf32>) {
  // expected-error @+1 {{the chunk kernel of wgmma has one segment}}
  linattn.scan %q, %q, %q into(%q) init(%s)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = wgmma, chunk = 64, warps = 8, stages = 2, value_slice = 64, split = 2>}
    : (memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x64x64xf32>) -> ()
  return
}

// -----

func.func @warpgroups_maps(%q: memref<2x8x?x64xbf16>, %s: memref<2x8x64x64xf32>) {
  // expected-error @+1 {{the chunk kernel has no copies by tensor maps}}
  linattn.scan %q, %q, %q into(%q) init(%s)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = wgmma, chunk = 64, warps = 8, stages = 2, value_slice = 64, copy = tma>}
    : (memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x64x64xf32>) -> ()
  return
}

// -----

func.func @warpgroups_rows(%q: memref<2x8x?x192xbf16>, %s: memref<2x8x192x192xf32>) {
  // expected-error @+1 {{the chunk kernel of wgmma holds 128 rows of a state at most}}
  linattn.scan %q, %q, %q into(%q) init(%s)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = wgmma, chunk = 64, warps = 16, stages = 1, value_slice = 64>}
    : (memref<2x8x?x192xbf16>, memref<2x8x?x192xbf16>, memref<2x8x?x192xbf16>, memref<2x8x?x192xbf16>, memref<2x8x192x192xf32>) -> ()
  return
}

// -----

func.func @ahead_segments(%q: memref<2x8x?x64xbf16>, %g: memref<2x8x?x64xf32>, %s: memref<2x8x64x64xf32>) {
  // expected-error @+1 {{with warps for scores alone there is one segment}}
  linattn.scan %q, %q, %q decay(%g) into(%q) init(%s)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 8, stages = 3, value_slice = 64, split = 2>}
    : (memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xf32>, memref<2x8x?x64xbf16>, memref<2x8x64x64xf32>) -> ()
  return
}

// -----

func.func @ahead_stages(%q: memref<2x8x?x64xbf16>, %b: memref<2x8x?xf32>, %s: memref<2x8x64x64xf32>) {
  // expected-error @+1 {{warps for scores alone take three stages}}
  linattn.scan %q, %q, %q beta(%b) update(delta) into(%q) init(%s)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 8, stages = 2, value_slice = 64>}
    : (memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?xf32>, memref<2x8x?x64xbf16>, memref<2x8x64x64xf32>) -> ()
  return
}

// -----

func.func @ahead_bytes(%q: memref<2x8x?x64xbf16>, %g: memref<2x8x?x64xf32>, %s: memref<2x8x64x64xf32>) {
  // expected-error @+1 {{its tiles take 234752 bytes of shared memory, and a block has 232448 at most}}
  linattn.scan %q, %q, %q decay(%g) into(%q) init(%s)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 12, stages = 4, value_slice = 64>}
    : (memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xf32>, memref<2x8x?x64xbf16>, memref<2x8x64x64xf32>) -> ()
  return
}

// -----

func.func @ahead_normalizer(%q: memref<2x8x?x64xbf16>, %s: memref<2x8x64x64xf32>, %z: memref<2x8x64xf32>) {
  // expected-error @+1 {{a normalizer has no warps for scores alone}}
  linattn.scan %q, %q, %q into(%q) init(%s) normalizer(%z)
      {normalize = #linattn.normalize<eps = 1.0e-6>,
       linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 8, stages = 3, value_slice = 64>}
    : (memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>,
       memref<2x8x64x64xf32>, memref<2x8x64xf32>) -> ()
  return
}

// -----

func.func @rows_bytes(%q: memref<2x8x?x256xbf16>, %s: memref<2x8x256x256xf32>) {
  // expected-error @+1 {{bytes of shared memory, and a block has 232448 at most}}
  linattn.scan %q, %q, %q into(%q) init(%s)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 8, stages = 4, value_slice = 64>}
    : (memref<2x8x?x256xbf16>, memref<2x8x?x256xbf16>, memref<2x8x?x256xbf16>, memref<2x8x?x256xbf16>,
       memref<2x8x256x256xf32>) -> ()
  return
}

// -----

func.func @warpgroups_bytes(%q: memref<2x8x?x128xbf16>, %s: memref<2x8x128x128xf32>) {
  // expected-error @+1 {{bytes of shared memory, and a block has 232448 at most}}
  linattn.scan %q, %q, %q into(%q) init(%s)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = wgmma, chunk = 64, warps = 12, stages = 4, value_slice = 128>}
    : (memref<2x8x?x128xbf16>, memref<2x8x?x128xbf16>, memref<2x8x?x128xbf16>, memref<2x8x?x128xbf16>, memref<2x8x128x128xf32>) -> ()
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

// -----

func.func @softmax_as_chunks(%q: memref<2x8x?x64xbf16>) {
  // expected-error @+1 {{attention has the form quadratic, mma_sync or wgmma, tiles of 16, 32, 64 or 128 keys, and four or eight warps}}
  linattn.quadratic %q, %q, %q weights(softmax) into(%q)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 4, stages = 2>}
    : (memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>) -> ()
  return
}

// -----

func.func @maps_of_odd_rows(%q: memref<2x8x?x64xbf16>, %v: memref<2x8x?x60xbf16>) {
  // expected-error @+1 {{copy = tma>: tensor maps take rows of multiples of 16 bytes, and 60 columns are 120 bytes}}
  linattn.quadratic %q, %q, %v weights(softmax) into(%v)
      {linattn.schedule = #linattn.schedule<form = quadratic, mma = wgmma, chunk = 64, warps = 8, stages = 2, copy = tma>}
    : (memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x60xbf16>, memref<2x8x?x60xbf16>) -> ()
  return
}

// -----

func.func @state_warps(%k: memref<2x8x?x64xbf16>, %s: memref<2x8x64x64xf32>) {
  // expected-error @+1 {{a state has the form chunk, chunks of 16, 32 or 64 tokens, and four warps for 32 or 64 columns}}
  linattn.state %k, %k init(%s)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 6, stages = 2, value_slice = 64>}
    : (memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x64x64xf32>) -> ()
  return
}

// -----

func.func @read_columns(%q: memref<2x8x?x64xbf16>, %s: memref<2x8x64x64xf32>) {
  // expected-error @+1 {{reads have the form chunk, chunks of 64 queries, four warps, and 16 to 128 columns}}
  linattn.read %q, %s into(%q)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 4, value_slice = 24>}
    : (memref<2x8x?x64xbf16>, memref<2x8x64x64xf32>, memref<2x8x?x64xbf16>) -> ()
  return
}

// -----

func.func @wgmma_of_f32(%q: memref<2x8x?x64xf32>) {
  // expected-error @+1 {{wgmma takes f16 and bf16; f32 has the products of a warp}}
  linattn.quadratic %q, %q, %q weights(softmax) into(%q)
      {linattn.schedule = #linattn.schedule<form = quadratic, mma = wgmma, chunk = 64, warps = 4, stages = 2>}
    : (memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>) -> ()
  return
}

// -----

func.func @summands_of_tokens(%q: memref<2x8x?x64xf32>, %s: memref<2x8x64x64xf32>) {
  // expected-error @+1 {{products of fma have no summands}}
  linattn.scan %q, %q, %q into(%q) init(%s)
      {linattn.schedule = #linattn.schedule<form = token, mma = fma, chunk = 8, warps = 4, value_slice = 64, summands = 2>}
    : (memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>,
       memref<2x8x?x64xf32>, memref<2x8x64x64xf32>) -> ()
  return
}
