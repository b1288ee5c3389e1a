// RUN: linattn-opt %s --linattn-lower-linalg-to-loops --canonicalize --split-input-file | FileCheck %s

// A matrix product runs as i, k, j: the innermost loop walks rows.

// CHECK-LABEL: func.func @matmul(
// CHECK-SAME:    %[[A:[^:]+]]: memref<8x16xf32>, %[[B:[^:]+]]: memref<16x32xf32>, %[[C:[^:]+]]: memref<8x32xf32>)
// CHECK:         scf.for %[[I:.+]] =
// CHECK:           scf.for %[[K:.+]] =
// CHECK:             scf.for %[[J:.+]] =
// CHECK-DAG:           memref.load %[[A]][%[[I]], %[[K]]]
// CHECK-DAG:           memref.load %[[B]][%[[K]], %[[J]]]
// CHECK-DAG:           memref.load %[[C]][%[[I]], %[[J]]]
// CHECK:               memref.store %{{.+}}, %[[C]][%[[I]], %[[J]]]
func.func @matmul(%a: memref<8x16xf32>, %b: memref<16x32xf32>, %c: memref<8x32xf32>) {
  linalg.matmul ins(%a, %b : memref<8x16xf32>, memref<16x32xf32>) outs(%c : memref<8x32xf32>)
  return
}

// -----

// With dynamic shapes too.

// CHECK-LABEL: func.func @dynamic(
// CHECK:         scf.for %[[I:.+]] =
// CHECK:           scf.for %[[K:.+]] =
// CHECK:             scf.for %[[J:.+]] =
// CHECK:               memref.load %{{.+}}[%[[K]], %[[J]]]
func.func @dynamic(%a: memref<?x?xf32, strided<[?, 1], offset: ?>>,
                   %b: memref<?x?xf32, strided<[?, 1], offset: ?>>,
                   %c: memref<?x?xf32, strided<[?, 1], offset: ?>>) {
  linalg.matmul
    ins(%a, %b : memref<?x?xf32, strided<[?, 1], offset: ?>>, memref<?x?xf32, strided<[?, 1], offset: ?>>)
    outs(%c : memref<?x?xf32, strided<[?, 1], offset: ?>>)
  return
}

// -----

// The loops of a transposition stay: one side strides anyway. Reductions keep
// their order, since sums depend on it.

#in = affine_map<(i, j, k) -> (i, j, k)>
#out = affine_map<(i, j, k) -> (k)>
// CHECK-LABEL: func.func @sum(
// CHECK:         scf.for %[[I:.+]] =
// CHECK:           scf.for %[[J:.+]] =
// CHECK:             scf.for %[[K:.+]] =
// CHECK:               memref.load %{{.+}}[%[[I]], %[[J]], %[[K]]]
func.func @sum(%x: memref<4x8x16xf32>, %s: memref<16xf32>) {
  linalg.generic {indexing_maps = [#in, #out], iterator_types = ["reduction", "reduction", "parallel"]}
      ins(%x : memref<4x8x16xf32>) outs(%s : memref<16xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// Strided copies would otherwise call a support library.

// CHECK-LABEL: func.func @copies(
// CHECK:         memref.copy
// CHECK-NOT:     memref.copy
// CHECK:         scf.for
// CHECK:           scf.for
func.func @copies(%a: memref<4x8xf32>, %b: memref<4x8xf32>, %c: memref<4x8xf32, strided<[?, 1], offset: ?>>) {
  memref.copy %a, %b : memref<4x8xf32> to memref<4x8xf32>
  memref.copy %a, %c : memref<4x8xf32> to memref<4x8xf32, strided<[?, 1], offset: ?>>
  return
}

// A sum that may be reordered fills vectors too: it is the innermost loop.

// CHECK-LABEL: func.func @row_sums
// CHECK: scf.for %[[ROW:.+]] = %{{.+}} to %c64
// CHECK: scf.for %[[COLUMN:.+]] = %{{.+}} to %c16
// CHECK: memref.load %arg0[%[[ROW]], %[[COLUMN]]]
func.func @row_sums(%x: memref<64x16xf32>, %sums: memref<64xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<64x16xf32>) outs(%sums : memref<64xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %0 = arith.addf %sum, %a fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}
