// RUN: linattn-opt %s --linattn-map-loops-to-threads --canonicalize | FileCheck %s

// A sum of all iterations is the host's.
// CHECK-LABEL: func.func @sum(
// CHECK: scf.parallel
// CHECK-NOT: gpu.launch
func.func @sum(%x: memref<?xf32>, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %sum = scf.parallel (%i) = (%c0) to (%n) step (%c1) init (%zero) -> f32 {
    %e = memref.load %x[%i] : memref<?xf32>
    scf.reduce(%e : f32) {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      scf.reduce.return %s : f32
    }
  }
  return %sum : f32
}

// Every lane would begin with the 1: the loop inside is sequential, and an
// iteration is a thread's.
// CHECK-LABEL: func.func @not_neutral(
// CHECK: gpu.launch
// CHECK: scf.for
// CHECK: scf.yield
// CHECK-NOT: gpu.shuffle
func.func @not_neutral(%x: memref<?x?xf32>, %y: memref<?xf32>, %m: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  scf.parallel (%i) = (%c0) to (%m) step (%c1) {
    %sum = scf.parallel (%j) = (%c0) to (%n) step (%c1) init (%one) -> f32 {
      %e = memref.load %x[%i, %j] : memref<?x?xf32>
      scf.reduce(%e : f32) {
      ^bb0(%a: f32, %b: f32):
        %s = arith.addf %a, %b : f32
        scf.reduce.return %s : f32
      }
    }
    memref.store %sum, %y[%i] : memref<?xf32>
  }
  return
}

// Memory of a task would be that of each of its threads.
// CHECK-LABEL: func.func @scratch(
// CHECK: gpu.launch
// CHECK: memref.alloca
// CHECK-NOT: gpu.barrier
func.func @scratch(%x: memref<?x8xf32>, %m: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 8 : index
  %one = arith.constant 1.0 : f32
  scf.parallel (%i) = (%c0) to (%m) step (%c1) {
    %own = memref.alloca() : memref<8xf32>
    scf.parallel (%j) = (%c0) to (%n) step (%c1) {
      memref.store %one, %own[%j] : memref<8xf32>
    }
    scf.parallel (%j) = (%c0) to (%n) step (%c1) {
      %e = memref.load %own[%j] : memref<8xf32>
      memref.store %e, %x[%i, %j] : memref<?x8xf32>
    }
  }
  return
}
