// RUN: linattn-opt %s --linattn-select-schedule | FileCheck %s
// RUN: linattn-opt %s --linattn-select-schedule=shared=115000 | FileCheck %s --check-prefix=SMALL
// RUN: linattn-opt %s --linattn-select-schedule --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: linattn-opt %s --linattn-select-schedule=shared=20000 --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=TINY

// REMARK: [Passed] select-schedule {{.*}}Remark="chunk kernel, 8 warps, 128 columns of the state: products of matrices, chunk by chunk; one segment: the number of tokens or sequences is not known"
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

// REMARK: [Passed] select-schedule {{.*}}Remark="token kernel, 4 warps, 64 columns of the state: few tokens: one pass over the state; predicted {{.+}} us: 0.53 MB, 16 blocks on 108 multiprocessors"
// CHECK-LABEL: func.func @step(
// CHECK: linattn.schedule = #linattn.schedule<form = token, mma = fma, chunk = 1, warps = 4, value_slice = 64>
func.func @step(%q: memref<2x8x1x64xbf16>, %s: memref<2x8x64x64xf32>) {
  linattn.scan %q, %q, %q into(%q) init(%s)
    : (memref<2x8x1x64xbf16>, memref<2x8x1x64xbf16>, memref<2x8x1x64xbf16>,
       memref<2x8x1x64xbf16>, memref<2x8x64x64xf32>) -> ()
  return
}

// Warps own columns of the state where the scan is of f32, …
// REMARK: [Passed] select-schedule {{.*}}Remark="chunk kernel, 4 warps, 64 columns of the state: products of matrices, chunk by chunk; one segment: the number of tokens or sequences is not known"
// CHECK-LABEL: func.func @floats(
// CHECK: linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 4, stages = 2, value_slice = 64>
// SMALL-LABEL: func.func @floats(
// SMALL: linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 32, warps = 4, stages = 2, value_slice = 64>
func.func @floats(%q: memref<2x8x?x64xf32>, %s: memref<2x8x64x64xf32>) {
  linattn.scan %q, %q, %q into(%q) init(%s)
    : (memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>,
       memref<2x8x?x64xf32>, memref<2x8x64x64xf32>) -> ()
  return
}

// … follows the delta rule, …
// REMARK: [Passed] select-schedule {{.*}}Remark="chunk kernel, 8 warps, 128 columns of the state: products of matrices, chunk by chunk; one segment: the number of tokens or sequences is not known"
// CHECK-LABEL: func.func @gated_delta(
// CHECK: linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 8, stages = 2, value_slice = 128>
// SMALL-LABEL: func.func @gated_delta(
// SMALL: linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 32, warps = 8, stages = 2, value_slice = 128>
func.func @gated_delta(%q: memref<2x8x?x128xbf16>, %g: memref<2x8x?xf32>, %s: memref<2x8x128x128xf32>) {
  linattn.scan %q, %q, %q decay(%g) beta(%g) update(delta) into(%q) init(%s)
    : (memref<2x8x?x128xbf16>, memref<2x8x?x128xbf16>, memref<2x8x?x128xbf16>, memref<2x8x?xf32>,
       memref<2x8x?xf32>, memref<2x8x?x128xbf16>, memref<2x8x128x128xf32>) -> ()
  return
}

// … or decays per channel.
// REMARK: [Passed] select-schedule {{.*}}Remark="chunk kernel, 8 warps, 128 columns of the state: products of matrices, chunk by chunk; one segment: the number of tokens or sequences is not known"
// CHECK-LABEL: func.func @kda(
// CHECK: linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 16, warps = 8, stages = 2, value_slice = 128>
func.func @kda(%q: memref<2x8x?x128xbf16>, %g: memref<2x8x?x128xf32>, %b: memref<2x8x?xf32>, %s: memref<2x8x128x128xf32>) {
  linattn.scan %q, %q, %q decay(%g) beta(%b) update(delta) into(%q) init(%s)
    : (memref<2x8x?x128xbf16>, memref<2x8x?x128xbf16>, memref<2x8x?x128xbf16>, memref<2x8x?x128xf32>,
       memref<2x8x?xf32>, memref<2x8x?x128xbf16>, memref<2x8x128x128xf32>) -> ()
  return
}

// Given vectors and gates of keys and values have the kernel of the delta rule.
// CHECK-LABEL: func.func @dplr(
// CHECK: linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 16, warps = 4, stages = 2, value_slice = 64>
func.func @dplr(%q: memref<2x8x?x64xf32>, %a: memref<2x8x?x64xf32>, %s: memref<2x8x64x64xf32>) {
  linattn.scan %q, %q, %q a(%a) b(%a) update(dplr) into(%q) init(%s)
    : (memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>,
       memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x64x64xf32>) -> ()
  return
}

// REMARK: [Missed] select-schedule {{.*}}Remark="not chunk: beside given vectors the registers hold 128 channels of a chunk kernel by columns"
// CHECK-LABEL: func.func @wide_dplr(
// CHECK: form = token
func.func @wide_dplr(%q: memref<2x8x?x160xbf16>, %s: memref<2x8x160x160xf32>) {
  linattn.scan %q, %q, %q a(%q) b(%q) update(dplr) into(%q) init(%s)
    : (memref<2x8x?x160xbf16>, memref<2x8x?x160xbf16>, memref<2x8x?x160xbf16>, memref<2x8x?x160xbf16>,
       memref<2x8x?x160xbf16>, memref<2x8x?x160xbf16>, memref<2x8x160x160xf32>) -> ()
  return
}

// REMARK: [Missed] select-schedule {{.*}}Remark="not chunk: beside given vectors and an index into a pool of states the registers hold 64 channels of a chunk kernel by columns"
// CHECK-LABEL: func.func @pooled_dplr(
// CHECK: form = token
func.func @pooled_dplr(%q: memref<2x8x?x96xbf16>, %i: memref<2xi32>, %s: memref<9x8x96x96xf32>) {
  linattn.scan %q, %q, %q a(%q) b(%q) state_indices(%i) update(dplr) into(%q) init(%s)
    : (memref<2x8x?x96xbf16>, memref<2x8x?x96xbf16>, memref<2x8x?x96xbf16>, memref<2x8x?x96xbf16>,
       memref<2x8x?x96xbf16>, memref<2xi32>, memref<2x8x?x96xbf16>, memref<9x8x96x96xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @gates(
// CHECK: form = chunk
func.func @gates(%q: memref<2x8x?x64xbf16>, %e: memref<2x8x?x64xf32>, %s: memref<2x8x64x64xf32>) {
  linattn.scan %q, %q, %q erase(%e) write(%q) update(delta) into(%q) init(%s)
    : (memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xf32>,
       memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x64x64xf32>) -> ()
  return
}

// REMARK: [Missed] select-schedule {{.*}}Remark="not chunk: a beta per value column gives every column a system of its own"
// CHECK-LABEL: func.func @column_beta(
// CHECK: form = token
func.func @column_beta(%q: memref<2x8x?x64xf32>, %s: memref<2x8x64x64xf32>) {
  linattn.scan %q, %q, %q beta(%q) update(delta) into(%q) init(%s)
    : (memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>,
       memref<2x8x?x64xf32>, memref<2x8x64x64xf32>) -> ()
  return
}

// REMARK: [Missed] select-schedule {{.*}}Remark="not chunk: a decay per value column goes without another decay"
// CHECK-LABEL: func.func @both_decays(
// CHECK: form = token
func.func @both_decays(%q: memref<2x8x?x64xf32>, %s: memref<2x8x64x64xf32>) {
  linattn.scan %q, %q, %q decay(%q) value_decay(%q) into(%q) init(%s)
    : (memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>,
       memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x64x64xf32>) -> ()
  return
}

// A warp of the kernel by columns owns what decays.
// CHECK-LABEL: func.func @value_decay(
// CHECK: form = chunk
// CHECK-NOT: split
func.func @value_decay(%q: memref<1x1x4096x64xbf16>, %s: memref<1x1x64x64xf32>) {
  linattn.scan %q, %q, %q value_decay(%q) into(%q) init(%s)
    : (memref<1x1x4096x64xbf16>, memref<1x1x4096x64xbf16>, memref<1x1x4096x64xbf16>, memref<1x1x4096x64xbf16>,
       memref<1x1x4096x64xbf16>, memref<1x1x64x64xf32>) -> ()
  return
}

// Gates of 16 bits are widened on their way.
// CHECK-LABEL: func.func @narrow_decay(
// CHECK: form = chunk
func.func @narrow_decay(%q: memref<2x8x?x64xbf16>, %s: memref<2x8x64x64xf32>) {
  linattn.scan %q, %q, %q decay(%q) into(%q) init(%s)
    : (memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>,
       memref<2x8x?x64xbf16>, memref<2x8x64x64xf32>) -> ()
  return
}

// REMARK: [Missed] select-schedule {{.*}}Remark="no kernel: a running maximum has no kernel"
// CHECK-LABEL: func.func @input_gate(
// CHECK-NOT: linattn.schedule
func.func @input_gate(%q: memref<2x8x?x64xf32>, %i: memref<2x8x?xf32>, %s: memref<2x8x64x64xf32>, %z: memref<2x8x64xf32>, %m: memref<2x8xf32>) {
  linattn.scan %q, %q, %q input_gate(%i) into(%q) init(%s) normalizer(%z) running_max(%m) {normalize = #linattn.normalize<abs_floor = 1.0>}
    : (memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?xf32>,
       memref<2x8x?x64xf32>, memref<2x8x64x64xf32>, memref<2x8x64xf32>, memref<2x8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @masked(
// CHECK: form = chunk
func.func @masked(%q: memref<2x8x?x64xf32>, %m: memref<2x?xi1>, %s: memref<2x8x64x64xf32>) {
  linattn.scan %q, %q, %q mask(%m) into(%q) init(%s)
    : (memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x?xi1>,
       memref<2x8x?x64xf32>, memref<2x8x64x64xf32>) -> ()
  return
}

// Nothing fits: a shared memory that is too small is a reason as well.
// TINY: "not chunk: its tiles do not fit 20000 bytes of shared memory"

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
