// RUN: linattn-opt %s --linattn-reassociate=mode=always | FileCheck %s
// RUN: linattn-opt %s --linattn-reassociate=mode=always | linattn-run - --all --open-size=1,3,5 --compare=%s
// RUN: linattn-opt %s --linattn-reassociate | linattn-run - --all --open-size=1,3,33 --compare=%s

// Two chained contractions, (AB)C and A(BC).

// CHECK-LABEL: func.func @matmul
// CHECK-SAME: (%[[A:.+]]: tensor<9x2xf32>, %[[B:.+]]: tensor<2x9xf32>, %[[C:.+]]: tensor<9x3xf32>, %[[D:.+]]: tensor<9x3xf32>)
// CHECK: %[[BC:.+]] = linalg.generic {{.*}} ins(%[[B]], %[[C]] :
// CHECK: linalg.generic {{.*}} ins(%[[A]], %[[BC]] : {{.*}} outs(%[[D]] :
func.func @matmul(%a: tensor<9x2xf32>, %b: tensor<2x9xf32>, %c: tensor<9x3xf32>, %d: tensor<9x3xf32>) -> tensor<9x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<9x9xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<9x9xf32>) -> tensor<9x9xf32>
  %ab = linalg.matmul ins(%a, %b : tensor<9x2xf32>, tensor<2x9xf32>) outs(%z : tensor<9x9xf32>) -> tensor<9x9xf32>
  %abc = linalg.matmul ins(%ab, %c : tensor<9x9xf32>, tensor<9x3xf32>) outs(%d : tensor<9x3xf32>) -> tensor<9x3xf32>
  return %abc : tensor<9x3xf32>
}

// The product is the second factor: A(BC) and (AB)C.

// CHECK-LABEL: func.func @right
// CHECK-SAME: (%[[A:.+]]: tensor<3x9xf32>, %[[B:.+]]: tensor<9x2xf32>, %[[C:.+]]: tensor<2x9xf32>,
// CHECK: linalg.generic {{.*}} ins(%[[B]], %[[A]] :
func.func @right(%a: tensor<3x9xf32>, %b: tensor<9x2xf32>, %c: tensor<2x9xf32>, %d: tensor<3x9xf32>) -> tensor<3x9xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<9x9xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<9x9xf32>) -> tensor<9x9xf32>
  %bc = linalg.matmul ins(%b, %c : tensor<9x2xf32>, tensor<2x9xf32>) outs(%z : tensor<9x9xf32>) -> tensor<9x9xf32>
  %abc = linalg.matmul ins(%a, %bc : tensor<3x9xf32>, tensor<9x9xf32>) outs(%d : tensor<3x9xf32>) -> tensor<3x9xf32>
  return %abc : tensor<3x9xf32>
}

// CHECK-LABEL: func.func @dynamic
// CHECK-SAME: (%[[A:.+]]: tensor<?x2xf32>, %[[B:.+]]: tensor<2x?xf32>, %[[C:.+]]: tensor<?x3xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[B]], %[[C]] :
func.func @dynamic(%a: tensor<?x2xf32>, %b: tensor<2x?xf32>, %c: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x2xf32>
  %n = tensor.dim %b, %c1 : tensor<2x?xf32>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %ab = linalg.matmul ins(%a, %b : tensor<?x2xf32>, tensor<2x?xf32>) outs(%z : tensor<?x?xf32>) -> tensor<?x?xf32>
  %f = tensor.empty(%m) : tensor<?x3xf32>
  %y = linalg.fill ins(%zero : f32) outs(%f : tensor<?x3xf32>) -> tensor<?x3xf32>
  %abc = linalg.matmul ins(%ab, %c : tensor<?x?xf32>, tensor<?x3xf32>) outs(%y : tensor<?x3xf32>) -> tensor<?x3xf32>
  return %abc : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @batch
// CHECK-SAME: (%[[A:.+]]: tensor<3x7x2xf32>, %[[B:.+]]: tensor<3x2x9xf32>, %[[C:.+]]: tensor<3x9x3xf32>
// CHECK: linalg.generic {{.*}} ins(%[[B]], %[[C]] :
func.func @batch(%a: tensor<3x7x2xf32>, %b: tensor<3x2x9xf32>, %c: tensor<3x9x3xf32>, %d: tensor<3x7x3xf32>) -> tensor<3x7x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x7x9xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<3x7x9xf32>) -> tensor<3x7x9xf32>
  %ab = linalg.batch_matmul ins(%a, %b : tensor<3x7x2xf32>, tensor<3x2x9xf32>) outs(%z : tensor<3x7x9xf32>) -> tensor<3x7x9xf32>
  %abc = linalg.batch_matmul ins(%ab, %c : tensor<3x7x9xf32>, tensor<3x9x3xf32>) outs(%d : tensor<3x7x3xf32>) -> tensor<3x7x3xf32>
  return %abc : tensor<3x7x3xf32>
}

// QKᵀ with K as it lies in memory, f64.

// CHECK-LABEL: func.func @transposed
// CHECK-SAME: (%[[A:.+]]: tensor<?x7x2xf64>, %[[B:.+]]: tensor<?x9x2xf64>, %[[C:.+]]: tensor<?x9x3xf64>
// CHECK: linalg.generic {{.*}} ins(%[[B]], %[[C]] :
func.func @transposed(%a: tensor<?x7x2xf64>, %b: tensor<?x9x2xf64>, %c: tensor<?x9x3xf64>, %d: tensor<?x7x3xf64>) -> tensor<?x7x3xf64> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f64
  %n = tensor.dim %a, %c0 : tensor<?x7x2xf64>
  %e = tensor.empty(%n) : tensor<?x7x9xf64>
  %z = linalg.fill ins(%zero : f64) outs(%e : tensor<?x7x9xf64>) -> tensor<?x7x9xf64>
  %ab = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
    ins(%a, %b : tensor<?x7x2xf64>, tensor<?x9x2xf64>) outs(%z : tensor<?x7x9xf64>) -> tensor<?x7x9xf64>
  %abc = linalg.batch_matmul ins(%ab, %c : tensor<?x7x9xf64>, tensor<?x9x3xf64>) outs(%d : tensor<?x7x3xf64>) -> tensor<?x7x3xf64>
  return %abc : tensor<?x7x3xf64>
}

// A generic contraction over two dimensions.

// CHECK-LABEL: func.func @generic
// CHECK: linalg.generic {{.*}} ins(%arg1, %arg2 :
func.func @generic(%a: tensor<5x2x3xf32>, %b: tensor<2x3x7xf32>, %c: tensor<7x1xf32>, %d: tensor<5x1xf32>) -> tensor<5x1xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x7xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<5x7xf32>) -> tensor<5x7xf32>
  %ab = linalg.generic {indexing_maps = [affine_map<(m, n, i, j) -> (m, i, j)>, affine_map<(m, n, i, j) -> (i, j, n)>, affine_map<(m, n, i, j) -> (m, n)>],
                        iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
    ins(%a, %b : tensor<5x2x3xf32>, tensor<2x3x7xf32>) outs(%z : tensor<5x7xf32>) {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<5x7xf32>
  %abc = linalg.matmul ins(%ab, %c : tensor<5x7xf32>, tensor<7x1xf32>) outs(%d : tensor<5x1xf32>) -> tensor<5x1xf32>
  return %abc : tensor<5x1xf32>
}
