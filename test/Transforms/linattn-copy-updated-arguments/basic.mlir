// RUN: linattn-opt %s --linattn-copy-updated-arguments | FileCheck %s
// RUN: linattn-opt %s --linattn-bufferize-pipeline | FileCheck %s --check-prefix=BUFFERS

// CHECK-LABEL: func.func @step
// CHECK-SAME: %[[S0:[a-z0-9]+]]: tensor<1x2x4x4xf32>
// CHECK: %[[EMPTY:.+]] = tensor.empty() : tensor<1x2x4x4xf32>
// CHECK: %[[COPY:.+]] = linalg.copy ins(%[[S0]] : {{.+}}) outs(%[[EMPTY]] :
// CHECK: linattn.scan {{.+}} init(%[[COPY]])

// The caller's memory takes the copy and is updated in place.
// BUFFERS-LABEL: func.func @step
// BUFFERS-NOT: memref.alloc
// BUFFERS: linalg.copy ins(%{{.+}} : {{.+}}) outs(%[[S1:[a-z0-9]+]] :
// BUFFERS-NEXT: linattn.scan {{.+}} init(%[[S1]])
// BUFFERS-NEXT: return
func.func @step(%q: tensor<1x2x1x4xf32>, %s0: tensor<1x2x4x4xf32>) -> (tensor<1x2x1x4xf32>, tensor<1x2x4x4xf32>) {
  %e = tensor.empty() : tensor<1x2x1x4xf32>
  %o, %s1 = linattn.scan %q, %q, %q into(%e) init(%s0)
    : (tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x4x4xf32>)
    -> (tensor<1x2x1x4xf32>, tensor<1x2x4x4xf32>)
  return %o, %s1 : tensor<1x2x1x4xf32>, tensor<1x2x4x4xf32>
}

// A state with dynamic sizes, summed only.
// CHECK-LABEL: func.func @dynamic
// CHECK-SAME: %[[S0:[a-z0-9]+]]: tensor<?x?x4x4xf32>
// CHECK-DAG: %[[B:.+]] = tensor.dim %[[S0]], %c0
// CHECK-DAG: %[[H:.+]] = tensor.dim %[[S0]], %c1
// CHECK: %[[EMPTY:.+]] = tensor.empty(%[[B]], %[[H]]) : tensor<?x?x4x4xf32>
// CHECK: %[[COPY:.+]] = linalg.copy ins(%[[S0]] : {{.+}}) outs(%[[EMPTY]] :
// CHECK: linattn.state {{.+}} init(%[[COPY]])
func.func @dynamic(%s0: tensor<?x?x4x4xf32>, %k: tensor<?x?x?x4xf32>) -> tensor<?x?x4x4xf32> {
  %s1 = linattn.state %k, %k init(%s0)
    : (tensor<?x?x?x4xf32>, tensor<?x?x?x4xf32>, tensor<?x?x4x4xf32>) -> tensor<?x?x4x4xf32>
  return %s1 : tensor<?x?x4x4xf32>
}

// What is no argument needs no copy of its own.
// CHECK-LABEL: func.func @no_match
// CHECK-NOT: linalg.copy
func.func @no_match(%k: tensor<1x2x8x4xf32>) -> tensor<1x2x4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2x4x4xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%e : tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %s1 = linattn.state %k, %k init(%s0)
    : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  return %s1 : tensor<1x2x4x4xf32>
}
