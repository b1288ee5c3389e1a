// RUN: linattn-opt %s --linattn-lower-chunks-to-vector=tiles=2 --canonicalize | FileCheck %s
// RUN: linattn-opt %s --linattn-lower-chunks-to-vector | FileCheck %s --check-prefix=VECTORS
// RUN: not linattn-opt %s --linattn-lower-chunks-to-vector='tiles=2 vector-bits=256' 2>&1 | FileCheck %s --check-prefix=WIDTH

// RUN: linattn-opt %s --linattn-lower-chunks-to-vector='tiles=2 exact' --canonicalize | FileCheck %s --check-prefix=EXACT

// VECTORS-NOT: amx.
// WIDTH: error: expected vector-bits to be 512 with tiles, but got 256

// Both matrices are packed in pairs of tokens that are 16 apart. Four tiles of sums
// start from zeros of their own; vectors decay them. Where a number is not
// finite, which its exponent tells, vectors do all, in loops that LLVM leaves as
// they are.

// CHECK-LABEL: func.func @update(
// CHECK-DAG:     memref.alloc() {{.*}} : memref<1x2x1x16x32xbf16>
// CHECK:         vector.interleave {{.*}} : vector<16xbf16>
// CHECK:         arith.maxui {{.*}} : vector<32xi16>
// CHECK:         %[[KEYS:.+]] = arith.cmpi ult
// CHECK:         vector.interleave
// CHECK:         %[[VALUES:.+]] = arith.cmpi ult
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
// CHECK:           } {llvm.loop_annotation = #loop_annotation}
// CHECK-NOT:     linattn.chunk
func.func @update(%k: memref<1x1x32x32xf32>, %v: memref<1x1x32x32xf32>, %g: memref<1x1x32xf32>, %s: memref<1x1x32x32xf32>) {
  linattn.chunk.update keys(%k) values(%v) decay(%g) into(%s) {summands = array<i64: 1, 1>}
    : (memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32xf32>, memref<1x1x32x32xf32>) -> ()
  return
}

// Of two matrices of two summands the product of the small ones is left out, and
// that of the large ones comes last in each step. A tile is loaded once for
// products that follow one another. Features missing from a step are zero.

// CHECK-LABEL: func.func @summands(
// CHECK:         %[[LEFT:.+]] = memref.alloc() {{.*}} : memref<2x1x2x16x32xbf16>
// CHECK:         arith.subf
// CHECK:         scf.if
// CHECK:           amx.tile_load %[[LEFT]][%c1, %c0, %c0,
// CHECK-NEXT:      amx.tile_load %[[RIGHT:[a-z0-9_]+]][%c0, %c0, %c0,
// CHECK-NEXT:      amx.tile_mulf
// CHECK-NEXT:      amx.tile_load %[[LEFT]][%c0, %c0, %c0,
// CHECK-NEXT:      amx.tile_load %[[RIGHT]][%c1, %c0, %c0,
// CHECK-NEXT:      amx.tile_mulf
// CHECK-NEXT:      amx.tile_load %[[RIGHT]][%c0, %c0, %c0,
// CHECK-NEXT:      amx.tile_mulf
// CHECK-NEXT:      amx.tile_load %[[LEFT]][%c1, %c0, %c1,
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
// CHECK:           arith.truncf {{.*}} : vector<32xf32> to vector<32xbf16>
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

// Tokens in bf16 reach tiles as they are: queries row by row, keys by a transpose
// of pairs, values in pairs of tokens. Scores are packed as they are made. The
// buffers of f32 are written where values are not finite, for vectors.

// CHECK-LABEL: func.func @tokens(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: memref<1x1x32x32xbf16>, %[[K:[a-z0-9]+]]: memref<1x1x32x32xbf16>, %[[V:[a-z0-9]+]]: memref<1x1x32x32xbf16>
// CHECK-NOT:     arith.extf
// CHECK:         vector.transfer_read %[[Q]]{{.*}} : memref<1x1x32x32xbf16>, vector<32xbf16>
// CHECK-NOT:     arith.extf
// CHECK:         vector.transfer_read %[[K]]{{.*}} : memref<1x1x32x32xbf16>, vector<32xbf16>
// CHECK:         vector.bitcast {{.*}} : vector<32xbf16> to vector<16xf32>
// CHECK-NOT:     scf.if
// CHECK:         amx.tile_mulf
// CHECK:         vector.interleave
// CHECK:         memref.store {{.*}} : memref<1xi1>
// CHECK:         vector.transfer_read %[[V]]{{.*}} : memref<1x1x32x32xbf16>, vector<16xbf16>
// CHECK:         arith.shli
// CHECK:         scf.if
// CHECK:           amx.tile_mulf
// A scale multiplies the sums, two vectors of which are rounded together.
// CHECK:           arith.mulf {{.*}} : vector<16xf32>
// CHECK:           arith.truncf {{.*}} : vector<32xf32> to vector<32xbf16>
// CHECK:         } else {
// CHECK:           vector.transfer_read %[[Q]]{{.*}} : memref<1x1x32x32xbf16>, vector<16xbf16>
// CHECK:           arith.extf
func.func @tokens(%q: memref<1x1x32x32xbf16>, %k: memref<1x1x32x32xbf16>, %v: memref<1x1x32x32xbf16>, %s: memref<1x1x32x32xf32>, %o: memref<1x1x32x32xbf16>) {
  %zero = arith.constant 0.0 : f32
  %qf = memref.alloc() : memref<1x1x32x32xf32>
  %kf = memref.alloc() : memref<1x1x32x32xf32>
  %vf = memref.alloc() : memref<1x1x32x32xf32>
  %of = memref.alloc() : memref<1x1x32x32xf32>
  %os = memref.alloc() : memref<1x1x32x32xf32>
  %p = memref.alloc() : memref<1x1x32x32xf32>
  linattn.chunk.pack %q into(%qf) : (memref<1x1x32x32xbf16>, memref<1x1x32x32xf32>) -> ()
  linattn.chunk.pack %k into(%kf) : (memref<1x1x32x32xbf16>, memref<1x1x32x32xf32>) -> ()
  linattn.chunk.pack %v into(%vf) : (memref<1x1x32x32xbf16>, memref<1x1x32x32xf32>) -> ()
  linattn.chunk.scores %qf, %kf into(%p) {summands = array<i64: 1, 1>} : (memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>) -> ()
  linalg.fill ins(%zero : f32) outs(%of : memref<1x1x32x32xf32>)
  linattn.chunk.read %qf, %s scores(%p) values(%vf) into(%of) {summands = array<i64: 1, 2, 2, 1>}
    : (memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>) -> ()
  linattn.chunk.pack %of into(%os) {scale = 0.3} : (memref<1x1x32x32xf32>, memref<1x1x32x32xf32>) -> ()
  linattn.chunk.unpack %os into(%o) : (memref<1x1x32x32xf32>, memref<1x1x32x32xbf16>) -> ()
  return
}

// A state that a loop reads and updates is packed in front of it, and by the
// update: it is not read once more. Elements of a field have no exponents to
// look at, and no branch.

// CHECK-LABEL: func.func @packed_by_updates(
// EXACT-LABEL: func.func @packed_by_updates(
// CHECK-SAME:    %[[S:[a-z0-9]+]]: memref<1x1x32x32xf32>, %{{[a-z0-9]+}}: memref<1x1x128x32xf32>)
// CHECK:         vector.load %[[S]]
// CHECK:         vector.interleave
// CHECK:         scf.for {{.*}} step %c32
// CHECK-NOT:       vector.load %[[S]]
// CHECK:           scf.if
// CHECK:             amx.tile_mulf
// CHECK:           scf.if
// CHECK:             amx.tile_mulf
// CHECK:             vector.load %[[S]]
// CHECK:             vector.store {{.*}}, %[[S]]
// CHECK:             vector.interleave
// CHECK:             memref.store {{.*}} : memref<1xi1>
// CHECK:           } else {
// EXACT-NOT:     scf.if
// EXACT-NOT:     arith.maxui
func.func @packed_by_updates(%q: memref<1x1x128x32xf32>, %k: memref<1x1x128x32xf32>, %s: memref<1x1x32x32xf32>, %o: memref<1x1x128x32xf32>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c128 = arith.constant 128 : index
  scf.for %t = %c0 to %c128 step %c32 {
    %qt = memref.subview %q[0, 0, %t, 0] [1, 1, 32, 32] [1, 1, 1, 1] : memref<1x1x128x32xf32> to memref<1x1x32x32xf32, strided<[4096, 4096, 32, 1], offset: ?>>
    %kt = memref.subview %k[0, 0, %t, 0] [1, 1, 32, 32] [1, 1, 1, 1] : memref<1x1x128x32xf32> to memref<1x1x32x32xf32, strided<[4096, 4096, 32, 1], offset: ?>>
    %ot = memref.subview %o[0, 0, %t, 0] [1, 1, 32, 32] [1, 1, 1, 1] : memref<1x1x128x32xf32> to memref<1x1x32x32xf32, strided<[4096, 4096, 32, 1], offset: ?>>
    linattn.chunk.read %qt, %s into(%ot) {summands = array<i64: 2, 2>}
      : (memref<1x1x32x32xf32, strided<[4096, 4096, 32, 1], offset: ?>>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32, strided<[4096, 4096, 32, 1], offset: ?>>) -> ()
    linattn.chunk.update keys(%kt) values(%kt) into(%s) {summands = array<i64: 2, 2>}
      : (memref<1x1x32x32xf32, strided<[4096, 4096, 32, 1], offset: ?>>, memref<1x1x32x32xf32, strided<[4096, 4096, 32, 1], offset: ?>>, memref<1x1x32x32xf32>) -> ()
  }
  return
}

// Negated tokens flip the sign bits in every role.

// CHECK-LABEL: func.func @negated(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: memref<1x1x32x32xbf16>, %[[K:[a-z0-9]+]]: memref<1x1x32x32xbf16>, %[[V:[a-z0-9]+]]: memref<1x1x32x32xbf16>
// CHECK:         vector.transfer_read %[[Q]]
// CHECK:         arith.xori {{.*}} : vector<32xi16>
// CHECK:         vector.transfer_read %[[K]]
// CHECK:         arith.xori {{.*}} : vector<32xi16>
// CHECK:         amx.tile_mulf
// CHECK:         vector.transfer_read %[[V]]
// CHECK:         arith.xori {{.*}} : vector<32xi16>
// CHECK:         amx.tile_mulf
func.func @negated(%q: memref<1x1x32x32xbf16>, %k: memref<1x1x32x32xbf16>, %v: memref<1x1x32x32xbf16>, %p: memref<1x1x32x32xf32>, %s: memref<1x1x32x32xf32>) {
  %qf = memref.alloc() : memref<1x1x32x32xf32>
  %kf = memref.alloc() : memref<1x1x32x32xf32>
  %vf = memref.alloc() : memref<1x1x32x32xf32>
  linattn.chunk.pack %q into(%qf) {scale = -1.0} : (memref<1x1x32x32xbf16>, memref<1x1x32x32xf32>) -> ()
  linattn.chunk.pack %k into(%kf) {scale = -1.0} : (memref<1x1x32x32xbf16>, memref<1x1x32x32xf32>) -> ()
  linattn.chunk.pack %v into(%vf) {scale = -1.0} : (memref<1x1x32x32xbf16>, memref<1x1x32x32xf32>) -> ()
  linattn.chunk.scores %qf, %kf into(%p) {summands = array<i64: 1, 1>} : (memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>) -> ()
  linattn.chunk.update keys(%kf) values(%vf) into(%s) {summands = array<i64: 1, 1>} : (memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>) -> ()
  return
}

// Under a decay per channel, scores within 16 tokens are vectors. Keys decay to
// the end of their block, rows of the next two blocks from its end on, and what
// lies between blocks is a product of one tile and one of two, whose sums are
// stored as scores without a mask. If a number is not finite, vectors score the
// whole chunk.

// CHECK-LABEL: func.func @channels(
// CHECK:         amx.tile_zero
// CHECK-NEXT:    amx.tile_load
// CHECK-COUNT-3: amx.tile_mulf
// CHECK-NOT:     amx.tile_mulf
// CHECK:         amx.tile_store %[[SCORES:[a-z0-9_]+]][%c0, %c0, %c16, %c0]
// CHECK:         amx.tile_zero
// CHECK-NEXT:    amx.tile_zero
// CHECK-COUNT-6: amx.tile_mulf
// CHECK-NOT:     amx.tile_mulf
// CHECK:         amx.tile_store %[[SCORES]][%c0, %c0, %c32, %c0]
// CHECK-NEXT:    amx.tile_store %[[SCORES]][%c0, %c0, %c32, %c16]
// CHECK:         %[[BLOCK:.+]] = arith.select %{{.+}}, %c16, %c48 : index
// CHECK:         scf.for %[[ROW:.+]] = %c0 to %c48 step %c4
// CHECK:           arith.remsi %[[ROW]], %[[BLOCK]]
// EXACT-LABEL: func.func @channels(
// EXACT:         amx.tile_mulf
// EXACT:         scf.for %[[ROW:.+]] = %c0 to %c48 step %c4
// EXACT:           arith.remsi %[[ROW]], %c16
func.func @channels(%x: memref<1x1x48x32xf32>, %k: memref<1x1x48x32xf32>, %g: memref<1x1x48x32xf32>, %p: memref<1x1x48x48xf32>) {
  linattn.chunk.scores %x, %k decay(%g) into(%p) {summands = array<i64: 2, 2>}
    : (memref<1x1x48x32xf32>, memref<1x1x48x32xf32>, memref<1x1x48x32xf32>, memref<1x1x48x48xf32>) -> ()
  return
}

// Two scores of the same keys pack them once, rows twice. One block has no earlier
// keys.

// CHECK-LABEL: func.func @twice(
// CHECK-COUNT-3: memref.alloc() {{.*}} : memref<1x1x1x16x32xbf16>
// CHECK-NOT:     memref.alloc() {{.*}} : memref<1x1x1x16x32xbf16>
// CHECK:         return
func.func @twice(%x: memref<1x1x32x32xf32>, %k: memref<1x1x32x32xf32>, %g: memref<1x1x32x32xf32>, %p: memref<1x1x32x32xf32>, %n: memref<1x1x32x32xf32>) {
  linattn.chunk.scores %x, %k decay(%g) into(%p) {summands = array<i64: 1, 1>}
    : (memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>) -> ()
  linattn.chunk.scores %k, %k decay(%g) into(%n) {strict, summands = array<i64: 1, 1>}
    : (memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @block(
// CHECK-NOT:     amx.
// CHECK:         return
func.func @block(%x: memref<1x1x16x32xf32>, %k: memref<1x1x16x32xf32>, %g: memref<1x1x16x32xf32>, %p: memref<1x1x16x16xf32>) {
  linattn.chunk.scores %x, %k decay(%g) into(%p) {summands = array<i64: 1, 1>}
    : (memref<1x1x16x32xf32>, memref<1x1x16x32xf32>, memref<1x1x16x32xf32>, memref<1x1x16x16xf32>) -> ()
  return
}

// Tokens of 20 features fill rows of 32 up with zeros. Tiles take them as they
// are, what is read past their end is zero, and of the sums 20 columns are tokens.
// The branch of vectors packs rows beside the zeros that were filled.

// CHECK-LABEL: func.func @filled(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: memref<1x1x32x20xbf16>, %{{.+}}: memref<1x1x32x32xf32>, %[[O:[a-z0-9]+]]: memref<1x1x32x20xbf16>)
// CHECK:         vector.transfer_read %[[Q]]{{.*}}, %{{.+}} : memref<1x1x32x20xbf16>, vector<32xbf16>
// CHECK-NOT:     vector.transfer_write
// CHECK:         scf.if
// CHECK:           amx.tile_mulf
// CHECK:           vector.transfer_write {{.*}}, %[[O]]{{.*}} : vector<32xbf16>, memref<1x1x32x20xbf16>
// CHECK:         } else {
// CHECK:           vector.transfer_write {{.*}} : vector<16xf32>, memref<1x1x32x20xf32,
// CHECK-NOT:     linattn.chunk
func.func @filled(%q: memref<1x1x32x20xbf16>, %s: memref<1x1x32x32xf32>, %o: memref<1x1x32x20xbf16>) {
  %zero = arith.constant 0.0 : f32
  %rows = memref.alloc() : memref<1x1x32x32xf32>
  %own = memref.subview %rows[0, 0, 0, 0] [1, 1, 32, 20] [1, 1, 1, 1] : memref<1x1x32x32xf32> to memref<1x1x32x20xf32, strided<[1024, 1024, 32, 1]>>
  linattn.chunk.pack %q into(%own) : (memref<1x1x32x20xbf16>, memref<1x1x32x20xf32, strided<[1024, 1024, 32, 1]>>) -> ()
  %rest = memref.subview %rows[0, 0, 0, 20] [1, 1, 32, 12] [1, 1, 1, 1] : memref<1x1x32x32xf32> to memref<1x1x32x12xf32, strided<[1024, 1024, 32, 1], offset: 20>>
  linalg.fill ins(%zero : f32) outs(%rest : memref<1x1x32x12xf32, strided<[1024, 1024, 32, 1], offset: 20>>)
  %sums = memref.alloc() : memref<1x1x32x32xf32>
  linalg.fill ins(%zero : f32) outs(%sums : memref<1x1x32x32xf32>)
  linattn.chunk.read %rows, %s into(%sums) {summands = array<i64: 1, 2>} : (memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>) -> ()
  %first = memref.subview %sums[0, 0, 0, 0] [1, 1, 32, 20] [1, 1, 1, 1] : memref<1x1x32x32xf32> to memref<1x1x32x20xf32, strided<[1024, 1024, 32, 1]>>
  linattn.chunk.unpack %first into(%o) : (memref<1x1x32x20xf32, strided<[1024, 1024, 32, 1]>>, memref<1x1x32x20xbf16>) -> ()
  return
}

// A chunk that may have fewer tokens than rows: as many stay where they are, fewer
// are copied to memory of as many rows with zeros behind them. Outputs are
// written there, too, and copied back.

// CHECK-LABEL: func.func @fewer_tokens(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: memref<1x1x?x32xbf16, {{.+}}>, %{{.+}}: memref<1x1x32x32xf32>, %[[O:[a-z0-9]+]]: memref<1x1x?x32xbf16, {{[^,]*, [^,]*, [^,]*, [^,]*, [^,]*}}>, %{{.+}}: index)
// CHECK:         %[[OWN:.+]] = memref.alloc() {{.*}} : memref<1x1x32x32xbf16>
// CHECK:         %[[T:.+]] = memref.dim %[[Q]], %c2
// CHECK:         %[[AS_MANY:.+]] = arith.cmpi eq, %[[T]], %c32
// CHECK:         %[[ROWS:.+]] = scf.if %[[AS_MANY]] -> (memref<1x1x32x32xbf16, strided<[?, ?, ?, 1], offset: ?>>)
// CHECK:           memref.cast %[[Q]]
// CHECK:         } else {
// CHECK:           scf.for %{{.+}} = %c0 to %[[T]]
// CHECK:             vector.transfer_write {{.*}}, %[[OWN]]
// CHECK:           scf.for %{{.+}} = %[[T]] to %c32
// CHECK:             vector.transfer_write %cst{{.*}}, %[[OWN]]
// CHECK:           memref.cast %[[OWN]]
// CHECK:         %[[AS_MANY:.+]] = arith.cmpi eq
// CHECK:         %[[INTO:.+]] = scf.if %[[AS_MANY]] -> (memref<1x1x32x32xbf16, strided<[?, ?, 32, 1], offset: ?>>)
// CHECK:         vector.transfer_read %[[ROWS]]{{.*}} vector<32xbf16>
// CHECK:         amx.tile_mulf
// CHECK:         vector.transfer_write {{.*}}, %[[INTO]]{{.*}} : vector<32xbf16>
// CHECK:         scf.if %[[AS_MANY]] {
// CHECK-NEXT:    } else {
// CHECK:           vector.transfer_write {{.*}}, %[[O]]
// CHECK-NOT:     linattn.chunk
// EXACT-LABEL: func.func @fewer_tokens(
// EXACT-NOT:     linattn.chunk
// EXACT:         return
func.func @fewer_tokens(%q: memref<1x1x?x32xbf16, strided<[?, ?, 64, 1], offset: ?>>, %s: memref<1x1x32x32xf32>, %o: memref<1x1x?x32xbf16, strided<[?, ?, 32, 1], offset: ?>>, %n: index) {
  %zero = arith.constant 0.0 : f32
  %rows = memref.alloca() : memref<1x1x32x32xf32>
  %sums = memref.alloca() : memref<1x1x32x32xf32>
  linattn.chunk.pack %q into(%rows) {padded} : (memref<1x1x?x32xbf16, strided<[?, ?, 64, 1], offset: ?>>, memref<1x1x32x32xf32>) -> ()
  linalg.fill ins(%zero : f32) outs(%sums : memref<1x1x32x32xf32>)
  linattn.chunk.read %rows, %s into(%sums) {summands = array<i64: 1, 2>} : (memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>) -> ()
  %first = memref.subview %sums[0, 0, 0, 0] [1, 1, %n, 32] [1, 1, 1, 1] : memref<1x1x32x32xf32> to memref<1x1x?x32xf32, strided<[1024, 1024, 32, 1]>>
  linattn.chunk.unpack %first into(%o) : (memref<1x1x?x32xf32, strided<[1024, 1024, 32, 1]>>, memref<1x1x?x32xbf16, strided<[?, ?, 32, 1], offset: ?>>) -> ()
  return
}

// A known number of fewer tokens is always copied.

// CHECK-LABEL: func.func @fewer_known_tokens(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: memref<1x1x20x32xbf16>, %{{.+}}: memref<1x1x32x32xf32>, %[[O:[a-z0-9]+]]: memref<1x1x20x32xbf16>)
// CHECK:         %[[OWN:.+]] = memref.alloc() {{.*}} : memref<1x1x32x32xbf16>
// CHECK-NOT:     scf.if
// CHECK:         scf.for %{{.+}} = %c0 to %c20
// CHECK:           vector.transfer_read %[[Q]]
// CHECK:         scf.for %{{.+}} = %c20 to %c32
// CHECK:         vector.transfer_read %[[OWN]]{{.*}} vector<32xbf16>
// CHECK:         amx.tile_mulf
// CHECK:         scf.for %{{.+}} = %c0 to %c20
// CHECK:           vector.transfer_write {{.*}}, %[[O]]
func.func @fewer_known_tokens(%q: memref<1x1x20x32xbf16>, %s: memref<1x1x32x32xf32>, %o: memref<1x1x20x32xbf16>) {
  %zero = arith.constant 0.0 : f32
  %rows = memref.alloca() : memref<1x1x32x32xf32>
  %sums = memref.alloca() : memref<1x1x32x32xf32>
  linattn.chunk.pack %q into(%rows) {padded} : (memref<1x1x20x32xbf16>, memref<1x1x32x32xf32>) -> ()
  linalg.fill ins(%zero : f32) outs(%sums : memref<1x1x32x32xf32>)
  linattn.chunk.read %rows, %s into(%sums) {summands = array<i64: 1, 2>} : (memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>) -> ()
  %first = memref.subview %sums[0, 0, 0, 0] [1, 1, 20, 32] [1, 1, 1, 1] : memref<1x1x32x32xf32> to memref<1x1x20x32xf32, strided<[1024, 1024, 32, 1]>>
  linattn.chunk.unpack %first into(%o) : (memref<1x1x20x32xf32, strided<[1024, 1024, 32, 1]>>, memref<1x1x20x32xbf16>) -> ()
  return
}

// Rows that come from elsewhere, too, are packed in f32; sums that are read once
// more stay.

// CHECK-LABEL: func.func @parts(
// CHECK:         vector.transfer_write {{.*}} : vector<16xf32>, memref<1x1x32x20xf32,
// CHECK:         linalg.copy
// CHECK:         amx.tile_mulf
// CHECK:         vector.transfer_write {{.*}} : vector<32xf32>, memref<1x1x32x32xf32>
// CHECK:         linalg.copy
func.func @parts(%q: memref<1x1x32x20xbf16>, %more: memref<1x1x32x12xf32>, %s: memref<1x1x32x32xf32>, %o: memref<1x1x32x20xbf16>, %all: memref<1x1x32x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %rows = memref.alloc() : memref<1x1x32x32xf32>
  %own = memref.subview %rows[0, 0, 0, 0] [1, 1, 32, 20] [1, 1, 1, 1] : memref<1x1x32x32xf32> to memref<1x1x32x20xf32, strided<[1024, 1024, 32, 1]>>
  linattn.chunk.pack %q into(%own) : (memref<1x1x32x20xbf16>, memref<1x1x32x20xf32, strided<[1024, 1024, 32, 1]>>) -> ()
  %rest = memref.subview %rows[0, 0, 0, 20] [1, 1, 32, 12] [1, 1, 1, 1] : memref<1x1x32x32xf32> to memref<1x1x32x12xf32, strided<[1024, 1024, 32, 1], offset: 20>>
  linalg.copy ins(%more : memref<1x1x32x12xf32>) outs(%rest : memref<1x1x32x12xf32, strided<[1024, 1024, 32, 1], offset: 20>>)
  %sums = memref.alloc() : memref<1x1x32x32xf32>
  linalg.fill ins(%zero : f32) outs(%sums : memref<1x1x32x32xf32>)
  linattn.chunk.read %rows, %s into(%sums) {summands = array<i64: 2, 2>} : (memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>) -> ()
  %first = memref.subview %sums[0, 0, 0, 0] [1, 1, 32, 20] [1, 1, 1, 1] : memref<1x1x32x32xf32> to memref<1x1x32x20xf32, strided<[1024, 1024, 32, 1]>>
  linattn.chunk.unpack %first into(%o) : (memref<1x1x32x20xf32, strided<[1024, 1024, 32, 1]>>, memref<1x1x32x20xbf16>) -> ()
  linalg.copy ins(%sums : memref<1x1x32x32xf32>) outs(%all : memref<1x1x32x32xf32>)
  return
}

// A loop writes a part of a buffer: what was made of the buffer is made anew.

// CHECK-LABEL: func.func @written_in_part(
// CHECK-NOT:     vector.interleave
// CHECK:         scf.for {{.*}} step %c1
// CHECK:         vector.shuffle
// CHECK:         amx.tile_mulf
func.func @written_in_part(%x: memref<1x1x16x20xf32>, %q: memref<1x1x16x32xf32>, %p: memref<1x1x16x16xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k = memref.alloc() : memref<1x1x16x32xf32>
  scf.for %i = %c0 to %n step %c1 {
    %own = memref.subview %k[0, 0, 0, 0] [1, 1, 16, 20] [1, 1, 1, 1] : memref<1x1x16x32xf32> to memref<1x1x16x20xf32, strided<[512, 512, 32, 1]>>
    linattn.chunk.pack %x into(%own) : (memref<1x1x16x20xf32>, memref<1x1x16x20xf32, strided<[512, 512, 32, 1]>>) -> ()
    linattn.chunk.scores %q, %k into(%p) {summands = array<i64: 1, 1>} : (memref<1x1x16x32xf32>, memref<1x1x16x32xf32>, memref<1x1x16x16xf32>) -> ()
  }
  return
}

// Rows and keys that decay per channel through the whole chunk go on from the blocks of
// the scores: tiles are packed from these, and only the branch of vectors writes
// decayed rows. Those that meet keys before their own decay are others.

// CHECK-LABEL: func.func @blocks(
// CHECK:         %[[QD:.+]] = memref.alloc() : memref<1x1x32x32xf32>
// CHECK:         %[[KD:.+]] = memref.alloc() : memref<1x1x32x32xf32>
// CHECK:         %[[BEFORE:.+]] = memref.alloc() : memref<1x1x32x32xf32>
// CHECK-NOT:     vector.store {{.*}}, %[[QD]][%
// CHECK-NOT:     vector.store {{.*}}, %[[KD]][%
// CHECK:         scf.if
// CHECK:           amx.tile_mulf
// CHECK:         } else {
// CHECK:           vector.store {{.*}}, %[[QD]][%
// CHECK:         }
// CHECK-NOT:     vector.store {{.*}}, %[[KD]][%
// CHECK:         vector.store {{.*}}, %[[BEFORE]][%
// CHECK-NOT:     vector.store {{.*}}, %[[KD]][%
// CHECK:         scf.if
// CHECK:         } else {
// CHECK:         scf.if
// CHECK:           amx.tile_mulf
// CHECK:         } else {
// CHECK:           vector.store {{.*}}, %[[KD]][%
// EXACT-LABEL: func.func @blocks(
// EXACT:         %[[QD:.+]] = memref.alloc() : memref<1x1x32x32xf32>
// EXACT:         vector.store {{.*}}, %[[QD]][%
func.func @blocks(%q: memref<1x1x32x32xf32>, %k: memref<1x1x32x32xf32>, %v: memref<1x1x32x32xf32>, %g: memref<1x1x32x32xf32>, %p: memref<1x1x32x32xf32>, %s: memref<1x1x32x32xf32>, %o: memref<1x1x32x32xf32>) {
  %qd = memref.alloc() : memref<1x1x32x32xf32>
  %kd = memref.alloc() : memref<1x1x32x32xf32>
  %before = memref.alloc() : memref<1x1x32x32xf32>
  linattn.chunk.scores %q, %k decay(%g) into(%p) {summands = array<i64: 2, 2>}
    : (memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>) -> ()
  linattn.chunk.decay %q by(%g) into(%qd) : (memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>) -> ()
  linattn.chunk.read %qd, %s scores(%p) values(%v) into(%o) {summands = array<i64: 2, 2, 2, 2>}
    : (memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>) -> ()
  linattn.chunk.decay %q by(%g) into(%before) {before} : (memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>) -> ()
  linattn.chunk.read %before, %s into(%o) {summands = array<i64: 2, 2>}
    : (memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>) -> ()
  linattn.chunk.decay %k by(%g) into(%kd) {to_end} : (memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>) -> ()
  linattn.chunk.update keys(%kd) values(%v) decay(%g) into(%s) {summands = array<i64: 2, 2>}
    : (memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>) -> ()
  return
}

// Keys that are overwritten before the update are decayed where the op is.

// CHECK-LABEL: func.func @overwritten(
// CHECK:         %[[KD:.+]] = memref.alloc() : memref<1x1x32x32xf32>
// CHECK:         vector.store {{.*}}, %[[KD]][%
// CHECK:         amx.tile_mulf
func.func @overwritten(%x: memref<1x1x32x32xbf16>, %q: memref<1x1x32x32xf32>, %k: memref<1x1x32x32xf32>, %v: memref<1x1x32x32xf32>, %g: memref<1x1x32x32xf32>, %p: memref<1x1x32x32xf32>, %s: memref<1x1x32x32xf32>) {
  %kd = memref.alloc() : memref<1x1x32x32xf32>
  linattn.chunk.decay %k by(%g) into(%kd) {to_end} : (memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>) -> ()
  linattn.chunk.pack %x into(%k) : (memref<1x1x32x32xbf16>, memref<1x1x32x32xf32>) -> ()
  linattn.chunk.scores %q, %k decay(%g) into(%p) {summands = array<i64: 2, 2>}
    : (memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>) -> ()
  linattn.chunk.update keys(%kd) values(%v) decay(%g) into(%s) {summands = array<i64: 2, 2>}
    : (memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>, memref<1x1x32x32xf32>) -> ()
  return
}
