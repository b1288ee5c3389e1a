// RUN: linattn-opt %s --linattn-select-form=form=chunk --split-input-file --verify-diagnostics
// RUN: not linattn-opt %s --linattn-select-form=form=chunk:0 --split-input-file 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not linattn-opt %s --linattn-select-form=form=quadratic --split-input-file 2>&1 | FileCheck %s --check-prefix=FORM

// SIZE: error: expected form to be auto, token, state_tile, chunk or chunk:SIZE with a SIZE from 1 to 1048576, but got chunk:0
// FORM: error: expected form to be auto, token, state_tile, chunk or chunk:SIZE with a SIZE from 1 to 1048576, but got quadratic
func.func @decay(%q: tensor<1x2x8x4xf32>, %g: tensor<2xf32>, %o: tensor<1x2x8x4xf32>, %s: tensor<1x2x4x4xf32>) -> tensor<1x2x8x4xf32> {
  // expected-error @+1 {{'linattn.scan' op cannot run in form chunk: decays and rank-1 transitions have no chunk form yet}}
  %r:2 = linattn.scan %q, %q, %q decay(%g) into(%o) init(%s)
    : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<2xf32>, tensor<1x2x8x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x8x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0 : tensor<1x2x8x4xf32>
}

// -----

func.func @exclusive(%q: tensor<1x2x8x4xf32>, %o: tensor<1x2x8x4xf32>, %s: tensor<1x2x4x4xf32>) -> tensor<1x2x8x4xf32> {
  // expected-error @+1 {{'linattn.scan' op cannot run in form chunk: the chunk form reads inclusively}}
  %r:2 = linattn.scan %q, %q, %q readout(exclusive) into(%o) init(%s)
    : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x8x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0 : tensor<1x2x8x4xf32>
}

// -----

func.func @reverse(%q: tensor<1x2x8x4xf32>, %o: tensor<1x2x8x4xf32>, %s: tensor<1x2x4x4xf32>) -> tensor<1x2x8x4xf32> {
  // expected-error @+1 {{'linattn.scan' op cannot run in form chunk: reverse and packed sequences cannot be cut into chunks}}
  %r:2 = linattn.scan %q, %q, %q into(%o) init(%s) {reverse}
    : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x8x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0 : tensor<1x2x8x4xf32>
}

// RUN: not linattn-opt %s --linattn-select-form=form=chunk:99999999 2>&1 | FileCheck %s --check-prefix=LARGE
// LARGE: error: expected form to be auto, token, state_tile, chunk or chunk:SIZE with a SIZE from 1 to 1048576, but got chunk:99999999
// RUN: not linattn-opt %s --linattn-select-form=registers=-4 2>&1 | FileCheck %s --check-prefix=REGISTERS
// REGISTERS: error: expected registers to be a power of two from 16 to 64, but got -4
// RUN: not linattn-opt %s --linattn-reassociate=vector-bits=0 2>&1 | FileCheck %s --check-prefix=BITS
// RUN: not linattn-opt %s --linattn-lower-to-vector=vector-bits=0 2>&1 | FileCheck %s --check-prefix=BITS
// BITS: error: expected vector-bits to be a power of two from 128 to 4096, but got 0
