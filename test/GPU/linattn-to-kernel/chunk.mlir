// RUN: linattn-opt %s --linattn-to-kernel | FileCheck %s

// Sizes and strides that are not static are arguments; so is every pointer, with
// what its accesses assume.
// CHECK-LABEL: func.func @layer(
// CHECK-SAME: %[[Q:[^:]+]]: memref{{[^,]+,[^,]+}}, %[[K:[^:]+]]: memref
// CHECK-NOT: linattn.scan
// CHECK: linattn.launch @layer_scan::@layer_scan(
// CHECK-SAME: linattn.launch_plan

// CHECK-LABEL: gpu.module @layer_scan
// CHECK: llvm.mlir.global external @linattn_shared() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
// CHECK: llvm.func @layer_scan(
// CHECK-SAME: !llvm.ptr<1> {llvm.align = 16 : i64, llvm.noalias, llvm.readonly}
// CHECK-SAME: block = 128, shared = 66576
// CHECK-SAME: <pointer, operand = {{.}}, align = 16>
// CHECK-SAME: nvvm.kernel, nvvm.maxntid = array<i32: 128>

// The first chunk: tokens that do not exist are zeros, decays 4 bytes each.
// CHECK: %[[SIZE:.+]] = arith.select {{.*}} : i32
// CHECK: nvvm.cp.async.shared.global {{.*}}, 16, cache = cg, %[[SIZE]]
// CHECK: nvvm.cp.async.shared.global {{.*}}, 4, cache = ca
// CHECK: nvvm.cp.async.commit.group

// CHECK: scf.for
// CHECK: nvvm.cp.async.wait.group 0
// CHECK: nvvm.barrier0
// CHECK: scf.if
// CHECK: nvvm.cp.async.shared.global
// CHECK: nvvm.cp.async.commit.group
// The state in 16 bits, for Q S.
// CHECK: arith.truncf {{.*}} : vector<2xf32> to vector<2xbf16>
// The sums of decays, by shuffles of one warp.
// CHECK: nvvm.shfl.sync up
// CHECK: nvvm.shfl.sync down
// CHECK: nvvm.barrier0
// CHECK: nvvm.ldmatrix {{.*}}#nvvm.mma_layout<row>
// CHECK: nvvm.mma.sync {{.*}}multiplicandAPtxType = #nvvm.mma_type<bf16>
// An exponent is cut off at 0 before the mask selects.
// CHECK: %[[BETWEEN:.+]] = arith.subf
// CHECK: %[[CUT:.+]] = llvm.intr.minnum(%[[BETWEEN]], %{{.+}})
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"(%[[CUT]])
// CHECK: arith.cmpi sgt
// CHECK: arith.select
// CHECK: nvvm.bar.warp.sync
// CHECK: llvm.store {{.*}} : vector<4xi32>, !llvm.ptr<1>
// CHECK: nvvm.ldmatrix {{.*}}#nvvm.mma_layout<col>
// CHECK: scf.yield
// CHECK: llvm.store {{.*}} : vector<2xf32>, !llvm.ptr<1>
// CHECK: llvm.return
func.func @layer(%q: memref<2x8x?x64xbf16>, %k: memref<2x8x?x64xbf16>,
                 %v: memref<2x8x?x64xbf16>, %g: memref<2x8x?xf32>,
                 %o: memref<2x8x?x64xbf16>, %s: memref<2x8x64x64xf32>) {
  linattn.scan %q, %k, %v decay(%g) into(%o) init(%s)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 4, stages = 2, value_slice = 64>}
    : (memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?xf32>,
       memref<2x8x?x64xbf16>, memref<2x8x64x64xf32>) -> ()
  return
}
