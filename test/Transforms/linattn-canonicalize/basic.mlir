// RUN: linattn-opt %s --linattn-canonicalize | FileCheck %s
// RUN: linattn-opt %s --canonicalize | FileCheck %s
// RUN: linattn-opt %s --linattn-canonicalize=kernels | FileCheck %s --check-prefix=KERNEL
// RUN: linattn-opt %s --pass-pipeline='builtin.module(func.func(linattn-canonicalize,linattn-canonicalize))' \
// RUN:   | FileCheck %s

// Patterns and folds of this dialect and of others.
// CHECK-LABEL: func.func @folds(
// CHECK-NEXT:    return %arg0, %arg1
// KERNEL-LABEL: func.func @folds(
// KERNEL-NEXT:    return %arg0, %arg1
func.func @folds(%n: index, %x: tensor<1x2x3x4xf32>) -> (index, tensor<1x2x3x4xf32>) {
  %c0 = arith.constant 0 : index
  %sum = arith.addi %n, %c0 : index
  %y = linattn.permute %x [0, 2, 1, 3] : tensor<1x2x3x4xf32> to tensor<1x3x2x4xf32>
  %z = linattn.permute %y [0, 2, 1, 3] : tensor<1x3x2x4xf32> to tensor<1x2x3x4xf32>
  return %sum, %z : index, tensor<1x2x3x4xf32>
}

// Blocks lose arguments without uses, except where regions are left alone.
// CHECK-LABEL: func.func @argument(
// CHECK:       ^bb1:
// KERNEL-LABEL: func.func @argument(
// KERNEL:       ^bb1(%{{.+}}: index):
func.func @argument(%more: i1, %n: index) {
  cf.br ^loop(%n : index)
^loop(%unused: index):
  cf.cond_br %more, ^loop(%n : index), ^end
^end:
  return
}
