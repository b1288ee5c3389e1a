// RUN: linattn-opt %s --linattn-select-form=form=chunk --split-input-file --verify-diagnostics
// RUN: not linattn-opt %s --linattn-select-form=form=chunk:0 --split-input-file 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not linattn-opt %s --linattn-select-form=form=quadratic --split-input-file 2>&1 | FileCheck %s --check-prefix=FORM

// SIZE: error: expected form to be auto, token, state_tile, chunk, segments, chunk:SIZE or segments:SIZE with a SIZE from 1 to 1048576, but got chunk:0
// FORM: error: expected form to be auto, token, state_tile, chunk, segments, chunk:SIZE or segments:SIZE with a SIZE from 1 to 1048576, but got quadratic
func.func @value_decay(%q: tensor<1x2x8x4xf32>, %o: tensor<1x2x8x4xf32>, %s: tensor<1x2x4x4xf32>) -> tensor<1x2x8x4xf32> {
  // expected-error @+1 {{'linattn.scan' op cannot run in form chunk: a decay per value column does not factor into products of chunks}}
  %r:2 = linattn.scan %q, %q, %q value_decay(%q) into(%o) init(%s)
    : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x8x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0 : tensor<1x2x8x4xf32>
}

// -----

func.func @delta(%q: tensor<1x2x8x4xf32>, %b: tensor<1x2x8xf32>, %o: tensor<1x2x8x4xf32>, %s: tensor<1x2x4x4xf32>) -> tensor<1x2x8x4xf32> {
  // expected-error @+1 {{'linattn.scan' op cannot run in form state_tile: a rank-1 transition couples the rows of a state column}}
  %r:2 = linattn.scan %q, %q, %q beta(%b) update(delta) into(%o) init(%s) {config = #linattn.config<form = state_tile>}
    : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8xf32>, tensor<1x2x8x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x8x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0 : tensor<1x2x8x4xf32>
}

// RUN: not linattn-opt %s --linattn-select-form=form=chunk:99999999 2>&1 | FileCheck %s --check-prefix=LARGE
// LARGE: error: expected form to be auto, token, state_tile, chunk, segments, chunk:SIZE or segments:SIZE with a SIZE from 1 to 1048576, but got chunk:99999999
// RUN: not linattn-opt %s --linattn-select-form=registers=-4 2>&1 | FileCheck %s --check-prefix=REGISTERS
// REGISTERS: error: expected registers to be a power of two from 16 to 64, but got -4
// RUN: not linattn-opt %s --linattn-reassociate=vector-bits=0 2>&1 | FileCheck %s --check-prefix=BITS
// RUN: not linattn-opt %s --linattn-lower-to-vector=vector-bits=0 2>&1 | FileCheck %s --check-prefix=BITS
// BITS: error: expected vector-bits to be a power of two from 128 to 4096, but got 0
