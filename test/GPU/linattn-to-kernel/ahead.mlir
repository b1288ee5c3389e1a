// RUN: linattn-opt %s --linattn-to-kernel | FileCheck %s

// Warps of the state are four, those of scores eight.
// CHECK-LABEL: gpu.module @gla_scan
// CHECK: block = 384,

// The state: before the loop the first chunk has arrived.
// CHECK: scf.if
// CHECK: nvvm.cp.async.commit.group
// CHECK: nvvm.cp.async.wait.group 0
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
