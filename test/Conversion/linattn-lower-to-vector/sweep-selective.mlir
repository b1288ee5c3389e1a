// RUN: linattn-opt %s --linattn-lower-to-vector --canonicalize | FileCheck %s --implicit-check-not='linattn.{{[a-z]+}} %'
// RUN: linattn-opt %s --linattn-lower-to-vector='vector-bits=256 registers=16' --canonicalize | FileCheck %s --check-prefix=AVX2
// RUN: linattn-opt %s --linattn-lower-to-loops --canonicalize | FileCheck %s --check-prefix=LOOPS --implicit-check-not='linattn.{{[a-z]+}} %'

// A task is four vectors of channels. Two states at a time: once through all tokens, then through
// each block forward and, with the sums for a beside the cotangents, backward. Sums of tasks are
// added in the end.

// CHECK-LABEL: func.func @sweep(
// CHECK:         memref.alloc(%{{.+}}) {alignment = 64 : i64} : memref<2x2x?x16xf32>
// CHECK:         scf.parallel (%{{.+}}) = (%c0) to (%c4)
// CHECK:         scf.for {{.*}} -> (vector<32xf32>, vector<32xf32>) {
// CHECK-COUNT-2: math.exp %{{.+}} : vector<32xf32>
// CHECK:         scf.for {{.*}} -> (vector<32xf32>, vector<32xf32>) {
// CHECK-COUNT-2: math.exp %{{.+}} : vector<32xf32>
// CHECK:         scf.for {{.*}} -> (vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>)
// CHECK-NOT:     math.exp
// CHECK-COUNT-4: vector.reduction <add>, %{{.+}} fastmath<reassoc> : vector<32xf32> into f32
// CHECK:         scf.parallel
// CHECK-COUNT-3: memref.dealloc
// AVX2-LABEL:    func.func @sweep(
// AVX2:          scf.parallel (%{{.+}}) = (%c0) to (%c8)
// AVX2:          scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// LOOPS-LABEL:   func.func @sweep(
// LOOPS:         scf.parallel (%{{.+}}) = (%c0) to (%c128)
// LOOPS:         scf.for {{.*}} -> (f32, f32, f32, f32)
// LOOPS-NOT:     vector
func.func @sweep(%x: memref<2x?x256xf32>, %a: memref<256x16xf32>, %b: memref<2x?x16xf32>, %h: memref<2x256x16xf32>, %s: memref<2x256x16xf32>) {
  linattn.sweep_selective %x, %x, %a, %b, %b start(%h) cotangent(%x) into(%x, %x, %a, %b, %b) init(%s)
    : (memref<2x?x256xf32>, memref<2x?x256xf32>, memref<256x16xf32>, memref<2x?x16xf32>, memref<2x?x16xf32>, memref<2x256x16xf32>, memref<2x?x256xf32>, memref<2x?x256xf32>, memref<2x?x256xf32>, memref<256x16xf32>, memref<2x?x16xf32>, memref<2x?x16xf32>, memref<2x256x16xf32>) -> ()
  return
}

// Vectors at the end of a group reach into the next one, whose channels count as zero.

// CHECK-LABEL: func.func @groups(
// CHECK:         vector.create_mask
// CHECK:         arith.select
func.func @groups(%x: memref<1x?x40xf64>, %a: memref<40x3xf64>, %b: memref<1x2x?x3xf64>, %h: memref<1x40x3xf64>, %s: memref<1x40x3xf64>) {
  linattn.sweep_selective %x, %x, %a, %b, %b start(%h) cotangent(%x) into(%x, %x, %a, %b, %b) init(%s) {reverse}
    : (memref<1x?x40xf64>, memref<1x?x40xf64>, memref<40x3xf64>, memref<1x2x?x3xf64>, memref<1x2x?x3xf64>, memref<1x40x3xf64>, memref<1x?x40xf64>, memref<1x?x40xf64>, memref<1x?x40xf64>, memref<40x3xf64>, memref<1x2x?x3xf64>, memref<1x2x?x3xf64>, memref<1x40x3xf64>) -> ()
  return
}
