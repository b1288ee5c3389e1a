// RUN: linattn-opt %s --linattn-to-finite-field | FileCheck %s
// RUN: not linattn-opt %s --linattn-to-finite-field=prime=2 2>&1 | FileCheck %s --check-prefix=PRIME

// PRIME: error: expected prime to be 0 or 1, but got 2

// Integers stay as they are.
// CHECK-LABEL: func.func @integers
// CHECK: arith.addi %{{.*}} : i32
// CHECK: memref.store %{{.*}} : memref<?xi32>
// CHECK: arith.cmpi slt
// CHECK: arith.select %{{.*}} : index
func.func @integers(%m: memref<?xi32>, %i: index, %x: i32) -> index {
  %sum = arith.addi %x, %x : i32
  memref.store %sum, %m[%i] : memref<?xi32>
  %less = arith.cmpi slt, %x, %sum : i32
  %c0 = arith.constant 0 : index
  %r = arith.select %less, %i, %c0 : index
  return %r : index
}
