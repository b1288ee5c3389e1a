// RUN: linattn-opt %s --linattn-remark-choices --remarks-filter=linattn 2>&1 | FileCheck %s

// CHECK: [Passed] nystrom | Category:linattn
// CHECK-SAME: landmarks are means
// CHECK: [Passed] nystrom
// CHECK-SAME: six iterations
// CHECK: [Missed] nystrom
// CHECK-SAME: causal: means show the future

// CHECK: func.func @nystrom(%{{.+}}) -> tensor<?xf32> {
func.func @nystrom(%q: tensor<?xf32>) -> tensor<?xf32>
    attributes {linattn.chosen = ["landmarks are means", "six iterations"],
                linattn.refused = ["causal: means show the future"]} {
  return %q : tensor<?xf32>
}
