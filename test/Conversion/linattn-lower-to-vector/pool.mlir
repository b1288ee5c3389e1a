// RUN: linattn-opt %s --pass-pipeline='builtin.module(func.func(linattn-lower-to-vector{vector-bits=512 registers=32},canonicalize))' | FileCheck %s --check-prefixes=CHECK,VECTOR
// RUN: linattn-opt %s --pass-pipeline='builtin.module(func.func(linattn-lower-to-loops,canonicalize))' | FileCheck %s --check-prefixes=CHECK,LOOPS

// A task for each head of each sequence, not of each row of the pool: it reads
// and writes the row that its index says. Without a row its outputs are 0.

// CHECK-LABEL: func.func @token
// CHECK-SAME:    %[[I:[a-z0-9]+]]: memref<3xi64>, %[[S:[a-z0-9]+]]: memref<9x2x16x16xf32>
// CHECK:         scf.parallel (%[[TASK:.+]]) = (%c0) to (%c6)
// CHECK:           %[[N:.+]] = arith.divsi %[[TASK]], %c2
// CHECK:           %[[AT:.+]] = memref.load %[[I]][%[[N]]]
// CHECK:           %[[ROW:.+]] = arith.index_cast %[[AT]]
// CHECK:           %[[EXISTS:.+]] = arith.cmpi sge, %[[ROW]], %c0
// CHECK:           scf.if %[[EXISTS]]
// VECTOR:            vector.transfer_read %[[S]][%[[ROW]],
// VECTOR:            vector.transfer_write %{{.*}}, %[[S]][%[[ROW]],
// LOOPS:             memref.load %[[S]][%[[ROW]],
// LOOPS:             memref.store %{{.*}}, %[[S]][%[[ROW]],
// CHECK:           } else {
// CHECK-NOT:         %[[S]]
// VECTOR:            vector.transfer_write %cst{{.*}} : vector<32xf32>, memref<3x2x1x16xf32>
// LOOPS:             memref.store %cst
// CHECK:         return
func.func @token(%q: memref<3x2x1x16xf32>, %i: memref<3xi64>, %s: memref<9x2x16x16xf32>, %o: memref<3x2x1x16xf32>) {
  linattn.scan %q, %q, %q state_indices(%i) into(%o) init(%s) {config = #linattn.config<form = token>}
    : (memref<3x2x1x16xf32>, memref<3x2x1x16xf32>, memref<3x2x1x16xf32>, memref<3xi64>, memref<3x2x1x16xf32>, memref<9x2x16x16xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @delta
// CHECK-SAME:    %[[I:[a-z0-9]+]]: memref<3xi32>, %[[S:[a-z0-9]+]]: memref<9x2x16x16xf32>
// CHECK:         scf.parallel (%{{.+}}) = (%c0) to (%c6)
// CHECK:           %[[AT:.+]] = memref.load %[[I]]
// CHECK:           %[[ROW:.+]] = arith.index_cast %[[AT]]
// CHECK:           scf.if
// VECTOR:            vector.transfer_write %{{.*}}, %[[S]][%[[ROW]],
// LOOPS:             memref.store %{{.*}}, %[[S]][%[[ROW]],
// CHECK:           } else {
// CHECK:         return
func.func @delta(%q: memref<3x2x1x16xf32>, %beta: memref<3x2x1xf32>, %i: memref<3xi32>, %s: memref<9x2x16x16xf32>, %o: memref<3x2x1x16xf32>) {
  linattn.scan %q, %q, %q beta(%beta) state_indices(%i) update(delta) into(%o) init(%s) {config = #linattn.config<form = token>}
    : (memref<3x2x1x16xf32>, memref<3x2x1x16xf32>, memref<3x2x1x16xf32>, memref<3x2x1xf32>, memref<3xi32>, memref<3x2x1x16xf32>, memref<9x2x16x16xf32>) -> ()
  return
}

// The state tile and chunks, all sizes open.
// CHECK-LABEL: func.func @dynamic
// CHECK-SAME:    %[[I:[a-z0-9]+]]: memref<?xi64>, %[[S:[a-z0-9]+]]: memref<?x?x16x16xf32>
// CHECK:         memref.dim %[[I]], %c0
// CHECK:         scf.parallel
// CHECK:           memref.load %[[I]]
// CHECK:           scf.if
// CHECK:           } else {
// CHECK:         memref.dim %[[I]], %c0
// CHECK:         scf.parallel
// CHECK:           memref.load %[[I]]
// CHECK:           scf.if
// CHECK:           } else {
// CHECK:         return
func.func @dynamic(%q: memref<?x?x?x16xf32>, %i: memref<?xi64>, %s: memref<?x?x16x16xf32>, %o: memref<?x?x?x16xf32>) {
  linattn.scan %q, %q, %q state_indices(%i) into(%o) init(%s) {config = #linattn.config<form = state_tile>}
    : (memref<?x?x?x16xf32>, memref<?x?x?x16xf32>, memref<?x?x?x16xf32>, memref<?xi64>, memref<?x?x?x16xf32>, memref<?x?x16x16xf32>) -> ()
  linattn.scan %q, %q, %q state_indices(%i) into(%o) init(%s) {config = #linattn.config<form = chunk>}
    : (memref<?x?x?x16xf32>, memref<?x?x?x16xf32>, memref<?x?x?x16xf32>, memref<?xi64>, memref<?x?x?x16xf32>, memref<?x?x16x16xf32>) -> ()
  return
}

// Without indices the states are the batch's, without a check whether there is one.
// CHECK-LABEL: func.func @no_pool
// CHECK-NOT:     scf.if
// CHECK:         return
func.func @no_pool(%q: memref<3x2x1x16xf32>, %s: memref<3x2x16x16xf32>, %o: memref<3x2x1x16xf32>) {
  linattn.scan %q, %q, %q into(%o) init(%s) {config = #linattn.config<form = token>}
    : (memref<3x2x1x16xf32>, memref<3x2x1x16xf32>, memref<3x2x1x16xf32>, memref<3x2x1x16xf32>, memref<3x2x16x16xf32>) -> ()
  return
}
