// RUN: linattn-opt %s --linattn-sink-host-scalars | FileCheck %s

// An array that is written to: the element may be another one by then.
// CHECK-LABEL: func.func @written(
// CHECK: memref.load
// CHECK: scf.parallel
// CHECK-NOT: memref.load
// CHECK: return
func.func @written(%seeds: memref<1xi64>, %out: memref<8xi64>, %new: i64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %seed = memref.load %seeds[%c0] : memref<1xi64>
  memref.store %new, %seeds[%c0] : memref<1xi64>
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
    memref.store %seed, %out[%i] : memref<8xi64>
  }
  return
}

// Floats may lie where a result does; what was computed may change.
// CHECK-LABEL: func.func @others(
// CHECK: memref.load
// CHECK: memref.load
// CHECK: scf.parallel
// CHECK-NOT: memref.load
// CHECK: return
func.func @others(%x: memref<1xf32>, %n: index, %out: memref<8xf32>, %places: memref<8xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %a = memref.load %x[%c0] : memref<1xf32>
  %own = memref.alloc() : memref<1xi64>
  %b = memref.load %own[%c0] : memref<1xi64>
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
    memref.store %a, %out[%i] : memref<8xf32>
    memref.store %b, %places[%i] : memref<8xi64>
  }
  return
}

// Sizes, bounds of loops, and what a loop of the host uses.
// CHECK-LABEL: func.func @sizes(
// CHECK: arith.addi
// CHECK: memref.load
// CHECK: arith.index_cast
// CHECK: scf.for
// CHECK: scf.parallel
// CHECK-NOT: arith.addi
// CHECK-NOT: memref.load
// CHECK: return
func.func @sizes(%n: index, %counts: memref<1xi64>, %out: memref<?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %more = arith.addi %n, %c1 : index
  %count = memref.load %counts[%c0] : memref<1xi64>
  %times = arith.index_cast %count : i64 to index
  scf.for %k = %c0 to %times step %c1 {
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      memref.store %more, %out[%i] : memref<?xindex>
    }
  }
  return
}
