// RUN: linattn-opt %s --linattn-bufferize-pipeline | FileCheck %s

// Memory is freed behind its last use, so that later allocations may have it.

// CHECK-LABEL: func.func @chain(
// CHECK: %[[A:.+]] = memref.alloc(
// CHECK: linalg.exp {{.+}} outs(%[[A]] :
// CHECK: %[[B:.+]] = memref.alloc(
// CHECK: linalg.reduce {{.+}}ins(%[[A]] : {{.+}} outs(%[[B]] :
// CHECK: memref.dealloc %[[A]]
// CHECK: linalg.broadcast
// CHECK: memref.dealloc %[[B]]
func.func @chain(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %m = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%n, %m) : tensor<?x?xf32>
  %0 = linalg.exp ins(%x : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %e1 = tensor.empty(%n) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<?xf32>) -> tensor<?xf32>
  %1 = linalg.reduce { arith.addf } ins(%0 : tensor<?x?xf32>) outs(%f : tensor<?xf32>) dimensions = [1]
  %2 = linalg.broadcast ins(%1 : tensor<?xf32>) outs(%e : tensor<?x?xf32>) dimensions = [1]
  return %2 : tensor<?x?xf32>
}

// A view keeps its memory, whatever its strides.

// CHECK-LABEL: func.func @view(
// CHECK: %[[A:.+]] = memref.alloc(
// CHECK: %[[V:.+]] = memref.transpose %[[A]]
// CHECK: linalg.exp ins(%[[V]] :
// CHECK: memref.dealloc %[[A]]
func.func @view(%x: tensor<?x4xf32>) -> tensor<4x?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %0 = linalg.exp ins(%x : tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = linattn.permute %0 [1, 0] : tensor<?x4xf32> to tensor<4x?xf32>
  %e1 = tensor.empty(%n) : tensor<4x?xf32>
  %2 = linalg.exp ins(%1 : tensor<4x?xf32>) outs(%e1 : tensor<4x?xf32>) -> tensor<4x?xf32>
  return %2 : tensor<4x?xf32>
}
