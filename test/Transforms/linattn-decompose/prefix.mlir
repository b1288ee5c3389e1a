// RUN: linattn-opt %s --linattn-decompose --canonicalize | FileCheck %s

// A query sees the keys up to its own, and the prompt.

// CHECK-LABEL: func.func @prefix(
// CHECK-SAME: %[[P:[^:]+]]: tensor<?xi64>
// CHECK: linalg.generic {{.+}} ins(%{{.+}}, %[[P]] : tensor<?x1x?x?xf32>, tensor<?xi64>)
// CHECK: %[[CAUSAL:.+]] = arith.cmpi sle
// CHECK: %[[PROMPT:.+]] = arith.cmpi slt
// CHECK: arith.ori %[[CAUSAL]], %[[PROMPT]]
func.func @prefix(%q: tensor<?x1x?x4xf32>, %p: tensor<?xi64>, %e: tensor<?x1x?x4xf32>) -> tensor<?x1x?x4xf32> {
  %0 = linattn.quadratic %q, %q, %q prefix(%p) into(%e) {causal}
    : (tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>, tensor<?xi64>, tensor<?x1x?x4xf32>) -> tensor<?x1x?x4xf32>
  return %0 : tensor<?x1x?x4xf32>
}
