// RUN: linattn-opt %s --linattn-expand-snapshots | linattn-run - --all --open-size=0,1,3,4,14 --target=reference --compare=%s
// RUN: linattn-run %s --all --open-size=0,1,3,4,14,70 --compare=reference
// RUN: linattn-run %s --all --open-size=14 --form=token --compare=reference
// RUN: linattn-run %s --all --open-size=3,14 --target=nvvm-emulated --compare=reference

// The loop of scans against the snapshots of the naive loops, forms and targets.

func.func @add(%q: tensor<2x4x?x8xf32>, %k: tensor<2x2x?x8xf32>, %v: tensor<2x2x?x5xf32>, %o: tensor<2x4x?x5xf32>, %s: tensor<2x2x8x5xf32>) -> (tensor<2x4x?x5xf32>, tensor<2x2x8x5xf32>, tensor<2x?x2x8x5xf32>) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %t = tensor.dim %k, %c2 : tensor<2x2x?x8xf32>
  %n = arith.divsi %t, %c3 : index
  %p = tensor.empty(%n) : tensor<2x?x2x8x5xf32>
  %r:3 = linattn.scan %q, %k, %v into(%o) init(%s) snapshots(%p) {every = 3} : (tensor<2x4x?x8xf32>, tensor<2x2x?x8xf32>, tensor<2x2x?x5xf32>, tensor<2x4x?x5xf32>, tensor<2x2x8x5xf32>, tensor<2x?x2x8x5xf32>) -> (tensor<2x4x?x5xf32>, tensor<2x2x8x5xf32>, tensor<2x?x2x8x5xf32>)
  return %r#0, %r#1, %r#2 : tensor<2x4x?x5xf32>, tensor<2x2x8x5xf32>, tensor<2x?x2x8x5xf32>
}
func.func @delta(%q: tensor<1x2x?x8xf32>, %k: tensor<1x2x?x8xf32>, %v: tensor<1x2x?x4xf32>, %g: tensor<1x2x?x8xf32>, %beta: tensor<1x2x?xf32>, %m: tensor<1x?xi1>, %o: tensor<1x2x?x4xf32>, %s: tensor<1x2x8x4xf32>) -> (tensor<1x2x?x4xf32>, tensor<1x2x8x4xf32>, tensor<1x?x2x8x4xf32>) {
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %t = tensor.dim %k, %c2 : tensor<1x2x?x8xf32>
  %n = arith.divsi %t, %c4 : index
  %p = tensor.empty(%n) : tensor<1x?x2x8x4xf32>
  %r:3 = linattn.scan %q, %k, %v decay(%g) beta(%beta) mask(%m) update(delta) into(%o) init(%s) snapshots(%p) {every = 4, reverse, scale = 0.25} : (tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x8xf32>, tensor<1x2x?xf32>, tensor<1x?xi1>, tensor<1x2x?x4xf32>, tensor<1x2x8x4xf32>, tensor<1x?x2x8x4xf32>) -> (tensor<1x2x?x4xf32>, tensor<1x2x8x4xf32>, tensor<1x?x2x8x4xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x?x4xf32>, tensor<1x2x8x4xf32>, tensor<1x?x2x8x4xf32>
}
func.func @bonus(%q: tensor<1x2x14x8xf32>, %v: tensor<1x2x14x4xf32>, %g: tensor<2xf32>, %u: tensor<2x8xf32>, %o: tensor<1x2x14x4xf32>, %s: tensor<1x2x8x4xf32>, %p: tensor<1x2x2x8x4xf32>) -> (tensor<1x2x14x4xf32>, tensor<1x2x2x8x4xf32>) {
  %r:3 = linattn.scan %q, %q, %v decay(%g) bonus(%u) readout(exclusive) into(%o) init(%s) snapshots(%p) {every = 7, scale = 0.25} : (tensor<1x2x14x8xf32>, tensor<1x2x14x8xf32>, tensor<1x2x14x4xf32>, tensor<2xf32>, tensor<2x8xf32>, tensor<1x2x14x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x2x8x4xf32>) -> (tensor<1x2x14x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x2x8x4xf32>)
  return %r#0, %r#2 : tensor<1x2x14x4xf32>, tensor<1x2x2x8x4xf32>
}
