// RUN: linattn-opt %s --linattn-lower-to-vector --canonicalize | FileCheck %s --implicit-check-not='linattn.{{[a-z]+}} %'
// RUN: linattn-opt %s --linattn-lower-to-vector='vector-bits=256 registers=16' --canonicalize | FileCheck %s --check-prefix=AVX2

// Vectors run over channels: 16 channels of one batch element are a task with
// AVX2, 32 with AVX-512. Four states at a time stay in registers.

// CHECK-LABEL: func.func @selective_scan(
// CHECK: scf.parallel (%{{.+}}) = (%c0) to (%c4)
// CHECK: scf.for {{.*}} -> (vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>)
// CHECK-COUNT-4: math.exp %{{.+}} : vector<32xf32>
// AVX2-LABEL: func.func @selective_scan(
// AVX2: scf.parallel (%{{.+}}) = (%c0) to (%c8)
// AVX2: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
func.func @selective_scan(%x: memref<2x?x64xf32>, %a: memref<64x16xf32>, %b: memref<2x?x16xf32>, %o: memref<2x?x64xf32>, %s: memref<2x64x16xf32>) {
  linattn.selective_scan %x, %x, %a, %b, %b into(%o) init(%s)
    : (memref<2x?x64xf32>, memref<2x?x64xf32>, memref<64x16xf32>, memref<2x?x16xf32>, memref<2x?x16xf32>, memref<2x?x64xf32>, memref<2x64x16xf32>) -> ()
  return
}

// With a fixed step the exponentials are taken once, before the tokens.

// CHECK-LABEL: func.func @s4d(
// CHECK: math.exp %{{.+}} : vector<32xf32>
// CHECK: math.cos %{{.+}} : vector<32xf32>
// CHECK: scf.for {{.*}} -> (vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>)
// CHECK-NOT: math.exp
// CHECK: return
func.func @s4d(%x: memref<2x?x64xf32>, %d: memref<64xf32>, %a: memref<64x16xf32>, %o: memref<2x?x64xf32>, %s: memref<2x64x16xf32>, %si: memref<2x64x16xf32>) {
  linattn.selective_scan %x, %d, %a, %a, %a a_imag(%a) c_imag(%a) into(%o) init(%s) init_imag(%si)
    : (memref<2x?x64xf32>, memref<64xf32>, memref<64x16xf32>, memref<64x16xf32>, memref<64x16xf32>, memref<64x16xf32>, memref<64x16xf32>, memref<2x?x64xf32>, memref<2x64x16xf32>, memref<2x64x16xf32>) -> ()
  return
}

// Double precision: half as many lanes.

// CHECK-LABEL: func.func @diagonal_scan(
// CHECK: scf.for {{.*}} -> (vector<16xf64>)
// CHECK: math.exp %{{.+}} : vector<16xf64>
// CHECK: math.fma %{{.+}} : vector<16xf64>
func.func @diagonal_scan(%x: memref<2x?x64xf64>, %o: memref<2x?x64xf64>, %s: memref<2x64xf64>) {
  linattn.diagonal_scan %x decay(%x) into(%o) init(%s)
    : (memref<2x?x64xf64>, memref<2x?x64xf64>, memref<2x?x64xf64>, memref<2x64xf64>) -> ()
  return
}

// CHECK-LABEL: func.func @wkv4(
// CHECK: scf.for {{.*}} -> (vector<32xf32>, vector<32xf32>, vector<32xf32>)
// CHECK-COUNT-4: math.exp %{{.+}} : vector<32xf32>
func.func @wkv4(%k: memref<2x?x?xbf16>, %w: memref<?xf32>, %o: memref<2x?x?xbf16>, %s: memref<2x3x?xf32>) {
  linattn.wkv4 %k, %k decay(%w) bonus(%w) into(%o) init(%s)
    : (memref<2x?x?xbf16>, memref<2x?x?xbf16>, memref<?xf32>, memref<?xf32>, memref<2x?x?xbf16>, memref<2x3x?xf32>) -> ()
  return
}

// Two panels of value columns per head; levels without anything are passed over.

// CHECK-LABEL: func.func @log_linear(
// CHECK: scf.parallel (%{{.+}}) = (%c0) to (%c8)
// CHECK: memref.alloc() {alignment = 64 : i64} : memref<12x64x32xf32>
// CHECK: scf.if %{{.+}} -> (vector<32xf32>)
// CHECK: math.fma %{{.+}} : vector<32xf32>
func.func @log_linear(%q: memref<1x4x?x64xf32>, %g: memref<1x4x?xf32>, %l: memref<1x4x?x12xf32>, %s: memref<1x4x12x64x64xf32>) {
  linattn.log_linear %q, %q, %q decay(%g) levels(%l) into(%q) init(%s)
    : (memref<1x4x?x64xf32>, memref<1x4x?x64xf32>, memref<1x4x?x64xf32>, memref<1x4x?xf32>, memref<1x4x?x12xf32>, memref<1x4x?x64xf32>, memref<1x4x12x64x64xf32>) -> ()
  return
}
