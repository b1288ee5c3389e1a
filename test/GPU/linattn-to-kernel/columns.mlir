// RUN: linattn-opt %s --linattn-to-kernel --split-input-file | FileCheck %s

// The gated delta rule: queries and keys go into the products as they arrive.
// CHECK-LABEL: llvm.func @gated_delta_scan(
// CHECK-SAME: block = 128
// CHECK-SAME: nvvm.kernel, nvvm.maxntid = array<i32: 128>
// Decays and betas, 4 bytes a token.
// CHECK: nvvm.cp.async.shared.global {{.*}}, 16, cache = cg
// CHECK-COUNT-2: nvvm.cp.async.shared.global {{.*}}, 4, cache = ca
// CHECK: nvvm.cp.async.commit.group

// CHECK: scf.for
// CHECK: nvvm.cp.async.wait.group 0
// CHECK: nvvm.barrier0
// Scores, 16 channels at a time: Q Kᵀ and K Kᵀ.
// CHECK: scf.for
// CHECK-COUNT-2: nvvm.ldmatrix {{.*}}#nvvm.mma_layout<row>
// CHECK-COUNT-4: nvvm.mma.sync
// CHECK: scf.yield
// CHECK: nvvm.barrier0
// Sums of decays, then the inverse: 15 + 14 + … + 1 steps of substitution.
// CHECK: nvvm.shfl.sync up
// CHECK: nvvm.shfl.sync down
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"
// CHECK-COUNT-120: nvvm.shfl.sync idx {{.*}} : f32 -> f32
// CHECK: nvvm.barrier0
// The blocks of the chunk, without a barrier: the state is in registers.
// CHECK: scf.for
// CHECK-NOT: nvvm.barrier0
// S is a sum of three, keys are themselves.
// CHECK: arith.subf
// CHECK: nvvm.ldmatrix {{.*}}#nvvm.mma_layout<row>
// CHECK-COUNT-6: nvvm.mma.sync
// CHECK: nvvm.ldmatrix {{.*}}#nvvm.mma_layout<col>
// CHECK: scf.yield
// CHECK: scf.yield
// CHECK: nvvm.cp.async.wait.group 0
// CHECK: llvm.return
func.func @gated_delta(%q: memref<2x8x?x64xbf16>, %g: memref<2x8x?xf32>, %b: memref<2x8x?xf32>,
                       %o: memref<2x8x?x64xbf16>, %s: memref<2x8x64x64xf32>) {
  linattn.scan %q, %q, %q decay(%g) beta(%b) update(delta) into(%o) init(%s)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 4, stages = 2, value_slice = 64>}
    : (memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?xf32>, memref<2x8x?xf32>,
       memref<2x8x?x64xbf16>, memref<2x8x64x64xf32>) -> ()
  return
}

// -----

// Gates of 16 bits, in any strides: a thread loads a token's and stores f32.
// CHECK-LABEL: llvm.func @narrow_scan(
// CHECK: nvvm.cp.async.shared.global {{.*}}, 16, cache = cg
// CHECK-NOT: nvvm.cp.async.shared.global {{.*}}, 4, cache = ca
// CHECK: llvm.load %{{.+}} {alignment = 2 : i64} : !llvm.ptr<1> -> bf16
// CHECK: arith.extf
// CHECK: llvm.store %{{.+}} {alignment = 4 : i64} : f32, !llvm.ptr<3>
// CHECK: llvm.load %{{.+}} {alignment = 2 : i64} : !llvm.ptr<1> -> f16
// CHECK: nvvm.cp.async.commit.group
func.func @narrow(%q: memref<2x8x?x64xbf16>, %g: memref<2x8x?xbf16>, %b: memref<2x8x?xf16>,
                  %o: memref<2x8x?x64xbf16>, %s: memref<2x8x64x64xf32>) {
  linattn.scan %q, %q, %q decay(%g) beta(%b) update(delta) into(%o) init(%s)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 4, stages = 2, value_slice = 64>}
    : (memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?xbf16>, memref<2x8x?xf16>,
       memref<2x8x?x64xbf16>, memref<2x8x64x64xf32>) -> ()
  return
}

// -----

// Given vectors of the tokens' type: a and b are operands as they arrive. Of 16
// channels four scores, two products each.
// CHECK-LABEL: llvm.func @given_scan(
// CHECK: scf.for
// CHECK: scf.for
// CHECK-COUNT-4: nvvm.ldmatrix
// CHECK-COUNT-8: nvvm.mma.sync
// CHECK: nvvm.barrier0
// The system of R.
// CHECK-COUNT-120: nvvm.shfl.sync idx
// CHECK-NOT: nvvm.shfl.sync idx
// CHECK: llvm.return
func.func @given(%q: memref<2x8x?x64xbf16>, %o: memref<2x8x?x64xbf16>, %s: memref<2x8x64x64xf32>) {
  linattn.scan %q, %q, %q a(%q) b(%q) update(dplr) into(%o) init(%s)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 4, stages = 1, value_slice = 64>}
    : (memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>,
       memref<2x8x?x64xbf16>, memref<2x8x64x64xf32>) -> ()
  return
}

// -----

// Erase and write gates: keys of their own read, values are scaled.
// CHECK-LABEL: llvm.func @gates_scan(
// CHECK: scf.for
// CHECK: scf.for
// CHECK: arith.mulf
// CHECK: nvvm.mma.sync
// CHECK-COUNT-120: nvvm.shfl.sync idx
// CHECK: llvm.return
func.func @gates(%q: memref<2x8x?x64xbf16>, %e: memref<2x8x?x64xf32>, %o: memref<2x8x?x64xbf16>, %s: memref<2x8x64x64xf32>) {
  linattn.scan %q, %q, %q erase(%e) write(%e) update(delta) into(%o) init(%s)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 32, warps = 4, stages = 1, value_slice = 64>}
    : (memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>,
       memref<2x8x?x64xbf16>, memref<2x8x64x64xf32>) -> ()
  return
}

// -----

// Decays per channel: what meets on a level decays from and to the token in
// between. No exponent is a difference.
// CHECK-LABEL: llvm.func @gla_scan(
// CHECK: nvvm.barrier0
// CHECK: scf.for
// Three levels in a loop; lanes hold the rows.
// CHECK: scf.for
// CHECK: arith.select
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"
// CHECK: nvvm.mma.sync
// CHECK: nvvm.shfl.sync bfly
// CHECK: scf.yield
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"
// CHECK: nvvm.mma.sync
// CHECK: scf.yield
// CHECK: nvvm.barrier0
// CHECK-NOT: nvvm.shfl.sync idx
// CHECK: llvm.return
func.func @gla(%q: memref<2x8x?x64xbf16>, %g: memref<2x8x?x64xf32>, %o: memref<2x8x?x64xbf16>, %s: memref<2x8x64x64xf32>) {
  linattn.scan %q, %q, %q decay(%g) into(%o) init(%s)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 32, warps = 4, stages = 2, value_slice = 64>}
    : (memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xf32>,
       memref<2x8x?x64xbf16>, memref<2x8x64x64xf32>) -> ()
  return
}

// -----

// f32 becomes sums of three bf16: six products for each 16 channels and half.
// CHECK-LABEL: llvm.func @floats_scan(
// CHECK: nvvm.barrier0
// CHECK: scf.for
// CHECK-COUNT-6: arith.truncf {{.*}} : vector<2xf32> to vector<2xbf16>
// CHECK-COUNT-12: nvvm.mma.sync {{.*}}multiplicandAPtxType = #nvvm.mma_type<bf16>
// CHECK-NOT: nvvm.mma.sync
// CHECK: scf.yield
// Outputs leave in pairs, four lanes 32 bytes.
// CHECK: llvm.store {{.*}} : vector<2xf32>, !llvm.ptr<1>
// CHECK: llvm.return
func.func @floats(%q: memref<2x8x?x64xf32>, %o: memref<2x8x?x64xf32>, %s: memref<2x8x64x64xf32>) {
  linattn.scan %q, %q, %q into(%o) init(%s)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 32, warps = 4, stages = 2, value_slice = 64>}
    : (memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>,
       memref<2x8x?x64xf32>, memref<2x8x64x64xf32>) -> ()
  return
}
