// RUN: linattn-opt %s --linattn-sink-host-scalars | FileCheck %s

// The seed of a dropout, and what is computed of it.
// CHECK-LABEL: func.func @element(
// CHECK-SAME: %[[SEEDS:.+]]: memref<1xi32>
// CHECK-NOT: memref.load
// CHECK: scf.parallel
// CHECK-NEXT: %[[SEED:.+]] = memref.load %[[SEEDS]][%{{.+}}] : memref<1xi32>
// CHECK-NEXT: %[[WIDE:.+]] = arith.extsi %[[SEED]] : i32 to i64
// CHECK: memref.store %[[WIDE]]
func.func @element(%seeds: memref<1xi32>, %out: memref<8xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %seed = memref.load %seeds[%c0] : memref<1xi32>
  %wide = arith.extsi %seed : i32 to i64
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
    memref.store %wide, %out[%i] : memref<8xi64>
  }
  return
}

// Through a slice of the argument, and into the outermost loop once.
// CHECK-LABEL: func.func @nested(
// CHECK: %[[PART:.+]] = memref.subview
// CHECK-NOT: memref.load
// CHECK: scf.parallel
// CHECK-COUNT-1: memref.load %[[PART]]
// CHECK: scf.parallel
// CHECK-NOT: memref.load
// CHECK: return
func.func @nested(%seeds: memref<4xi64>, %out: memref<8x8xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %part = memref.subview %seeds[1] [2] [1] : memref<4xi64> to memref<2xi64, strided<[1], offset: 1>>
  %seed = memref.load %part[%c1] : memref<2xi64, strided<[1], offset: 1>>
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
    scf.parallel (%j) = (%c0) to (%c8) step (%c1) {
      memref.store %seed, %out[%i, %j] : memref<8x8xi64>
    }
    memref.store %seed, %out[%i, %i] : memref<8x8xi64>
  }
  return
}
