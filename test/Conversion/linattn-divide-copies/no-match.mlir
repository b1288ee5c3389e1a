// RUN: linattn-opt %s --linattn-divide-copies | FileCheck %s

// Copies stay whole where tasks leave something out,

// CHECK-LABEL: func.func @rest(
// CHECK:         linalg.copy {{.+}}memref<4x4xf32>
// CHECK:         scf.forall
func.func @rest(%from: memref<4x4xf32>, %to: memref<4x4xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.copy ins(%from : memref<4x4xf32>) outs(%to : memref<4x4xf32>)
  scf.forall (%b) in (3) {
    %own = memref.subview %to[%b, 0] [1, 4] [1, 1] : memref<4x4xf32> to memref<1x4xf32, strided<[4, 1], offset: ?>>
    linalg.fill ins(%zero : f32) outs(%own : memref<1x4xf32, strided<[4, 1], offset: ?>>)
  }
  return
}

// CHECK-LABEL: func.func @columns(
// CHECK:         linalg.copy {{.+}}memref<4x4xf32>
// CHECK:         scf.forall
func.func @columns(%from: memref<4x4xf32>, %to: memref<4x4xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.copy ins(%from : memref<4x4xf32>) outs(%to : memref<4x4xf32>)
  scf.forall (%b) in (4) {
    %own = memref.subview %to[%b, 1] [1, 3] [1, 1] : memref<4x4xf32> to memref<1x3xf32, strided<[4, 1], offset: ?>>
    linalg.fill ins(%zero : f32) outs(%own : memref<1x3xf32, strided<[4, 1], offset: ?>>)
  }
  return
}

// start or step elsewhere,

// CHECK-LABEL: func.func @steps(
// CHECK:         linalg.copy {{.+}}memref<4x4xf32>
// CHECK:         scf.forall
func.func @steps(%from: memref<4x4xf32>, %to: memref<4x4xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.copy ins(%from : memref<4x4xf32>) outs(%to : memref<4x4xf32>)
  scf.forall (%b) = (0) to (4) step (2) {
    %own = memref.subview %to[%b, 0] [1, 4] [1, 1] : memref<4x4xf32> to memref<1x4xf32, strided<[4, 1], offset: ?>>
    linalg.fill ins(%zero : f32) outs(%own : memref<1x4xf32, strided<[4, 1], offset: ?>>)
  }
  return
}

// have two views, or one deeper within,

// CHECK-LABEL: func.func @twice(
// CHECK:         linalg.copy {{.+}}memref<4x4xf32>
// CHECK:         scf.forall
func.func @twice(%from: memref<4x4xf32>, %to: memref<4x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  linalg.copy ins(%from : memref<4x4xf32>) outs(%to : memref<4x4xf32>)
  scf.forall (%b) in (4) {
    %own = memref.subview %to[%b, 0] [1, 4] [1, 1] : memref<4x4xf32> to memref<1x4xf32, strided<[4, 1], offset: ?>>
    linalg.fill ins(%zero : f32) outs(%own : memref<1x4xf32, strided<[4, 1], offset: ?>>)
    memref.store %zero, %to[%b, %c0] : memref<4x4xf32>
  }
  return
}

// CHECK-LABEL: func.func @within(
// CHECK:         linalg.copy {{.+}}memref<4x4xf32>
// CHECK:         scf.forall
func.func @within(%from: memref<4x4xf32>, %to: memref<4x4xf32>, %some: i1) {
  %zero = arith.constant 0.0 : f32
  linalg.copy ins(%from : memref<4x4xf32>) outs(%to : memref<4x4xf32>)
  scf.forall (%b) in (4) {
    scf.if %some {
      %own = memref.subview %to[%b, 0] [1, 4] [1, 1] : memref<4x4xf32> to memref<1x4xf32, strided<[4, 1], offset: ?>>
      linalg.fill ins(%zero : f32) outs(%own : memref<1x4xf32, strided<[4, 1], offset: ?>>)
    }
  }
  return
}

// read the source,

// CHECK-LABEL: func.func @source(
// CHECK:         linalg.copy {{.+}}memref<4x4xf32>
// CHECK:         scf.forall
func.func @source(%from: memref<4x4xf32>, %to: memref<4x4xf32>) {
  %c0 = arith.constant 0 : index
  linalg.copy ins(%from : memref<4x4xf32>) outs(%to : memref<4x4xf32>)
  scf.forall (%b) in (4) {
    %own = memref.subview %to[%b, 0] [1, 4] [1, 1] : memref<4x4xf32> to memref<1x4xf32, strided<[4, 1], offset: ?>>
    %first = memref.load %from[%c0, %c0] : memref<4x4xf32>
    linalg.fill ins(%first : f32) outs(%own : memref<1x4xf32, strided<[4, 1], offset: ?>>)
  }
  return
}

// or where something else reads the copy before.

// CHECK-LABEL: func.func @between(
// CHECK:         linalg.copy {{.+}}memref<4x4xf32>
// CHECK:         memref.load
// CHECK:         scf.forall
func.func @between(%from: memref<4x4xf32>, %to: memref<4x4xf32>) -> f32 {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  linalg.copy ins(%from : memref<4x4xf32>) outs(%to : memref<4x4xf32>)
  %first = memref.load %to[%c0, %c0] : memref<4x4xf32>
  scf.forall (%b) in (4) {
    %own = memref.subview %to[%b, 0] [1, 4] [1, 1] : memref<4x4xf32> to memref<1x4xf32, strided<[4, 1], offset: ?>>
    linalg.fill ins(%zero : f32) outs(%own : memref<1x4xf32, strided<[4, 1], offset: ?>>)
  }
  return %first : f32
}
