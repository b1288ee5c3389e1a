// RUN: linattn-opt %s --linattn-expand-form --canonicalize | FileCheck %s
// RUN: linattn-opt %s --linattn-expand-form --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: not linattn-opt %s --linattn-expand-form=chunk-size=0 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not linattn-opt %s --linattn-expand-form=fill-from=0 2>&1 | FileCheck %s --check-prefix=FILL

// SIZE: error: expected chunk-size to be at least 1, but got 0
// FILL: error: expected fill-from to be 1 to 100 percent, but got 0

// Ops on buffers stay.

// CHECK-LABEL: func.func @buffers(
// CHECK:         linattn.scan
func.func @buffers(%q: memref<1x2x8x4xf32>, %s: memref<1x2x4x4xf32>) {
  linattn.scan %q, %q, %q into(%q) init(%s) : (memref<1x2x8x4xf32>, memref<1x2x8x4xf32>, memref<1x2x8x4xf32>, memref<1x2x8x4xf32>, memref<1x2x4x4xf32>) -> ()
  return
}

// Scans with snapshots stay until these are expanded.

// CHECK-LABEL: func.func @snapshots(
// CHECK:         linattn.scan
func.func @snapshots(%q: tensor<1x2x8x4xf32>, %s: tensor<1x2x4x4xf32>, %kept: tensor<1x2x2x4x4xf32>) -> tensor<1x2x2x4x4xf32> {
  %r:3 = linattn.scan %q, %q, %q into(%q) init(%s) snapshots(%kept) {every = 4}
    : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x2x4x4xf32>) -> (tensor<1x2x8x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x2x4x4xf32>)
  return %r#2 : tensor<1x2x2x4x4xf32>
}

// A scan without a chunk form runs token by token, by the same ops.

// REMARK: remark: [Passed] expand-form {{.*}}"becomes a loop over tokens: a decay per value column does not factor into products of chunks"
// CHECK-LABEL: func.func @value_decay(
// CHECK:         scf.for {{.*}} step %c1
// CHECK:           %[[S1:.+]] = linattn.chunk.update keys(%{{.+}}) values(%{{.+}}) value_decay(%{{.+}})
// CHECK:           linattn.chunk.read %{{.+}}, %[[S1]] into
func.func @value_decay(%q: tensor<1x2x8x4xf32>, %g: tensor<1x2x8x4xf32>, %s: tensor<1x2x4x4xf32>) -> tensor<1x2x8x4xf32> {
  %r:2 = linattn.scan %q, %q, %q value_decay(%g) into(%q) init(%s)
    : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x8x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0 : tensor<1x2x8x4xf32>
}

// REMARK: remark: [Passed] expand-form {{.*}}"becomes a loop over tokens: its transition reads the rows of the state, chunks its columns"
// CHECK-LABEL: func.func @oja(
// CHECK:         scf.for {{.*}} step %c1
// CHECK:           %[[ERROR:.+]] = linattn.chunk.read {{.*}} {transpose}
// CHECK:           %[[DELTA:.+]] = linattn.chunk.pack %[[ERROR]] gate(
// CHECK:           linattn.chunk.update keys(%[[DELTA]])
func.func @oja(%q: tensor<1x2x8x4xf32>, %b: tensor<1x2x8xf32>, %s: tensor<1x2x4x4xf32>) -> tensor<1x2x8x4xf32> {
  %r:2 = linattn.scan %q, %q, %q beta(%b) update(oja) into(%q) init(%s)
    : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8xf32>, tensor<1x2x8x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x8x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0 : tensor<1x2x8x4xf32>
}
