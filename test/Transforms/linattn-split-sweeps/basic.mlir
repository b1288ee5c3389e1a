// RUN: linattn-opt %s --linattn-split-sweeps --split-input-file | FileCheck %s
// RUN: linattn-opt %s --linattn-split-sweeps --split-input-file --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// The second read is that of the transposed state: a decay per channel becomes one of values.

// REMARK: remark: [Passed] split-sweeps {{.*}}"its two reads are scans of their own"
// CHECK-LABEL: func.func @channels(
// CHECK-SAME:    %[[Q:[^:]+]]: tensor<1x2x?x4xf32>, %[[K:[^:]+]]: tensor<1x2x?x4xf32>, %[[V:[^:]+]]: tensor<1x2x?x3xf32>, %[[G:[^:]+]]: tensor<1x2x?x4xf32>, %[[X:[^:]+]]: tensor<1x2x?x3xf32>, %[[O:[^:]+]]: {{.*}}, %[[P:[^:]+]]: {{.*}}, %[[S:[^:]+]]: tensor<1x2x4x3xf32>)
// CHECK-DAG:     %[[R:.+]]:2 = linattn.scan %[[Q]], %[[K]], %[[V]] decay(%[[G]]) into(%[[O]]) init(%[[S]]) {reverse, scale = 5.000000e-01 : f64}
// CHECK-DAG:     %[[ST:.+]] = linalg.transpose ins(%[[S]] : tensor<1x2x4x3xf32>) outs(%{{.+}} : tensor<1x2x3x4xf32>) permutation = [0, 1, 3, 2]
// CHECK-DAG:     %[[U:.+]]:2 = linattn.scan %[[X]], %[[V]], %[[K]] value_decay(%[[G]]) into(%[[P]]) init(%[[ST]]) {reverse, scale = 5.000000e-01 : f64}
// CHECK:         return %[[R]]#0, %[[U]]#0, %[[R]]#1
func.func @channels(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %g: tensor<1x2x?x4xf32>, %x: tensor<1x2x?x3xf32>, %o: tensor<1x2x?x3xf32>, %p: tensor<1x2x?x4xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>) {
  %r:3 = linattn.sweep %q, %k, %v decay(%g) value_query(%x) into(%o, %p) init(%s) {reverse, scale = 0.5}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>
}

// -----

// Two kinds of writes are two scans. The read of the transition is a scan of its own …

// CHECK-LABEL: func.func @transition(
// CHECK:         %[[R:.+]]:2 = linattn.scan %[[Q:[^,]+]], %[[K:[^,]+]], %[[V:[^ ]+]] decay(%[[G:[^)]+]]) a(%[[A:[^)]+]]) b(%[[B:[^)]+]]) update(dplr) transition(before)
// CHECK:         %[[FIRST:.+]]:2 = linattn.scan %[[X:[^,]+]], %[[V]], %[[K]] decay(%[[G]]) into
// CHECK:         %[[READ:.+]]:2 = linattn.scan %[[A]], %[[K]], %[[V]] decay(%[[G]]) a(%[[A]]) b(%[[B]]) update(dplr) readout(exclusive) transition(before)
// CHECK:         %[[SECOND:.+]]:2 = linattn.scan %[[X]], %[[READ]]#0, %[[B]] decay(%[[G]]) into
// CHECK:         linalg.add ins(%[[FIRST]]#0, %[[SECOND]]#0
func.func @transition(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %g: tensor<1x2x?xf32>, %a: tensor<1x2x?x4xf32>, %b: tensor<1x2x?x4xf32>, %x: tensor<1x2x?x3xf32>, %o: tensor<1x2x?x3xf32>, %p: tensor<1x2x?x4xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>) {
  %r:3 = linattn.sweep %q, %k, %v decay(%g) a(%a) b(%b) value_query(%x) into(%o, %p) init(%s)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>
}

// -----

// … unless the query is a, and sees what a sees. A state of zeros is not transposed.

// CHECK-LABEL: func.func @shared(
// CHECK-NOT:     linalg.transpose
// CHECK:         %[[R:.+]]:2 = linattn.scan %[[A:[^,]+]], %[[K:[^,]+]], %{{.+}} a(%[[A]]) b(%[[B:[^)]+]]) update(dplr) readout(exclusive) transition(before)
// CHECK:         linattn.scan %[[X:[^,]+]], %{{.+}}, %[[K]] readout(exclusive) into
// CHECK:         linattn.scan %[[X]], %[[R]]#0, %[[B]] readout(exclusive) into
// CHECK-NOT:     linattn.scan
func.func @shared(%k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %a: tensor<1x2x?x4xf32>, %b: tensor<1x2x?x4xf32>, %x: tensor<1x2x?x3xf32>, %o: tensor<1x2x?x3xf32>, %p: tensor<1x2x?x4xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %z = linalg.fill ins(%zero : f32) outs(%s : tensor<1x2x4x3xf32>) -> tensor<1x2x4x3xf32>
  %r:3 = linattn.sweep %a, %k, %v a(%a) b(%b) value_query(%x) readout(exclusive) into(%o, %p) init(%z)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>
}

// -----

// On buffers nothing is left to split.

// CHECK-LABEL: func.func @buffers(
// CHECK:         linattn.sweep
func.func @buffers(%q: memref<1x2x?x4xf32>, %k: memref<1x2x?x4xf32>, %v: memref<1x2x?x3xf32>, %x: memref<1x2x?x3xf32>, %o: memref<1x2x?x3xf32>, %p: memref<1x2x?x4xf32>, %s: memref<1x2x4x3xf32>) {
  linattn.sweep %q, %k, %v value_query(%x) into(%o, %p) init(%s)
    : (memref<1x2x?x4xf32>, memref<1x2x?x4xf32>, memref<1x2x?x3xf32>, memref<1x2x?x3xf32>, memref<1x2x?x3xf32>, memref<1x2x?x4xf32>, memref<1x2x4x3xf32>) -> ()
  return
}

// -----

// A written key meets the decay of its token before both scans.

// CHECK-LABEL: func.func @writes(
// CHECK-SAME:    %[[K:[^:]+]]: tensor<1x2x?x4xf32>, %[[V:[^:]+]]: tensor<1x2x?x3xf32>, %[[G:[^:]+]]: tensor<1x2x?xf32>
// CHECK:         %[[W:.+]] = linalg.generic {{.*}} ins(%[[K]], %[[G]] :
// CHECK:           math.exp
// CHECK:         %[[R:.+]]:2 = linattn.scan %[[K]], %[[W]], %[[V]] decay(%[[G]])
// CHECK:         linattn.scan %[[V]], %[[V]], %[[W]] decay(%[[G]])
func.func @writes(%k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %g: tensor<1x2x?xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>) {
  %r:3 = linattn.sweep %k, %k, %v decay(%g) value_query(%v) into(%v, %k) init(%s) {decay_writes}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>
}
