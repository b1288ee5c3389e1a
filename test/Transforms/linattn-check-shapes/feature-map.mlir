// RUN: linattn-opt %s --linattn-check-shapes | FileCheck %s
// RUN: linattn-run %s --entry=favor --arg random:1x2x5x4xf32 --arg random:6x4xf32 --arg zeros:1x2x5x6xf32
// RUN: not linattn-run %s --entry=favor --arg random:1x2x5x4xf32 --arg random:6x3xf32 --arg zeros:1x2x5x6xf32 2>&1 | FileCheck %s --check-prefix=COLUMNS
// RUN: not linattn-run %s --entry=favor --arg random:1x2x5x4xf32 --arg random:6x4xf32 --arg zeros:1x2x5x7xf32 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: linattn-run %s --entry=taylor --arg random:1x2x5x4xf32 --arg zeros:1x2x5x15xf32
// RUN: not linattn-run %s --entry=taylor --arg random:1x2x5x4xf32 --arg zeros:1x2x5x16xf32 2>&1 | FileCheck %s --check-prefix=TAYLOR

// The number of features, with every size dynamic.

// CHECK-LABEL: func.func @favor__shapes
// CHECK-SAME: "expected W and input to have the same head size, but got {0} and {1}"
// CHECK-SAME: "expected output to have the features that favor makes of the rows of W, {1}, but got {0}"
// COLUMNS: expected W and input to have the same head size, but got 3 and 4
// ROWS: expected output to have the features that favor makes of the rows of W, 6, but got 7
func.func @favor(%x: tensor<1x2x?x?xf32>, %w: tensor<?x?xf32>, %o: tensor<1x2x?x?xf32>) -> tensor<1x2x?x?xf32> {
  %r = linattn.feature_map %x params(%w) into(%o) {feature_map = #linattn.feature_map<favor>}
    : (tensor<1x2x?x?xf32>, tensor<?x?xf32>, tensor<1x2x?x?xf32>) -> tensor<1x2x?x?xf32>
  return %r : tensor<1x2x?x?xf32>
}

// CHECK-LABEL: func.func @taylor__shapes
// TAYLOR: expected output to have the features that taylor makes of the head size of input, 4, but got 16
func.func @taylor(%x: tensor<1x2x5x?xf32>, %o: tensor<1x2x5x?xf32>) -> tensor<1x2x5x?xf32> {
  %r = linattn.feature_map %x into(%o) {feature_map = #linattn.feature_map<taylor>}
    : (tensor<1x2x5x?xf32>, tensor<1x2x5x?xf32>) -> tensor<1x2x5x?xf32>
  return %r : tensor<1x2x5x?xf32>
}
