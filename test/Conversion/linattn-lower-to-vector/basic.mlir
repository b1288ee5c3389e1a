// RUN: linattn-opt %s --linattn-lower-to-vector --canonicalize | FileCheck %s --implicit-check-not='linattn.{{[a-z]+}} %'
// RUN: linattn-opt %s --linattn-lower-to-vector='vector-bits=256 registers=16' --canonicalize | FileCheck %s --check-prefix=AVX2

// Eight rows of a state stay in registers while a block of tokens streams past.

// CHECK-LABEL: func.func @scan(
// CHECK:         scf.parallel (%{{.+}}) = (%c0) to (%c6)
// CHECK:           scf.for {{.*}} iter_args({{.*}}) -> (vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>)
// CHECK-COUNT-16:    vector.fma {{.*}} : vector<32xf32>
// AVX2-LABEL: func.func @scan(
// AVX2:           scf.for {{.*}} iter_args({{.*}}) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// AVX2-COUNT-8:     vector.fma {{.*}} : vector<16xf32>
func.func @scan(%q: memref<2x3x?x64xf32>, %o: memref<2x3x?x64xf32>, %s: memref<2x3x64x64xf32>) {
  linattn.scan %q, %q, %q into(%o) init(%s)
    : (memref<2x3x?x64xf32>, memref<2x3x?x64xf32>, memref<2x3x?x64xf32>, memref<2x3x?x64xf32>, memref<2x3x64x64xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @softmax(
// CHECK:         math.exp {{.*}} : vector
func.func @softmax(%q: memref<1x2x256x64xf32>, %o: memref<1x2x256x64xf32>) {
  linattn.quadratic %q, %q, %q weights(softmax) into(%o) {causal}
    : (memref<1x2x256x64xf32>, memref<1x2x256x64xf32>, memref<1x2x256x64xf32>, memref<1x2x256x64xf32>) -> ()
  return
}

// A scale that is an operand: the query times it, rounded to the type of sums.

// CHECK-LABEL: func.func @scale_operand(
// CHECK-SAME:    %[[SCALE:[a-z0-9]+]]: f64
// CHECK:         %[[ROUNDED:.+]] = arith.truncf %[[SCALE]] : f64 to f32
// CHECK:         %[[FACTOR:.+]] = vector.broadcast %[[ROUNDED]] : f32 to vector<16xf32>
// CHECK:         arith.mulf %{{.+}}, %[[FACTOR]] : vector<16xf32>
func.func @scale_operand(%q: memref<2x3x?x64xf32>, %scale: f64, %o: memref<2x3x?x64xf32>, %s: memref<2x3x64x64xf32>) {
  linattn.scan %q, %q, %q scale(%scale) into(%o) init(%s)
    : (memref<2x3x?x64xf32>, memref<2x3x?x64xf32>, memref<2x3x?x64xf32>, f64, memref<2x3x?x64xf32>, memref<2x3x64x64xf32>) -> ()
  return
}
