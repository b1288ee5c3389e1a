// RUN: linattn-opt %s --linattn-lower-chunks-to-vector=tiles=2 --canonicalize | FileCheck %s
// RUN: linattn-opt %s --linattn-lower-chunks-to-vector | FileCheck %s --check-prefix=VECTORS
// RUN: not linattn-opt %s --linattn-lower-chunks-to-vector='tiles=2 vector-bits=256' 2>&1 | FileCheck %s --check-prefix=WIDTH

// VECTORS-NOT: amx.
// WIDTH: error: expected vector-bits to be 512 with tiles, but got 256

// Both matrices are packed in pairs of rows that are 16 apart. Four tiles of sums
// start from zeros of their own; vectors decay and mask them. Where a number is
// not finite, vectors do all.

// CHECK-LABEL: func.func @update(
// CHECK-DAG:     memref.alloc() {{.*}} : memref<1x2x1x16x32xbf16>
// CHECK:         vector.interleave {{.*}} : vector<16xbf16>
// CHECK:         %[[KEYS:.+]] = arith.cmpf oeq
// CHECK:         vector.interleave
// CHECK:         %[[VALUES:.+]] = arith.cmpf oeq
// CHECK:         %[[ALL:.+]] = arith.andi %[[KEYS]], %[[VALUES]]
// CHECK:         scf.if %[[ALL]]
// CHECK-COUNT-4:   amx.tile_zero
// CHECK-COUNT-4:   amx.tile_load
// CHECK-COUNT-4:   amx.tile_mulf
// CHECK-NOT:       amx.tile_mulf
// CHECK-COUNT-4:   amx.tile_store
// CHECK:           vector.fma {{.*}} : vector<16xf32>
// CHECK:         } else {
// CHECK:           vector.fma {{.*}} : vector<32xf32>
// CHECK-NOT:     linattn.chunk
func.func @update(%k: memref<1x1x32x32xf32>, %v: memref<1x1x32x32xf32>, %g: memref<1x1x32xf32>, %s: memref<1x1x32x32xf32>) {
  linattn.chunk.update keys(%k) values(%v) decay(%g) into(%s) {summands = array<i64: 1, 1>}
    : (memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32xf32>, memref<1x1x32x32xf32>) -> ()
  return
}

// Of two matrices of two summands the product of the small ones is left out, and
// that of the large ones comes last. Elements missing from a step of 32 are zero.

// CHECK-LABEL: func.func @summands(
// CHECK:         %[[LEFT:.+]] = memref.alloc() {{.*}} : memref<2x1x2x16x32xbf16>
// CHECK:         arith.subf
// CHECK:         scf.if
// CHECK:           amx.tile_load %[[LEFT]][%c0, %c0, %c0,
// CHECK:           amx.tile_load %[[LEFT]][%c0, %c0, %c1,
// CHECK:           amx.tile_load %[[LEFT]][%c1, %c0, %c0,
// CHECK:           amx.tile_load %[[LEFT]][%c1, %c0, %c1,
// CHECK:           amx.tile_load %[[LEFT]][%c0, %c0, %c0,
// CHECK:           amx.tile_load %[[LEFT]][%c0, %c0, %c1,
// CHECK:         } else {
func.func @summands(%x: memref<1x1x16x48xf32>, %k: memref<1x1x16x48xf32>, %p: memref<1x1x16x16xf32>) {
  linattn.chunk.scores %x, %k into(%p) {summands = array<i64: 2, 2>} : (memref<1x1x16x48xf32>, memref<1x1x16x48xf32>, memref<1x1x16x16xf32>) -> ()
  return
}

// Queries are packed once for both products; what lies above the diagonal is 0
// in tiles, too, and tiles above it are not multiplied.

// CHECK-LABEL: func.func @read(
// CHECK-COUNT-6: amx.tile_mulf
// CHECK:         } else {
// CHECK:         vector.create_mask
// CHECK:         scf.if
// CHECK-COUNT-5: amx.tile_mulf
// CHECK:         } else {
// CHECK-NOT:     amx.
func.func @read(%q: memref<1x1x48x32xf32>, %k: memref<1x1x48x32xf32>, %v: memref<1x1x48x16xf32>, %p: memref<1x1x48x48xf32>, %s: memref<1x1x32x16xf32>, %o: memref<1x1x48x16xf32>) {
  linattn.chunk.scores %q, %k into(%p) {summands = array<i64: 1, 1>} : (memref<1x1x48x32xf32>, memref<1x1x48x32xf32>, memref<1x1x48x48xf32>) -> ()
  linattn.chunk.read %q, %s scores(%p) values(%v) into(%o) {summands = array<i64: 1, 1, 1, 1>}
    : (memref<1x1x48x32xf32>, memref<1x1x32x16xf32>, memref<1x1x48x48xf32>, memref<1x1x48x16xf32>, memref<1x1x48x16xf32>) -> ()
  return
}

// Without summands, or with features that are not whole tiles, a product is one
// of vectors.

// CHECK-LABEL: func.func @vectors(
// CHECK-NOT:     amx.
func.func @vectors(%x: memref<1x1x32x32xf32>, %y: memref<1x1x5x32xf32>, %p: memref<1x1x32x32xf32>, %r: memref<1x1x5x5xf32>) {
  linattn.chunk.scores %x, %x into(%p) : (memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>) -> ()
  linattn.chunk.scores %y, %y into(%r) {summands = array<i64: 1, 1>} : (memref<1x1x5x32xf32>, memref<1x1x5x32xf32>, memref<1x1x5x5xf32>) -> ()
  return
}

// A state that a loop only reads is packed in front of it, queries within.

// CHECK-LABEL: func.func @kept(
// CHECK:         vector.interleave
// CHECK:         scf.for {{.*}}step %c1
// CHECK:           vector.interleave
// CHECK-NOT:       vector.interleave
// CHECK:         return
func.func @kept(%q: memref<1x1x16x32xf32>, %s: memref<1x1x32x16xf32>, %o: memref<1x4x16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %h = %c0 to %c4 step %c1 {
    %into = memref.subview %o[0, %h, 0, 0] [1, 1, 16, 16] [1, 1, 1, 1] : memref<1x4x16x16xf32> to memref<1x1x16x16xf32, strided<[1024, 256, 16, 1], offset: ?>>
    linattn.chunk.read %q, %s into(%into) {summands = array<i64: 1, 1>}
      : (memref<1x1x16x32xf32>, memref<1x1x32x16xf32>, memref<1x1x16x16xf32, strided<[1024, 256, 16, 1], offset: ?>>) -> ()
  }
  return
}
