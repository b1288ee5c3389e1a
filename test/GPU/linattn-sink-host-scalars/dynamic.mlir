// RUN: linattn-opt %s --linattn-sink-host-scalars | FileCheck %s

// A mean's weight: the size stays on the host, the float does not.
// CHECK-LABEL: func.func @float(
// CHECK: %[[WIDE:.+]] = arith.index_cast
// CHECK-NOT: arith.sitofp
// CHECK: scf.for
// CHECK: scf.parallel
// CHECK-NEXT: %[[COUNT:.+]] = arith.sitofp %[[WIDE]] : i64 to f32
// CHECK-NEXT: %[[WEIGHT:.+]] = arith.divf %{{.+}}, %[[COUNT]] : f32
// CHECK: memref.store %[[WEIGHT]]
func.func @float(%out: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %size = memref.dim %out, %c0 : memref<?xf32>
  %wide = arith.index_cast %size : index to i64
  %count = arith.sitofp %wide : i64 to f32
  %weight = arith.divf %one, %count : f32
  scf.for %k = %c0 to %n step %c1 {
    scf.parallel (%i) = (%c0) to (%size) step (%c1) {
      memref.store %weight, %out[%i] : memref<?xf32>
    }
  }
  return
}
