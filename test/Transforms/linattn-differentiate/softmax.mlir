// RUN: linattn-opt %s --linattn-differentiate="function=grouped operands=0,1,2,4" --canonicalize --cse | FileCheck %s --implicit-check-not='?x?x'
// RUN: linattn-opt %s --linattn-differentiate="function=rounded operands=0" --canonicalize --cse | FileCheck %s --check-prefix=BF16

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
