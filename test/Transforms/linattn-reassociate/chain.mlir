// RUN: linattn-opt %s --linattn-reassociate --canonicalize --split-input-file | FileCheck %s
// RUN: linattn-opt %s --linattn-reassociate --split-input-file --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// Two products in linalg, the first used only by the second.

// CHECK-LABEL: func.func @matmul(
// CHECK-SAME:    %[[A:[^:]+]]: tensor<96x8xf32>, %[[B:[^:]+]]: tensor<8x96xf32>, %[[C:[^:]+]]: tensor<96x4xf32>, %[[D:[^:]+]]: tensor<96x4xf32>
// CHECK-NOT:     96x96
// CHECK:         %[[ZERO:.+]] = linalg.fill {{.*}} -> tensor<8x4xf32>
// CHECK:         %[[BC:.+]] = linalg.generic {{.*}} ins(%[[B]], %[[C]] : {{.*}}) outs(%[[ZERO]] :
// CHECK:         %[[R:.+]] = linalg.generic {{.*}} ins(%[[A]], %[[BC]] : {{.*}}) outs(%[[D]] :
// CHECK:         return %[[R]]
// REMARK:        remark: [Passed] reassociate {{.*}}"(AB)C becomes A(BC)"
func.func @matmul(%a: tensor<96x8xf32>, %b: tensor<8x96xf32>, %c: tensor<96x4xf32>, %d: tensor<96x4xf32>) -> tensor<96x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<96x96xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<96x96xf32>) -> tensor<96x96xf32>
  %ab = linalg.matmul ins(%a, %b : tensor<96x8xf32>, tensor<8x96xf32>) outs(%z : tensor<96x96xf32>) -> tensor<96x96xf32>
  %abc = linalg.matmul ins(%ab, %c : tensor<96x96xf32>, tensor<96x4xf32>) outs(%d : tensor<96x4xf32>) -> tensor<96x4xf32>
  return %abc : tensor<96x4xf32>
}

// -----

// CHECK-LABEL: func.func @dynamic(
// CHECK:         %[[CHEAPER:.+]] = arith.cmpi sgt
// CHECK:         scf.if %[[CHEAPER]]
// CHECK:           linalg.generic
// CHECK:           linalg.generic
// CHECK:         } else {
// CHECK:           linalg.matmul
// CHECK:           linalg.matmul
// REMARK:        remark: [Passed] reassociate {{.*}}"(AB)C becomes A(BC) at run time, where it is cheaper"
func.func @dynamic(%a: tensor<?x8xf32>, %b: tensor<8x?xf32>, %c: tensor<?x4xf32>, %z: tensor<?x?xf32>, %d: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %zero = arith.constant 0.0 : f32
  %y = linalg.fill ins(%zero : f32) outs(%z : tensor<?x?xf32>) -> tensor<?x?xf32>
  %ab = linalg.matmul ins(%a, %b : tensor<?x8xf32>, tensor<8x?xf32>) outs(%y : tensor<?x?xf32>) -> tensor<?x?xf32>
  %abc = linalg.matmul ins(%ab, %c : tensor<?x?xf32>, tensor<?x4xf32>) outs(%d : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %abc : tensor<?x4xf32>
}

// -----

// CHECK-LABEL: func.func @dearer(
// CHECK-COUNT-2: linalg.matmul
// REMARK:        remark: [Missed] reassociate {{.*}}"(AB)C takes 256 multiply-adds, A(BC) would take 512"
func.func @dearer(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>, %c: tensor<4x8xf32>, %d: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %ab = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs(%z : tensor<4x4xf32>) -> tensor<4x4xf32>
  %abc = linalg.matmul ins(%ab, %c : tensor<4x4xf32>, tensor<4x8xf32>) outs(%d : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %abc : tensor<4x8xf32>
}

// -----

// The product is needed elsewhere, or adds to something, or is of integers.

// CHECK-LABEL: func.func @two_uses(
// CHECK-COUNT-2: linalg.matmul
func.func @two_uses(%a: tensor<96x8xf32>, %b: tensor<8x96xf32>, %c: tensor<96x4xf32>, %d: tensor<96x4xf32>) -> (tensor<96x96xf32>, tensor<96x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<96x96xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<96x96xf32>) -> tensor<96x96xf32>
  %ab = linalg.matmul ins(%a, %b : tensor<96x8xf32>, tensor<8x96xf32>) outs(%z : tensor<96x96xf32>) -> tensor<96x96xf32>
  %abc = linalg.matmul ins(%ab, %c : tensor<96x96xf32>, tensor<96x4xf32>) outs(%d : tensor<96x4xf32>) -> tensor<96x4xf32>
  return %ab, %abc : tensor<96x96xf32>, tensor<96x4xf32>
}

// CHECK-LABEL: func.func @accumulates(
// CHECK-COUNT-2: linalg.matmul
func.func @accumulates(%a: tensor<96x8xf32>, %b: tensor<8x96xf32>, %c: tensor<96x4xf32>, %d: tensor<96x4xf32>, %z: tensor<96x96xf32>) -> tensor<96x4xf32> {
  %ab = linalg.matmul ins(%a, %b : tensor<96x8xf32>, tensor<8x96xf32>) outs(%z : tensor<96x96xf32>) -> tensor<96x96xf32>
  %abc = linalg.matmul ins(%ab, %c : tensor<96x96xf32>, tensor<96x4xf32>) outs(%d : tensor<96x4xf32>) -> tensor<96x4xf32>
  return %abc : tensor<96x4xf32>
}

// CHECK-LABEL: func.func @integers(
// CHECK-COUNT-2: linalg.matmul
func.func @integers(%a: tensor<96x8xi32>, %b: tensor<8x96xi32>, %c: tensor<96x4xi32>, %d: tensor<96x4xi32>) -> tensor<96x4xi32> {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<96x96xi32>
  %z = linalg.fill ins(%zero : i32) outs(%e : tensor<96x96xi32>) -> tensor<96x96xi32>
  %ab = linalg.matmul ins(%a, %b : tensor<96x8xi32>, tensor<8x96xi32>) outs(%z : tensor<96x96xi32>) -> tensor<96x96xi32>
  %abc = linalg.matmul ins(%ab, %c : tensor<96x96xi32>, tensor<96x4xi32>) outs(%d : tensor<96x4xi32>) -> tensor<96x4xi32>
  return %abc : tensor<96x4xi32>
}

// -----

// Twice the same product: the factors need not differ.

// CHECK-LABEL: func.func @square(
// CHECK-COUNT-2: linalg.matmul
func.func @square(%a: tensor<96x8xf32>, %b: tensor<8x96xf32>, %d: tensor<96x96xf32>) -> tensor<96x96xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<96x96xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<96x96xf32>) -> tensor<96x96xf32>
  %ab = linalg.matmul ins(%a, %b : tensor<96x8xf32>, tensor<8x96xf32>) outs(%z : tensor<96x96xf32>) -> tensor<96x96xf32>
  %abab = linalg.matmul ins(%ab, %ab : tensor<96x96xf32>, tensor<96x96xf32>) outs(%d : tensor<96x96xf32>) -> tensor<96x96xf32>
  return %abab : tensor<96x96xf32>
}
