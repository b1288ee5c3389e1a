// RUN: linattn-opt %s --linattn-lower-to-vector --canonicalize | FileCheck %s --implicit-check-not='linattn.{{[a-z_]+}} %' --implicit-check-not='memref<1024x1024'
// RUN: linattn-opt %s --linattn-lower-to-loops --canonicalize | FileCheck %s --check-prefix=LOOPS --implicit-check-not='linattn.{{[a-z_]+}} %' --implicit-check-not=vector

// The forward pass writes m + log(sum) of each row.

// CHECK-LABEL: func.func @forward(
// CHECK:         math.log %{{.+}} : f32
// LOOPS-LABEL:   func.func @forward(
// LOOPS:         math.log %{{.+}} : f32
func.func @forward(%x: memref<1x2x1024x64xf32>, %l: memref<1x2x1024xf32>) {
  linattn.softmax %x, %x, %x into(%x, %l) {causal} : (memref<1x2x1024x64xf32>, memref<1x2x1024x64xf32>, memref<1x2x1024x64xf32>, memref<1x2x1024x64xf32>, memref<1x2x1024xf32>) -> ()
  return
}

// Tiles prefetch a few rows each, the line in which a row ends included: those of
// scores queries of the next task and keys of the next block, those of outputs
// its values and their own rows.

// CHECK-LABEL: func.func @prefetch(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: memref<1x2x?x64xf32>, %[[K:[a-z0-9]+]]: memref<1x2x?x64xf32>, %[[V:[a-z0-9]+]]: memref<1x2x?x64xf32>, %[[O:[a-z0-9]+]]: memref<1x2x?x64xf32>
// CHECK:         scf.for %[[KEY:.+]] = %c0 to %[[KEYS:[0-9]+]] step %c32
// CHECK:           %[[HAS_NEXT:.+]] = arith.cmpi slt, %{{.+}}, %[[KEYS]]
// CHECK:           %[[IS_FIRST:.+]] = arith.cmpi sle, %[[KEY]], %c0
// CHECK:           %[[HAS_QUERY:.+]] = arith.cmpi slt, %{{.+}}, %{{.+}} : index
// CHECK:           %[[FETCHES_QUERIES:.+]] = arith.andi %[[IS_FIRST]], %[[HAS_QUERY]]
// CHECK:           scf.if %[[FETCHES_QUERIES]]
// CHECK-COUNT-5:     memref.prefetch %[[Q]][{{.*}}], read
// CHECK:           arith.andi %[[HAS_NEXT]], %
// CHECK-COUNT-5:     memref.prefetch %[[K]][{{.*}}], read
// CHECK:           vector.fma
// CHECK:           arith.andi %[[HAS_NEXT]], %
// CHECK-COUNT-5:     memref.prefetch %[[V]][{{.*}}], read
// CHECK:           scf.if %[[IS_FIRST]]
// CHECK-COUNT-3:     memref.prefetch %[[O]][{{.*}}], write
// CHECK-NOT:       memref.prefetch
func.func @prefetch(%q: memref<1x2x?x64xf32>, %k: memref<1x2x?x64xf32>, %v: memref<1x2x?x64xf32>, %o: memref<1x2x?x64xf32>, %l: memref<1x2x?xf32>) {
  linattn.softmax %q, %k, %v into(%o, %l) : (memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?xf32>) -> ()
  return
}

// Four panels of queries share blocks of keys. Of a window one panel sees fewer of
// them: those from its first query's first key to its last query's last one.

// CHECK-LABEL: func.func @window(
// CHECK:         scf.for %[[KEY:.+]] = %{{[0-9]+}} to %{{[0-9]+}} step %c32
// CHECK:           scf.for %[[PANEL:.+]] = %c0 to
// CHECK:             %[[ENDS:.+]] = arith.cmpi sgt, %{{.+}}, %[[KEY]]
// CHECK:             %[[BEGINS:.+]] = arith.cmpi slt, %{{.+}}, %{{.+}}
// CHECK:             %[[SEES:.+]] = arith.andi %[[ENDS]], %[[BEGINS]]
// CHECK:             scf.if %[[SEES]]
// CHECK:               vector.fma
func.func @window(%x: memref<1x2x1024x64xf32>, %l: memref<1x2x1024xf32>) {
  linattn.softmax %x, %x, %x into(%x, %l) {causal, pattern = #linattn.pattern<window = 64>} : (memref<1x2x1024x64xf32>, memref<1x2x1024x64xf32>, memref<1x2x1024x64xf32>, memref<1x2x1024x64xf32>, memref<1x2x1024xf32>) -> ()
  return
}

// The same to both sides, of any length. With global tokens every panel sees every block.

// CHECK-LABEL: func.func @both_sides(
// CHECK:         scf.for %[[KEY:.+]] = %{{[0-9]+}} to %{{[0-9]+}} step %c32
// CHECK:             %[[ENDS:.+]] = arith.cmpi sgt, %{{.+}}, %[[KEY]]
// CHECK:             %[[SEES:.+]] = arith.andi %[[ENDS]], %
// CHECK:             scf.if %[[SEES]]
// CHECK:               vector.fma
func.func @both_sides(%x: memref<1x2x?x64xf32>, %l: memref<1x2x?xf32>) {
  linattn.softmax %x, %x, %x into(%x, %l) {pattern = #linattn.pattern<window = 64>} : (memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @globals(
// CHECK-NOT:     arith.cmpi sgt
// CHECK:         vector.fma
func.func @globals(%x: memref<1x2x1024x64xf32>, %l: memref<1x2x1024xf32>) {
  linattn.softmax %x, %x, %x into(%x, %l) {pattern = #linattn.pattern<window = 64, globals = 2>} : (memref<1x2x1024x64xf32>, memref<1x2x1024x64xf32>, memref<1x2x1024x64xf32>, memref<1x2x1024x64xf32>, memref<1x2x1024xf32>) -> ()
  return
}

// Sums of dk and dv for each task, a head; blocks of 64 keys against 128 queries. Panels on the diagonal are masked. The sums
// are written in the end.

// CHECK-LABEL: func.func @backward(
// CHECK-COUNT-2: memref.alloc() {alignment = 64 : i64} : memref<2x1024x64xf32>
// CHECK:         scf.parallel (%{{.+}}) = (%c0) to (%c2)
// CHECK:         math.exp %{{.+}} : vector<32xf32>
// CHECK:         math.exp %{{.+}} : vector<32xf32>
// CHECK-NOT:     math.exp
// CHECK-COUNT-2: scf.parallel
// CHECK-COUNT-2: memref.dealloc %{{.+}} : memref<2x1024x64xf32>
// LOOPS-LABEL:   func.func @backward(
// LOOPS:         scf.parallel
// LOOPS:         math.exp
// LOOPS:         scf.parallel
// LOOPS:         math.exp
func.func @backward(%x: memref<1x2x1024x64xf32>, %l: memref<1x2x1024xf32>) {
  linattn.softmax_gradient %x, %x, %x cotangent(%x) rows(%l, %l) into(%x, %x, %x) {causal} : (memref<1x2x1024x64xf32>, memref<1x2x1024x64xf32>, memref<1x2x1024x64xf32>, memref<1x2x1024x64xf32>, memref<1x2x1024xf32>, memref<1x2x1024xf32>, memref<1x2x1024x64xf32>, memref<1x2x1024x64xf32>, memref<1x2x1024x64xf32>) -> ()
  return
}

// More than 4096 queries are two segments.

// CHECK-LABEL: func.func @segments(
// CHECK-COUNT-2: memref.alloc() {alignment = 64 : i64} : memref<2x8192x16xf64>
// CHECK:         tanh
func.func @segments(%x: memref<1x1x8192x16xf64>, %l: memref<1x1x8192xf64>) {
  linattn.softmax_gradient %x, %x, %x cotangent(%x) rows(%l, %l) into(%x, %x, %x) {softcap = 2.0, pattern = #linattn.pattern<window = 64>} : (memref<1x1x8192x16xf64>, memref<1x1x8192x16xf64>, memref<1x1x8192x16xf64>, memref<1x1x8192x16xf64>, memref<1x1x8192xf64>, memref<1x1x8192xf64>, memref<1x1x8192x16xf64>, memref<1x1x8192x16xf64>, memref<1x1x8192x16xf64>) -> ()
  return
}

// Weights meet the bits of the seed where they are formed, in vectors as in scalars: ten rounds of two products.

// CHECK-LABEL: func.func @dropout(
// CHECK:         scf.parallel
// CHECK-COUNT-12: arith.muli %{{.+}} : vector<32xi64>
// CHECK:         scf.parallel
// CHECK-COUNT-12: arith.muli %{{.+}} : vector<32xi64>
// LOOPS-LABEL:   func.func @dropout(
// LOOPS:         scf.parallel
// LOOPS-COUNT-20: arith.muli %{{.+}} : i64
func.func @dropout(%x: memref<1x2x128x16xf32>, %l: memref<1x2x128xf32>, %seed: i64) {
  linattn.softmax %x, %x, %x seed(%seed) into(%x, %l) {causal, dropout = 0.25} : (memref<1x2x128x16xf32>, memref<1x2x128x16xf32>, memref<1x2x128x16xf32>, i64, memref<1x2x128x16xf32>, memref<1x2x128xf32>) -> ()
  linattn.softmax_gradient %x, %x, %x cotangent(%x) rows(%l, %l) seed(%seed) into(%x, %x, %x) {causal, dropout = 0.25} : (memref<1x2x128x16xf32>, memref<1x2x128x16xf32>, memref<1x2x128x16xf32>, memref<1x2x128x16xf32>, memref<1x2x128xf32>, memref<1x2x128xf32>, i64, memref<1x2x128x16xf32>, memref<1x2x128x16xf32>, memref<1x2x128x16xf32>) -> ()
  return
}

// Each query has keys of its own: scalar loops, from the span's first key to its last.

// CHECK-LABEL: func.func @spans(
// CHECK-NOT:     vector
// CHECK:         memref.load %{{.+}} : memref<1x128x3xi32>
// CHECK-NOT:     vector
// LOOPS-LABEL:   func.func @spans(
// LOOPS:         memref.load %{{.+}} : memref<1x128x3xi32>
func.func @spans(%x: memref<1x2x128x16xf32>, %l: memref<1x2x128xf32>, %spans: memref<1x128x3xi32>) {
  linattn.softmax %x, %x, %x spans(%spans) into(%x, %l) {causal} : (memref<1x2x128x16xf32>, memref<1x2x128x16xf32>, memref<1x2x128x16xf32>, memref<1x128x3xi32>, memref<1x2x128x16xf32>, memref<1x2x128xf32>) -> ()
  return
}
