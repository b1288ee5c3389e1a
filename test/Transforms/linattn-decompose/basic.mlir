// RUN: linattn-opt %s --linattn-decompose=ops=state | FileCheck %s
// RUN: linattn-opt %s --linattn-decompose=only-chunks | FileCheck %s --check-prefix=CHUNKS
// RUN: not linattn-opt %s --linattn-decompose=ops=sate 2>&1 | FileCheck %s --check-prefix=NAME

// Only the ops that are named, or scans cut into chunks.

// NAME: error: expected ops to name linattn ops, but got sate

// CHECK-LABEL: func.func @both(
// CHECK-NOT:     linattn.state
// CHECK:         linattn.read
// CHUNKS-LABEL: func.func @both(
// CHUNKS:         linattn.state
// CHUNKS:         linattn.read
func.func @both(%q: tensor<2x3x?x4xf32>, %o: tensor<2x3x?x4xf32>, %s: tensor<2x3x4x4xf32>) -> tensor<2x3x?x4xf32> {
  %r = linattn.state %q, %q init(%s) : (tensor<2x3x?x4xf32>, tensor<2x3x?x4xf32>, tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>
  %t = linattn.read %q, %r into(%o) : (tensor<2x3x?x4xf32>, tensor<2x3x4x4xf32>, tensor<2x3x?x4xf32>) -> tensor<2x3x?x4xf32>
  return %t : tensor<2x3x?x4xf32>
}

// tril(Q Kᵀ) V + Q S, and the next state.

// CHECK-LABEL: func.func @chunk(
// CHECK:         linattn.scan
// CHUNKS-LABEL: func.func @chunk(
// CHUNKS-SAME:    %[[Q:[^:]+]]: tensor<1x2x16x4xf32>, %[[K:[^:]+]]: tensor<1x2x16x4xf32>, %[[V:[^:]+]]: tensor<1x2x16x4xf32>, %{{[^:]+}}: tensor<1x2x16x4xf32>, %[[S:[^:]+]]: tensor<1x2x4x4xf32>
// CHUNKS-NOT:     linattn.scan
// CHUNKS:         linalg.generic {{.*}} outs(%{{.+}} : tensor<1x2x16x16xf32>)
// CHUNKS:         linalg.generic {{.*}} ins(%{{.+}}, %[[S]] :
// CHUNKS:         linalg.generic {{.*}} ins(%{{.+}}, %[[V]] : {{.*}} outs(%[[S]] :
func.func @chunk(%q: tensor<1x2x16x4xf32>, %k: tensor<1x2x16x4xf32>, %v: tensor<1x2x16x4xf32>, %o: tensor<1x2x16x4xf32>, %s: tensor<1x2x4x4xf32>) -> (tensor<1x2x16x4xf32>, tensor<1x2x4x4xf32>) {
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 16>}
    : (tensor<1x2x16x4xf32>, tensor<1x2x16x4xf32>, tensor<1x2x16x4xf32>, tensor<1x2x16x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x16x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0, %r#1 : tensor<1x2x16x4xf32>, tensor<1x2x4x4xf32>
}

// Buffers are lowered in other ways.

// CHECK-LABEL: func.func @buffers(
// CHECK-NEXT:    linattn.state
func.func @buffers(%k: memref<1x2x4x8xf32>, %s: memref<1x2x8x8xf32>) {
  linattn.state %k, %k init(%s) : (memref<1x2x4x8xf32>, memref<1x2x4x8xf32>, memref<1x2x8x8xf32>) -> ()
  return
}
