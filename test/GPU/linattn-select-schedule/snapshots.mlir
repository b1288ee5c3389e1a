// RUN: linattn-opt %s --linattn-select-schedule | FileCheck %s
// RUN: linattn-opt %s --linattn-select-schedule --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// No kernel writes snapshots: on buffers the naive loops do.

// REMARK: snapshots that are not expanded into a loop have no {{(chunk )?}}kernel
// CHECK-LABEL: func.func @buffers
// CHECK:         linattn.scan
// CHECK-NOT:     linattn.schedule
func.func @buffers(%q: memref<2x3x10x8xf32>, %s: memref<2x3x8x8xf32>, %p: memref<2x2x3x8x8xf32>) {
  linattn.scan %q, %q, %q into(%q) init(%s) snapshots(%p) {every = 4} : (memref<2x3x10x8xf32>, memref<2x3x10x8xf32>, memref<2x3x10x8xf32>, memref<2x3x10x8xf32>, memref<2x3x8x8xf32>, memref<2x2x3x8x8xf32>) -> ()
  return
}
