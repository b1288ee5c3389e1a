// RUN: linattn-opt %s --linattn-insert-polls | FileCheck %s

// CHECK-NOT: linattn_poll

// Loops that are known to be short.
func.func @short(%m: memref<16x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  scf.for %t = %c0 to %c16 step %c1 {
    scf.for %d = %c0 to %c64 step %c1 {
      memref.store %zero, %m[%t, %d] : memref<16x64xf32>
    }
  }
  return
}

// A loop without a loop in it and with little work.
func.func @innermost(%m: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  scf.for %t = %c0 to %n step %c1 {
    memref.store %zero, %m[%t] : memref<?xf32>
  }
  return
}

llvm.func @linattn_parallel_for(i64, !llvm.ptr, !llvm.ptr)

// The runtime looks before every task.
func.func @tasks(%n: index, %trips: i64, %task: !llvm.ptr) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %span = %c0 to %n step %c1 {
    scf.for %part = %c0 to %n step %c1 {
      llvm.call @linattn_parallel_for(%trips, %task, %task) : (i64, !llvm.ptr, !llvm.ptr) -> ()
    }
  }
  return
}
