// RUN: linattn-opt %s --linattn-to-kernel | FileCheck %s

// A block for a tile of queries and a head: how many follows from the sizes.
// CHECK-LABEL: func.func @layer(
// CHECK-NOT: linattn.quadratic
// CHECK: linattn.launch @layer_quadratic::@layer_quadratic(
// CHECK-SAME: grid = ()[s0, s1] -> ((s1 * (s0 ceildiv 128)) * 8, 1, 1), block = 128, shared = 49152
func.func @layer(%q: memref<2x8x?x64xbf16>, %k: memref<2x2x?x64xbf16>,
                 %v: memref<2x2x?x64xbf16>, %o: memref<2x8x?x64xbf16>) {
  linattn.quadratic %q, %k, %v weights(softmax) into(%o)
      {causal, scale = 0.125, linattn.schedule = #linattn.schedule<form = quadratic, mma = mma_sync, chunk = 64, warps = 4, stages = 2>}
    : (memref<2x8x?x64xbf16>, memref<2x2x?x64xbf16>, memref<2x2x?x64xbf16>, memref<2x8x?x64xbf16>) -> ()
  return
}

// Tiles of f32 have twice the bytes; outputs of it need none.
// CHECK-LABEL: func.func @wide(
// CHECK: linattn.launch @wide_quadratic::@wide_quadratic(
// CHECK-SAME: block = 128, shared = 49152
func.func @wide(%q: memref<2x8x?x64xf32>) {
  linattn.quadratic %q, %q, %q weights(softmax) into(%q)
      {linattn.schedule = #linattn.schedule<form = quadratic, mma = mma_sync, chunk = 16, warps = 4, stages = 2>}
    : (memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>) -> ()
  return
}

// A state that starts from zeros is not read, and nothing is filled.
// CHECK-LABEL: func.func @both(
// CHECK-NOT: linalg.fill
// CHECK: linattn.launch @both_state::@both_state(
// CHECK-NOT: linattn.read
// CHECK: linattn.launch @both_read::@both_read(
// CHECK-SAME: grid = ()[s0, s1] -> ((s1 * (s0 ceildiv 512)) * 8, 1, 1)
func.func @both(%q: memref<?x8x?x64xbf16>, %k: memref<?x8x?x64xbf16>, %s: memref<?x8x64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%s : memref<?x8x64x64xf32>)
  linattn.state %k, %k init(%s)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 4, stages = 2, value_slice = 64>}
    : (memref<?x8x?x64xbf16>, memref<?x8x?x64xbf16>, memref<?x8x64x64xf32>) -> ()
  linattn.read %q, %s into(%q)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 4, stages = 2, value_slice = 64>}
    : (memref<?x8x?x64xbf16>, memref<?x8x64x64xf32>, memref<?x8x?x64xbf16>) -> ()
  return
}

// CHECK-LABEL: gpu.module @layer_quadratic
// CHECK: llvm.func @layer_quadratic(
// CHECK-SAME: nvvm.kernel, nvvm.maxntid = array<i32: 128>
// The queries, then the first tile of keys and values.
// CHECK: nvvm.cp.async.shared.global {{.*}}, 16, cache = cg
// CHECK: nvvm.cp.async.commit.group
// CHECK: nvvm.cp.async.commit.group
// CHECK: nvvm.cp.async.wait.group 1
// CHECK: nvvm.barrier0
// CHECK: nvvm.ldmatrix {{.*}}#nvvm.mma_layout<row>
// CHECK: scf.for
// CHECK: nvvm.cp.async.wait.group 0
// CHECK: nvvm.barrier0
// CHECK: scf.if
// CHECK: nvvm.cp.async.shared.global
// CHECK: nvvm.mma.sync {{.*}}multiplicandAPtxType = #nvvm.mma_type<bf16>
// Only tiles that some row does not see whole are masked.
// CHECK: scf.if
// CHECK: arith.cmpi sgt
// CHECK: arith.select
// CHECK: } else {
// CHECK: llvm.intr.maxnum
// CHECK: nvvm.shfl.sync bfly
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"
// Weights go from one product to the next without leaving the registers.
// CHECK-NOT: !llvm.ptr<3>{{$}}
// CHECK: arith.truncf {{.*}} : vector<2xf32> to vector<2xbf16>
// CHECK: nvvm.ldmatrix {{.*}}#nvvm.mma_layout<col>
// CHECK: nvvm.mma.sync
// CHECK: scf.yield
// CHECK: llvm.store {{.*}} : vector<4xi32>, !llvm.ptr<1>
// CHECK: llvm.return

// Six products of summands for every 16 rows × 8 keys × 16 channels: two tiles
// of rows, 16 keys, then 64 columns of values.
// CHECK-LABEL: gpu.module @wide_quadratic
// CHECK-NOT: nvvm.ldmatrix
// CHECK: scf.for
// CHECK: scf.for
// CHECK-COUNT-24: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK: scf.yield
// CHECK-COUNT-96: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK: llvm.store {{.*}} : vector<2xf32>, !llvm.ptr<1>

// CHECK-LABEL: gpu.module @both_state
// CHECK-NOT: llvm.load {{.*}} !llvm.ptr<1>
// CHECK: nvvm.ldmatrix {{.*}}#nvvm.mma_layout<col>
// CHECK: nvvm.mma.sync
// CHECK: llvm.store {{.*}} : vector<2xf32>, !llvm.ptr<1>
// CHECK-LABEL: gpu.module @both_read
// CHECK: llvm.load {{.*}} : !llvm.ptr<1> -> vector<2xf32>
// CHECK: scf.for
// CHECK: nvvm.mma.sync
// CHECK: llvm.store {{.*}} : vector<4xi32>, !llvm.ptr<1>

// Products of warpgroups: tiles of 128 columns are two panels.
// CHECK-LABEL: gpu.module @warpgroups_quadratic
// CHECK: nvvm.maxntid = array<i32: 256>
// CHECK: scf.for
// CHECK: nvvm.cp.async.wait.group 0
// CHECK-NEXT: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
// CHECK-NEXT: nvvm.barrier0
// CHECK: nvvm.wgmma.fence.aligned
// CHECK-COUNT-8: llvm.inline_asm has_side_effects {{.*}}wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK-NEXT: llvm.inline_asm has_side_effects {{.*}}wgmma.wait_group.sync.aligned 0;
// CHECK: nvvm.wgmma.fence.aligned
// CHECK-COUNT-4: llvm.inline_asm has_side_effects {{.*}}wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK-NEXT: llvm.inline_asm has_side_effects {{.*}}wgmma.wait_group.sync.aligned 0;
// CHECK-NOT: nvvm.ldmatrix
func.func @warpgroups(%q: memref<?x8x?x128xf16>) {
  linattn.quadratic %q, %q, %q weights(softmax) into(%q)
      {linattn.schedule = #linattn.schedule<form = quadratic, mma = wgmma, chunk = 64, warps = 8, stages = 2>}
    : (memref<?x8x?x128xf16>, memref<?x8x?x128xf16>, memref<?x8x?x128xf16>, memref<?x8x?x128xf16>) -> ()
  return
}
