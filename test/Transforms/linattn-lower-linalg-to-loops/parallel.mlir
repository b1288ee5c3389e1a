// RUN: linattn-opt %s --linattn-lower-linalg-to-loops=parallel --canonicalize --split-input-file | FileCheck %s

// Blocks of outer iterations are tasks; the innermost loop stays whole.

#identity = affine_map<(b, h, t, d) -> (b, h, t, d)>

// CHECK-LABEL: func.func @large(
// CHECK:         scf.parallel (%{{.+}}) = (%{{.+}}) to (%{{.+}})
// CHECK:           scf.for
// CHECK:             arith.remsi
// CHECK:             scf.for
// CHECK:               math.exp
// CHECK-NOT:     scf.parallel
func.func @large(%x: memref<1x32x1024x64xf32>) {
  linalg.generic {indexing_maps = [#identity], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%x : memref<1x32x1024x64xf32>) {
  ^bb0(%a: f32):
    %e = math.exp %a : f32
    linalg.yield %e : f32
  }
  return
}

// -----

// With sizes that are known at run time only: one task if elements are few.

#identity = affine_map<(t, d) -> (t, d)>

// CHECK-LABEL: func.func @dynamic(
// CHECK:         arith.cmpi sle
// CHECK:         arith.select
// CHECK:         scf.parallel
func.func @dynamic(%x: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [#identity], iterator_types = ["parallel", "parallel"]} outs(%x : memref<?x?xf32>) {
  ^bb0(%a: f32):
    %e = math.exp %a : f32
    linalg.yield %e : f32
  }
  return
}

// -----

// A sum stays within its task.

#read = affine_map<(t, d) -> (t, d)>
#write = affine_map<(t, d) -> (t)>

// CHECK-LABEL: func.func @sums(
// CHECK:         scf.parallel
// CHECK:           scf.for
// CHECK-NEXT:        scf.for
// CHECK:               arith.addf
func.func @sums(%x: memref<?x?xf32>, %y: memref<?xf32>) {
  linalg.generic {indexing_maps = [#read, #write], iterator_types = ["parallel", "reduction"]} ins(%x : memref<?x?xf32>) outs(%y : memref<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// Small ops, ops of one loop and ops that begin with a reduction stay on their thread.

#identity = affine_map<(t, d) -> (t, d)>
#vector = affine_map<(d) -> (d)>
#total = affine_map<(t, d) -> ()>

// CHECK-LABEL: func.func @others(
// CHECK-NOT:     scf.parallel
// CHECK:         return
func.func @others(%x: memref<64x64xf32>, %y: memref<?xf32>, %z: memref<?x?xf32>, %s: memref<f32>) {
  linalg.generic {indexing_maps = [#identity], iterator_types = ["parallel", "parallel"]} outs(%x : memref<64x64xf32>) {
  ^bb0(%a: f32):
    %e = math.exp %a : f32
    linalg.yield %e : f32
  }
  linalg.generic {indexing_maps = [#vector], iterator_types = ["parallel"]} outs(%y : memref<?xf32>) {
  ^bb0(%a: f32):
    %e = math.exp %a : f32
    linalg.yield %e : f32
  }
  linalg.generic {indexing_maps = [#identity, #total], iterator_types = ["reduction", "reduction"]} ins(%z : memref<?x?xf32>) outs(%s : memref<f32>) {
  ^bb0(%a: f32, %b: f32):
    %e = arith.addf %a, %b : f32
    linalg.yield %e : f32
  }
  return
}

// -----

// Within a parallel loop nothing else is.

#identity = affine_map<(t, d) -> (t, d)>

// CHECK-LABEL: func.func @nested(
// CHECK:         scf.parallel
// CHECK-NOT:     scf.parallel
// CHECK:         return
func.func @nested(%x: memref<?x?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    linalg.generic {indexing_maps = [#identity], iterator_types = ["parallel", "parallel"]} outs(%x : memref<?x?xf32>) {
    ^bb0(%a: f32):
      %e = math.exp %a : f32
      linalg.yield %e : f32
    }
  }
  return
}
