// RUN: linattn-opt %s --split-input-file --linattn-lower-to-vector='vector-bits=512 registers=32' --canonicalize --cse | FileCheck %s

// A single token reads its state where it lies and writes it where it belongs.

// CHECK-LABEL: func.func @delta(
// CHECK-SAME:    %[[S0:[a-z0-9]+]]: memref<1x2x128x128xf32>, %[[S1:[a-z0-9]+]]: memref<1x2x128x128xf32>)
// CHECK-NOT:     linalg.copy
// CHECK:         scf.parallel
//                  The first pass over a panel.
// CHECK:           vector.transfer_read %[[S0]]
// CHECK:           scf.yield
//                  The second one; both memories of the next panel are prefetched.
// CHECK:           scf.for
// CHECK:           vector.transfer_read %[[S0]]
// CHECK:           memref.prefetch %[[S0]]
// CHECK:           memref.prefetch %[[S1]]
// CHECK-NOT:       vector.transfer_read %[[S1]]
// CHECK:           vector.transfer_write {{.+}}, %[[S1]]
// CHECK-NOT:     linalg.copy
// CHECK:         return
func.func @delta(%q: memref<1x2x1x128xf32>, %beta: memref<1x2x1xf32>, %o: memref<1x2x1x128xf32>, %s0: memref<1x2x128x128xf32>, %s1: memref<1x2x128x128xf32>) {
  linalg.copy ins(%s0 : memref<1x2x128x128xf32>) outs(%s1 : memref<1x2x128x128xf32>)
  linattn.scan %q, %q, %q beta(%beta) update(delta) into(%o) init(%s1) {config = #linattn.config<form = token>}
    : (memref<1x2x1x128xf32>, memref<1x2x1x128xf32>, memref<1x2x1x128xf32>, memref<1x2x1xf32>, memref<1x2x1x128xf32>, memref<1x2x128x128xf32>) -> ()
  return
}

// -----

// Where both may be the same memory, a step in place has loops of its own with
// one address for loads and stores.

// CHECK-LABEL: func.func @delta_maybe_in_place(
// CHECK-SAME:    %[[S0:[a-z0-9]+]]: memref<1x2x128x128xf32>, %[[S1:[a-z0-9]+]]: memref<1x2x128x128xf32>, %[[DIFFER:.+]]: i1)
// CHECK-NOT:     memref.copy
// CHECK:         scf.if %[[DIFFER]]
// CHECK:           vector.transfer_read %[[S0]]
// CHECK:           memref.prefetch %[[S0]]
// CHECK:           memref.prefetch %[[S1]]
// CHECK:           vector.transfer_write {{.+}}, %[[S1]]
// CHECK:         else
// CHECK-NOT:       %[[S0]]
// CHECK:           vector.transfer_read %[[S1]]
// CHECK-NOT:       %[[S0]]
// CHECK:           memref.prefetch %[[S1]]
// CHECK-NOT:       %[[S0]]
// CHECK:           vector.transfer_write {{.+}}, %[[S1]]
// CHECK-NOT:       %[[S0]]
// CHECK:         return
func.func @delta_maybe_in_place(%q: memref<1x2x1x128xf32>, %beta: memref<1x2x1xf32>, %o: memref<1x2x1x128xf32>, %s0: memref<1x2x128x128xf32>, %s1: memref<1x2x128x128xf32>, %differ: i1) {
  scf.if %differ {
    memref.copy %s0, %s1 : memref<1x2x128x128xf32> to memref<1x2x128x128xf32>
  }
  linattn.scan %q, %q, %q beta(%beta) update(delta) into(%o) init(%s1) {config = #linattn.config<form = token>}
    : (memref<1x2x1x128xf32>, memref<1x2x1x128xf32>, memref<1x2x1x128xf32>, memref<1x2x1xf32>, memref<1x2x1x128xf32>, memref<1x2x128x128xf32>) -> ()
  return
}

// -----

// So does an additive rule, also where the copy is left out for states that are
// the same memory.

// CHECK-LABEL: func.func @add(
// CHECK-SAME:    %[[S0:[a-z0-9]+]]: memref<1x2x128x128xf32>, %[[S1:[a-z0-9]+]]: memref<1x2x128x128xf32>, %{{.+}}: i1)
// CHECK-NOT:     memref.copy
// CHECK:         memref.prefetch %[[S0]]
// CHECK:         memref.prefetch %[[S1]]
// CHECK:         vector.transfer_read %[[S0]]
// CHECK:         vector.transfer_write {{.+}}, %[[S1]]
// CHECK-NOT:     memref.copy
// CHECK:         return
func.func @add(%q: memref<1x2x1x128xf32>, %o: memref<1x2x1x128xf32>, %s0: memref<1x2x128x128xf32>, %s1: memref<1x2x128x128xf32>, %differ: i1) {
  scf.if %differ {
    memref.copy %s0, %s1 : memref<1x2x128x128xf32> to memref<1x2x128x128xf32>
  }
  linattn.scan %q, %q, %q into(%o) init(%s1) {config = #linattn.config<form = token>}
    : (memref<1x2x1x128xf32>, memref<1x2x1x128xf32>, memref<1x2x1x128xf32>, memref<1x2x1x128xf32>, memref<1x2x128x128xf32>) -> ()
  return
}

// -----

// Several tokens: the first one reads the initial state.

// CHECK-LABEL: func.func @few(
// CHECK-SAME:    %[[S0:[a-z0-9]+]]: memref<1x2x128x128xf32>, %[[S1:[a-z0-9]+]]: memref<1x2x128x128xf32>)
// CHECK-NOT:     linalg.copy
// CHECK:         %[[FIRST:.+]] = arith.cmpi eq, %{{.+}}, %c0
// CHECK:         %[[FROM:.+]] = arith.select %[[FIRST]], %[[S0]], %[[S1]] : memref<1x2x128x128xf32>
// CHECK:         vector.transfer_read %[[FROM]]
// CHECK:         vector.transfer_write {{.+}}, %[[S1]]
// CHECK:         return
func.func @few(%q: memref<1x2x3x128xf32>, %beta: memref<1x2x3xf32>, %o: memref<1x2x3x128xf32>, %s0: memref<1x2x128x128xf32>, %s1: memref<1x2x128x128xf32>) {
  linalg.copy ins(%s0 : memref<1x2x128x128xf32>) outs(%s1 : memref<1x2x128x128xf32>)
  linattn.scan %q, %q, %q beta(%beta) update(delta) into(%o) init(%s1) {config = #linattn.config<form = token>}
    : (memref<1x2x3x128xf32>, memref<1x2x3x128xf32>, memref<1x2x3x128xf32>, memref<1x2x3xf32>, memref<1x2x3x128xf32>, memref<1x2x128x128xf32>) -> ()
  return
}

// -----

// An open number of tokens: without any, and for chunks, the state is copied. A
// single token needs no scratch memory for the panels of its state.

// CHECK-LABEL: func.func @open(
// CHECK-SAME:    %[[S0:[a-z0-9]+]]: memref<1x2x64x64xf32>, %[[S1:[a-z0-9]+]]: memref<1x2x64x64xf32>)
// CHECK:         %[[T:.+]] = memref.dim
// CHECK:         %[[NONE:.+]] = arith.cmpi slt, %[[T]], %c1
// CHECK:         %[[MANY:.+]] = arith.cmpi sgt, %[[T]], %c8
// CHECK:         %[[OTHERS:.+]] = arith.ori %[[NONE]], %[[MANY]]
// CHECK:         scf.if %[[OTHERS]] {
// CHECK-NEXT:      linalg.copy ins(%[[S0]] : {{.+}}) outs(%[[S1]] :
// CHECK-NEXT:    }
// CHECK:         %[[ONE:.+]] = arith.cmpi sle, %[[T]], %c1
// CHECK:         scf.if %[[ONE]] {
// CHECK-NOT:       memref<64x32xf32>
// CHECK-NOT:       arith.select {{.+}} memref
// CHECK:           vector.transfer_read %[[S0]]
// CHECK:           vector.transfer_write {{.+}}, %[[S1]]
// CHECK:         %[[MOST:.+]] = arith.cmpi sle, %[[T]], %c8
// CHECK:         %[[SEVERAL:.+]] = arith.cmpi sge, %[[T]], %c2
// CHECK:         %[[FEW:.+]] = arith.andi %[[MOST]], %[[SEVERAL]]
// CHECK:         scf.if %[[FEW]] {
// CHECK:           memref.alloca() {{.+}} : memref<64x32xf32>
// CHECK:           %[[FROM:.+]] = arith.select %{{.+}}, %[[S0]], %[[S1]]
// CHECK:           vector.transfer_read %[[FROM]]
// CHECK:         arith.cmpi sge, %[[T]], %c9
// CHECK:         return
func.func @open(%q: memref<1x2x?x64xf32>, %beta: memref<1x2x?xf32>, %o: memref<1x2x?x64xf32>, %s0: memref<1x2x64x64xf32>, %s1: memref<1x2x64x64xf32>) {
  linalg.copy ins(%s0 : memref<1x2x64x64xf32>) outs(%s1 : memref<1x2x64x64xf32>)
  linattn.scan %q, %q, %q beta(%beta) update(delta) into(%o) init(%s1) {config = #linattn.config<form = chunk, chunk = 16, rows = 8, cols = 32, block = 16, few = 8>}
    : (memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?xf32>, memref<1x2x?x64xf32>, memref<1x2x64x64xf32>) -> ()
  return
}

// -----

// An open number of heads: one reader reads in the pass that writes.

// CHECK-LABEL: func.func @heads(
// CHECK:         %[[GROUP:.+]] = arith.divsi
// CHECK:         %[[ALONE:.+]] = arith.cmpi eq, %[[GROUP]], %c1
// CHECK:         scf.if %[[ALONE]] {
// CHECK:           scf.for {{.+}} iter_args({{.+}}) -> (vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>)
// CHECK:             vector.transfer_write
// CHECK:         } else {
// CHECK:           vector.transfer_write
// CHECK:           scf.for %{{.+}} = %c0 to %[[GROUP]]
// CHECK:         return
func.func @heads(%q: memref<1x?x1x64xf32>, %k: memref<1x?x1x64xf32>, %beta: memref<1x?x1xf32>, %o: memref<1x?x1x64xf32>, %s: memref<1x?x64x64xf32>) {
  linattn.scan %q, %k, %k beta(%beta) update(delta) into(%o) init(%s) {config = #linattn.config<form = token>}
    : (memref<1x?x1x64xf32>, memref<1x?x1x64xf32>, memref<1x?x1x64xf32>, memref<1x?x1xf32>, memref<1x?x1x64xf32>, memref<1x?x64x64xf32>) -> ()
  return
}

// -----

// Other readers of the initial state come before the scan: they may be between.

// CHECK-LABEL: func.func @read_before(
// CHECK:         linalg.copy
// CHECK:         linalg.copy
func.func @read_before(%q: memref<1x2x1x64xf32>, %o: memref<1x2x1x64xf32>, %s0: memref<1x2x64x64xf32>, %s1: memref<1x2x64x64xf32>, %other: memref<1x2x64x64xf32>) {
  linalg.copy ins(%s0 : memref<1x2x64x64xf32>) outs(%s1 : memref<1x2x64x64xf32>)
  linalg.copy ins(%other : memref<1x2x64x64xf32>) outs(%s0 : memref<1x2x64x64xf32>)
  linattn.scan %q, %q, %q into(%o) init(%s1) {config = #linattn.config<form = token>}
    : (memref<1x2x1x64xf32>, memref<1x2x1x64xf32>, memref<1x2x1x64xf32>, memref<1x2x1x64xf32>, memref<1x2x64x64xf32>) -> ()
  return
}

// -----

// The state changes after it is copied.

// CHECK-LABEL: func.func @written_before(
// CHECK:         linalg.copy
// CHECK:         memref.store
func.func @written_before(%q: memref<1x2x1x64xf32>, %o: memref<1x2x1x64xf32>, %s0: memref<1x2x64x64xf32>, %s1: memref<1x2x64x64xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  linalg.copy ins(%s0 : memref<1x2x64x64xf32>) outs(%s1 : memref<1x2x64x64xf32>)
  memref.store %zero, %s1[%c0, %c0, %c0, %c0] : memref<1x2x64x64xf32>
  linattn.scan %q, %q, %q into(%o) init(%s1) {config = #linattn.config<form = token>}
    : (memref<1x2x1x64xf32>, memref<1x2x1x64xf32>, memref<1x2x1x64xf32>, memref<1x2x1x64xf32>, memref<1x2x64x64xf32>) -> ()
  return
}

// -----

// A view of other memory, which may be written elsewhere.

// CHECK-LABEL: func.func @view(
// CHECK:         linalg.copy
func.func @view(%q: memref<1x2x1x64xf32>, %o: memref<1x2x1x64xf32>, %all: memref<2x2x64x64xf32>, %s1: memref<1x2x64x64xf32, strided<[8192, 4096, 64, 1]>>) {
  %s0 = memref.subview %all[0, 0, 0, 0] [1, 2, 64, 64] [1, 1, 1, 1] : memref<2x2x64x64xf32> to memref<1x2x64x64xf32, strided<[8192, 4096, 64, 1]>>
  linalg.copy ins(%s0 : memref<1x2x64x64xf32, strided<[8192, 4096, 64, 1]>>) outs(%s1 : memref<1x2x64x64xf32, strided<[8192, 4096, 64, 1]>>)
  linattn.scan %q, %q, %q into(%o) init(%s1) {config = #linattn.config<form = token>}
    : (memref<1x2x1x64xf32>, memref<1x2x1x64xf32>, memref<1x2x1x64xf32>, memref<1x2x1x64xf32>, memref<1x2x64x64xf32, strided<[8192, 4096, 64, 1]>>) -> ()
  return
}

// -----

// Rows of a pool that no sequence has keep their states.

// CHECK-LABEL: func.func @pool(
// CHECK:         linalg.copy
func.func @pool(%q: memref<1x2x1x64xf32>, %o: memref<1x2x1x64xf32>, %rows: memref<1xi64>, %s0: memref<4x2x64x64xf32>, %s1: memref<4x2x64x64xf32>) {
  linalg.copy ins(%s0 : memref<4x2x64x64xf32>) outs(%s1 : memref<4x2x64x64xf32>)
  linattn.scan %q, %q, %q state_indices(%rows) into(%o) init(%s1) {config = #linattn.config<form = token>}
    : (memref<1x2x1x64xf32>, memref<1x2x1x64xf32>, memref<1x2x1x64xf32>, memref<1xi64>, memref<1x2x1x64xf32>, memref<4x2x64x64xf32>) -> ()
  return
}

// -----

// Packed sequences may have no tokens, and states all the same.

// CHECK-LABEL: func.func @packed(
// CHECK:         linalg.copy
func.func @packed(%q: memref<1x2x?x64xf32>, %o: memref<1x2x?x64xf32>, %c: memref<4xi64>, %s0: memref<3x2x64x64xf32>, %s1: memref<3x2x64x64xf32>) {
  linalg.copy ins(%s0 : memref<3x2x64x64xf32>) outs(%s1 : memref<3x2x64x64xf32>)
  linattn.scan %q, %q, %q cu_seqlens(%c) into(%o) init(%s1) {config = #linattn.config<form = token>}
    : (memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<4xi64>, memref<1x2x?x64xf32>, memref<3x2x64x64xf32>) -> ()
  return
}

// -----

// A tile of the state copies it in any case.

// CHECK-LABEL: func.func @tile(
// CHECK:         linalg.copy
func.func @tile(%q: memref<1x2x1x64xf32>, %o: memref<1x2x1x64xf32>, %s0: memref<1x2x64x64xf32>, %s1: memref<1x2x64x64xf32>) {
  linalg.copy ins(%s0 : memref<1x2x64x64xf32>) outs(%s1 : memref<1x2x64x64xf32>)
  linattn.scan %q, %q, %q into(%o) init(%s1) {config = #linattn.config<form = state_tile>}
    : (memref<1x2x1x64xf32>, memref<1x2x1x64xf32>, memref<1x2x1x64xf32>, memref<1x2x1x64xf32>, memref<1x2x64x64xf32>) -> ()
  return
}
