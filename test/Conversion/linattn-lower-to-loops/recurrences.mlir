// RUN: linattn-opt %s --linattn-lower-to-loops --canonicalize | FileCheck %s --implicit-check-not='linattn.{{[a-z]+}} %' --implicit-check-not=vector

// Recurrences as scalar loops: one task per sequence and channel, or head.

// CHECK-LABEL: func.func @selective_scan(
// CHECK: scf.parallel (%{{.+}}) = (%c0) to (%c16)
// CHECK:   scf.for
// CHECK:     scf.for {{.*}} -> (f32)
// CHECK:       math.exp %{{.+}} : f32
func.func @selective_scan(%x: memref<2x?x8xf32>, %a: memref<8x4xf32>, %b: memref<2x?x4xf32>, %o: memref<2x?x8xf32>, %s: memref<2x8x4xf32>) {
  linattn.selective_scan %x, %x, %a, %b, %b into(%o) init(%s)
    : (memref<2x?x8xf32>, memref<2x?x8xf32>, memref<8x4xf32>, memref<2x?x4xf32>, memref<2x?x4xf32>, memref<2x?x8xf32>, memref<2x8x4xf32>) -> ()
  return
}

// A complex factor that does not change is computed once.

// CHECK-LABEL: func.func @diagonal_scan(
// CHECK: scf.parallel (%{{.+}}) = (%c0) to (%c16)
// CHECK:   math.exp
// CHECK:   math.cos
// CHECK:   math.sin
// CHECK:   scf.for {{.*}} -> (f32, f32)
// CHECK-NOT: math.exp
// CHECK-COUNT-4: math.fma %{{.+}} : f32
func.func @diagonal_scan(%x: memref<2x?x8xf32>, %g: memref<8xf32>, %o: memref<2x?x8xf32>, %s: memref<2x8xf32>, %si: memref<2x8xf32>) {
  linattn.diagonal_scan %x decay(%g) phase(%g) into(%o) init(%s) init_imag(%si)
    : (memref<2x?x8xf32>, memref<8xf32>, memref<8xf32>, memref<2x?x8xf32>, memref<2x8xf32>, memref<2x8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @wkv4(
// CHECK: scf.parallel
// CHECK:   scf.for {{.*}} -> (f32, f32, f32)
// CHECK-COUNT-4: math.exp %{{.+}} : f32
func.func @wkv4(%k: memref<2x?x8xf32>, %w: memref<8xf32>, %o: memref<2x?x8xf32>, %s: memref<2x3x8xf32>) {
  linattn.wkv4 %k, %k decay(%w) bonus(%w) into(%o) init(%s)
    : (memref<2x?x8xf32>, memref<2x?x8xf32>, memref<8xf32>, memref<8xf32>, memref<2x?x8xf32>, memref<2x3x8xf32>) -> ()
  return
}

// Grouped heads and packed sequences.

// CHECK-LABEL: func.func @log_linear(
// CHECK: scf.parallel (%{{.+}}) = (%c0) to (%c6)
// CHECK:   memref.load %{{.+}} : memref<4xi32>
// CHECK:   math.cttz
func.func @log_linear(%q: memref<1x4x?x8xf32>, %k: memref<1x2x?x8xf32>, %l: memref<1x2x?x5xf32>, %n: memref<4xi32>, %s: memref<3x2x5x8x8xf32>) {
  linattn.log_linear %q, %k, %k levels(%l) cu_seqlens(%n) into(%q) init(%s)
    : (memref<1x4x?x8xf32>, memref<1x2x?x8xf32>, memref<1x2x?x8xf32>, memref<1x2x?x5xf32>, memref<4xi32>, memref<1x4x?x8xf32>, memref<3x2x5x8x8xf32>) -> ()
  return
}
