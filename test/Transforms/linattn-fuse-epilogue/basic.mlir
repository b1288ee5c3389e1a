// RUN: linattn-opt %s --linattn-fuse-epilogue | FileCheck %s
// RUN: linattn-opt %s --linattn-fuse-epilogue --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: linattn-opt %s --linattn-fuse-epilogue --linattn-lower-to-vector | FileCheck %s --check-prefix=VECTOR

// The scan moves in front of its norm, behind what prepares the gate.

// CHECK-LABEL: func.func @chunk(
// CHECK:         linalg.fill
// CHECK:         linattn.scan {{.*}}linattn.epilogue
// CHECK-NEXT:    linattn.output_norm {{.*}}linattn.epilogue
// REMARK: remark: [Passed] fuse-epilogue {{.*}}"is applied by the kernel of its scan"
// The rows are divided in the loops of the scan, of which there are no others.
// VECTOR-LABEL: func.func @chunk(
// VECTOR-COUNT-1: scf.parallel
// VECTOR:           math.sqrt
// VECTOR-NOT:     scf.parallel
func.func @chunk(%q: memref<2x4x32x16xf32>, %b: memref<2x4x32xf32>, %w: memref<16xf32>, %x: f32, %s: memref<2x4x16x16xf32>, %out: memref<2x4x32x16xf32>) {
  %o = memref.alloc() : memref<2x4x32x16xf32>
  linattn.scan %q, %q, %q beta(%b) update(delta) into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 32>} : (memref<2x4x32x16xf32>, memref<2x4x32x16xf32>, memref<2x4x32x16xf32>, memref<2x4x32xf32>, memref<2x4x32x16xf32>, memref<2x4x16x16xf32>) -> ()
  %g = memref.alloc() : memref<2x4x32x16xf32>
  linalg.fill ins(%x : f32) outs(%g : memref<2x4x32x16xf32>)
  linattn.output_norm %o weight(%w) gate(%g) into(%out) : (memref<2x4x32x16xf32>, memref<16xf32>, memref<2x4x32x16xf32>, memref<2x4x32x16xf32>) -> ()
  memref.dealloc %o : memref<2x4x32x16xf32>
  memref.dealloc %g : memref<2x4x32x16xf32>
  return
}

// Of any length, in place.

// CHECK-LABEL: func.func @tile(
// CHECK:         linattn.scan {{.*}}linattn.epilogue
// CHECK-NEXT:    linattn.output_norm {{.*}}linattn.epilogue
// VECTOR-LABEL: func.func @tile(
// VECTOR-COUNT-1: scf.parallel
// VECTOR-NOT:     scf.parallel
func.func @tile(%q: memref<?x4x?x16xbf16>, %v: memref<?x4x?x64xbf16>, %s: memref<?x4x16x64xf32>, %o: memref<?x4x?x64xbf16>) {
  linattn.scan %q, %q, %v into(%o) init(%s) {config = #linattn.config<form = state_tile>} : (memref<?x4x?x16xbf16>, memref<?x4x?x16xbf16>, memref<?x4x?x64xbf16>, memref<?x4x?x64xbf16>, memref<?x4x16x64xf32>) -> ()
  linattn.output_norm %o kind(layer) into(%o) : (memref<?x4x?x64xbf16>, memref<?x4x?x64xbf16>) -> ()
  return
}

// Few heads, but a row is one panel.

// CHECK-LABEL: func.func @narrow(
// CHECK:         linattn.scan {{.*}}linattn.epilogue
// VECTOR-LABEL: func.func @narrow(
// VECTOR:         scf.parallel
func.func @narrow(%q: memref<1x1x?x8xf32>, %s: memref<1x1x8x8xf32>, %o: memref<1x1x?x8xf32>) {
  linattn.scan %q, %q, %q into(%o) init(%s) {config = #linattn.config<form = state_tile>} : (memref<1x1x?x8xf32>, memref<1x1x?x8xf32>, memref<1x1x?x8xf32>, memref<1x1x?x8xf32>, memref<1x1x8x8xf32>) -> ()
  linattn.output_norm %o kind(none) into(%o) : (memref<1x1x?x8xf32>, memref<1x1x?x8xf32>) -> ()
  return
}
