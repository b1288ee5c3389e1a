// RUN: linattn-opt %s --linattn-check-shapes --split-input-file | FileCheck %s
// RUN: linattn-opt %s --linattn-check-shapes --split-input-file --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// Inside loops and branches an op is checked only if it runs; nothing of the
// computation is left.

// CHECK-LABEL: func.func @guarded__shapes(
// CHECK-SAME:    %[[X:[^:]+]]: tensor<?xf32>, %[[Y:[^:]+]]: tensor<?xf32>, %[[N:[^:]+]]: index, %[[COND:[^:]+]]: i1,
// CHECK-SAME:    linattn.checks = ["arith.addf: expected dimension 0 of operand 0 and dimension 0 of operand 1 to have the same size, but got {0} and {1}"]
// CHECK-NOT:     scf.for
// CHECK:         %[[RUNS:.+]] = arith.cmpi sgt, %[[N]], %c0
// CHECK:         %[[GUARD:.+]] = arith.andi %[[RUNS]], %[[COND]]
// CHECK:         %[[EQUAL:.+]] = arith.cmpi eq
// CHECK:         arith.select %[[GUARD]], %[[EQUAL]], %true
func.func @guarded(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index, %cond: i1) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.if %cond -> tensor<?xf32> {
    %l = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<?xf32> {
      %0 = arith.addf %a, %y : tensor<?xf32>
      %1 = linalg.exp ins(%0 : tensor<?xf32>) outs(%a : tensor<?xf32>) -> tensor<?xf32>
      scf.yield %1 : tensor<?xf32>
    }
    scf.yield %l : tensor<?xf32>
  } else {
    scf.yield %x : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}

// -----

// Which row is added is known only inside the loop; so is a condition that
// depends on results.

// CHECK-LABEL: func.func @skipped__shapes(
// CHECK-SAME:    linattn.checks = []
// REMARK:        remark: [Missed] check-shapes{{.*}}"the shapes of linalg.exp are not checked: a size is computed inside a loop or branch"
// REMARK:        remark: [Missed] check-shapes{{.*}}"the shapes of linalg.tanh are not checked: whether it runs is known only at run time"
func.func @skipped(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<8xf32>
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%a = %e) -> tensor<8xf32> {
    %s = tensor.extract_slice %x[0] [%i] [1] : tensor<?xf32> to tensor<?xf32>
    %1 = linalg.exp ins(%s : tensor<?xf32>) outs(%a : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %1 : tensor<8xf32>
  }
  %first = tensor.extract %l[%c0] : tensor<8xf32>
  %cond = arith.cmpf ogt, %first, %first : f32
  %r = scf.if %cond -> tensor<8xf32> {
    %2 = linalg.tanh ins(%y : tensor<?xf32>) outs(%l : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %2 : tensor<8xf32>
  } else {
    scf.yield %l : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// -----

// Blocks behind a branch may not run either; the entry block does.

// CHECK-LABEL: func.func @blocks__shapes(
// CHECK-SAME:    linattn.checks = ["linalg.exp: expected dimension 0 of operand 0 and dimension 0 of operand 1 to have the same size, but got {0} and {1}"]
// CHECK:         scf.if
// REMARK:        the shapes of linalg.tanh are not checked: whether it runs is known only at run time
func.func @blocks(%x: tensor<?xf32>, %y: tensor<?xf32>, %z: tensor<?xf32>, %cond: i1) -> (tensor<?xf32>, f32) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %0 = linalg.exp ins(%x : tensor<?xf32>) outs(%y : tensor<?xf32>) -> tensor<?xf32>
  cf.cond_br %cond, ^bb1, ^bb2
^bb1:
  %1 = linalg.tanh ins(%0 : tensor<?xf32>) outs(%z : tensor<?xf32>) -> tensor<?xf32>
  return %1, %zero : tensor<?xf32>, f32
^bb2:
  return %0, %one : tensor<?xf32>, f32
}

// -----

// A shape that depends on data is computed only if the sizes agree.

// CHECK-LABEL: func.func @data(
// CHECK-LABEL: func.func @data__shapes(
// CHECK-SAME:    %[[X:[^:]+]]: tensor<?xf32>, %[[Y:[^:]+]]: tensor<?xf32>
// CHECK-NOT:     linalg.generic
// CHECK:         %[[EQUAL:.+]] = arith.cmpi eq
// CHECK:         scf.if %[[EQUAL]] {
// CHECK:           linalg.generic {{.*}} ins(%[[X]], %[[Y]] :
// CHECK:           memref.store
func.func @data(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %0 = arith.addf %x, %y : tensor<?xf32>
  %1 = tensor.extract %0[%c0] : tensor<?xf32>
  %2 = arith.fptosi %1 : f32 to i64
  %3 = arith.index_cast %2 : i64 to index
  %4 = tensor.splat %1[%3] : tensor<?xf32>
  return %4 : tensor<?xf32>
}
