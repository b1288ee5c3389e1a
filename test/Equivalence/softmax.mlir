// RUN: linattn-run %s --all --open-size=1,7,70,150 --compare=reference
// RUN: linattn-opt %s --linattn-decompose | FileCheck %s
// RUN: linattn-opt %s --linattn-decompose | linattn-run - --all --open-size=1,7,70 --compare=%s

// Softmax attention with its log-sum-exp and its backward pass, in tiles and as linalg ops, against the naive loops. The rows
// given to the backward pass are any numbers.

// CHECK-NOT: linattn.{{[a-z]+}} %

func.func @plain(%q: tensor<2x4x?x8xf32>, %k: tensor<2x2x?x8xf32>, %v: tensor<2x2x?x5xf32>, %o: tensor<2x4x?x5xf32>, %l: tensor<2x4x?xf32>) -> (tensor<2x4x?x5xf32>, tensor<2x4x?xf32>) {
  %r:2 = linattn.softmax %q, %k, %v into(%o, %l) {scale = 0.5} : (tensor<2x4x?x8xf32>, tensor<2x2x?x8xf32>, tensor<2x2x?x5xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?xf32>) -> (tensor<2x4x?x5xf32>, tensor<2x4x?xf32>)
  return %r#0, %r#1 : tensor<2x4x?x5xf32>, tensor<2x4x?xf32>
}
func.func @masked(%q: tensor<2x4x?x8xf32>, %k: tensor<2x2x?x8xf32>, %v: tensor<2x2x?x5xf32>, %m: tensor<2x?xi1>, %o: tensor<2x4x?x5xf32>, %l: tensor<2x4x?xf32>) -> (tensor<2x4x?x5xf32>, tensor<2x4x?xf32>) {
  %r:2 = linattn.softmax %q, %k, %v mask(%m) into(%o, %l) {causal, pattern = #linattn.pattern<window = 5, globals = 2>} : (tensor<2x4x?x8xf32>, tensor<2x2x?x8xf32>, tensor<2x2x?x5xf32>, tensor<2x?xi1>, tensor<2x4x?x5xf32>, tensor<2x4x?xf32>) -> (tensor<2x4x?x5xf32>, tensor<2x4x?xf32>)
  return %r#0, %r#1 : tensor<2x4x?x5xf32>, tensor<2x4x?xf32>
}
func.func @scores(%q: tensor<2x4x?x8xf32>, %k: tensor<2x2x?x8xf32>, %v: tensor<2x2x?x5xf32>, %h: tensor<4xf32>, %s: tensor<4xf32>, %o: tensor<2x4x?x5xf32>, %l: tensor<2x4x?xf32>) -> (tensor<2x4x?x5xf32>, tensor<2x4x?xf32>) {
  %r:2 = linattn.softmax %q, %k, %v slopes(%h) sinks(%s) into(%o, %l) {causal, softcap = 3.0} : (tensor<2x4x?x8xf32>, tensor<2x2x?x8xf32>, tensor<2x2x?x5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?xf32>) -> (tensor<2x4x?x5xf32>, tensor<2x4x?xf32>)
  return %r#0, %r#1 : tensor<2x4x?x5xf32>, tensor<2x4x?xf32>
}
func.func @backward(%q: tensor<2x4x?x8xf32>, %k: tensor<2x4x?x8xf32>, %v: tensor<2x4x?x5xf32>, %d: tensor<2x4x?x5xf32>, %l: tensor<2x4x?xf32>, %c: tensor<2x4x?xf32>) -> (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>) {
  %r:3 = linattn.softmax_gradient %q, %k, %v cotangent(%d) rows(%l, %c) into(%q, %k, %v) {scale = 0.5} : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?xf32>, tensor<2x4x?xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>) -> (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>)
  return %r#0, %r#1, %r#2 : tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>
}
func.func @backward_causal(%q: tensor<2x4x?x8xf32>, %k: tensor<2x4x?x8xf32>, %v: tensor<2x4x?x5xf32>, %d: tensor<2x4x?x5xf32>, %l: tensor<2x4x?xf32>, %c: tensor<2x4x?xf32>, %m: tensor<2x?xi1>) -> (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>) {
  %r:3 = linattn.softmax_gradient %q, %k, %v cotangent(%d) rows(%l, %c) mask(%m) into(%q, %k, %v) {causal, scale = 0.5} : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?xf32>, tensor<2x4x?xf32>, tensor<2x?xi1>, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>) -> (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>)
  return %r#0, %r#1, %r#2 : tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>
}
func.func @backward_window(%q: tensor<2x4x?x8xf64>, %k: tensor<2x4x?x8xf64>, %v: tensor<2x4x?x5xf64>, %d: tensor<2x4x?x5xf64>, %l: tensor<2x4x?xf64>, %c: tensor<2x4x?xf64>) -> (tensor<2x4x?x8xf64>, tensor<2x4x?x8xf64>, tensor<2x4x?x5xf64>) {
  %r:3 = linattn.softmax_gradient %q, %k, %v cotangent(%d) rows(%l, %c) into(%q, %k, %v) {causal, pattern = #linattn.pattern<window = 9, globals = 2>} : (tensor<2x4x?x8xf64>, tensor<2x4x?x8xf64>, tensor<2x4x?x5xf64>, tensor<2x4x?x5xf64>, tensor<2x4x?xf64>, tensor<2x4x?xf64>, tensor<2x4x?x8xf64>, tensor<2x4x?x8xf64>, tensor<2x4x?x5xf64>) -> (tensor<2x4x?x8xf64>, tensor<2x4x?x8xf64>, tensor<2x4x?x5xf64>)
  return %r#0, %r#1, %r#2 : tensor<2x4x?x8xf64>, tensor<2x4x?x8xf64>, tensor<2x4x?x5xf64>
}
func.func @backward_dilated(%q: tensor<2x4x?x8xf32>, %k: tensor<2x4x?x8xf32>, %v: tensor<2x4x?x5xf32>, %d: tensor<2x4x?x5xf32>, %l: tensor<2x4x?xf32>, %c: tensor<2x4x?xf32>) -> (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>) {
  %r:3 = linattn.softmax_gradient %q, %k, %v cotangent(%d) rows(%l, %c) into(%q, %k, %v) {pattern = #linattn.pattern<window = 3, dilation = 2>} : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?xf32>, tensor<2x4x?xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>) -> (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>)
  return %r#0, %r#1, %r#2 : tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>
}
func.func @backward_scores(%q: tensor<2x4x?x8xf32>, %k: tensor<2x4x?x8xf32>, %v: tensor<2x4x?x5xf32>, %d: tensor<2x4x?x5xf32>, %l: tensor<2x4x?xf32>, %c: tensor<2x4x?xf32>, %h: tensor<4xf32>) -> (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?xf32>) {
  %r:4 = linattn.softmax_gradient %q, %k, %v cotangent(%d) rows(%l, %c) slopes(%h) into(%q, %k, %v, %l) {softcap = 3.0, pattern = #linattn.pattern<window = 20>} : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?xf32>, tensor<2x4x?xf32>, tensor<4xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?xf32>) -> (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?xf32>)
  return %r#0, %r#1, %r#2, %r#3 : tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x5xf32>, tensor<2x4x?xf32>
}
