// RUN: linattn-opt %s --linattn-lower-contractions --canonicalize | FileCheck %s
// RUN: linattn-opt %s --linattn-lower-contractions='vector-bits=256 registers=16' --canonicalize | FileCheck %s --check-prefix=AVX2

// Twelve rows of two vectors stay in registers while all summands pass. Meanwhile the
// rows of the next panel are prefetched.

// CHECK-LABEL: func.func @matmul(
// CHECK:         scf.parallel
// CHECK:           %[[PANEL:.+]] = memref.alloca() {{.*}} : memref<64x32xf32>
// CHECK:           vector.store {{.*}}, %[[PANEL]]
// CHECK:           scf.for
// CHECK:             memref.prefetch %arg1
// CHECK:             scf.for
// CHECK-COUNT-48:      vector.fma {{.*}} : vector<32xf32>
// AVX2-LABEL: func.func @matmul(
// AVX2-COUNT-24: vector.fma {{.*}} : vector<16xf32>
func.func @matmul(%a: memref<128x64xf32>, %b: memref<64x96xf32>, %c: memref<128x96xf32>) {
  linalg.matmul ins(%a, %b : memref<128x64xf32>, memref<64x96xf32>) outs(%c : memref<128x96xf32>)
  return
}

// Of any size, the weights as [n, k]: blocks are transposed while packing.

// CHECK-LABEL: func.func @dynamic(
// CHECK:         scf.parallel
// CHECK:           vector.transfer_read
// CHECK:           vector.shuffle
// CHECK:           vector.fma
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @dynamic(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?x?xf32>) {
  linalg.matmul indexing_maps = [#a, #b, #c] ins(%a, %b : memref<?x?xf32>, memref<?x?xf32>) outs(%c : memref<?x?xf32>)
  return
}

// Heads are merged by a sum over two dimensions, tokens of 16 bits. Where columns
// fill four vectors a tile has few rows.

// CHECK-LABEL: func.func @merge(
// CHECK:         scf.parallel
// CHECK-COUNT-24:  vector.fma {{.*}} : vector<64xf32>
// CHECK-NOT:       vector.fma
// CHECK:           arith.truncf {{.*}} : vector<64xf32> to vector<64xbf16>
// AVX2-LABEL: func.func @merge(
// AVX2-COUNT-24: vector.fma {{.*}} : vector<16xf32>
#o = affine_map<(b, t, h, d, n) -> (b, h, t, d)>
#w = affine_map<(b, t, h, d, n) -> (h, d, n)>
#y = affine_map<(b, t, h, d, n) -> (b, t, n)>
func.func @merge(%o: memref<2x4x?x16xbf16>, %w: memref<4x16x64xbf16>, %y: memref<2x?x64xbf16>) {
  linalg.contract indexing_maps = [#o, #w, #y] ins(%o, %w : memref<2x4x?x16xbf16>, memref<4x16x64xbf16>) outs(%y : memref<2x?x64xbf16>)
  return
}

// Blocks of a long sum: a panel of each stays in a first cache, and rows of the
// output take the sums of one block after another. Every 32 summands of a tile
// prefetch its share of the rows of the panel that is packed next: of the block's
// next one, or, behind the last one of a task, of the first one of the next block.
// The last line of a row is included, since it may begin within a line. The last
// tile has the eight rows that are left of 128.

// CHECK-LABEL: func.func @long(
// CHECK:         scf.parallel
// CHECK:           %[[PANEL:.+]] = memref.alloca() {{.*}} : memref<256x32xf32>
// CHECK:           scf.for %[[BEGIN:.+]] = %c0{{.*}} to %c1000{{.*}} step %c256
// CHECK:             %[[END:.+]] = arith.minsi
// CHECK:             %[[IS_LAST:.+]] = arith.cmpi eq
// CHECK:             %[[COLUMN:.+]] = arith.muli
// CHECK:             %[[BLOCK:.+]] = arith.select %[[IS_LAST]], %[[END]], %[[BEGIN]]
// CHECK:             scf.for {{.*}} = %[[BEGIN]] to %[[END]] step
// CHECK:               vector.store {{.*}}, %[[PANEL]]
// CHECK:             scf.for %{{.+}} = %c0 to %c120 step %c12
// CHECK:               %{{.+}}:12 = scf.for %{{.+}} = %[[BEGIN]] to %{{.+}} step %c32 iter_args
// CHECK:                 %[[FIRST:.+]] = arith.addi %[[BLOCK]]
// CHECK:                 scf.for
// CHECK:                   arith.addi %[[FIRST]]
// CHECK:                   %[[NEXT:.+]] = arith.minsi {{.*}}, %c999
// CHECK-NEXT:              memref.prefetch %arg1[%[[NEXT]], %[[COLUMN]]], read, locality<2>
// CHECK-COUNT-2:           memref.prefetch %arg1[%[[NEXT]], %{{.*}}]
// CHECK:                 %{{.+}}:12 = scf.for %{{.+}} to %{{.+}} step %c4 iter_args
// CHECK-COUNT-48:          vector.fma
// CHECK-NOT:               vector.fma
// CHECK:               vector.transfer_write
// CHECK:             scf.for %{{.+}} = %[[BEGIN]] to %{{.+}} step %c32 iter_args
// CHECK-COUNT-32:        vector.fma
// CHECK-NOT:             vector.fma
// CHECK:               vector.transfer_write
func.func @long(%a: memref<128x1000xf32>, %b: memref<1000x96xf32>, %c: memref<128x96xf32>) {
  linalg.matmul ins(%a, %b : memref<128x1000xf32>, memref<1000x96xf32>) outs(%c : memref<128x96xf32>)
  return
}

// Weights that all heads share, summed over tokens: the panels of four heads take
// one task. A token's weights, neighbours in memory, are packed for them, six side
// by side: 96 tokens fill a first cache. The two rows that are left of 128 come from
// memory.

// CHECK-LABEL: func.func @shared(
// CHECK:         scf.parallel (%{{.+}}) = (%c0) to (%c8)
// CHECK:           %[[ROWS:.+]] = memref.alloca() {{.*}} : memref<21x96x6xf32>
// CHECK:           memref.alloca() {{.*}} : memref<96x64xf32>
// CHECK:           %[[FROM:.+]] = arith.muli %{{.+}}, %c4
// CHECK:           %[[TO:.+]] = arith.minsi %{{.+}}, %c32
// CHECK:           scf.for %[[BEGIN:.+]] = %c0 to %c4096 step %c96
// CHECK:             scf.for %[[T:.+]] = %[[BEGIN]] to
// CHECK:               %[[AHEAD:.+]] = arith.minsi %{{.+}}, %c4095
// CHECK:               memref.prefetch %arg0[%[[AHEAD]], %c0]
// CHECK:               scf.for %[[TILE:.+]] = %c0 to %c21 step
// CHECK:                 %[[LINE:.+]] = vector.transfer_read %arg0[%[[T]], %{{.+}}], %{{.+}} {in_bounds = [true]} : {{.*}}, vector<6xf32>
// CHECK:                 vector.store %[[LINE]], %[[ROWS]][%[[TILE]], %{{.+}}, %c0]
// CHECK:             scf.for %[[PANEL:.+]] = %[[FROM]] to %[[TO]] step
// CHECK:               %[[HEAD:.+]] = arith.remsi %[[PANEL]], %c32
// CHECK:               vector.transfer_read %arg1[%{{.+}}, %[[HEAD]], %c0]
// CHECK:               scf.for %{{.+}} = %c0 to %c126 step %c6
// CHECK-COUNT-6:         memref.load %[[ROWS]]
// CHECK:                 vector.transfer_write {{.*}}, %arg2[%[[HEAD]], %{{.+}}, %c0]
// CHECK-COUNT-2:       memref.load %arg0
// CHECK:               vector.transfer_write {{.*}}, %arg2[%[[HEAD]], %{{.+}}, %c0]
#e = affine_map<(h, r, d, t) -> (t, r)>
#k = affine_map<(h, r, d, t) -> (t, h, d)>
#s = affine_map<(h, r, d, t) -> (h, r, d)>
func.func @shared(%e: memref<4096x128xf32>, %k: memref<4096x32x64xf32>, %s: memref<32x128x64xf32>) {
  linalg.contract indexing_maps = [#e, #k, #s] ins(%e, %k : memref<4096x128xf32>, memref<4096x32x64xf32>) outs(%s : memref<32x128x64xf32>)
  return
}

// Elements of 16 bits are converted while their rows are packed, transposed in
// registers: twelve rows and sixteen summands at a time.

// CHECK-LABEL: func.func @converted(
// CHECK:         scf.parallel
// CHECK:           %[[ROWS:.+]] = memref.alloca() {{.*}} : memref<16x64x12xf32>
// CHECK:           scf.for %[[TILE:.+]] = %c0 to
// CHECK-COUNT-12:    arith.extf {{.*}} : vector<16xbf16> to vector<16xf32>
// CHECK:             %[[LINE:.+]] = vector.extract_strided_slice {{.*}} : vector<16xf32> to vector<12xf32>
// CHECK:             vector.store %[[LINE]], %[[ROWS]][%[[TILE]], %{{.+}}, %c0]
// CHECK:           scf.for
// CHECK-COUNT-12:    memref.load %[[ROWS]]
// AVX2-LABEL: func.func @converted(
// AVX2:           memref.alloca() {{.*}} : memref<32x64x6xf32>
// AVX2-COUNT-6:     arith.extf {{.*}} : vector<8xbf16> to vector<8xf32>
// AVX2:             vector.extract_strided_slice {{.*}} : vector<8xf32> to vector<6xf32>
func.func @converted(%a: memref<?x64xbf16>, %b: memref<64x1056xbf16>, %c: memref<?x1056xf32>) {
  linalg.matmul ins(%a, %b : memref<?x64xbf16>, memref<64x1056xbf16>) outs(%c : memref<?x1056xf32>)
  return
}

// Any number of panels may be many.

// CHECK-LABEL: func.func @converted_dynamic(
// CHECK:           %[[ROWS:.+]] = memref.alloc() {{.*}}x12xf32>
// CHECK:           vector.store %{{.+}}, %[[ROWS]]
// CHECK-COUNT-12:    memref.load %[[ROWS]]
func.func @converted_dynamic(%a: memref<?x?xbf16>, %b: memref<?x?xbf16>, %c: memref<?x?xf32>) {
  linalg.matmul ins(%a, %b : memref<?x?xbf16>, memref<?x?xbf16>) outs(%c : memref<?x?xf32>)
  return
}

// Not for one panel, nor for f32 whose summands are neighbours in memory, nor for
// fewer rows than a tile has.

// CHECK-LABEL: func.func @one_panel(
// CHECK-NOT:     x12xf32>
// CHECK:         return
func.func @one_panel(%a: memref<1024x64xbf16>, %b: memref<64x32xbf16>, %c: memref<1024x32xf32>) {
  linalg.matmul ins(%a, %b : memref<1024x64xbf16>, memref<64x32xbf16>) outs(%c : memref<1024x32xf32>)
  return
}

// CHECK-LABEL: func.func @in_order(
// CHECK-NOT:     x12xf32>
// CHECK:         return
func.func @in_order(%a: memref<1024x64xf32>, %b: memref<64x1056xf32>, %c: memref<1024x1056xf32>) {
  linalg.matmul ins(%a, %b : memref<1024x64xf32>, memref<64x1056xf32>) outs(%c : memref<1024x1056xf32>)
  return
}

// CHECK-LABEL: func.func @few_rows(
// CHECK-NOT:     x12xf32>
// CHECK:         return
func.func @few_rows(%a: memref<8x64xbf16>, %b: memref<64x1056xbf16>, %c: memref<8x1056xf32>) {
  linalg.matmul ins(%a, %b : memref<8x64xbf16>, memref<64x1056xbf16>) outs(%c : memref<8x1056xf32>)
  return
}

// Any number of rows: whole tiles take each row as it comes, the last one repeats
// the last row. Any number of panels: as many a task as leave eight tasks.

// CHECK-LABEL: func.func @rows(
// CHECK:         %[[PANELS:.+]] = arith.divsi %{{.+}}, %c8 : index
// CHECK-NEXT:    %[[MOST:.+]] = arith.minsi %[[PANELS]], %c8 : index
// CHECK-NEXT:    arith.maxsi %[[MOST]], %c1 : index
// CHECK:         scf.parallel
// CHECK:           scf.for {{.*}} step %c12
// CHECK-NOT:         arith.minsi %{{.+}}, %{{.+}} : index
// CHECK-COUNT-48:    vector.fma
// CHECK:           scf.if
// CHECK-COUNT-12:    arith.minsi
// CHECK-COUNT-48:    vector.fma
func.func @rows(%a: memref<?x64xf32>, %b: memref<64x32xf32>, %c: memref<?x32xf32>) {
  linalg.matmul ins(%a, %b : memref<?x64xf32>, memref<64x32xf32>) outs(%c : memref<?x32xf32>)
  return
}

// A fill with zeros right before the product takes no pass over memory: the first
// block starts from zeros. An empty sum still writes them.

// CHECK-LABEL: func.func @from_zeros(
// CHECK-NOT:     linalg.fill
// CHECK:         %[[LIMIT:.+]] = arith.maxsi %{{.*}}, %c1
// CHECK:         scf.for %[[BEGIN:.+]] = %c0 to %[[LIMIT]] step
// CHECK:           %[[FIRST:.+]] = arith.cmpi eq, %[[BEGIN]], %c0
// CHECK:           arith.select %[[FIRST]], %{{.*}} : vector<32xf32>
func.func @from_zeros(%a: memref<16x?xf32>, %b: memref<?x32xf32>, %c: memref<16x32xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<16x32xf32>)
  %other = memref.alloc() : memref<16x32xf32>
  linalg.matmul ins(%a, %b : memref<16x?xf32>, memref<?x32xf32>) outs(%c : memref<16x32xf32>)
  memref.dealloc %other : memref<16x32xf32>
  return
}

// Another number stays, and so does a buffer that is read in between.

// CHECK-LABEL: func.func @from_ones(
// CHECK:         linalg.fill
// CHECK:         vector.fma
func.func @from_ones(%a: memref<16x64xf32>, %b: memref<64x32xf32>, %c: memref<16x32xf32>) {
  %one = arith.constant 1.0 : f32
  linalg.fill ins(%one : f32) outs(%c : memref<16x32xf32>)
  linalg.matmul ins(%a, %b : memref<16x64xf32>, memref<64x32xf32>) outs(%c : memref<16x32xf32>)
  return
}

// CHECK-LABEL: func.func @read_between(
// CHECK:         linalg.fill
// CHECK:         memref.copy
// CHECK:         vector.fma
func.func @read_between(%a: memref<16x64xf32>, %b: memref<64x32xf32>, %c: memref<16x32xf32>, %d: memref<16x32xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<16x32xf32>)
  memref.copy %c, %d : memref<16x32xf32> to memref<16x32xf32>
  linalg.matmul ins(%a, %b : memref<16x64xf32>, memref<64x32xf32>) outs(%c : memref<16x32xf32>)
  return
}

// CHECK-LABEL: func.func @reads_its_output(
// CHECK:         linalg.fill
// CHECK:         vector.fma
func.func @reads_its_output(%a: memref<32x32xf32>, %c: memref<32x32xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<32x32xf32>)
  linalg.matmul ins(%a, %c : memref<32x32xf32>, memref<32x32xf32>) outs(%c : memref<32x32xf32>)
  return
}
