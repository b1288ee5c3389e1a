// RUN: linattn-opt %s --linattn-prepare-entry --split-input-file | FileCheck %s
// RUN: linattn-opt %s --linattn-prepare-entry='innermost=dynamic' --split-input-file | FileCheck %s --check-prefix=DYNAMIC

// CHECK-LABEL: func.func @twice(
// CHECK-SAME:    %[[X:.+]]: tensor<2x?xf32> {bufferization.writable = false},
// CHECK-SAME:    %[[R:.+]]: memref<2x?xf32, strided<[?, 1], offset: ?>>)
// CHECK:         %[[SUM:.+]] = linalg.add ins(%[[X]], %[[X]]
// CHECK:         bufferization.materialize_in_destination %[[SUM]] in restrict writable %[[R]]
// CHECK-NEXT:    return

// CHECK-LABEL: func.func @twice__shapes(
// CHECK-SAME:    %[[X:.+]]: tensor<2x?xf32> {bufferization.writable = false}, %[[S:.+]]: memref<2xi64>) attributes {linattn.checks = []} {
// CHECK-DAG:     %[[C0:.+]] = arith.constant 0 : index
// CHECK-DAG:     %[[C1:.+]] = arith.constant 1 : index
// CHECK-DAG:     %[[TWO:.+]] = arith.constant 2 : i64
// CHECK-NOT:     linalg.add
// CHECK:         %[[DIM:.+]] = tensor.dim %[[X]], %[[C1]]
// CHECK:         memref.store %[[TWO]], %[[S]][%[[C0]]]
// CHECK:         %[[CAST:.+]] = arith.index_cast %[[DIM]] : index to i64
// CHECK:         memref.store %[[CAST]], %[[S]][%[[C1]]]
// CHECK-NEXT:    return

// DYNAMIC-LABEL: func.func @twice(
// DYNAMIC-SAME:    memref<2x?xf32, strided<[?, ?], offset: ?>>)
func.func @twice(%x: tensor<2x?xf32>) -> tensor<2x?xf32> {
  %0 = linalg.add ins(%x, %x : tensor<2x?xf32>, tensor<2x?xf32>) outs(%x : tensor<2x?xf32>) -> tensor<2x?xf32>
  return %0 : tensor<2x?xf32>
}

// -----

// Scalars are results too, and a shape may depend on data.

// CHECK-LABEL: func.func @scalars(
// CHECK-SAME:    %[[X:[^:]+]]: f32, %[[N:[^:]+]]: index,
// CHECK-SAME:    %[[R0:.+]]: memref<f32, strided<[], offset: ?>>, %[[R1:.+]]: memref<?xf32, strided<[1], offset: ?>>)
// CHECK:         memref.store %[[X]], %[[R0]][]
// CHECK:         bufferization.materialize_in_destination %{{.+}} in restrict writable %[[R1]]

// CHECK-LABEL: func.func @scalars__shapes(
// CHECK-SAME:    %{{[^:]+}}: f32, %[[N:[^:]+]]: index, %[[S:.+]]: memref<1xi64>)
// CHECK-NOT:     tensor.splat
// CHECK:         %[[CAST:.+]] = arith.index_cast %[[N]] : index to i64
// CHECK:         memref.store %[[CAST]], %[[S]]
func.func @scalars(%x: f32, %n: index) -> (f32, tensor<?xf32>) {
  %0 = tensor.splat %x[%n] : tensor<?xf32>
  return %x, %0 : f32, tensor<?xf32>
}

// -----

// Private functions keep their signature; several returns are all rewritten.

// CHECK-LABEL: func.func private @helper(%{{.+}}: tensor<4xf32>) -> tensor<4xf32>
func.func private @helper(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// CHECK-LABEL: func.func @branches(
// CHECK-COUNT-2: bufferization.materialize_in_destination
// CHECK-LABEL: func.func @branches__shapes(
func.func @branches(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  cf.cond_br %c, ^bb1, ^bb2
^bb1:
  %0 = call @helper(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
^bb2:
  return %x : tensor<4xf32>
}
