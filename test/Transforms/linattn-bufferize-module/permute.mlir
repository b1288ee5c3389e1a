// RUN: linattn-opt %s --linattn-bufferize-module | FileCheck %s

// A view: no element moves.

// CHECK-LABEL: func.func @view
// CHECK-SAME: (%[[X:.+]]: memref<?x?x8x64xf32, strided<[?, ?, ?, 1], offset: ?>>)
func.func @view(%x: tensor<?x?x8x64xf32>) -> f32 {
  // CHECK-NOT: memref.alloc
  // CHECK: %[[V:.+]] = memref.transpose %[[X]] (d0, d1, d2, d3) -> (d0, d2, d1, d3) : memref<?x?x8x64xf32, strided<[?, ?, ?, 1], offset: ?>> to memref<?x8x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>
  // CHECK: memref.load %[[V]]
  %c0 = arith.constant 0 : index
  %p = linattn.permute %x [0, 2, 1, 3] : tensor<?x?x8x64xf32> to tensor<?x8x?x64xf32>
  %e = tensor.extract %p[%c0, %c0, %c0, %c0] : tensor<?x8x?x64xf32>
  return %e : f32
}

// A buffer that is read through the view later is copied before it is overwritten.

// CHECK-LABEL: func.func @conflict
func.func @conflict(%v: f32) -> (f32, tensor<4x4xf32>) {
  // CHECK: %[[A:.+]] = memref.alloc
  // CHECK: linalg.fill {{.*}} outs(%[[A]]
  // CHECK: %[[V:.+]] = memref.transpose %[[A]]
  // CHECK: %[[B:.+]] = memref.alloc
  // CHECK: memref.copy %[[V]], %[[B]]
  // CHECK: memref.store %{{.+}}, %[[A]]
  // CHECK: memref.load %[[B]]
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<4x4xf32>
  %x = linalg.fill ins(%v : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %p = linattn.permute %x [1, 0] : tensor<4x4xf32> to tensor<4x4xf32>
  %y = tensor.insert %v into %x[%c0, %c1] : tensor<4x4xf32>
  %r = tensor.extract %p[%c1, %c0] : tensor<4x4xf32>
  return %r, %y : f32, tensor<4x4xf32>
}
