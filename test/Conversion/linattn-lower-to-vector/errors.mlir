// RUN: linattn-opt %s --linattn-lower-to-vector --split-input-file --verify-diagnostics
// RUN: not linattn-opt %s --linattn-lower-to-vector=vector-bits=100 --split-input-file

func.func @cols(%k: memref<1x2x8x4xf32>, %s: memref<1x2x4x4xf32>) {
  // expected-error @+1 {{'linattn.state' op expected config cols to be a multiple of 16, the lanes of a vector, but got 20}}
  linattn.state %k, %k init(%s) {config = #linattn.config<form = state_tile, cols = 20>} : (memref<1x2x8x4xf32>, memref<1x2x8x4xf32>, memref<1x2x4x4xf32>) -> ()
  return
}

// -----

func.func @rows(%k: memref<1x2x8x4xf32>, %s: memref<1x2x4x4xf32>) {
  // expected-error @+1 {{'linattn.state' op expected config rows to be a power of two up to 32, but got 6}}
  linattn.state %k, %k init(%s) {config = #linattn.config<form = state_tile, rows = 6>} : (memref<1x2x8x4xf32>, memref<1x2x8x4xf32>, memref<1x2x4x4xf32>) -> ()
  return
}

// -----

func.func @block(%k: memref<1x2x8x4xf32>, %s: memref<1x2x4x4xf32>) {
  // expected-error @+1 {{'linattn.state' op expected config block to be a multiple of the 8 rows, but got 12}}
  linattn.state %k, %k init(%s) {config = #linattn.config<form = state_tile, rows = 8, block = 12>} : (memref<1x2x8x4xf32>, memref<1x2x8x4xf32>, memref<1x2x4x4xf32>) -> ()
  return
}
