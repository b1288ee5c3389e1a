// RUN: linattn-opt %s --linattn-remark-choices --remarks-filter=linattn 2>&1 | FileCheck %s --implicit-check-not=Passed --implicit-check-not=Missed

// Attributes without texts give no remark; others stay.
// CHECK-LABEL: func.func @other(
// CHECK-SAME: attributes {linattn.other = "text"}
func.func @other(%q: tensor<4xf32>) -> tensor<4xf32>
    attributes {linattn.chosen = "text", linattn.refused = [1, 2], linattn.other = "text"} {
  return %q : tensor<4xf32>
}
