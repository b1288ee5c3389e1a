// RUN: linattn-opt %s | linattn-opt | FileCheck %s
// RUN: linattn-opt %s --mlir-print-op-generic | linattn-opt | FileCheck %s

#plan = #linattn.launch_plan<grid = ()[s0] -> (s0 * 8, 1, 1),
    block = 128, shared = 1024, sizes = [<size, operand = 1>],
    args = [<pointer, operand = 0, align = 16>, <size, operand = 1, dim = 1>,
            <stride, operand = 1>]>

// CHECK: gpu.module @m
gpu.module @m {
  // CHECK: llvm.func @k
  // CHECK-SAME: linattn.launch_plan = #linattn.launch_plan<grid = ()[s0] -> (s0 * 8, 1, 1), block = 128, shared = 1024, sizes = [<size, operand = 1>], args = [<pointer, operand = 0, align = 16>, <size, operand = 1, dim = 1>, <stride, operand = 1>]>
  llvm.func @k(!llvm.ptr<1>, i32, i64) attributes {nvvm.kernel, linattn.launch_plan = #plan}
}

// CHECK-LABEL: func.func @launch(
func.func @launch(%a: memref<4xf32>, %b: memref<?x8xf32>) {
  // CHECK: linattn.launch @m::@k(%{{.+}}, %{{.+}}) {linattn.launch_plan = {{.*}}} : memref<4xf32>, memref<?x8xf32>
  linattn.launch @m::@k(%a, %b) {linattn.launch_plan = #plan} : memref<4xf32>, memref<?x8xf32>
  return
}

// CHECK-LABEL: func.func private @schedule()
// CHECK-SAME: #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 4, stages = 2, value_slice = 64>
func.func private @schedule() attributes {
  linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64,
                                       warps = 4, stages = 2, value_slice = 64>}
