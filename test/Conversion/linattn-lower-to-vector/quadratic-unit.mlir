// RUN: linattn-opt %s --linattn-lower-to-vector=tiles=2 --canonicalize | FileCheck %s
// RUN: linattn-opt %s --linattn-lower-to-vector | FileCheck %s --check-prefix=VECTORS
// RUN: linattn-opt %s --linattn-lower-to-vector=tiles=2 --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: linattn-opt %s --linattn-lower-to-vector='tiles=2 exact' --canonicalize | FileCheck %s --check-prefix=EXACT

// Queries of a task and a block of keys and values are packed as they are. Blocks of two by two tiles are scores of 32 keys and
// 32 queries. Weights are packed in two summands as they are made, and zeros in the steps behind them; outputs are four
// products of 32 keys, of both summands. Where a value is not finite, all are vectors.

// VECTORS-NOT: amx.
// EXACT-NOT: vector.bitcast

// CHECK-LABEL: func.func @softmax(
// CHECK:         scf.parallel
// CHECK-DAG:       %[[SUMS:.+]] = memref.alloca() {{.*}} : memref<64x32xf32>
// CHECK-DAG:       %[[WEIGHTS:.+]] = memref.alloca() {{.*}} : memref<2x2x4x16x32xbf16>
// CHECK:           vector.bitcast {{.+}} : vector<16xf32> to vector<32xbf16>
// CHECK:           arith.maxui {{.+}} : vector<32xi16>
// CHECK:           %[[FINITE:.+]] = arith.cmpi ult
// CHECK:           memref.store %[[FINITE]], %[[FLAG:.+]][
// CHECK-COUNT-4:   amx.tile_zero
// CHECK-COUNT-8:   amx.tile_mulf
// CHECK-NOT:       amx.tile_mulf
// CHECK-COUNT-4:   amx.tile_store
// CHECK:           memref.load %[[FLAG]]
// CHECK:           scf.if
// CHECK:             arith.cmpf ogt, {{.+}} : vector<32xf32>
// CHECK:             math.exp {{.+}} : vector<32xf32>
// CHECK:             vector.interleave {{.+}} : vector<16xbf16>
// CHECK:             vector.store {{.+}}, %[[WEIGHTS]]
// CHECK:             arith.subf {{.+}} : vector<16xf32>
// CHECK:             vector.interleave {{.+}} : vector<16xbf16>
// CHECK:           } else {
// CHECK:             math.exp {{.+}} : vector<32xf32>
// CHECK-COUNT-4:   amx.tile_zero
// CHECK-COUNT-32:  amx.tile_mulf
// CHECK-NOT:       amx.tile_mulf
// CHECK-COUNT-4:   amx.tile_store {{.*}}%[[SUMS]]
// CHECK:           } else {
// CHECK:             vector.fma {{.+}} : vector<32xf32>
// EXACT-LABEL: func.func @softmax(
// EXACT:         amx.tile_mulf
func.func @softmax(%q: memref<1x2x?x64xbf16>, %k: memref<1x2x?x64xbf16>, %v: memref<1x2x?x64xbf16>, %o: memref<1x2x?x64xbf16>) {
  linattn.quadratic %q, %k, %v weights(softmax) into(%o) {scale = 0.3, summands = array<i64: 1, 1, 2, 1>}
    : (memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>) -> ()
  return
}

// Without summands, products of vectors.

// CHECK-LABEL: func.func @vectors(
// CHECK-NOT:     amx.
func.func @vectors(%q: memref<1x2x?x64xbf16>, %k: memref<1x2x?x64xbf16>, %v: memref<1x2x?x64xbf16>, %o: memref<1x2x?x64xbf16>) {
  linattn.quadratic %q, %k, %v weights(softmax) into(%o)
    : (memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>) -> ()
  return
}

// Summands are a permission. Tiles do not apply feature maps.

// REMARK: [Missed] lower-to-vector {{.*}}"stays products of vectors: it has a feature map"
// CHECK-LABEL: func.func @mapped(
// CHECK-NOT:     amx.
func.func @mapped(%q: memref<1x2x?x64xbf16>, %k: memref<1x2x?x64xbf16>, %v: memref<1x2x?x64xbf16>, %o: memref<1x2x?x64xbf16>) {
  linattn.quadratic %q, %k, %v into(%o) {feature_map = #linattn.feature_map<relu>, summands = array<i64: 1, 1, 2, 1>}
    : (memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>) -> ()
  return
}
