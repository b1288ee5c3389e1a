// RUN: linattn-opt %s --linattn-differentiate --canonicalize --cse | FileCheck %s

// The values that a loop carries are recorded, and its iterations are walked from the last one on. The array
// that it only fills is not recorded; of the one that it only slices, the cotangent is added to
// slice by slice.

// CHECK-LABEL: func.func @tokens_vjp(
// CHECK-SAME: %[[X:[^:]+]]: tensor<?x4xf32>, %[[S:[^:]+]]: tensor<4xf32>, %[[DY:[^:]+]]: tensor<?x4xf32>)
// CHECK: %[[RECORD:.+]] = tensor.empty(%{{.+}}) : tensor<?x4xf32>
// CHECK: %[[AGAIN:.+]]:2 = scf.for {{.+}} iter_args(%[[STATE:.+]] = %[[S]], %[[KEPT:.+]] = %[[RECORD]]) -> (tensor<4xf32>, tensor<?x4xf32>)
// CHECK: tensor.insert_slice %[[STATE]] into %[[KEPT]]
// CHECK: scf.for {{.+}} iter_args(%{{.+}}, %{{.+}} = %[[DY]], %[[SUM:.+]] = %{{.+}}) -> (tensor<4xf32>, tensor<?x4xf32>, tensor<?x4xf32>)
// CHECK: tensor.extract_slice %[[AGAIN]]#1
// CHECK: tensor.extract_slice %[[SUM]][{{.+}}] [1, 4] [1, 1]
// CHECK-NEXT: arith.addf
// CHECK-NEXT: tensor.insert_slice %{{.+}} into %[[SUM]]
func.func @tokens(%x: tensor<?x4xf32>, %s: tensor<4xf32>) -> tensor<?x4xf32> attributes {linattn.differentiate = array<i64>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%state = %s, %y = %e) -> (tensor<4xf32>, tensor<?x4xf32>) {
    %xt = tensor.extract_slice %x[%t, 0] [1, 4] [1, 1] : tensor<?x4xf32> to tensor<4xf32>
    %0 = arith.mulf %state, %xt : tensor<4xf32>
    %1 = tensor.insert_slice %0 into %y[%t, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<?x4xf32>
    scf.yield %0, %1 : tensor<4xf32>, tensor<?x4xf32>
  }
  return %r#1 : tensor<?x4xf32>
}

// An output that is computed from what it holds is an input like any other.

// CHECK-LABEL: func.func @in_place_vjp(
// CHECK-SAME: %[[X:[^:]+]]: tensor<4xf32>, %[[Y:[^:]+]]: tensor<4xf32>, %[[D:[^:]+]]: tensor<4xf32>)
// CHECK: linalg.generic {{.+}} ins(%[[X]], %[[Y]], %[[D]]
// CHECK: linalg.generic {{.+}} ins(%[[X]], %[[Y]], %[[D]]
func.func @in_place(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> attributes {linattn.differentiate = array<i64>} {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// An input that is read in groups is repeated, so that its gradient sums over them.

// CHECK-LABEL: func.func @groups_vjp(
// CHECK: tensor.expand_shape {{.+}} output_shape [2, 3]
// CHECK: linalg.generic {{.+}} iterator_types = ["parallel", "reduction"]
func.func @groups(%x: tensor<2xf32>, %y: tensor<6xf32>) -> tensor<6xf32> attributes {linattn.differentiate = array<i64: 0>} {
  %e = tensor.empty() : tensor<6xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i floordiv 3)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x, %y : tensor<2xf32>, tensor<6xf32>) outs(%e : tensor<6xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<6xf32>
  return %r : tensor<6xf32>
}

// Several terms of one sum.

// CHECK-LABEL: func.func @terms_vjp(
// CHECK-SAME: %[[X:[^:]+]]: tensor<3x4xf32>, %[[Y:[^:]+]]: tensor<3x4xf32>, %[[D:[^:]+]]: tensor<3xf32>)
// CHECK: linalg.generic {{.+}} iterator_types = ["parallel", "parallel"]} ins(%[[X]], %[[Y]], %[[D]]
// CHECK: arith.mulf
// CHECK-NOT: tensor.expand_shape
func.func @terms(%x: tensor<3x4xf32>, %y: tensor<3x4xf32>) -> tensor<3xf32> attributes {linattn.differentiate = array<i64>} {
  %zero = arith.constant dense<0.0> : tensor<3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x, %y : tensor<3x4xf32>, tensor<3x4xf32>) outs(%zero : tensor<3xf32>) {
  ^bb0(%a: f32, %b: f32, %old: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %old, %0 : f32
    %2 = arith.addf %a, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// A function of steps has the derivative zero.

// CHECK-LABEL: func.func @steps_vjp(
// CHECK-SAME: %[[X:[^:]+]]: tensor<4xf32>, %[[D:[^:]+]]: tensor<4xf32>)
// CHECK-NEXT: return %[[D]] : tensor<4xf32>
func.func @steps(%x: tensor<4xf32>) -> tensor<4xf32> attributes {linattn.differentiate = array<i64>} {
  %0 = math.floor %x : tensor<4xf32>
  %1 = arith.subf %x, %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// Both branches give the cotangents of what either of them uses.

// CHECK-LABEL: func.func @branches_vjp(
// CHECK-SAME: %[[C:[^:]+]]: i1, %[[X:[^:]+]]: tensor<?xf32>, %[[Y:[^:]+]]: tensor<?xf32>, %[[D:[^:]+]]: tensor<?xf32>)
// CHECK: %[[R:.+]]:2 = scf.if %[[C]] -> (tensor<?xf32>, tensor<?xf32>)
// CHECK-DAG: %[[DX:.+]] = arith.mulf %[[D]], %[[Y]]
// CHECK-DAG: %[[DY:.+]] = arith.mulf %[[D]], %[[X]]
// CHECK: scf.yield %[[DX]], %[[DY]]
// CHECK: } else {
// CHECK: %[[ZERO:.+]] = linalg.fill
// CHECK: scf.yield %[[D]], %[[ZERO]]
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @branches(%c: i1, %x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> attributes {linattn.differentiate = array<i64>} {
  %r = scf.if %c -> tensor<?xf32> {
    %0 = arith.mulf %x, %y : tensor<?xf32>
    scf.yield %0 : tensor<?xf32>
  } else {
    scf.yield %x : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}
