// RUN: linattn-opt %s | linattn-opt | FileCheck %s
// RUN: linattn-opt %s --mlir-print-op-generic | linattn-opt | FileCheck %s

// Every op of a chunk, each of its optional clauses, on tensors and on buffers.

// CHECK-LABEL: func.func @pack
func.func @pack(%k: tensor<2x4x?x8xbf16>, %m: tensor<2x?xi1>, %s: tensor<2x8x?xf32>, %e: tensor<2x8x?x8xf32>, %d: tensor<2x8x?x8xf32>) -> tensor<2x8x?x8xf32> {
  // CHECK: linattn.chunk.pack %{{.+}} shift(%{{.+}}) gate(%{{.+}}) mask(%{{.+}}) into(%{{.+}}) {fill = 1.000000e+00 : f64, reverse, scale = 5.000000e-01 : f64} :
  %r = linattn.chunk.pack %k shift(%s) gate(%e) mask(%m) into(%d) {fill = 1.0, reverse, scale = 0.5}
    : (tensor<2x4x?x8xbf16>, tensor<2x8x?xf32>, tensor<2x8x?x8xf32>, tensor<2x?xi1>, tensor<2x8x?x8xf32>) -> tensor<2x8x?x8xf32>
  return %r : tensor<2x8x?x8xf32>
}

// CHECK-LABEL: func.func @pack_padded
func.func @pack_padded(%k: tensor<1x1x?x8xf32>, %d: tensor<1x1x16x8xf32>, %s: tensor<1x1x8x8xf32>, %p: tensor<1x1x16x16xf32>) -> tensor<1x1x16x8xf32> {
  // CHECK: linattn.chunk.pack %{{.+}} into(%{{.+}}) {padded} : (tensor<1x1x?x8xf32>, tensor<1x1x16x8xf32>) -> tensor<1x1x16x8xf32>
  %r = linattn.chunk.pack %k into(%d) {padded} : (tensor<1x1x?x8xf32>, tensor<1x1x16x8xf32>) -> tensor<1x1x16x8xf32>
  // CHECK: linattn.chunk.read %{{.+}} {adjoint} :
  %o = linattn.chunk.read %r, %s scores(%p) values(%r) into(%d) {adjoint}
    : (tensor<1x1x16x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x16x16xf32>, tensor<1x1x16x8xf32>, tensor<1x1x16x8xf32>) -> tensor<1x1x16x8xf32>
  return %o : tensor<1x1x16x8xf32>
}

// CHECK-LABEL: func.func @pack_numbers
func.func @pack_numbers(%h: tensor<4xf32>, %g: tensor<2x2x3xf32>, %d: tensor<2x4x3xf32>) -> (tensor<2x4x3xf32>, tensor<2x4x3xf32>) {
  // CHECK: linattn.chunk.pack %{{.+}} into(%{{.+}}) : (tensor<4xf32>, tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  %r = linattn.chunk.pack %h into(%d) : (tensor<4xf32>, tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  // CHECK: linattn.chunk.pack %{{.+}} into(%{{.+}}) : (tensor<2x2x3xf32>, tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  %t = linattn.chunk.pack %g into(%d) : (tensor<2x2x3xf32>, tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  return %r, %t : tensor<2x4x3xf32>, tensor<2x4x3xf32>
}

// CHECK-LABEL: func.func @unpack
func.func @unpack(%y: tensor<2x8x3x8xf32>, %den: tensor<2x8x3x1xf32>, %m: tensor<2x4x3xf32>, %d: tensor<2x8x3x8xf16>) -> tensor<2x8x3x8xf16> {
  // CHECK: linattn.chunk.unpack %{{.+}} denominator(%{{.+}}) running_max(%{{.+}}) into(%{{.+}}) {normalize = #linattn.normalize<abs_floor = 1.000000e+00 : f64>, reverse} :
  %r = linattn.chunk.unpack %y denominator(%den) running_max(%m) into(%d) {normalize = #linattn.normalize<abs_floor = 1.0>, reverse}
    : (tensor<2x8x3x8xf32>, tensor<2x8x3x1xf32>, tensor<2x4x3xf32>, tensor<2x8x3x8xf16>) -> tensor<2x8x3x8xf16>
  return %r : tensor<2x8x3x8xf16>
}

// CHECK-LABEL: func.func @decay
func.func @decay(%x: tensor<2x8x3x8xf32>, %g: tensor<2x4x3xf32>, %h: tensor<2x8x3x8xf32>) -> tensor<2x8x3x8xf32> {
  // CHECK: linattn.chunk.decay %{{.+}} by(%{{.+}}) into(%{{.+}}) {before} :
  %0 = linattn.chunk.decay %x by(%g) into(%x) {before} : (tensor<2x8x3x8xf32>, tensor<2x4x3xf32>, tensor<2x8x3x8xf32>) -> tensor<2x8x3x8xf32>
  // CHECK: linattn.chunk.decay %{{.+}} by(%{{.+}}) into(%{{.+}}) {to_end} :
  %1 = linattn.chunk.decay %0 by(%h) into(%x) {to_end} : (tensor<2x8x3x8xf32>, tensor<2x8x3x8xf32>, tensor<2x8x3x8xf32>) -> tensor<2x8x3x8xf32>
  return %1 : tensor<2x8x3x8xf32>
}

// CHECK-LABEL: func.func @stabilize
func.func @stabilize(%i: tensor<2x4x3xf32>, %k: tensor<2x4x3x8xf32>, %m: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // CHECK: linattn.chunk.stabilize %{{.+}} decay(%{{.+}}) into(%{{.+}}, %{{.+}}) init(%{{.+}}) :
  %0:3 = linattn.chunk.stabilize %i decay(%i) into(%i, %i) init(%m)
    : (tensor<2x4x3xf32>, tensor<2x4x3xf32>, tensor<2x4x3xf32>, tensor<2x4x3xf32>, tensor<2x4xf32>) -> (tensor<2x4x3xf32>, tensor<2x4x3xf32>, tensor<2x4xf32>)
  // CHECK: linattn.chunk.stabilize %{{.+}} decay(%{{.+}}) into(%{{.+}}, %{{.+}}) init(%{{.+}}) {steady} :
  %1:3 = linattn.chunk.stabilize %k decay(%k) into(%k, %i) init(%0#2) {steady}
    : (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x4x3xf32>, tensor<2x4xf32>) -> (tensor<2x4x3x8xf32>, tensor<2x4x3xf32>, tensor<2x4xf32>)
  return %1#2 : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @scores_and_solve
func.func @scores_and_solve(%q: tensor<2x8x?x8xf32>, %k: tensor<2x4x?x8xf32>, %g: tensor<2x4x?xf32>, %u: tensor<4x8xbf16>, %d: tensor<2x8x?x?xf32>, %y: tensor<2x8x?x5xf32>) -> tensor<2x8x?x5xf32> {
  // CHECK: linattn.chunk.scores %{{.+}}, %{{.+}} decay(%{{.+}}) bonus(%{{.+}}) into(%{{.+}}) {before, strict} :
  %p = linattn.chunk.scores %q, %k decay(%g) bonus(%u) into(%d) {strict, before}
    : (tensor<2x8x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?xf32>, tensor<4x8xbf16>, tensor<2x8x?x?xf32>) -> tensor<2x8x?x?xf32>
  // CHECK: linattn.chunk.solve %{{.+}} gate(%{{.+}}) into(%{{.+}}) {transpose} :
  %x = linattn.chunk.solve %p gate(%g) into(%y) {transpose} : (tensor<2x8x?x?xf32>, tensor<2x4x?xf32>, tensor<2x8x?x5xf32>) -> tensor<2x8x?x5xf32>
  return %x : tensor<2x8x?x5xf32>
}

// CHECK-LABEL: func.func @read_and_update
func.func @read_and_update(%q: memref<2x8x3x8xf32>, %k: memref<2x4x3x8xf32>, %v: memref<2x4x3x5xf32>, %p: memref<2x8x3x3xf32>, %g: memref<2x4x3x8xf32>, %h: memref<2x4x3x5xf32>, %o: memref<2x8x3x5xf32>, %s: memref<2x4x8x5xf32>) {
  // CHECK: linattn.chunk.read %{{.+}}, %{{.+}} scores(%{{.+}}, %{{.+}}) values(%{{.+}}, %{{.+}}) into(%{{.+}}) {strict} : {{.*}} -> ()
  linattn.chunk.read %q, %s scores(%p, %p) values(%v, %v) into(%o) {strict}
    : (memref<2x8x3x8xf32>, memref<2x4x8x5xf32>, memref<2x8x3x3xf32>, memref<2x8x3x3xf32>, memref<2x4x3x5xf32>, memref<2x4x3x5xf32>, memref<2x8x3x5xf32>) -> ()
  // CHECK: linattn.chunk.read %{{.+}}, %{{.+}} scores(%{{.+}}) values(%{{.+}}) decay(%{{.+}}) into(%{{.+}}) {adjoint} :
  linattn.chunk.read %q, %s scores(%p) values(%v) decay(%h) into(%o) {adjoint}
    : (memref<2x8x3x8xf32>, memref<2x4x8x5xf32>, memref<2x8x3x3xf32>, memref<2x4x3x5xf32>, memref<2x4x3x5xf32>, memref<2x8x3x5xf32>) -> ()
  // CHECK: linattn.chunk.read %{{.+}}, %{{.+}} into(%{{.+}}) {transpose} :
  linattn.chunk.read %o, %s into(%q) {transpose} : (memref<2x8x3x5xf32>, memref<2x4x8x5xf32>, memref<2x8x3x8xf32>) -> ()
  // CHECK: linattn.chunk.update keys(%{{.+}}) values(%{{.+}}) decay(%{{.+}}) value_decay(%{{.+}}) into(%{{.+}}) : {{.*}} -> ()
  linattn.chunk.update keys(%k) values(%v) decay(%g) value_decay(%h) into(%s)
    : (memref<2x4x3x8xf32>, memref<2x4x3x5xf32>, memref<2x4x3x8xf32>, memref<2x4x3x5xf32>, memref<2x4x8x5xf32>) -> ()
  // CHECK: linattn.chunk.update decay(%{{.+}}) into(%{{.+}}) :
  linattn.chunk.update decay(%g) into(%s) : (memref<2x4x3x8xf32>, memref<2x4x8x5xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @summands
func.func @summands(%q: memref<1x1x16x32xf32>, %v: memref<1x1x16x16xf32>, %p: memref<1x1x16x16xf32>, %s: memref<1x1x32x16xf32>) {
  // CHECK: linattn.chunk.scores %{{.+}}, %{{.+}} into(%{{.+}}) {strict, summands = array<i64: 1, 2>} :
  linattn.chunk.scores %q, %q into(%p) {strict, summands = array<i64: 1, 2>} : (memref<1x1x16x32xf32>, memref<1x1x16x32xf32>, memref<1x1x16x16xf32>) -> ()
  // CHECK: linattn.chunk.read %{{.+}}, %{{.+}} scores(%{{.+}}) values(%{{.+}}) into(%{{.+}}) {summands = array<i64: 1, 2, 2, 1>} :
  linattn.chunk.read %q, %s scores(%p) values(%v) into(%v) {summands = array<i64: 1, 2, 2, 1>}
    : (memref<1x1x16x32xf32>, memref<1x1x32x16xf32>, memref<1x1x16x16xf32>, memref<1x1x16x16xf32>, memref<1x1x16x16xf32>) -> ()
  // CHECK: linattn.chunk.update keys(%{{.+}}) values(%{{.+}}) into(%{{.+}}) {summands = array<i64: 3, 1>} :
  linattn.chunk.update keys(%q) values(%v) into(%s) {summands = array<i64: 3, 1>} : (memref<1x1x16x32xf32>, memref<1x1x16x16xf32>, memref<1x1x32x16xf32>) -> ()
  return
}
