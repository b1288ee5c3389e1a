// RUN: linattn-opt %s --linattn-to-kernel | FileCheck %s

// CHECK-LABEL: gpu.module @layer_scan
// CHECK: block = 256, shared = {{[0-9]+}}

// Which of the two loops a warp runs is what a lane says for all of it.
// CHECK: %[[WARP:.+]] = nvvm.shfl.sync {{ *}}idx
// CHECK: arith.cmpi ult, %[[WARP]],
// CHECK: nvvm.cp.async.commit.group

// The warps of the state: the first state in 16 bits, before the loop.
// CHECK: scf.if
// CHECK: arith.truncf {{.*}} : vector<2xf32> to vector<2xbf16>
// CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
// CHECK: scf.for
// CHECK: nvvm.cp.async.wait.group
// CHECK: nvvm.fence.proxy
// CHECK: nvvm.barrier0
// Sums of decays from each token to the end of the chunk, by one warp for its warpgroup.
// CHECK: scf.if
// CHECK: nvvm.shfl.sync {{ *}}down
// CHECK-NOT: nvvm.shfl.sync {{ *}}up
// CHECK: nvvm.barrier id = {{.*}} number_of_threads =
// CHECK: nvvm.ldmatrix {{.*}}#nvvm.mma_layout<col>
// CHECK: nvvm.wgmma.fence.aligned
// CHECK: accumulates, 0, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK: wgmma.wait_group.sync.aligned 0;
// The next state, for the outputs of the next chunk.
// CHECK: arith.truncf {{.*}} : vector<2xf32> to vector<2xbf16>
// CHECK: nvvm.fence.proxy
// CHECK: scf.yield
// CHECK: llvm.store {{.*}} : vector<2xf32>, !llvm.ptr<1>

// The warps of the outputs: scores, and reads of the state that go on while scores are masked.
// CHECK: scf.if
// CHECK: scf.for
// CHECK: nvvm.barrier0
// CHECK-COUNT-4: wgmma.mma_async.sync.aligned.m64n64k16
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK-COUNT-8: wgmma.mma_async.sync.aligned.m64n64k16
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK: nvvm.shfl.sync {{ *}}up
// CHECK-NOT: nvvm.shfl.sync {{ *}}down
// CHECK: wgmma.wait_group.sync.aligned 1;
// CHECK: arith.cmpi sgt
// CHECK: wgmma.wait_group.sync.aligned 0;
// Scores are two summands.
// CHECK-COUNT-8: wgmma.mma_async.sync.aligned.m64n64k16
// CHECK: wgmma.wait_group.sync.aligned 0;
// CHECK: nvvm.barrier id = {{.*}} number_of_threads =
// CHECK: llvm.store {{.*}} : vector<4xi32>, !llvm.ptr<1>
// CHECK: llvm.return
func.func @layer(%q: memref<2x8x?x64xbf16>, %k: memref<2x8x?x64xbf16>,
                 %v: memref<2x8x?x64xbf16>, %g: memref<2x8x?xf32>,
                 %o: memref<2x8x?x64xbf16>, %s: memref<2x8x64x64xf32>) {
  linattn.scan %q, %k, %v decay(%g) into(%o) init(%s)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = wgmma, chunk = 64, warps = 8, stages = 3, value_slice = 64>}
    : (memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?xf32>,
       memref<2x8x?x64xbf16>, memref<2x8x64x64xf32>) -> ()
  return
}
