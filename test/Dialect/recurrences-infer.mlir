// RUN: linattn-opt %s --resolve-ranked-shaped-type-result-dims --canonicalize --cse | FileCheck %s

// Results are shaped like their destinations; casts of operands fold into the op.

// CHECK-LABEL: func.func @selective_scan(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x?x8xf32>, %[[A:[a-z0-9]+]]: tensor<8x4xf32>, %[[B:[a-z0-9]+]]: tensor<?x?x4xf32>, %[[O:[a-z0-9]+]]: tensor<?x?x8xf32>, %[[S:[a-z0-9]+]]: tensor<?x8x4xf32>
func.func @selective_scan(%x: tensor<?x?x8xf32>, %a: tensor<8x4xf32>, %b: tensor<?x?x4xf32>, %o: tensor<?x?x8xf32>, %s: tensor<?x8x4xf32>) -> (index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = linattn.selective_scan %x, %x, %a, %b, %b into(%o) init(%s)
    : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<8x4xf32>, tensor<?x?x4xf32>, tensor<?x?x4xf32>, tensor<?x?x8xf32>, tensor<?x8x4xf32>)
    -> (tensor<?x?x8xf32>, tensor<?x8x4xf32>)
  %t = tensor.dim %r#0, %c1 : tensor<?x?x8xf32>
  %n = tensor.dim %r#1, %c0 : tensor<?x8x4xf32>
  // CHECK-DAG: %[[T:.+]] = tensor.dim %[[O]], %c1
  // CHECK-DAG: %[[N:.+]] = tensor.dim %[[S]], %c0
  // CHECK: return %[[T]], %[[N]]
  return %t, %n : index, index
}

// CHECK-LABEL: func.func @diagonal_scan(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x6x8xf32>
// CHECK: linattn.diagonal_scan %[[X]] decay(%{{.+}}) into(%{{.+}}) init(%{{.+}}) : (tensor<2x6x8xf32>,
func.func @diagonal_scan(%x: tensor<2x6x8xf32>, %g: tensor<8xf32>, %o: tensor<?x?x?xf32>, %s: tensor<?x?xf32>) -> (tensor<?x?x?xf32>, tensor<?x?xf32>) {
  %cast = tensor.cast %x : tensor<2x6x8xf32> to tensor<?x?x?xf32>
  %r:2 = linattn.diagonal_scan %cast decay(%g) into(%o) init(%s)
    : (tensor<?x?x?xf32>, tensor<8xf32>, tensor<?x?x?xf32>, tensor<?x?xf32>) -> (tensor<?x?x?xf32>, tensor<?x?xf32>)
  return %r#0, %r#1 : tensor<?x?x?xf32>, tensor<?x?xf32>
}

// Unused, they are gone.

// CHECK-LABEL: func.func @dead(
// CHECK-NOT: linattn
// CHECK: return
func.func @dead(%k: tensor<2x6x8xf32>, %w: tensor<8xf32>, %o: tensor<2x6x8xf32>, %s: tensor<2x3x8xf32>, %q: tensor<1x2x6x8xf32>, %l: tensor<1x2x6x4xf32>, %h: tensor<1x2x4x8x8xf32>) {
  %r:2 = linattn.wkv4 %k, %k decay(%w) bonus(%w) into(%o) init(%s)
    : (tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<2x6x8xf32>, tensor<2x3x8xf32>)
    -> (tensor<2x6x8xf32>, tensor<2x3x8xf32>)
  %p:2 = linattn.log_linear %q, %q, %q levels(%l) into(%q) init(%h)
    : (tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>, tensor<1x2x6x4xf32>, tensor<1x2x6x8xf32>, tensor<1x2x4x8x8xf32>)
    -> (tensor<1x2x6x8xf32>, tensor<1x2x4x8x8xf32>)
  return
}
