// RUN: linattn-opt %s --linattn-select-form --remarks-filter=linattn 2>&1 | FileCheck %s

// Without a requested form, rank-1 transitions run in chunks, or token by token.

// CHECK: [Missed] select-form {{.*}}"not state_tile: a rank-1 transition couples the rows of a state column"
// CHECK: [Missed] select-form {{.*}}"not state_tile: a rank-1 transition couples the columns of a state row"
// CHECK: [Missed] select-form {{.*}}"not chunk: its transition reads the rows of the state, chunks its columns"
// CHECK: [Passed] select-form {{.*}}"token, {{.*}}: the only form of its rule, without a vector schedule"

// CHECK-LABEL: func.func @delta
func.func @delta(%q: tensor<1x2x?x4xf32>, %beta: tensor<1x2x?xf32>, %o: tensor<1x2x?x4xf32>, %s: tensor<1x2x4x4xf32>) -> tensor<1x2x?x4xf32> {
  // CHECK: form = {{chunk|token}}
  %r:2 = linattn.scan %q, %q, %q beta(%beta) update(delta) into(%o) init(%s)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0 : tensor<1x2x?x4xf32>
}

// CHECK-LABEL: func.func @oja
func.func @oja(%q: tensor<1x2x?x4xf32>, %beta: tensor<1x2x?xf32>, %o: tensor<1x2x?x4xf32>, %s: tensor<1x2x4x4xf32>) -> tensor<1x2x?x4xf32> {
  // CHECK: form = token
  %r:2 = linattn.scan %q, %q, %q beta(%beta) update(oja) into(%o) init(%s)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0 : tensor<1x2x?x4xf32>
}

// An additive scan with an input gate has every form.
// CHECK-LABEL: func.func @gated
func.func @gated(%q: tensor<1x2x?x4xf32>, %i: tensor<1x2x?xf32>, %o: tensor<1x2x?x4xf32>, %s: tensor<1x2x4x4xf64>, %z: tensor<1x2x4xf64>, %m: tensor<1x2xf64>) -> tensor<1x2x?x4xf32> {
  // CHECK: form = {{state_tile|chunk|token}}
  %r:4 = linattn.scan %q, %q, %q input_gate(%i) into(%o) init(%s) normalizer(%z) running_max(%m) {normalize = #linattn.normalize<abs_floor = 1.0>}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x4xf64>, tensor<1x2x4xf64>, tensor<1x2xf64>) -> (tensor<1x2x?x4xf32>, tensor<1x2x4x4xf64>, tensor<1x2x4xf64>, tensor<1x2xf64>)
  return %r#0 : tensor<1x2x?x4xf32>
}
