// RUN: linattn-opt %s --linattn-expand-snapshots | FileCheck %s
// RUN: linattn-opt %s --linattn-lower-to-vector --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// Scans without snapshots.

// CHECK-LABEL: func.func @plain(
// CHECK-NOT:     scf.for
// CHECK:         linattn.scan
func.func @plain(%q: tensor<2x3x10x8xf32>, %s: tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32> {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) : (tensor<2x3x10x8xf32>, tensor<2x3x10x8xf32>, tensor<2x3x10x8xf32>, tensor<2x3x10x8xf32>, tensor<2x3x8x8xf32>) -> (tensor<2x3x10x8xf32>, tensor<2x3x8x8xf32>)
  return %r#1 : tensor<2x3x8x8xf32>
}

// On buffers they stay as they are, and run as scalar loops.

// CHECK-LABEL: func.func @buffers(
// CHECK-NOT:     scf.for
// CHECK:         linattn.scan {{.*}} snapshots
// REMARK: [Missed] lower-to-vector {{.*}}"runs as scalar loops: its snapshots are not expanded into a loop"
func.func @buffers(%q: memref<2x3x10x8xf32>, %s: memref<2x3x8x8xf32>, %p: memref<2x2x3x8x8xf32>) {
  linattn.scan %q, %q, %q into(%q) init(%s) snapshots(%p) {every = 4} : (memref<2x3x10x8xf32>, memref<2x3x10x8xf32>, memref<2x3x10x8xf32>, memref<2x3x10x8xf32>, memref<2x3x8x8xf32>, memref<2x2x3x8x8xf32>) -> ()
  return
}
