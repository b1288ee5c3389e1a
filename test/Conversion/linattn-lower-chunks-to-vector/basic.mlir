// RUN: linattn-opt %s --linattn-lower-chunks-to-vector --canonicalize | FileCheck %s
// RUN: linattn-opt %s --linattn-lower-chunks-to-vector='vector-bits=256 registers=16' --canonicalize | FileCheck %s --check-prefix=AVX2

// Eight rows of two vectors, four tokens at a time; the state meets the factor
// of its decay and what its rounding left over.

// CHECK-LABEL: func.func @update(
// CHECK:         math.expm1
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             %[[SUMS:.+]]:8 = scf.for {{.*}} -> (vector<32xf32>,
// CHECK-COUNT-32:      vector.fma {{.*}} : vector<32xf32>
// CHECK-COUNT-16:    vector.fma {{.*}} : vector<32xf32>
// CHECK-NOT:     linattn.chunk
// AVX2-LABEL: func.func @update(
// AVX2:         :4 = scf.for {{.*}} -> (vector<16xf32>,
func.func @update(%k: memref<1x1x16x64xf32>, %v: memref<1x1x16x64xf32>, %g: memref<1x1x16xf32>, %s: memref<1x1x64x64xf32>) {
  linattn.chunk.update keys(%k) values(%v) decay(%g) into(%s)
    : (memref<1x1x16x64xf32>, memref<1x1x16x64xf32>, memref<1x1x16xf32>, memref<1x1x64x64xf32>) -> ()
  return
}

// Keys are transposed once for both scores, and again when they have changed.

// CHECK-LABEL: func.func @scores(
// CHECK-COUNT-64: vector.shuffle
// CHECK-NOT:     vector.shuffle
// CHECK:         vector.fma
// CHECK:         vector.constant_mask
// CHECK-NOT:     linattn.chunk
func.func @scores(%x: memref<1x1x16x16xf32>, %y: memref<1x1x16x16xf32>, %k: memref<1x1x16x16xf32>, %a: memref<1x1x16x16xf32>, %p: memref<1x1x16x16xf32>) {
  linattn.chunk.scores %x, %k into(%a) {strict} : (memref<1x1x16x16xf32>, memref<1x1x16x16xf32>, memref<1x1x16x16xf32>) -> ()
  linattn.chunk.scores %y, %k into(%p) : (memref<1x1x16x16xf32>, memref<1x1x16x16xf32>, memref<1x1x16x16xf32>) -> ()
  return
}

// A read starts from zero, decays its own sums, and writes the tokens.

// CHECK-LABEL: func.func @read(
// CHECK-SAME:    %[[X:[^:]+]]: memref<1x1x16x32xf32>, %[[G:[^:]+]]: {{.*}}, %[[S:[^:]+]]: memref<1x1x32x32xf32>, %[[O:[^:]+]]: memref<1x1x16x32xbf16>)
// CHECK-NOT:     linalg.fill
// CHECK:         vector.fma
// CHECK:         arith.mulf {{.*}} : vector<32xf32>
// CHECK:         arith.truncf {{.*}} : vector<32xf32> to vector<32xbf16>
// CHECK-NOT:     linattn.chunk
func.func @read(%x: memref<1x1x16x32xf32>, %g: memref<1x1x16xf32>, %s: memref<1x1x32x32xf32>, %o: memref<1x1x16x32xbf16>) {
  %zero = arith.constant 0.0 : f32
  %rows = memref.alloc() : memref<1x1x16x32xf32>
  %decayed = memref.alloc() : memref<1x1x16x32xf32>
  %y = memref.alloc() : memref<1x1x16x32xf32>
  linattn.chunk.pack %x into(%rows) : (memref<1x1x16x32xf32>, memref<1x1x16x32xf32>) -> ()
  linattn.chunk.decay %rows by(%g) into(%decayed) : (memref<1x1x16x32xf32>, memref<1x1x16xf32>, memref<1x1x16x32xf32>) -> ()
  linalg.fill ins(%zero : f32) outs(%y : memref<1x1x16x32xf32>)
  linattn.chunk.read %decayed, %s into(%y) : (memref<1x1x16x32xf32>, memref<1x1x32x32xf32>, memref<1x1x16x32xf32>) -> ()
  linattn.chunk.unpack %y into(%o) : (memref<1x1x16x32xf32>, memref<1x1x16x32xbf16>) -> ()
  memref.dealloc %y : memref<1x1x16x32xf32>
  memref.dealloc %decayed : memref<1x1x16x32xf32>
  memref.dealloc %rows : memref<1x1x16x32xf32>
  return
}

// Tokens of an unknown number are unpacked one by one.

// CHECK-LABEL: func.func @unpack(
// CHECK-SAME:    %{{.+}}: memref<1x1x?x32xf32>, %[[O:[a-z0-9]+]]: memref<1x1x?x32xbf16>)
// CHECK:         %[[T:.+]] = memref.dim %[[O]], %c2
// CHECK:         scf.for %{{.+}} = %c0 to %[[T]]
// CHECK:           arith.truncf
// CHECK:           vector.transfer_write {{.*}}, %[[O]]
// CHECK-NOT:     linattn.chunk
func.func @unpack(%y: memref<1x1x?x32xf32>, %o: memref<1x1x?x32xbf16>) {
  linattn.chunk.unpack %y into(%o) : (memref<1x1x?x32xf32>, memref<1x1x?x32xbf16>) -> ()
  return
}

// So are those that are divided, by the first denominators of a chunk.

// CHECK-LABEL: func.func @unpack_divided(
// CHECK-SAME:    %{{.+}}: memref<1x1x?x32xf32>, %[[D:[a-z0-9]+]]: memref<1x1x16x1xf32>, %{{.+}}: index, %[[O:[a-z0-9]+]]: memref<1x1x?x32xbf16>)
// CHECK:         %[[COLUMN:.+]] = memref.collapse_shape %[[D]]
// CHECK:         %[[T:.+]] = memref.dim %[[O]], %c2
// CHECK:         scf.for %[[I:.+]] = %c0 to %[[T]]
// CHECK:           memref.load %[[COLUMN]][%[[I]]]
// CHECK:           vector.transfer_write {{.*}}, %[[O]]
// CHECK-NOT:     linattn.chunk
func.func @unpack_divided(%y: memref<1x1x?x32xf32>, %d: memref<1x1x16x1xf32>, %n: index, %o: memref<1x1x?x32xbf16>) {
  %first = memref.subview %d[0, 0, 0, 0] [1, 1, %n, 1] [1, 1, 1, 1] : memref<1x1x16x1xf32> to memref<1x1x?x1xf32, strided<[16, 16, 1, 1]>>
  linattn.chunk.unpack %y denominator(%first) into(%o) {normalize = #linattn.normalize<eps = 1.0e-6>} : (memref<1x1x?x32xf32>, memref<1x1x?x1xf32, strided<[16, 16, 1, 1]>>, memref<1x1x?x32xbf16>) -> ()
  return
}

// A loop that selects one of two decays in each step selects one of the factors
// that were made of both in front of it.

// CHECK-LABEL: func.func @selected_decay(
// CHECK:         %[[A:.+]] = memref.alloc() {{.*}} : memref<17xf32>
// CHECK:         math.exp
// CHECK:         %[[B:.+]] = memref.alloc() {{.*}} : memref<17xf32>
// CHECK:         math.exp
// CHECK:         arith.cmpi eq
// CHECK-NEXT:    %[[START:.+]] = arith.select %{{.+}}, %[[A]], %[[B]] : memref<17xf32>
// CHECK-NOT:     math.exp
// CHECK:         memref.load %[[START]]
// CHECK-NOT:     math.exp
// CHECK:         return
func.func @selected_decay(%x: memref<1x1x16x32xf32>, %a: memref<1x1x16xf32>, %b: memref<1x1x16xf32>, %n: index, %y: memref<1x1x16x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %first = arith.cmpi eq, %i, %c0 : index
    %g = arith.select %first, %a, %b : memref<1x1x16xf32>
    linattn.chunk.decay %x by(%g) into(%y) : (memref<1x1x16x32xf32>, memref<1x1x16xf32>, memref<1x1x16x32xf32>) -> ()
  }
  return
}
// In a task the buffers of a chunk lie on its stack, and a product prefetches
// the rows of the next chunk, of the next head after the last one.

// CHECK-LABEL: func.func @task(
// CHECK:         scf.forall (%[[HEAD:.+]]) in (4)
// CHECK:           memref.alloca() {{.*}} : memref<1x1x16x16xf32>
// CHECK:           scf.for
// CHECK:             arith.select {{.*}}, %{{.*}}, %[[HEAD]]
// CHECK:             memref.prefetch
// CHECK-NOT:       memref.dealloc
func.func @task(%k: memref<1x4x128x16xf32>, %s: memref<1x4x16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c128 = arith.constant 128 : index
  scf.forall (%h) in (4) {
    %kh = memref.subview %k[0, %h, 0, 0] [1, 1, 128, 16] [1, 1, 1, 1] : memref<1x4x128x16xf32> to memref<1x1x128x16xf32, strided<[8192, 2048, 16, 1], offset: ?>>
    %sh = memref.subview %s[0, %h, 0, 0] [1, 1, 16, 16] [1, 1, 1, 1] : memref<1x4x16x16xf32> to memref<1x1x16x16xf32, strided<[1024, 256, 16, 1], offset: ?>>
    scf.for %t = %c0 to %c128 step %c16 {
      %kt = memref.subview %kh[0, 0, %t, 0] [1, 1, 16, 16] [1, 1, 1, 1] : memref<1x1x128x16xf32, strided<[8192, 2048, 16, 1], offset: ?>> to memref<1x1x16x16xf32, strided<[8192, 2048, 16, 1], offset: ?>>
      %rows = memref.alloc() : memref<1x1x16x16xf32>
      linattn.chunk.pack %kt into(%rows) : (memref<1x1x16x16xf32, strided<[8192, 2048, 16, 1], offset: ?>>, memref<1x1x16x16xf32>) -> ()
      linattn.chunk.update keys(%rows) values(%rows) into(%sh) : (memref<1x1x16x16xf32>, memref<1x1x16x16xf32>, memref<1x1x16x16xf32, strided<[1024, 256, 16, 1], offset: ?>>) -> ()
      memref.dealloc %rows : memref<1x1x16x16xf32>
    }
  }
  return
}

// A buffer that a branch passes on is freed by what reads it, and stays on the heap.

// CHECK-LABEL: func.func @passed_on(
// CHECK:         scf.forall
// CHECK:           scf.if
// CHECK:             %[[OWN:.+]] = memref.alloc() : memref<1x1x16x16xf32>
// CHECK:             memref.cast %[[OWN]]
func.func @passed_on(%k: memref<1x1x16x16xf32>, %s: memref<1x1x16x16xf32>, %full: i1) {
  scf.forall (%h) in (4) {
    %state = scf.if %full -> memref<1x1x16x16xf32, strided<[?, ?, ?, ?], offset: ?>> {
      %own = memref.alloc() : memref<1x1x16x16xf32>
      memref.copy %s, %own : memref<1x1x16x16xf32> to memref<1x1x16x16xf32>
      linattn.chunk.update keys(%k) values(%k) into(%own) : (memref<1x1x16x16xf32>, memref<1x1x16x16xf32>, memref<1x1x16x16xf32>) -> ()
      %cast = memref.cast %own : memref<1x1x16x16xf32> to memref<1x1x16x16xf32, strided<[?, ?, ?, ?], offset: ?>>
      scf.yield %cast : memref<1x1x16x16xf32, strided<[?, ?, ?, ?], offset: ?>>
    } else {
      %cast = memref.cast %s : memref<1x1x16x16xf32> to memref<1x1x16x16xf32, strided<[?, ?, ?, ?], offset: ?>>
      scf.yield %cast : memref<1x1x16x16xf32, strided<[?, ?, ?, ?], offset: ?>>
    }
    %base, %offset, %sizes:4, %strides:4 = memref.extract_strided_metadata %state : memref<1x1x16x16xf32, strided<[?, ?, ?, ?], offset: ?>> -> memref<f32>, index, index, index, index, index, index, index, index, index
    scf.if %full {
      memref.dealloc %base : memref<f32>
    }
  }
  return
}

// Rows that are read vector by vector are prefetched, too.

// CHECK-LABEL: func.func @kept(
// CHECK:         %[[KEPT:.+]] = memref.alloc() : memref<1x1x128x16xf32>
// CHECK:         scf.for
// CHECK:           memref.prefetch %[[KEPT]][{{.*}}], read
func.func @kept(%k: memref<1x1x16x16xf32>, %s: memref<1x4x16x16xf32>, %o: memref<16xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c128 = arith.constant 128 : index
  scf.forall (%h) in (4) {
    %kept = memref.alloc() : memref<1x1x128x16xf32>
    %sh = memref.subview %s[0, %h, 0, 0] [1, 1, 16, 16] [1, 1, 1, 1] : memref<1x4x16x16xf32> to memref<1x1x16x16xf32, strided<[1024, 256, 16, 1], offset: ?>>
    scf.for %t = %c0 to %c128 step %c16 {
      %rows = memref.subview %kept[0, 0, %t, 0] [1, 1, 16, 16] [1, 1, 1, 1] : memref<1x1x128x16xf32> to memref<1x1x16x16xf32, strided<[2048, 2048, 16, 1], offset: ?>>
      linattn.chunk.update keys(%k) values(%k) into(%sh) : (memref<1x1x16x16xf32>, memref<1x1x16x16xf32>, memref<1x1x16x16xf32, strided<[1024, 256, 16, 1], offset: ?>>) -> ()
      %row = vector.transfer_read %rows[%c0, %c0, %c0, %c0], %zero {in_bounds = [true]} : memref<1x1x16x16xf32, strided<[2048, 2048, 16, 1], offset: ?>>, vector<16xf32>
      vector.store %row, %o[%c0] : memref<16xf32>, vector<16xf32>
    }
    memref.dealloc %kept : memref<1x1x128x16xf32>
  }
  return
}

// Scores of later tokens are read column by column; a row that is solved goes to all others at once. A chunk of fewer
// tokens is padded with zeros.

// CHECK-LABEL: func.func @adjoint(
// CHECK-NOT:     linattn.chunk
// CHECK:         vector.fma
// CHECK-NOT:     linattn.chunk
// CHECK:         return
func.func @adjoint(%x: memref<1x1x?x32xf32>, %a: memref<1x1x16x16xf32>, %s: memref<1x1x32x32xf32>, %y: memref<1x1x16x32xf32>, %o: memref<1x1x16x32xf32>) {
  linattn.chunk.pack %x into(%y) {padded} : (memref<1x1x?x32xf32>, memref<1x1x16x32xf32>) -> ()
  linattn.chunk.read %y, %s scores(%a) values(%y) into(%o) {adjoint}
    : (memref<1x1x16x32xf32>, memref<1x1x32x32xf32>, memref<1x1x16x16xf32>, memref<1x1x16x32xf32>, memref<1x1x16x32xf32>) -> ()
  linattn.chunk.solve %a into(%o) {transpose} : (memref<1x1x16x16xf32>, memref<1x1x16x32xf32>) -> ()
  return
}

// A read of the transposed state multiplies its numbers with vectors of tokens: those of the rows before their decay,
// which the scores take, too. Of square blocks of sums only the rows are written.

// CHECK-LABEL: func.func @transpose(
// CHECK-COUNT-64: vector.shuffle
// CHECK-NOT:      vector.shuffle
// CHECK:          %{{.+}}:16 = scf.for {{.*}} -> (vector<16xf32>,
// CHECK-COUNT-64:   vector.fma {{.*}} : vector<16xf32>
// CHECK-COUNT-64: vector.shuffle
// CHECK:          vector.fma {{.*}} : vector<32xf32>
// CHECK-NOT:      linattn.chunk
func.func @transpose(%x: memref<1x1x16x32xf32>, %k: memref<1x1x16x32xf32>, %g: memref<1x1x16xf32>, %s: memref<1x1x64x32xf32>, %p: memref<1x1x16x16xf32>, %y: memref<1x1x16x64xf32>) {
  %decayed = memref.alloc() : memref<1x1x16x32xf32>
  linattn.chunk.scores %k, %x into(%p) : (memref<1x1x16x32xf32>, memref<1x1x16x32xf32>, memref<1x1x16x16xf32>) -> ()
  linattn.chunk.decay %x by(%g) into(%decayed) {to_end} : (memref<1x1x16x32xf32>, memref<1x1x16xf32>, memref<1x1x16x32xf32>) -> ()
  linattn.chunk.read %decayed, %s into(%y) {transpose} : (memref<1x1x16x32xf32>, memref<1x1x64x32xf32>, memref<1x1x16x64xf32>) -> ()
  memref.dealloc %decayed : memref<1x1x16x32xf32>
  return
}

// Under a decay per channel, tiles of four rows: ten scores of their own, and sixteen with four earlier keys, which
// decay on in memory.

// CHECK-LABEL: func.func @channels(
// CHECK:         math.expm1
// CHECK:         scf.for %{{.+}} = %c0 to %c16 step %c4
// CHECK:           :10 = scf.for {{.*}} -> (vector<16xf32>,
// CHECK-COUNT-10:    vector.fma
// CHECK:           scf.for %[[J:.+]] = %c0 to %{{.+}} step %c4
// CHECK:             :16 = scf.for {{.*}} -> (vector<16xf32>,
// CHECK-COUNT-16:      vector.fma
// CHECK-NOT:     linattn.chunk
// AVX2-LABEL: func.func @channels(
// AVX2:          :10 = scf.for {{.*}} -> (vector<8xf32>,
// AVX2:          :8 = scf.for {{.*}} -> (vector<8xf32>,
func.func @channels(%x: memref<1x1x16x64xf32>, %k: memref<1x1x16x64xf32>, %g: memref<1x1x16x64xf32>, %p: memref<1x1x16x16xf32>) {
  linattn.chunk.scores %x, %k decay(%g) into(%p)
    : (memref<1x1x16x64xf32>, memref<1x1x16x64xf32>, memref<1x1x16x64xf32>, memref<1x1x16x16xf32>) -> ()
  return
}

// The columns of a read decay from the last tile to the first.

// CHECK-LABEL: func.func @columns(
// CHECK:         scf.for %[[STEP:.+]] = %c0 to %c16 step %c8
// CHECK:           arith.subi %c8, %[[STEP]]
// CHECK:           scf.for %{{.+}} = %{{.+}} to %c16 step %c4
// CHECK-COUNT-32:    vector.fma {{.*}} : vector<32xf32>
// CHECK-COUNT-28:  vector.fma {{.*}} : vector<32xf32>
// CHECK-NOT:     linattn.chunk
func.func @columns(%w: memref<1x1x16x32xf32>, %s: memref<1x1x32x64xf32>, %p: memref<1x1x16x16xf32>, %q: memref<1x1x16x64xf32>, %g: memref<1x1x16x64xf32>, %y: memref<1x1x16x64xf32>) {
  linattn.chunk.read %w, %s scores(%p) values(%q) decay(%g) into(%y) {adjoint, strict}
    : (memref<1x1x16x32xf32>, memref<1x1x32x64xf32>, memref<1x1x16x16xf32>, memref<1x1x16x64xf32>, memref<1x1x16x64xf32>, memref<1x1x16x64xf32>) -> ()
  return
}

// The normaliser is one column, in memory a row: vectors of features and of keys,
// of 16 tokens at a time. Later keys are left out. A row is divided once.

// CHECK-LABEL: func.func @normalizer(
// CHECK:         arith.cmpf ogt
// CHECK:         memref.collapse_shape {{.*}} : memref<1x1x64x1xf32> into memref<64xf32>
// CHECK:         :16 = scf.for {{.*}} -> (vector<16xf32>,
// CHECK-COUNT-16:  vector.fma {{.*}} : vector<16xf32>
// CHECK:         arith.select {{.*}} : vector<16xi1>
// CHECK:         vector.transfer_write {{.*}} : vector<16xf32>, memref<16xf32>
// CHECK:         scf.for
// CHECK:           arith.divf {{.*}} : f32
// CHECK:           arith.mulf {{.*}} : vector<32xf32>
// CHECK:         vector.fma {{.*}} : vector<16xf32>
// CHECK:         vector.store {{.*}} : memref<64xf32>, vector<16xf32>
// CHECK-NOT:     linattn.
// CHECK:         return
func.func @normalizer(%x: memref<1x1x16x64xf32>, %q: memref<1x1x16x64xf32>, %p: memref<1x1x16x16xf32>, %ones: memref<1x1x16x1xf32>, %g: memref<1x1x16xf32>, %z: memref<1x1x64x1xf32>, %d: memref<1x1x16x1xf32>, %y: memref<1x1x16x32xf32>, %o: memref<1x1x16x32xbf16>) {
  linattn.feature_map %x into(%q) {feature_map = #linattn.feature_map<elu1>} : (memref<1x1x16x64xf32>, memref<1x1x16x64xf32>) -> ()
  linattn.chunk.read %q, %z scores(%p) values(%ones) into(%d) : (memref<1x1x16x64xf32>, memref<1x1x64x1xf32>, memref<1x1x16x16xf32>, memref<1x1x16x1xf32>, memref<1x1x16x1xf32>) -> ()
  linattn.chunk.unpack %y denominator(%d) into(%o) {normalize = #linattn.normalize<eps = 1.0e-6>} : (memref<1x1x16x32xf32>, memref<1x1x16x1xf32>, memref<1x1x16x32xbf16>) -> ()
  linattn.chunk.update keys(%q) values(%ones) decay(%g) into(%z) : (memref<1x1x16x64xf32>, memref<1x1x16x1xf32>, memref<1x1x16xf32>, memref<1x1x64x1xf32>) -> ()
  return
}
