// RUN: linattn-opt %s --linattn-insert-polls --split-input-file | FileCheck %s

// The outermost loop over tokens looks, and no loop in it.
// CHECK:       llvm.mlir.global external @linattn_poll_flag() {addr_space = 0 : i32} : i32
// CHECK:       llvm.func @linattn_poll() attributes {{{.*}}memory_effects = #llvm.memory_effects<other = none, argMem = none, inaccessibleMem = readwrite
// CHECK-SAME:    no_unwind, passthrough = ["cold"]
// CHECK-LABEL: func @tokens(
// CHECK:         scf.for
// CHECK-NEXT:      %[[ADDRESS:.+]] = llvm.mlir.addressof @linattn_poll_flag
// CHECK-NEXT:      %[[FLAG:.+]] = llvm.load %[[ADDRESS]] atomic monotonic {alignment = 4 : i64}
// CHECK-NEXT:      %[[ZERO:.+]] = llvm.mlir.constant(0 : i32)
// CHECK-NEXT:      %[[SET:.+]] = llvm.icmp "ne" %[[FLAG]], %[[ZERO]]
// CHECK-NEXT:      scf.if %[[SET]] {
// CHECK-NEXT:        llvm.call @linattn_poll() : () -> ()
// CHECK-NEXT:      }
// CHECK-NOT:     llvm.call @linattn_poll
func.func @tokens(%m: memref<?x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.for %t = %c0 to %n step %c1 {
    scf.for %d = %c0 to %c64 step %c1 {
      %x = memref.load %m[%t, %d] : memref<?x64xf32>
      %y = arith.addf %x, %x : f32
      memref.store %y, %m[%t, %d] : memref<?x64xf32>
    }
  }
  return
}

// -----

// A wide state: a row has more work than a look costs, the loop in it has not.
// CHECK-LABEL: func @wide(
// CHECK:         scf.for %{{.+}} to %{{.+}} step
// CHECK-NOT:       llvm.call
// CHECK:           scf.for
// CHECK:             llvm.call @linattn_poll
// CHECK:             scf.for
// CHECK-NOT:     llvm.call
func.func @wide(%m: memref<?x8192x8192xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8192 = arith.constant 8192 : index
  scf.for %t = %c0 to %n step %c1 {
    scf.for %i = %c0 to %c8192 step %c1 {
      scf.for %j = %c0 to %c8192 step %c1 {
        %x = memref.load %m[%t, %i, %j] : memref<?x8192x8192xf32>
        %y = arith.addf %x, %x : f32
        memref.store %y, %m[%t, %i, %j] : memref<?x8192x8192xf32>
      }
    }
  }
  return
}

// -----

// Of a nest the last loop that holds another one: the first may have one
// iteration.
// CHECK-LABEL: func @nest(
// CHECK:         scf.for
// CHECK-NEXT:      scf.for
// CHECK-NEXT:        llvm.mlir.addressof @linattn_poll_flag
// CHECK:             llvm.call @linattn_poll
// CHECK-NOT:     llvm.call @linattn_poll
func.func @nest(%m: memref<?x?x64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  scf.for %b = %c0 to %n step %c1 {
    scf.for %t = %c0 to %n step %c1 {
      scf.for %d = %c0 to %c64 step %c1 {
        memref.store %zero, %m[%b, %t, %d] : memref<?x?x64xf32>
      }
    }
  }
  return
}

// -----

// Below a condition; in loops that are still parallel; loops of unknown ends.
// CHECK-LABEL: func @others(
// CHECK:         scf.if
// CHECK:           scf.parallel
// CHECK-NEXT:        scf.for
// CHECK:               llvm.call @linattn_poll
// CHECK:               scf.for
// CHECK:         scf.while
// CHECK:           llvm.call @linattn_poll
// CHECK:           scf.condition
func.func @others(%m: memref<?x?xf32>, %n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  scf.if %c {
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      scf.for %t = %c0 to %n step %c1 {
        scf.for %j = %c0 to %n step %c1 {
          memref.store %zero, %m[%i, %j] : memref<?x?xf32>
        }
      }
    }
  }
  scf.while : () -> () {
    %x = memref.load %m[%c0, %c0] : memref<?x?xf32>
    %more = arith.cmpf olt, %x, %zero : f32
    scf.condition(%more)
  } do {
    scf.yield
  }
  return
}
