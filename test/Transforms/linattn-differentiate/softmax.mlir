// RUN: linattn-opt %s --linattn-differentiate="function=grouped operands=0,1,2,4" --canonicalize --cse | FileCheck %s --implicit-check-not='?x?x'
// RUN: linattn-opt %s --linattn-differentiate="function=rounded operands=0" --canonicalize --cse | FileCheck %s --check-prefix=BF16
// RUN: linattn-opt %s --linattn-differentiate="function=kept operands=0,1,2" --canonicalize --cse | FileCheck %s --check-prefix=KEPT

// The forward pass keeps one number for each row of weights, and its output serves what reads it. Keys and values are
// repeated for their groups, whose gradients are summed.

// CHECK-LABEL: func.func @grouped_vjp(
// CHECK:         %[[O:.+]]:2 = linattn.softmax %{{.+}}, %{{.+}}, %{{.+}} slopes(%{{.+}}) sinks(%{{.+}}) into(%{{.+}}, %{{.+}}) {causal, scale = 5.000000e-01 : f64}
// CHECK-SAME:      (tensor<2x4x7x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x5xf32>,
// CHECK:         linattn.softmax_gradient %{{.+}}, %{{.+}}, %{{.+}} cotangent(%{{.+}}) rows(%[[O]]#1, %{{.+}}) slopes(%{{.+}}) into
// CHECK-SAME:      (tensor<2x4x7x8xf32>, tensor<2x4x7x8xf32>, tensor<2x4x7x5xf32>,
// CHECK-NOT:     linattn.attention
// CHECK:         return
func.func @grouped(%q: tensor<2x4x7x8xf32>, %k: tensor<2x2x7x8xf32>, %v: tensor<2x2x7x5xf32>, %h: tensor<4xf32>, %s: tensor<4xf32>) -> tensor<2x4x7x5xf32> {
  %o = linattn.attention %q, %k, %v slopes(%h) sinks(%s) weights(softmax) {causal, scale = 0.5}
    : (tensor<2x4x7x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x5xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4x7x5xf32>
  %r = math.exp %o : tensor<2x4x7x5xf32>
  return %r : tensor<2x4x7x5xf32>
}

// The clone computes in f32.

// BF16-LABEL: func.func @rounded_vjp(
// BF16:         linattn.softmax {{.*}} tensor<1x1x7x8xf32>
// BF16:         linattn.softmax_gradient
func.func @rounded(%x: tensor<1x1x7x8xbf16>) -> tensor<1x1x7x8xbf16> {
  %o = linattn.attention %x, %x, %x weights(softmax) : (tensor<1x1x7x8xbf16>, tensor<1x1x7x8xbf16>, tensor<1x1x7x8xbf16>) -> tensor<1x1x7x8xbf16>
  return %o : tensor<1x1x7x8xbf16>
}

// Results that are given are not computed again.

// KEPT-LABEL: func.func @kept_vjp(
// KEPT-SAME:    %{{[^:]+}}: tensor<1x1x7x8xf32>, %{{[^:]+}}: tensor<1x1x7x8xf32>, %{{[^:]+}}: tensor<1x1x7x8xf32>, %[[O:[^:]+]]: tensor<1x1x7x8xf32>, %[[L:[^:]+]]: tensor<1x1x7xf32>, %[[DO:[^:]+]]: tensor<1x1x7x8xf32>, %{{[^:]+}}: tensor<1x1x7xf32>)
// KEPT-NOT:     linattn.softmax %
// KEPT:         linalg.generic {{.*}} ins(%[[DO]], %[[O]] :
// KEPT:         linattn.softmax_gradient {{.*}} rows(%[[L]], %{{.+}})
// KEPT-NOT:     linattn.softmax %
// KEPT:         return
func.func @kept(%q: tensor<1x1x7x8xf32>, %k: tensor<1x1x7x8xf32>, %v: tensor<1x1x7x8xf32>) -> (tensor<1x1x7x8xf32>, tensor<1x1x7xf32>) attributes {linattn.keep_results} {
  %e = tensor.empty() : tensor<1x1x7x8xf32>
  %l = tensor.empty() : tensor<1x1x7xf32>
  %r:2 = linattn.softmax %q, %k, %v into(%e, %l) {causal} : (tensor<1x1x7x8xf32>, tensor<1x1x7x8xf32>, tensor<1x1x7x8xf32>, tensor<1x1x7x8xf32>, tensor<1x1x7xf32>) -> (tensor<1x1x7x8xf32>, tensor<1x1x7xf32>)
  return %r#0, %r#1 : tensor<1x1x7x8xf32>, tensor<1x1x7xf32>
}
