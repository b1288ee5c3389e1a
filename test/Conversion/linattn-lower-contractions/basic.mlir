// RUN: linattn-opt %s --linattn-lower-contractions --canonicalize | FileCheck %s
// RUN: linattn-opt %s --linattn-lower-contractions='vector-bits=256 registers=16' --canonicalize | FileCheck %s --check-prefix=AVX2

// Twelve rows of two vectors stay in registers while all summands pass.

// CHECK-LABEL: func.func @matmul(
// CHECK:         scf.parallel
// CHECK:           %[[PANEL:.+]] = memref.alloca() {{.*}} : memref<64x32xf32>
// CHECK:           vector.store {{.*}}, %[[PANEL]]
// CHECK:           scf.for
// CHECK-COUNT-48:    vector.fma {{.*}} : vector<32xf32>
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
// output take the sums of one block after another. Each step of a sweep
// prefetches a row of the next block, its last line included, since it may begin
// within a line.

// CHECK-LABEL: func.func @long(
// CHECK:         scf.parallel
// CHECK:           %[[PANEL:.+]] = memref.alloca() {{.*}} : memref<256x32xf32>
// CHECK:           scf.for %[[BEGIN:.+]] = %c0{{.*}} to %c1000{{.*}} step %c256
// CHECK:             %[[END:.+]] = arith.minsi
// CHECK:             scf.for {{.*}} = %[[BEGIN]] to %[[END]] step
// CHECK:               vector.store {{.*}}, %[[PANEL]]
// CHECK:             scf.for
// CHECK:               scf.for
// CHECK:                 %[[NEXT:.+]] = arith.minsi {{.*}}, %c999
// CHECK-NEXT:            memref.prefetch %arg1[%[[NEXT]], %{{.*}}], read, locality<2>
// CHECK-COUNT-2:         memref.prefetch %arg1[%[[NEXT]], %{{.*}}]
// CHECK:                 vector.fma
// CHECK:               vector.transfer_write
func.func @long(%a: memref<128x1000xf32>, %b: memref<1000x96xf32>, %c: memref<128x96xf32>) {
  linalg.matmul ins(%a, %b : memref<128x1000xf32>, memref<1000x96xf32>) outs(%c : memref<128x96xf32>)
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
