// RUN: linattn-opt %s --linattn-instrument-trace | FileCheck %s

// CHECK-DAG: func.func private @linattn_trace_f32(memref<*xi8>, i64, memref<*xf32>)
// CHECK-DAG: func.func private @linattn_trace_bf16(memref<*xi8>, i64, memref<*xbf16>)
// CHECK-DAG: memref.global "private" constant @linattn_trace_label0 : memref<20xi8> = dense<[108, 105, 110,

// Inside a loop over tokens the call says which one; destinations come in order.

// CHECK-LABEL: func.func @scan(
// CHECK-SAME:    %[[O:[^:]+]]: memref<1x1x1x2xbf16>, %[[S:[^:]+]]: memref<1x1x2x2xf32>
// CHECK:         scf.for %[[I:.+]] =
// CHECK-NEXT:      linattn.scan
// CHECK:           %[[LABEL:.+]] = memref.get_global @linattn_trace_label0
// CHECK:           %[[TEXT:.+]] = memref.cast %[[LABEL]] : memref<20xi8> to memref<*xi8>
// CHECK:           %[[TOKEN:.+]] = arith.index_cast %[[I]] : index to i64
// CHECK:           %[[OUT:.+]] = memref.cast %[[O]] : memref<1x1x1x2xbf16> to memref<*xbf16>
// CHECK:           call @linattn_trace_bf16(%[[TEXT]], %[[TOKEN]], %[[OUT]])
// CHECK:           %[[STATE:.+]] = memref.cast %[[S]] : memref<1x1x2x2xf32> to memref<*xf32>
// CHECK:           call @linattn_trace_f32(%{{.+}}, %{{.+}}, %[[STATE]])
func.func @scan(%q: memref<1x1x1x2xbf16>, %o: memref<1x1x1x2xbf16>, %s: memref<1x1x2x2xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    linattn.scan %q, %q, %q into(%o) init(%s)
      : (memref<1x1x1x2xbf16>, memref<1x1x1x2xbf16>, memref<1x1x1x2xbf16>, memref<1x1x1x2xbf16>, memref<1x1x2x2xf32>) -> ()
  }
  return
}

// Fills, integers and tensors are not shown.

// CHECK-LABEL: func.func @silent(
// CHECK-NOT:     call
func.func @silent(%x: memref<4xf32>, %y: memref<4xi32>, %t: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%x : memref<4xf32>)
  linalg.copy ins(%y : memref<4xi32>) outs(%y : memref<4xi32>)
  %r = linalg.exp ins(%t : tensor<4xf32>) outs(%t : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
