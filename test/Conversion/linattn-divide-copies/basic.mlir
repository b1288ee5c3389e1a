// RUN: linattn-opt %s --linattn-divide-copies | FileCheck %s

// Each task copies its part, unless both are the same memory.

// CHECK-LABEL: func.func @guarded(
// CHECK-SAME:    %[[FROM:[a-z0-9]+]]: memref<2x8x4x4xf32>, %[[TO:[a-z0-9]+]]: memref<2x8x4x4xf32>, %[[DIFFER:[a-z0-9]+]]: i1
// CHECK-NEXT:    %[[ZERO:.+]] = arith.constant
// CHECK-NEXT:    scf.forall (%[[B:.+]], %[[H:.+]]) in (2, 8)
// CHECK-NEXT:      %[[OWN:.+]] = memref.subview %[[TO]][%[[B]], %[[H]], 0, 0] [1, 1, 4, 4]
// CHECK-NEXT:      scf.if %[[DIFFER]] {
// CHECK-NEXT:        %[[PART:.+]] = memref.subview %[[FROM]][%[[B]], %[[H]], 0, 0] [1, 1, 4, 4]
// CHECK-NEXT:        linalg.copy ins(%[[PART]] : {{.+}}) outs(%[[OWN]] :
// CHECK-NEXT:      }
// CHECK-NEXT:      linalg.fill
func.func @guarded(%from: memref<2x8x4x4xf32>, %to: memref<2x8x4x4xf32>, %differ: i1) {
  %zero = arith.constant 0.0 : f32
  scf.if %differ {
    linalg.copy ins(%from : memref<2x8x4x4xf32>) outs(%to : memref<2x8x4x4xf32>)
  }
  scf.forall (%b, %h) in (2, 8) {
    %own = memref.subview %to[%b, %h, 0, 0] [1, 1, 4, 4] [1, 1, 1, 1] : memref<2x8x4x4xf32> to memref<1x1x4x4xf32, strided<[128, 16, 4, 1], offset: ?>>
    linalg.fill ins(%zero : f32) outs(%own : memref<1x1x4x4xf32, strided<[128, 16, 4, 1], offset: ?>>)
  }
  return
}

// Sizes of the source or the target, and memory of the function.

// CHECK-LABEL: func.func @dynamic(
// CHECK:         %[[TO:.+]] = memref.alloc
// CHECK-NEXT:    scf.forall (%[[B:.+]]) in
// CHECK-NEXT:      %[[OWN:.+]] = memref.subview %[[TO]][%[[B]], 0, 0]
// CHECK-NEXT:      %[[PART:.+]] = memref.subview %{{.+}}[%[[B]], 0, 0]
// CHECK-NEXT:      linalg.copy ins(%[[PART]] : {{.+}}) outs(%[[OWN]] :
func.func @dynamic(%from: memref<?x4x?xf32>) -> memref<?x4x?xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %n = memref.dim %from, %c0 : memref<?x4x?xf32>
  %m = memref.dim %from, %c2 : memref<?x4x?xf32>
  %to = memref.alloc(%n, %m) : memref<?x4x?xf32>
  memref.copy %from, %to : memref<?x4x?xf32> to memref<?x4x?xf32>
  scf.forall (%b) in (%n) {
    %own = memref.subview %to[%b, 0, 0] [1, 4, %m] [1, 1, 1] : memref<?x4x?xf32> to memref<1x4x?xf32, strided<[?, ?, 1], offset: ?>>
    linalg.fill ins(%zero : f32) outs(%own : memref<1x4x?xf32, strided<[?, ?, 1], offset: ?>>)
  }
  return %to : memref<?x4x?xf32>
}
