// RUN: linattn-opt %s --linattn-expand-form --canonicalize --cse | FileCheck %s --implicit-check-not='linattn.scan'

// The last chunk may be short.

// CHECK-DAG:   #[[LAST:.+]] = affine_map<(d0)[s0] -> (-d0 + s0, 16)>
// CHECK-LABEL: func.func @dynamic(
// CHECK:         scf.for %[[I:.+]] = %c0 to %[[T:.+]] step %c16
// CHECK:           %[[N:.+]] = affine.min #[[LAST]](%[[I]])[%[[T]]]
// CHECK:           tensor.extract_slice %{{.+}}[0, 0, %[[I]], 0] [%{{.+}}, %{{.+}}, %[[N]], 8]
// CHECK:           linattn.chunk.pack
func.func @dynamic(%q: tensor<?x?x?x8xf32>, %k: tensor<?x?x?x8xf32>, %s: tensor<?x?x8x8xf32>) -> tensor<?x?x?x8xf32> {
  %r:2 = linattn.scan %q, %k, %k into(%q) init(%s)
    : (tensor<?x?x?x8xf32>, tensor<?x?x?x8xf32>, tensor<?x?x?x8xf32>, tensor<?x?x?x8xf32>, tensor<?x?x8x8xf32>) -> (tensor<?x?x?x8xf32>, tensor<?x?x8x8xf32>)
  return %r#0 : tensor<?x?x?x8xf32>
}

// Backwards: chunks from the last token on, each of them reversed as it is
// packed and unpacked; masks are in the order of the rows.

// CHECK-LABEL: func.func @reverse(
// CHECK:           %[[N:.+]] = affine.min
// CHECK:           %[[FIRST:.+]] = affine.apply
// CHECK:           tensor.extract_slice %{{.+}}[0, 0, %[[FIRST]], 0] [1, 2, %[[N]], 8]
// CHECK:           %[[MASK:.+]] = linalg.generic {{.*}} outs(%{{.+}} : tensor<1x?xi1>)
// CHECK:           linattn.chunk.pack %{{.+}} mask(%[[MASK]]) into(%{{.+}}) {reverse}
// CHECK:           linattn.chunk.unpack %{{.+}} into(%{{.+}}) {reverse}
func.func @reverse(%q: tensor<1x2x?x8xf32>, %m: tensor<1x?xi1>, %s: tensor<1x2x8x8xf32>) -> tensor<1x2x?x8xf32> {
  %r:2 = linattn.scan %q, %q, %q mask(%m) into(%q) init(%s) {reverse}
    : (tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>, tensor<1x?xi1>, tensor<1x2x?x8xf32>, tensor<1x2x8x8xf32>) -> (tensor<1x2x?x8xf32>, tensor<1x2x8x8xf32>)
  return %r#0 : tensor<1x2x?x8xf32>
}

// A loop over sequences, each with the state of its own. A pool: without a state
// the outputs are 0.

// CHECK-LABEL: func.func @packed(
// CHECK:         scf.for %[[SEQ:.+]] = %c0 to %c2 step %c1
// CHECK:           arith.cmpi sge, %[[SLOT:.+]], %c0
// CHECK:           scf.if
// CHECK:             tensor.extract_slice %{{.+}}[%[[SLOT]], 0, 0, 0] [1, 2, 8, 8]
// CHECK:             scf.for %{{.+}} = %{{.+}} to %{{.+}} step %c16
// CHECK:             tensor.insert_slice %{{.+}} into %{{.+}}[%[[SLOT]], 0, 0, 0] [1, 2, 8, 8]
// CHECK:           } else {
// CHECK:             linalg.fill
func.func @packed(%q: tensor<1x2x?x8xf32>, %cu: tensor<3xi32>, %i: tensor<2xi64>, %s: tensor<5x2x8x8xf32>) -> (tensor<1x2x?x8xf32>, tensor<5x2x8x8xf32>) {
  %r:2 = linattn.scan %q, %q, %q cu_seqlens(%cu) state_indices(%i) into(%q) init(%s)
    : (tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>, tensor<3xi32>, tensor<2xi64>, tensor<1x2x?x8xf32>, tensor<5x2x8x8xf32>) -> (tensor<1x2x?x8xf32>, tensor<5x2x8x8xf32>)
  return %r#0, %r#1 : tensor<1x2x?x8xf32>, tensor<5x2x8x8xf32>
}
