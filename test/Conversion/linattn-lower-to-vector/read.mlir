// RUN: linattn-opt %s --linattn-lower-to-vector --canonicalize | FileCheck %s
// RUN: linattn-opt %s --linattn-lower-to-vector='vector-bits=256 registers=16' --canonicalize | FileCheck %s --check-prefix=AVX2

// Eight queries times a panel of the state; runs of 256 tokens are tasks. The
// rows of the next block are prefetched, one before each part of a
// product, up to the line that each ends in.

// CHECK-LABEL: func.func @read(
// CHECK-SAME:    %[[Q:[^:]+]]: memref<2x3x512x64xf32>, %[[S:[^:]+]]: memref<2x3x64x64xf32>, %[[O:[^:]+]]: memref<2x3x512x64xf32>
// CHECK:         scf.parallel (%{{.+}}) = (%c0) to (%c12)
// CHECK:           vector.transfer_read %[[S]]
// CHECK:           scf.for {{.*}} = %c0 to %c8 step %c1 iter_args({{.*}}) -> (vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>)
// CHECK-COUNT-3:     memref.prefetch %[[Q]]{{.*}} read
// CHECK-COUNT-3:     memref.prefetch %[[O]]{{.*}} write
// CHECK-NOT:         memref.prefetch
// CHECK:             scf.for {{.*}} step %c4 iter_args
// CHECK-COUNT-32:      vector.fma {{.*}} : vector<32xf32>
// CHECK-NOT:           vector.fma
// CHECK:           vector.transfer_write {{.*}} %[[O]]
// AVX2-LABEL: func.func @read(
// AVX2:            scf.for {{.*}} step %c4 iter_args({{.*}}) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// AVX2-COUNT-16:     vector.fma {{.*}} : vector<16xf32>
func.func @read(%q: memref<2x3x512x64xf32>, %s: memref<2x3x64x64xf32>, %o: memref<2x3x512x64xf32>) {
  linattn.read %q, %s into(%o)
    : (memref<2x3x512x64xf32>, memref<2x3x64x64xf32>, memref<2x3x512x64xf32>) -> ()
  return
}

// Sizes that are not known, a normalizer, a feature map and bf16 tokens.

// CHECK-LABEL: func.func @normalized(
// CHECK:         scf.parallel
// CHECK:           arith.extf {{.*}} : vector<16xbf16> to vector<16xf32>
// CHECK:           vector.reduction <add>
// CHECK:           vector.fma {{.*}} : vector<32xf32>
// CHECK-NOT:     linattn.read
func.func @normalized(%q: memref<?x?x?x?xbf16>, %s: memref<?x?x?x?xf32>, %z: memref<?x?x?xf32>, %o: memref<?x?x?x?xbf16>) {
  linattn.read %q, %s normalizer(%z) into(%o) {feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.0e-6>}
    : (memref<?x?x?x?xbf16>, memref<?x?x?x?xf32>, memref<?x?x?xf32>, memref<?x?x?x?xbf16>) -> ()
  return
}

// One query passes over the state where it lies: no panels of it.

// CHECK-LABEL: func.func @token(
// CHECK-NOT:     scf.for {{.*}} step %c4 iter_args
// CHECK:         return
func.func @token(%q: memref<2x3x1x64xf32>, %s: memref<2x3x64x64xf32>, %o: memref<2x3x1x64xf32>) {
  linattn.read %q, %s into(%o) {config = #linattn.config<form = token, rows = 8, cols = 32, block = 8>}
    : (memref<2x3x1x64xf32>, memref<2x3x64x64xf32>, memref<2x3x1x64xf32>) -> ()
  return
}
