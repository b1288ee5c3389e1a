// RUN: linattn-run %s --entry=constant --open-size=1,5,33 --compare=reference --tolerance=1e-4
// RUN: linattn-run %s --entry=constant --open-size=1,21 --compare=exact
// RUN: linattn-run %s --entry=constant --open-size=21 --form=chunk:8 --compare=exact
// RUN: linattn-run %s --entry=delta --open-size=1,21 --compare=exact
// RUN: not linattn-run %s --entry=argument --arg random:2x1x1x4xf32 --arg zeros:2xi64 --arg random:3x1x4x4xf32 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not linattn-run %s --entry=argument --arg random:2x1x1x4xf32 --arg ones:2xi64 --arg random:1x1x4x4xf32 2>&1 | FileCheck %s --check-prefix=OUTSIDE
// RUN: not linattn-run %s --entry=argument --arg random:2x1x1x4xf32 --arg zeros:3xi64 --arg random:1x1x4x4xf32 --target=reference 2>&1 | FileCheck %s --check-prefix=COUNT

// Rows of a pool of states, one of the sequences without.
func.func @constant(%q: tensor<3x2x?x4xf32>, %k: tensor<3x2x?x4xf32>, %v: tensor<3x2x?x3xf32>, %o: tensor<3x2x?x3xf32>, %s: tensor<5x2x4x3xf32>) -> (tensor<3x2x?x3xf32>, tensor<5x2x4x3xf32>) {
  %i = arith.constant dense<[4, -1, 2]> : tensor<3xi64>
  %r:2 = linattn.scan %q, %k, %v state_indices(%i) into(%o) init(%s)
    : (tensor<3x2x?x4xf32>, tensor<3x2x?x4xf32>, tensor<3x2x?x3xf32>, tensor<3xi64>, tensor<3x2x?x3xf32>, tensor<5x2x4x3xf32>) -> (tensor<3x2x?x3xf32>, tensor<5x2x4x3xf32>)
  return %r#0, %r#1 : tensor<3x2x?x3xf32>, tensor<5x2x4x3xf32>
}

func.func @delta(%q: tensor<3x2x?x4xf32>, %k: tensor<3x2x?x4xf32>, %v: tensor<3x2x?x3xf32>, %b: tensor<3x2x?xf32>, %o: tensor<3x2x?x3xf32>, %s: tensor<5x2x4x3xf32>) -> (tensor<3x2x?x3xf32>, tensor<5x2x4x3xf32>) {
  %i = arith.constant dense<[4, -1, 2]> : tensor<3xi32>
  %r:2 = linattn.scan %q, %k, %v beta(%b) state_indices(%i) update(delta) into(%o) init(%s)
    : (tensor<3x2x?x4xf32>, tensor<3x2x?x4xf32>, tensor<3x2x?x3xf32>, tensor<3x2x?xf32>, tensor<3xi32>, tensor<3x2x?x3xf32>, tensor<5x2x4x3xf32>) -> (tensor<3x2x?x3xf32>, tensor<5x2x4x3xf32>)
  return %r#0, %r#1 : tensor<3x2x?x3xf32>, tensor<5x2x4x3xf32>
}

// TWICE:   'argument': expected a row of the state no more than once in state_indices, but got 0 at 0 and 1
// OUTSIDE: 'argument': expected state_indices to be -1 or a row of the state, which has 1, but got 1 at 1
// COUNT:   'argument': expected query and state_indices to have the same batch size, but got 2 and 3
func.func @argument(%q: tensor<2x1x1x4xf32>, %i: tensor<?xi64>, %s: tensor<?x1x4x4xf32>) -> (tensor<2x1x1x4xf32>, tensor<?x1x4x4xf32>) {
  %e = tensor.empty() : tensor<2x1x1x4xf32>
  %r:2 = linattn.scan %q, %q, %q state_indices(%i) into(%e) init(%s)
    : (tensor<2x1x1x4xf32>, tensor<2x1x1x4xf32>, tensor<2x1x1x4xf32>, tensor<?xi64>, tensor<2x1x1x4xf32>, tensor<?x1x4x4xf32>) -> (tensor<2x1x1x4xf32>, tensor<?x1x4x4xf32>)
  return %r#0, %r#1 : tensor<2x1x1x4xf32>, tensor<?x1x4x4xf32>
}
