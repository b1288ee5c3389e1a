// RUN: linattn-opt %s --linattn-emulate-launches | FileCheck %s

// The text of the kernels is a constant of the host's code; the record holds the
// grid, block, shared memory, number of arguments, and three fields for each.

#plan = #linattn.launch_plan<grid = ()[s0] -> (s0 ceildiv 32, 2, 1),
    block = 32, shared = 128, sizes = [<size, operand = 0, dim = 0>],
    args = [<pointer, operand = 0, align = 4>, <size, operand = 0, dim = 0>, <stride, operand = 1, dim = 0>]>

// CHECK-DAG: llvm.mlir.global internal constant @m__text("gpu.module @m {{.*}}nvvm.kernel{{.*}}\00")
// CHECK-DAG: llvm.mlir.global internal constant @m__k__name("k\00")
// CHECK-DAG: func.func private @linattn_emulate_launch(i64, i64, i64)
// CHECK-LABEL: func.func @layer
// CHECK-SAME: %[[X:.+]]: memref<?xf32>, %[[Y:.+]]: memref<?x?xbf16, strided<[?, 1], offset: ?>>
func.func @layer(%x: memref<?xf32>, %y: memref<?x?xbf16, strided<[?, 1], offset: ?>>, %n: index) {
  // CHECK: %[[RECORD:.+]] = memref.alloca() : memref<17xi64>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // The record is made once, not in every iteration.
  // CHECK: scf.for
  scf.for %i = %c0 to %n step %c1 {
    // CHECK: memref.extract_strided_metadata %[[X]]
    // CHECK: memref.extract_strided_metadata %[[Y]]
    // CHECK: arith.divsi
    // CHECK-COUNT-17: memref.store %{{.*}}, %[[RECORD]]
    // CHECK: %[[ADDRESS:.+]] = memref.extract_aligned_pointer_as_index %[[RECORD]]
    // CHECK: %[[NUMBER:.+]] = arith.index_cast %[[ADDRESS]] : index to i64
    // CHECK: %[[TEXT:.+]] = llvm.ptrtoint
    // CHECK: %[[NAME:.+]] = llvm.ptrtoint
    // CHECK: call @linattn_emulate_launch(%[[TEXT]], %[[NAME]], %[[NUMBER]])
    linattn.launch @m::@k(%x, %y) {linattn.launch_plan = #plan} : memref<?xf32>, memref<?x?xbf16, strided<[?, 1], offset: ?>>
  }
  return
}

// CHECK-NOT: gpu.module
gpu.module @m {
  llvm.func @k(%p: !llvm.ptr<1>, %n: i32, %s: i64) attributes {nvvm.kernel, linattn.launch_plan = #plan} {
    llvm.return
  }
}
