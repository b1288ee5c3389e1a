// RUN: linattn-opt %s --linattn-fuse-prologue | FileCheck %s
// RUN: linattn-opt %s --linattn-fuse-prologue --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: linattn-opt %s --linattn-fuse-prologue --linattn-lower-to-vector --canonicalize | FileCheck %s --check-prefix=VECTOR
// RUN: linattn-opt %s --linattn-fuse-prologue --linattn-lower-to-vector='vector-bits=128 registers=32' --canonicalize | FileCheck %s --check-prefix=PARTS

#row = affine_map<(b, h, t, d) -> (b, h, t, d)>
#number = affine_map<(b, h, t, d) -> (b, h, t)>
#token = affine_map<(b, h, t) -> (b, h, t)>
#head = affine_map<(b, h, t, d) -> (h)>
#channel = affine_map<(b, h, t, d) -> (h, d)>

// The L2 norm of keys: a sum over each row, a number of it, the row times that.

// CHECK-LABEL: func.func @norm(
// CHECK:         linalg.fill {linattn.prologue}
// CHECK:         linalg.generic {{{.*}}"reduction"]} {{.*}}attrs = {linattn.prologue}
// CHECK:         linalg.generic {{.*}}attrs = {linattn.prologue}
// CHECK:         linalg.generic {{.*}}attrs = {linattn.prologue}
// REMARK: remark: [Passed] fuse-prologue {{.*}}"is made by the kernel of its scan"
// Nothing is stored: the norm is in the loops of the scan.
// VECTOR-LABEL: func.func @norm(
// VECTOR-NOT:     linalg.
// VECTOR:         scf.parallel
// VECTOR:           math.sqrt
// VECTOR-NOT:     scf.parallel
// A row of four vectors has four partial sums, which are added in pairs.
// PARTS-LABEL: func.func @norm(
// PARTS:         scf.parallel
// PARTS-COUNT-4:   arith.mulf %[[X:.+]], %[[X]] : vector<4xf32>
// PARTS:           arith.addf {{.*}} : vector<2xf32>
// PARTS:           math.sqrt
func.func @norm(%q: memref<2x4x32x16xf32>, %b: memref<2x4x32xf32>, %s: memref<2x4x16x16xf32>, %o: memref<2x4x32x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %sum = memref.alloc() : memref<2x4x32xf32>
  linalg.fill ins(%zero : f32) outs(%sum : memref<2x4x32xf32>)
  linalg.generic {indexing_maps = [#row, #number], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%q : memref<2x4x32x16xf32>) outs(%sum : memref<2x4x32xf32>) {
  ^bb0(%x: f32, %out: f32):
    %0 = arith.mulf %x, %x : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  }
  %norm = memref.alloc() : memref<2x4x32xf32>
  linalg.generic {indexing_maps = [#token, #token], iterator_types = ["parallel", "parallel", "parallel"]} ins(%sum : memref<2x4x32xf32>) outs(%norm : memref<2x4x32xf32>) {
  ^bb0(%x: f32, %out: f32):
    %one = arith.constant 1.0 : f32
    %0 = math.sqrt %x : f32
    %1 = arith.divf %one, %0 : f32
    linalg.yield %1 : f32
  }
  memref.dealloc %sum : memref<2x4x32xf32>
  %k = memref.alloc() : memref<2x4x32x16xf32>
  linalg.generic {indexing_maps = [#row, #number, #row], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%q, %norm : memref<2x4x32x16xf32>, memref<2x4x32xf32>) outs(%k : memref<2x4x32x16xf32>) {
  ^bb0(%x: f32, %n: f32, %out: f32):
    %0 = arith.mulf %x, %n : f32
    linalg.yield %0 : f32
  }
  memref.dealloc %norm : memref<2x4x32xf32>
  linattn.scan %q, %k, %q beta(%b) update(delta) into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 32>} : (memref<2x4x32x16xf32>, memref<2x4x32x16xf32>, memref<2x4x32x16xf32>, memref<2x4x32xf32>, memref<2x4x32x16xf32>, memref<2x4x16x16xf32>) -> ()
  memref.dealloc %k : memref<2x4x32x16xf32>
  return
}

// A gate per channel of 16 bits, of any length, with parameters of heads and
// channels.

// CHECK-LABEL: func.func @gate(
// CHECK:         linalg.generic {{.*}}attrs = {linattn.prologue}
// VECTOR-LABEL: func.func @gate(
// VECTOR-NOT:     linalg.
// VECTOR:         scf.parallel
// VECTOR:           math.absf {{.*}} : vector<{{[0-9]+}}xbf16>
// VECTOR-NOT:     scf.parallel
func.func @gate(%q: memref<?x4x?x16xbf16>, %g: memref<?x4x?x16xbf16>, %a: memref<4xbf16>, %bias: memref<4x16xbf16>, %s: memref<?x4x16x16xf32>, %o: memref<?x4x?x16xbf16>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %B = memref.dim %q, %c0 : memref<?x4x?x16xbf16>
  %T = memref.dim %q, %c2 : memref<?x4x?x16xbf16>
  %decay = memref.alloc(%B, %T) : memref<?x4x?x16xbf16>
  linalg.generic {indexing_maps = [#row, #head, #channel, #row], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%g, %a, %bias : memref<?x4x?x16xbf16>, memref<4xbf16>, memref<4x16xbf16>) outs(%decay : memref<?x4x?x16xbf16>) {
  ^bb0(%x: bf16, %f: bf16, %y: bf16, %out: bf16):
    %0 = arith.addf %x, %y : bf16
    %1 = arith.mulf %0, %f : bf16
    %2 = math.absf %1 : bf16
    %3 = arith.negf %2 : bf16
    linalg.yield %3 : bf16
  }
  linattn.scan %q, %q, %q decay(%decay) into(%o) init(%s) {config = #linattn.config<form = state_tile>} : (memref<?x4x?x16xbf16>, memref<?x4x?x16xbf16>, memref<?x4x?x16xbf16>, memref<?x4x?x16xbf16>, memref<?x4x?x16xbf16>, memref<?x4x16x16xf32>) -> ()
  memref.dealloc %decay : memref<?x4x?x16xbf16>
  return
}
