// RUN: linattn-opt %s --linattn-fuse-prologue --split-input-file | FileCheck %s
// RUN: linattn-opt %s --linattn-fuse-prologue --split-input-file --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// CHECK-NOT: linattn.prologue

#row = affine_map<(b, h, t, d) -> (b, h, t, d)>

// Another op reads the rows.

// REMARK: [Missed] fuse-prologue {{.*}}"runs as a pass over memory before its scan: 'memref.copy' uses it, too"
func.func @read(%q: memref<2x4x8x16xf32>, %s: memref<2x4x16x16xf32>, %o: memref<2x4x8x16xf32>, %p: memref<2x4x8x16xf32>) {
  %k = memref.alloc() : memref<2x4x8x16xf32>
  linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%q : memref<2x4x8x16xf32>) outs(%k : memref<2x4x8x16xf32>) {
  ^bb0(%x: f32, %out: f32):
    %0 = arith.mulf %x, %x : f32
    linalg.yield %0 : f32
  }
  memref.copy %k, %p : memref<2x4x8x16xf32> to memref<2x4x8x16xf32>
  linattn.scan %q, %k, %q into(%o) init(%s) : (memref<2x4x8x16xf32>, memref<2x4x8x16xf32>, memref<2x4x8x16xf32>, memref<2x4x8x16xf32>, memref<2x4x16x16xf32>) -> ()
  return
}

// -----

#row = affine_map<(b, h, t, d) -> (b, h, t, d)>

// The sources of the rows change before the scan.

// REMARK: "runs as a pass over memory before its scan: 'memref.dealloc' may change what it is made of"
func.func @freed(%q: memref<2x4x8x16xf32>, %s: memref<2x4x16x16xf32>, %o: memref<2x4x8x16xf32>) {
  %x = memref.alloc() : memref<2x4x8x16xf32>
  memref.copy %q, %x : memref<2x4x8x16xf32> to memref<2x4x8x16xf32>
  %k = memref.alloc() : memref<2x4x8x16xf32>
  linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : memref<2x4x8x16xf32>) outs(%k : memref<2x4x8x16xf32>) {
  ^bb0(%e: f32, %out: f32):
    %0 = arith.mulf %e, %e : f32
    linalg.yield %0 : f32
  }
  memref.dealloc %x : memref<2x4x8x16xf32>
  linattn.scan %q, %k, %q into(%o) init(%s) : (memref<2x4x8x16xf32>, memref<2x4x8x16xf32>, memref<2x4x8x16xf32>, memref<2x4x8x16xf32>, memref<2x4x16x16xf32>) -> ()
  return
}

// -----

#row = affine_map<(b, h, t, d) -> (b, h, t, d)>
#swapped = affine_map<(b, h, t, d) -> (b, h, d, t)>

// Elements of a row come from all tokens.

// REMARK: "runs as a pass over memory before its scan: it is made of elements that are not neighbours"
func.func @columns(%q: memref<2x4x16x16xf32>, %s: memref<2x4x16x16xf32>, %o: memref<2x4x16x16xf32>) {
  %k = memref.alloc() : memref<2x4x16x16xf32>
  linalg.generic {indexing_maps = [#swapped, #row], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%q : memref<2x4x16x16xf32>) outs(%k : memref<2x4x16x16xf32>) {
  ^bb0(%e: f32, %out: f32):
    %0 = arith.mulf %e, %e : f32
    linalg.yield %0 : f32
  }
  linattn.scan %q, %k, %q into(%o) init(%s) : (memref<2x4x16x16xf32>, memref<2x4x16x16xf32>, memref<2x4x16x16xf32>, memref<2x4x16x16xf32>, memref<2x4x16x16xf32>) -> ()
  return
}
