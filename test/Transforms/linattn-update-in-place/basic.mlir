// RUN: linattn-opt %s --linattn-update-in-place | FileCheck %s
// RUN: linattn-opt %s --linattn-update-in-place --linattn-update-in-place | FileCheck %s

// The final state may take the place of the initial one.
// CHECK-LABEL: func.func @step
// CHECK-SAME: %[[Q:[a-z0-9]+]]: memref<1x2x1x4xf32>, %[[S0:[a-z0-9]+]]: memref<1x2x4x4xf32>
// CHECK-SAME: %[[O:[a-z0-9]+]]: memref<1x2x1x4xf32>, %[[S1:[a-z0-9]+]]: memref<1x2x4x4xf32>
// CHECK-SAME: linattn.in_place = array<i64: -1, -1, -1, 1>
// CHECK-DAG: %[[A0:.+]] = memref.extract_aligned_pointer_as_index %[[S0]]
// CHECK-DAG: %[[A1:.+]] = memref.extract_aligned_pointer_as_index %[[S1]]
// CHECK: %[[DIFFER:.+]] = arith.cmpi ne, %[[A0]], %[[A1]]
// CHECK: %[[EITHER:.+]] = arith.ori %[[DIFFER]]
// CHECK: scf.if %[[EITHER]] {
// CHECK-NEXT: linalg.copy ins(%[[S0]] : {{.+}}) outs(%[[S1]] :
// CHECK-NEXT: }
// CHECK-NEXT: linattn.scan {{.+}} into(%[[O]]) init(%[[S1]])
func.func @step(%q: memref<1x2x1x4xf32>, %s0: memref<1x2x4x4xf32>, %o: memref<1x2x1x4xf32>, %s1: memref<1x2x4x4xf32>) {
  linalg.copy ins(%s0 : memref<1x2x4x4xf32>) outs(%s1 : memref<1x2x4x4xf32>)
  linattn.scan %q, %q, %q into(%o) init(%s1)
    : (memref<1x2x1x4xf32>, memref<1x2x1x4xf32>, memref<1x2x1x4xf32>, memref<1x2x1x4xf32>, memref<1x2x4x4xf32>) -> ()
  return
}

// Dynamic sizes that are read change nothing.
// CHECK-LABEL: func.func @dynamic
// CHECK-SAME: linattn.in_place = array<i64: -1, 0>
// CHECK: memref.dim
// CHECK: scf.if
// CHECK-NEXT: memref.copy
func.func @dynamic(%s0: memref<?x4xf32>, %s1: memref<?x4xf32>) -> index {
  %c0 = arith.constant 0 : index
  %n = memref.dim %s0, %c0 : memref<?x4xf32>
  memref.copy %s0, %s1 : memref<?x4xf32> to memref<?x4xf32>
  return %n : index
}
