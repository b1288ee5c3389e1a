// RUN: linattn-run %s --entry attend --arg ones:1x1x2x2xf32 --arg ones:1x1x2x2xf32 --arg ones:1x1x2x2xf32 --trace | FileCheck %s
// RUN: linattn-run %s --entry attend --open-size=3 --target=trace --compare=reference | FileCheck %s --check-prefix=AGREES
// RUN: linattn-run %s --entry halves --trace | FileCheck %s --check-prefix=HALVES
// RUN: linattn-run %s --entry backwards --arg ones:1x1x2x1xf32 --trace | FileCheck %s --check-prefix=WHOLE

// The numbers as they flow: arguments, what each op computes, results.

// CHECK:      argument 0 (%q): 1x1x2x2 f32 {{\[\[\[\[}}1, 1], [1, 1]]]]
// CHECK:      linattn.scan: output, token 0: 1x1x1x2 f32
// CHECK-NEXT:   [0, 0, 0, :]          1          1
// CHECK-NEXT: linattn.scan: state S, token 0: 1x1x2x2 f32
// CHECK-NEXT:   [0, 0, 0, :]          2          2
// CHECK-NEXT:   [0, 0, 1, :]          2          2
// CHECK-NEXT: linattn.scan: normalizer z, token 0: 1x1x2 f32
// CHECK-NEXT:   [0, 0, :]          2          2
// CHECK-NEXT: linattn.scan: output, token 1: 1x1x1x2 f32
// CHECK-NEXT:   [0, 0, 0, :]          1          1
// CHECK-NEXT: linattn.scan: state S, token 1: 1x1x2x2 f32
// CHECK-NEXT:   [0, 0, 0, :]          4          4
// CHECK-NEXT:   [0, 0, 1, :]          4          4
// CHECK-NEXT: linattn.scan: normalizer z, token 1: 1x1x2 f32
// CHECK-NEXT:   [0, 0, :]          4          4
// CHECK-NEXT: result 0: 1x1x2x2 f32 {{\[\[\[\[}}1, 1], [1, 1]]]]

// AGREES: linattn.scan: output, token 2
// AGREES: result 0: agrees with the reference
func.func @attend(%q: tensor<1x1x?x2xf32>, %k: tensor<1x1x?x2xf32>, %v: tensor<1x1x?x2xf32>) -> tensor<1x1x?x2xf32> {
  %o = linattn.attention %q, %k, %v {causal, feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 0.0>}
    : (tensor<1x1x?x2xf32>, tensor<1x1x?x2xf32>, tensor<1x1x?x2xf32>) -> tensor<1x1x?x2xf32>
  return %o : tensor<1x1x?x2xf32>
}

// HALVES:      linattn.state: state S: 1x1x2x1 f32
// HALVES-NEXT:   [0, 0, 0, :]
// HALVES-NEXT:   [0, 0, 1, :]
// HALVES-NEXT: linattn.read: output: 1x1x40x1 f16
func.func @halves(%q: tensor<1x1x40x2xf16>, %k: tensor<1x1x600x2xf16>, %v: tensor<1x1x600x1xf16>) -> tensor<1x1x40x1xf16> {
  %o = linattn.attention %q, %k, %v : (tensor<1x1x40x2xf16>, tensor<1x1x600x2xf16>, tensor<1x1x600x1xf16>) -> tensor<1x1x40x1xf16>
  return %o : tensor<1x1x40x1xf16>
}

// Results without a dimension of tokens show as a whole.

// WHOLE: linattn.scan: output: 1x1x2x1 f32
// WHOLE: linattn.scan: state S: 1x1x1x1 f32
func.func @backwards(%q: tensor<1x1x?x1xf32>) -> tensor<1x1x?x1xf32> {
  %c2 = arith.constant 2 : index
  %s = arith.constant dense<0.0> : tensor<1x1x1x1xf32>
  %t = tensor.dim %q, %c2 : tensor<1x1x?x1xf32>
  %e = tensor.empty(%t) : tensor<1x1x?x1xf32>
  %r:2 = linattn.scan %q, %q, %q into(%e) init(%s) {reverse}
    : (tensor<1x1x?x1xf32>, tensor<1x1x?x1xf32>, tensor<1x1x?x1xf32>, tensor<1x1x?x1xf32>, tensor<1x1x1x1xf32>) -> (tensor<1x1x?x1xf32>, tensor<1x1x1x1xf32>)
  return %r#0 : tensor<1x1x?x1xf32>
}
