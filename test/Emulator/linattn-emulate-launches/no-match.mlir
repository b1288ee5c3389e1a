// RUN: linattn-opt %s --linattn-emulate-launches | FileCheck %s

// Nothing is launched: nothing is added, and kernels without a use go.

// CHECK-LABEL: func.func @f
// CHECK-NEXT: return
// CHECK-NOT: linattn_emulate_launch
// CHECK-NOT: gpu.module
func.func @f(%x: memref<?xf32>) {
  return
}
gpu.module @m {
  llvm.func @k() attributes {nvvm.kernel} {
    llvm.return
  }
}
