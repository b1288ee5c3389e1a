// RUN: linattn-opt %s --linattn-lower-to-loops=lanes=true | FileCheck %s

// A row is a task; sums and elements are loops that lanes divide.
// CHECK-LABEL: func.func @norm(
// CHECK: scf.parallel (%[[ROW:.+]]) =
// CHECK: scf.parallel {{.*}} init
// CHECK: scf.reduce
// CHECK: arith.addf
// CHECK: scf.parallel (%[[D:.+]]) =
// CHECK: memref.store %{{.+}}, %{{.+}}[%{{.+}}, %{{.+}}, %{{.+}}, %[[D]]]
func.func @norm(%x: memref<2x3x?x8xf32>, %y: memref<2x3x?x8xf32>) {
  linattn.output_norm %x into(%y) : (memref<2x3x?x8xf32>, memref<2x3x?x8xf32>) -> ()
  return
}

// Columns know nothing of one another: a task has one.
// CHECK-LABEL: func.func @scan(
// CHECK: %[[TASKS:.+]] = arith.constant 96 : index
// CHECK: scf.parallel (%[[TASK:.+]]) = (%{{.+}}) to (%[[TASKS]])
// CHECK: %[[COLUMN:.+]] = arith.remsi %[[TASK]]
// CHECK: scf.for
// CHECK-NOT: scf.parallel
// CHECK: memref.store %{{.+}}[%{{.+}}, %[[COLUMN]]]
func.func @scan(%q: memref<2x3x?x8xf32>, %v: memref<2x3x?x16xf32>, %o: memref<2x3x?x16xf32>, %s: memref<2x3x8x16xf32>) {
  linattn.scan %q, %q, %v into(%o) init(%s)
    : (memref<2x3x?x8xf32>, memref<2x3x?x8xf32>, memref<2x3x?x16xf32>, memref<2x3x?x16xf32>, memref<2x3x8x16xf32>) -> ()
  return
}
