// RUN: linattn-opt %s --linattn-to-finite-field --split-input-file --verify-diagnostics

func.func @bits(%x: f32) -> i32 {
  // expected-error @below {{'arith.bitcast' op has no meaning in a prime field}}
  %r = arith.bitcast %x : f32 to i32
  return %r : i32
}

// -----

// Not lowered yet.
func.func @structured(%x: memref<1x1x2x4xf32>) {
  // expected-error @below {{'linattn.feature_map' op has no meaning in a prime field}}
  linattn.feature_map %x into(%x) {feature_map = #linattn.feature_map<relu>} : (memref<1x1x2x4xf32>, memref<1x1x2x4xf32>) -> ()
  return
}

// -----

func.func @complex(%x: memref<4xcomplex<f32>>, %i: index) -> complex<f32> {
  // expected-error @below {{'memref.load' op has no meaning in a prime field}}
  %r = memref.load %x[%i] : memref<4xcomplex<f32>>
  return %r : complex<f32>
}

// -----

func.func @view(%x: memref<64xi8>, %i: index) -> memref<4xf32> {
  // expected-error @below {{'memref.view' op has no meaning in a prime field}}
  %r = memref.view %x[%i][] : memref<64xi8> to memref<4xf32>
  return %r : memref<4xf32>
}

// -----

// Its elements have no values in a field.
// expected-error @below {{'func.func' op has no meaning in a prime field}}
func.func private @external(f32) -> f32

// -----

// expected-error @below {{'func.func' op has a name that is reserved: @linattn_field0_add}}
func.func @linattn_field0_add() {
  return
}
