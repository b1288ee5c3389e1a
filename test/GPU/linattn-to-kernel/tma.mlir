// RUN: linattn-opt %s --linattn-to-kernel | FileCheck %s

// Copies by tensor maps, which every block makes in memory of its own.
// CHECK-LABEL: func.func @boxes(
// CHECK: %[[TILES:.+]] = arith.divsi
// CHECK: %[[BLOCKS:.+]] = arith.muli %[[TILES]], %{{.+}}
// CHECK: %[[MAPS:.+]] = memref.alloc(%[[BLOCKS]]) : memref<?x3x128xi8>
// CHECK: linattn.launch @boxes_quadratic::@boxes_quadratic(%{{.+}}, %[[MAPS]]) {{.*}}shared = 65936{{.*}}<pointer, operand = 1, align = 128>
// CHECK: memref.dealloc %[[MAPS]]
// CHECK-LABEL: gpu.module @boxes_quadratic
// CHECK-COUNT-3: tensormap.replace.tile.global_address
// CHECK-COUNT-3: nvvm.fence.proxy.acquire
// CHECK-NOT: nvvm.cp.async.shared.global
// A box is a panel of 64 columns.
// CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK: nvvm.mbarrier.try_wait.parity
// CHECK: scf.for
// CHECK: nvvm.barrier0
// CHECK: nvvm.mbarrier.arrive.expect_tx
// CHECK-COUNT-4: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK: nvvm.mbarrier.try_wait.parity
func.func @boxes(%q: memref<?x8x?x128xf16>) {
  linattn.quadratic %q, %q, %q weights(softmax) into(%q)
      {linattn.schedule = #linattn.schedule<form = quadratic, mma = wgmma, chunk = 64, warps = 8, stages = 1, copy = tma>}
    : (memref<?x8x?x128xf16>, memref<?x8x?x128xf16>, memref<?x8x?x128xf16>, memref<?x8x?x128xf16>) -> ()
  return
}
