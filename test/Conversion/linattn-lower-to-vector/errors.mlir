// RUN: linattn-opt %s --pass-pipeline='builtin.module(func.func(linattn-lower-to-vector{vector-bits=512 registers=32}))' --split-input-file --verify-diagnostics

// A schedule written by hand that the emitter cannot follow is refused: nothing
// falls back to naive loops behind the user's back.

func.func @rows(%q: memref<1x2x8x32xf32>, %s: memref<1x2x32x32xf32>) {
  // expected-error @below {{expected config rows to be a power of two up to 32, but got 6}}
  linattn.scan %q, %q, %q into(%q) init(%s) {config = #linattn.config<form = state_tile, rows = 6, cols = 32, block = 32>}
    : (memref<1x2x8x32xf32>, memref<1x2x8x32xf32>, memref<1x2x8x32xf32>, memref<1x2x8x32xf32>, memref<1x2x32x32xf32>) -> ()
  return
}

// -----

func.func @cols(%q: memref<1x2x8x32xf32>, %s: memref<1x2x32x32xf32>) {
  // expected-error @below {{expected config cols to be a multiple of 16, the lanes of a vector, but got 24}}
  linattn.state %q, %q init(%s) {config = #linattn.config<form = state_tile, rows = 8, cols = 24, block = 32>}
    : (memref<1x2x8x32xf32>, memref<1x2x8x32xf32>, memref<1x2x32x32xf32>) -> ()
  return
}

// -----

func.func @block(%q: memref<1x2x8x32xf32>, %s: memref<1x2x32x32xf32>, %o: memref<1x2x8x32xf32>) {
  // expected-error @below {{expected config block to be a multiple of the 8 rows, but got 12}}
  linattn.read %q, %s into(%o) {config = #linattn.config<form = state_tile, rows = 8, cols = 32, block = 12>}
    : (memref<1x2x8x32xf32>, memref<1x2x32x32xf32>, memref<1x2x8x32xf32>) -> ()
  return
}

// -----

func.func @quadratic(%q: memref<1x2x8x32xf32>, %o: memref<1x2x8x32xf32>) {
  // expected-error @below {{expected config cols to be a multiple of the 32 rows, but got 16}}
  linattn.quadratic %q, %q, %q into(%o) {config = #linattn.config<form = quadratic, rows = 32, cols = 16, block = 32>}
    : (memref<1x2x8x32xf32>, memref<1x2x8x32xf32>, memref<1x2x8x32xf32>, memref<1x2x8x32xf32>) -> ()
  return
}

// -----

func.func @value_decay(%q: memref<1x2x8x32xf32>, %o: memref<1x2x8x32xf32>, %s: memref<1x2x32x32xf32>) {
  // expected-error @below {{cannot run in form chunk: a decay per value column does not factor into products of chunks}}
  linattn.scan %q, %q, %q value_decay(%q) into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 16>}
    : (memref<1x2x8x32xf32>, memref<1x2x8x32xf32>, memref<1x2x8x32xf32>, memref<1x2x8x32xf32>, memref<1x2x8x32xf32>, memref<1x2x32x32xf32>) -> ()
  return
}

// -----

func.func @delta(%q: memref<1x2x8x32xf32>, %b: memref<1x2x8xf32>, %o: memref<1x2x8x32xf32>, %s: memref<1x2x32x32xf32>) {
  // expected-error @below {{cannot run in form state_tile: a rank-1 transition couples the rows of a state column}}
  linattn.scan %q, %q, %q beta(%b) update(delta) into(%o) init(%s) {config = #linattn.config<form = state_tile>}
    : (memref<1x2x8x32xf32>, memref<1x2x8x32xf32>, memref<1x2x8x32xf32>, memref<1x2x8xf32>, memref<1x2x8x32xf32>, memref<1x2x32x32xf32>) -> ()
  return
}

// -----

func.func @large(%q: memref<1x2x8x32xf32>, %o: memref<1x2x8x32xf32>, %s: memref<1x2x32x32xf32>) {
  // expected-error @below {{expected config chunk to be at most 1024, but got 2048}}
  linattn.scan %q, %q, %q into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 2048>}
    : (memref<1x2x8x32xf32>, memref<1x2x8x32xf32>, memref<1x2x8x32xf32>, memref<1x2x8x32xf32>, memref<1x2x32x32xf32>) -> ()
  return
}
