// RUN: linattn-opt %s --convert-linattn-to-linalg --canonicalize --cse | FileCheck %s --implicit-check-not='linattn.{{[a-z.]+}} %'
// RUN: linattn-opt %s --convert-linattn-to-linalg=chunk-size=4 --canonicalize | FileCheck %s --check-prefix=FOUR

// A scan is a loop over chunks of linalg ops; grouped heads are read in place.

// CHECK-DAG:   #[[GROUP:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1 floordiv 2, d4, d3)>
// CHECK-LABEL: func.func @delta(
// CHECK:         scf.for %{{.+}} = %c0 to %{{.+}} step %c16
// CHECK:           affine.min
// The forward substitution, row by row.
// CHECK:           scf.for
// CHECK:             linalg.generic
// CHECK:           linalg.generic {indexing_maps = [#{{.+}}, #[[GROUP]], #{{.+}}]
// FOUR-LABEL:  func.func @delta(
// FOUR:          scf.for %{{.+}} = %c0 to %{{.+}} step %c4
func.func @delta(%q: tensor<2x4x?x8xf32>, %k: tensor<2x2x?x8xf32>, %v: tensor<2x2x?x8xf32>, %g: tensor<2x2x?xf32>, %beta: tensor<2x2x?xf32>, %s: tensor<2x2x8x8xf32>) -> (tensor<2x4x?x8xf32>, tensor<2x2x8x8xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) beta(%beta) update(delta) into(%q) init(%s)
    : (tensor<2x4x?x8xf32>, tensor<2x2x?x8xf32>, tensor<2x2x?x8xf32>, tensor<2x2x?xf32>, tensor<2x2x?xf32>, tensor<2x4x?x8xf32>, tensor<2x2x8x8xf32>) -> (tensor<2x4x?x8xf32>, tensor<2x2x8x8xf32>)
  return %r#0, %r#1 : tensor<2x4x?x8xf32>, tensor<2x2x8x8xf32>
}

// Chunks of a known number of tokens have known sizes.

// CHECK-LABEL: func.func @static(
// CHECK-NOT:     affine.min
// CHECK:         scf.for
// CHECK:           tensor.extract_slice {{.*}} [1, 2, 16, 8]
// CHECK:           tensor.empty() : tensor<1x2x16x16xf32>
func.func @static(%q: tensor<1x2x64x8xf32>, %s: tensor<1x2x8x8xf32>) -> tensor<1x2x64x8xf32> {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s)
    : (tensor<1x2x64x8xf32>, tensor<1x2x64x8xf32>, tensor<1x2x64x8xf32>, tensor<1x2x64x8xf32>, tensor<1x2x8x8xf32>) -> (tensor<1x2x64x8xf32>, tensor<1x2x8x8xf32>)
  return %r#0 : tensor<1x2x64x8xf32>
}

// Snapshots are taken between loops over chunks.

// CHECK-LABEL: func.func @snapshots(
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             linalg.generic
// CHECK:           tensor.insert_slice
func.func @snapshots(%q: tensor<1x2x64x8xf32>, %s: tensor<1x2x8x8xf32>, %kept: tensor<1x2x2x8x8xf32>) -> tensor<1x2x2x8x8xf32> {
  %r:3 = linattn.scan %q, %q, %q into(%q) init(%s) snapshots(%kept) {every = 32}
    : (tensor<1x2x64x8xf32>, tensor<1x2x64x8xf32>, tensor<1x2x64x8xf32>, tensor<1x2x64x8xf32>, tensor<1x2x8x8xf32>, tensor<1x2x2x8x8xf32>) -> (tensor<1x2x64x8xf32>, tensor<1x2x8x8xf32>, tensor<1x2x2x8x8xf32>)
  return %r#2 : tensor<1x2x2x8x8xf32>
}

// Recurrences that the scan cannot express run token by token.

// CHECK-LABEL: func.func @diagonal(
// CHECK:         scf.for %[[T:.+]] = %c0 to %c6 step %c1 iter_args(%[[O:.+]] = %{{.+}}, %[[S:.+]] = %{{.+}})
// CHECK:           tensor.extract_slice %{{.+}}[0, %[[T]], 0] [2, 1, 8] [1, 1, 1] : tensor<2x6x8xf32> to tensor<2x8xf32>
// CHECK:           %[[NEXT:.+]] = linalg.generic {{.*}}outs(%[[S]] :
// CHECK:           scf.yield %{{.+}}, %[[NEXT]]
func.func @diagonal(%x: tensor<2x6x8xf32>, %g: tensor<8xf32>, %o: tensor<2x6x8xf32>, %s: tensor<2x8xf32>) -> (tensor<2x6x8xf32>, tensor<2x8xf32>) {
  %r:2 = linattn.diagonal_scan %x decay(%g) into(%o) init(%s)
    : (tensor<2x6x8xf32>, tensor<8xf32>, tensor<2x6x8xf32>, tensor<2x8xf32>) -> (tensor<2x6x8xf32>, tensor<2x8xf32>)
  return %r#0, %r#1 : tensor<2x6x8xf32>, tensor<2x8xf32>
}
