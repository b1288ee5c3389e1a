// RUN: linattn-run %s --all --open-size=1,3,33 --form=token --compare=reference --tolerance=1e-4
// RUN: linattn-run %s --all --open-size=1,15,16,17,33 --form=chunk --compare=reference --tolerance=1e-4
// RUN: linattn-run %s --all --open-size=1,5,33 --form=chunk:3 --compare=reference --tolerance=1e-4
// RUN: linattn-opt %s --linattn-select-form | linattn-run - --all --open-size=1,33 --compare=%s --tolerance=1e-4
// RUN: %if avx2 %{ linattn-opt %s --linattn-select-form='vector-bits=256 registers=16' | env LINATTN_CPU=x86-64-v3 linattn-run - --all --open-size=33 --compare=%s --tolerance=1e-4 %}

// Rank-1 updates in their forms, and a read before the write. Random keys are longer than 1 and random
// decays may be positive: states grow here, and errors with them.

func.func @delta(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x4xf32>, %g: tensor<1x2x?xf32>, %b: tensor<1x2x?xf32>, %o: tensor<1x2x?x4xf32>, %s: tensor<1x2x4x4xf32>) -> (tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) beta(%b) update(delta) into(%o) init(%s)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?xf32>, tensor<1x2x?xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0, %r#1 : tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>
}

func.func @dplr(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x4xf32>, %g: tensor<1x2x?x4xf32>, %a: tensor<1x2x?x4xf32>, %b: tensor<1x2x?x4xf32>, %o: tensor<1x2x?x4xf32>, %s: tensor<1x2x4x4xf32>) -> (tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) a(%a) b(%b) update(dplr) transition(before) into(%o) init(%s)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0, %r#1 : tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>
}

func.func @exclusive(%q: tensor<1x4x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x4xf32>, %g: tensor<1x2x?x4xf32>, %u: tensor<2x4xf32>, %o: tensor<1x4x?x4xf32>, %s: tensor<1x2x4x4xf32>) -> (tensor<1x4x?x4xf32>, tensor<1x2x4x4xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) bonus(%u) readout(exclusive) into(%o) init(%s)
    : (tensor<1x4x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<2x4xf32>, tensor<1x4x?x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x4x?x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0, %r#1 : tensor<1x4x?x4xf32>, tensor<1x2x4x4xf32>
}
