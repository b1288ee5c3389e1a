// RUN: linattn-opt %s --linattn-lower-to-vector --canonicalize | FileCheck %s
// RUN: linattn-opt %s --linattn-lower-to-vector='vector-bits=256 registers=16' --canonicalize | FileCheck %s --check-prefix=AVX2

// Blocks of 64 tokens are tasks; four tokens at a time are multiplied with the packed matrix.

// CHECK-LABEL: func.func @favor(
// CHECK:         %[[PACKED:.+]] = memref.alloc() {alignment = 64 : i64} : memref<1x24x32xf32>
// CHECK:         scf.parallel (%{{.+}}) = (%c0) to (%c12)
// CHECK:           scf.for {{.*}} iter_args({{.*}}) -> (vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>)
// CHECK:             vector.load %[[PACKED]]
// CHECK-COUNT-4:     vector.fma {{.*}} : vector<32xf32>
// CHECK:           vector.transfer_write {{.*}} {in_bounds = [true]} : vector<16xf32>, memref<2x3x128x24xf32>
// CHECK:           vector.transfer_write {{.*}} : vector<16xf32>, memref<2x3x128x24xf32>
// CHECK:         memref.dealloc %[[PACKED]]
// AVX2-LABEL: func.func @favor(
// AVX2:           scf.for {{.*}} iter_args({{.*}}) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// AVX2-COUNT-4:     vector.fma {{.*}} : vector<16xf32>
// AVX2:           vector.transfer_write {{.*}} {in_bounds = [true]} : vector<8xf32>, memref<2x3x128x24xf32>
// AVX2-NOT:       vector.transfer_write
// AVX2-LABEL: func.func @t2r(
func.func @favor(%x: memref<2x3x128x24xf32>, %w: memref<24x24xf32>, %o: memref<2x3x128x24xf32>) {
  linattn.feature_map %x params(%w) into(%o) {feature_map = #linattn.feature_map<favor, log = true>}
    : (memref<2x3x128x24xf32>, memref<24x24xf32>, memref<2x3x128x24xf32>) -> ()
  return
}

// Sizes that are not known, a matrix for each head and 16-bit tokens.

// CHECK-LABEL: func.func @t2r(
// CHECK:         memref.alloc(%{{.+}}, %{{.+}}, %{{.+}}) {alignment = 64 : i64} : memref<?x?x?xf32>
// CHECK:         arith.extf {{.*}} : vector<16xbf16> to vector<16xf32>
// CHECK:         vector.fma {{.*}} : vector<32xf32>
// CHECK:         arith.maximumf {{.*}} : vector<16xf32>
// CHECK-NOT:     linattn.feature_map
func.func @t2r(%x: memref<?x?x?x?xbf16>, %w: memref<?x?x?xf32>, %o: memref<?x?x?x?xf32>) {
  linattn.feature_map %x params(%w) into(%o) {feature_map = #linattn.feature_map<t2r>}
    : (memref<?x?x?x?xbf16>, memref<?x?x?xf32>, memref<?x?x?x?xf32>) -> ()
  return
}

// Products of elements need no matrix.

// CHECK-LABEL: func.func @taylor(
// CHECK-NOT:     vector.fma
// CHECK:         vector.transfer_write {{.*}} : vector<16xf32>, memref<1x1x?x153xf32>
// CHECK:         return
func.func @taylor(%x: memref<1x1x?x16xf32>, %o: memref<1x1x?x153xf32>) {
  linattn.feature_map %x into(%o) {feature_map = #linattn.feature_map<taylor>}
    : (memref<1x1x?x16xf32>, memref<1x1x?x153xf32>) -> ()
  return
}

// A map of one element is left to its consumer, or to the scalar loops.

// CHECK-LABEL: func.func @element(
// CHECK-NEXT:    linattn.feature_map
func.func @element(%x: memref<1x1x?x16xf32>, %o: memref<1x1x?x16xf32>) {
  linattn.feature_map %x into(%o) {feature_map = #linattn.feature_map<relu>}
    : (memref<1x1x?x16xf32>, memref<1x1x?x16xf32>) -> ()
  return
}
