// RUN: linattn-opt %s --split-input-file --linattn-lower-to-vector='vector-bits=512 registers=32' --canonicalize --cse | FileCheck %s

// A sequence of up to 64 tokens is one chunk. It starts from zero without a fill
// and ends without a state: neither memory nor the panels are touched.

// CHECK-LABEL: func.func @packed(
// CHECK-NOT:     linalg.fill
// CHECK:         scf.parallel
// CHECK:           %[[WHOLE:.+]] = arith.cmpi sle, %[[LENGTH:.+]], %c64
// CHECK:           %[[STEP:.+]] = arith.select %[[WHOLE]], %c64, %c16
//                  Panels for a second chunk.
// CHECK:           %[[MORE:.+]] = arith.cmpi slt, %[[STEP]], %[[LENGTH]]
// CHECK:           scf.if %[[MORE]] {
// CHECK:             vector.store %cst{{.*}}, %[[TILE:.+]][{{.*}}] : memref<2x64x32xf32>, vector<32xf32>
// CHECK:           scf.for %[[FIRST:.+]] = %[[BEGIN:.+]] to %[[END:.+]] step %[[STEP]] {
// CHECK:             %[[READS:.+]] = arith.cmpi ne, %[[FIRST]], %[[BEGIN]]
// CHECK:             %[[NEXT:.+]] = arith.addi %[[FIRST]], %[[STEP]]
// CHECK:             %[[WRITES:.+]] = arith.cmpi slt, %[[NEXT]], %[[END]]
// CHECK:             scf.if %[[READS]] -> (vector<32xf32>
// CHECK:               vector.load %[[TILE]]
// CHECK:             scf.if %[[WRITES]] {
// CHECK:               vector.store %{{.+}}, %[[TILE]]
// CHECK-NOT:       vector.transfer_write {{.*}} : vector<32xf32>, memref<?x2x64x64xf32>
func.func @packed(%q: memref<1x2x?x64xf32>, %o: memref<1x2x?x64xf32>, %n: index, %c: memref<?xi64>) {
  %zero = arith.constant 0.0 : f32
  %s = memref.alloc(%n) : memref<?x2x64x64xf32>
  linalg.fill ins(%zero : f32) outs(%s : memref<?x2x64x64xf32>)
  linattn.scan %q, %q, %q cu_seqlens(%c) into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 16, rows = 8, cols = 32, block = 32, whole = 64>}
    : (memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<?xi64>, memref<1x2x?x64xf32>, memref<?x2x64x64xf32>) -> ()
  memref.dealloc %s : memref<?x2x64x64xf32>
  return
}

// -----

// A state that is used afterwards is written; the fill is still left out.

// CHECK-LABEL: func.func @used(
// CHECK-NOT:     linalg.fill
// CHECK:         vector.transfer_write {{.*}} : vector<32xf32>, memref<1x2x64x64xf32>
func.func @used(%q: memref<1x2x?x64xf32>, %o: memref<1x2x?x64xf32>, %s: memref<1x2x64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%s : memref<1x2x64x64xf32>)
  linattn.scan %q, %q, %q into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 16, rows = 8, cols = 32, block = 32>}
    : (memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x64x64xf32>) -> ()
  return
}

// -----

// Memory that is allocated for the state is touched by its users alone, whatever comes between.

// CHECK-LABEL: func.func @apart(
// CHECK-NOT:     linalg.fill
// CHECK:         memref.copy
// CHECK-NOT:     linalg.fill
// CHECK:         return
func.func @apart(%q: memref<1x2x?x64xf32>, %p: memref<1x2x?x64xf32>, %o: memref<1x2x?x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %s = memref.alloc() : memref<1x2x64x64xf32>
  linalg.fill ins(%zero : f32) outs(%s : memref<1x2x64x64xf32>)
  memref.copy %p, %o : memref<1x2x?x64xf32> to memref<1x2x?x64xf32>
  linattn.scan %q, %q, %q into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 16, rows = 8, cols = 32, block = 32>}
    : (memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x64x64xf32>) -> ()
  memref.dealloc %s : memref<1x2x64x64xf32>
  return
}

// -----

// Only one side of a branch runs, with zeros of its own.

// CHECK-LABEL: func.func @sides(
// CHECK-NOT:     linalg.fill
// CHECK:         return
func.func @sides(%q: memref<1x2x?x64xf32>, %o: memref<1x2x?x64xf32>, %s: memref<1x2x64x64xf32>, %few: i1) {
  %zero = arith.constant 0.0 : f32
  scf.if %few {
    linalg.fill ins(%zero : f32) outs(%s : memref<1x2x64x64xf32>)
    linattn.scan %q, %q, %q into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 16, rows = 8, cols = 32, block = 32>}
      : (memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x64x64xf32>) -> ()
  } else {
    linalg.fill ins(%zero : f32) outs(%s : memref<1x2x64x64xf32>)
    linattn.scan %q, %q, %q into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 32, rows = 8, cols = 32, block = 32>}
      : (memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x64x64xf32>) -> ()
  }
  return
}

// -----

// Another reader of the zeros keeps them, and so does another form.

// CHECK-LABEL: func.func @kept(
// CHECK-COUNT-2: linalg.fill
// CHECK-NOT:     linalg.fill
func.func @kept(%q: memref<1x2x?x64xf32>, %o: memref<1x2x?x64xf32>, %r: memref<1x2x64x64xf32>, %s: memref<1x2x64x64xf32>, %t: memref<1x2x64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%s : memref<1x2x64x64xf32>)
  memref.copy %s, %r : memref<1x2x64x64xf32> to memref<1x2x64x64xf32>
  linattn.scan %q, %q, %q into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 16>}
    : (memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x64x64xf32>) -> ()
  linalg.fill ins(%zero : f32) outs(%t : memref<1x2x64x64xf32>)
  linattn.scan %q, %q, %q into(%o) init(%t) {config = #linattn.config<form = state_tile>}
    : (memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x64x64xf32>) -> ()
  return
}

// -----

// Sequences of one token, of up to 4, which go one by one, and the others in
// chunks: three loops over all sequences, each for its own.

// CHECK-LABEL: func.func @few(
// CHECK:         scf.parallel
// CHECK:           %[[ONE:.+]] = arith.cmpi sle, %{{.+}}, %c1
// CHECK:           scf.if %[[ONE]] {
// CHECK:         scf.parallel
// CHECK:           %[[MOST:.+]] = arith.cmpi sle, %[[LENGTH:.+]], %c4
// CHECK:           %[[SEVERAL:.+]] = arith.cmpi sge, %[[LENGTH]], %c2
// CHECK:           %[[FEW:.+]] = arith.andi %[[MOST]], %[[SEVERAL]]
// CHECK:           scf.if %[[FEW]] {
// CHECK:         scf.parallel
// CHECK:           %[[MANY:.+]] = arith.cmpi sge, %{{.+}}, %c5
// CHECK:           scf.if %[[MANY]] {
func.func @few(%q: memref<1x2x?x64xf32>, %b: memref<1x2x?xf32>, %o: memref<1x2x?x64xf32>, %s: memref<?x2x64x64xf32>, %c: memref<?xi64>) {
  linattn.scan %q, %q, %q beta(%b) cu_seqlens(%c) update(delta) into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 16, rows = 8, cols = 32, block = 32, few = 4>}
    : (memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?xf32>, memref<?xi64>, memref<1x2x?x64xf32>, memref<?x2x64x64xf32>) -> ()
  return
}

// -----

// A batch is all of one length: one comparison.

// CHECK-LABEL: func.func @few_of_a_batch(
// CHECK:         arith.cmpi sle, %{{.+}}, %c4
// CHECK:         scf.if
// CHECK:           scf.parallel
// CHECK:         scf.if
// CHECK:           scf.parallel
func.func @few_of_a_batch(%q: memref<1x2x?x64xf32>, %o: memref<1x2x?x64xf32>, %s: memref<1x2x64x64xf32>) {
  linattn.scan %q, %q, %q into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 16, rows = 8, cols = 32, block = 32, few = 4>}
    : (memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x64x64xf32>) -> ()
  return
}
