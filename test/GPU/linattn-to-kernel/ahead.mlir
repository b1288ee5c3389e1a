// RUN: linattn-opt %s --linattn-to-kernel | FileCheck %s
// RUN: linattn-opt %s --linattn-to-kernel | FileCheck %s --check-prefix=PLACE

// Warps of the state are four, those of scores eight.
// CHECK-LABEL: gpu.module @gla_scan
// CHECK: block = 384,

// The state: the others have begun with the first chunk; each time the next values are on their way.
// CHECK: scf.if
// CHECK: nvvm.cp.async.commit.group
// CHECK-NOT: nvvm.cp.async.wait.group
// CHECK: nvvm.barrier0
// CHECK: scf.for
// CHECK: nvvm.cp.async.wait.group 0
// CHECK: nvvm.barrier0
// CHECK: nvvm.cp.async.shared.global
// Blocks of 16 tokens, without a barrier in between.
// CHECK: scf.for
// CHECK-NOT: nvvm.barrier
// CHECK: nvvm.mma.sync
// CHECK: scf.yield
// CHECK: llvm.store {{.*}} : f32, !llvm.ptr<1>

// Scores: two steps, with a barrier of these warps alone; then that of all, where the next chunk has arrived.
// CHECK: scf.if
// CHECK: scf.for
// CHECK: nvvm.barrier0
// CHECK: nvvm.mma.sync
// CHECK: nvvm.barrier id = %{{.+}} number_of_threads = %{{.+}}
// CHECK-NOT: nvvm.barrier
// CHECK: nvvm.cp.async.wait.group 0
// CHECK: nvvm.barrier0
// CHECK: llvm.return
func.func @gla(%q: memref<2x8x?x64xbf16>, %g: memref<2x8x?x64xf32>, %s: memref<2x8x64x64xf32>) {
  linattn.scan %q, %q, %q decay(%g) into(%q) init(%s)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 32, warps = 12, stages = 3, value_slice = 64>}
    : (memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xf32>,
       memref<2x8x?x64xbf16>, memref<2x8x64x64xf32>) -> ()
  return
}

// Decayed tokens of one summand take the place of those that arrived; decays and values have two stages.
// PLACE-LABEL: func.func @in_place(
// PLACE: linattn.launch @in_place_scan::@in_place_scan{{.*}}block = 512, shared = 230656
func.func @in_place(%q: memref<2x8x?x128xbf16>, %g: memref<2x8x?x128xf32>, %s: memref<2x8x128x128xf32>) {
  linattn.scan %q, %q, %q decay(%g) into(%q) init(%s)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 16, stages = 3, value_slice = 128, summands = 1>}
    : (memref<2x8x?x128xbf16>, memref<2x8x?x128xbf16>, memref<2x8x?x128xbf16>, memref<2x8x?x128xf32>,
       memref<2x8x?x128xbf16>, memref<2x8x128x128xf32>) -> ()
  return
}
