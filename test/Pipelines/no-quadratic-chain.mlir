// RUN: linattn-opt %s --linattn-reassociate --canonicalize | FileCheck %s --implicit-check-not=96x96
// RUN: linattn-opt %s --linattn-optimization-pipeline --linattn-bufferize-pipeline | FileCheck %s --check-prefix=BUFFERS --implicit-check-not=96x96

// The same from plain linalg, whose N×N product is in the source.

// CHECK-LABEL: func.func @chain
// CHECK-SAME: (%[[Q:.+]]: tensor<96x16xf32>, %[[K:.+]]: tensor<16x96xf32>, %[[V:.+]]: tensor<96x32xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[K]], %[[V]] :
// CHECK: linalg.generic
// BUFFERS-LABEL: func.func @chain
// BUFFERS: memref.alloc() {{.*}} : memref<16x32xf32>
func.func @chain(%q: tensor<96x16xf32>, %k: tensor<16x96xf32>, %v: tensor<96x32xf32>) -> tensor<96x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<96x96xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<96x96xf32>) -> tensor<96x96xf32>
  %qk = linalg.matmul ins(%q, %k : tensor<96x16xf32>, tensor<16x96xf32>) outs(%z : tensor<96x96xf32>) -> tensor<96x96xf32>
  %f = tensor.empty() : tensor<96x32xf32>
  %y = linalg.fill ins(%zero : f32) outs(%f : tensor<96x32xf32>) -> tensor<96x32xf32>
  %o = linalg.matmul ins(%qk, %v : tensor<96x96xf32>, tensor<96x32xf32>) outs(%y : tensor<96x32xf32>) -> tensor<96x32xf32>
  return %o : tensor<96x32xf32>
}
