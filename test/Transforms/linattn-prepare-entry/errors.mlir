// RUN: linattn-opt %s --linattn-prepare-entry --split-input-file --verify-diagnostics

// expected-error @+1 {{'unranked' argument #0: expected a ranked tensor, but got 'tensor<*xf32>'}}
func.func @unranked(%x: tensor<*xf32>) {
  return
}

// -----

// expected-error @+1 {{'buffer' argument #1: expected a tensor or scalar of f16, bf16, f32, f64, i1, i8, i16, i32, i64 or index, but got 'memref<4xf32>'}}
func.func @buffer(%x: f32, %y: memref<4xf32>) {
  return
}

// -----

// expected-error @+1 {{'odd' result #0: expected a tensor or scalar of f16, bf16, f32, f64, i1, i8, i16, i32, i64 or index, but got 'tensor<4xi7>'}}
func.func @odd() -> tensor<4xi7> {
  %0 = arith.constant dense<1> : tensor<4xi7>
  return %0 : tensor<4xi7>
}

// -----

// expected-error @+1 {{'encoded' argument #0: expected a tensor without encoding, but got 'tensor<4xf32, "csr">'}}
func.func @encoded(%x: tensor<4xf32, "csr">) {
  return
}

// -----

// expected-note @+1 {{declared here}}
func.func private @extern(f32) -> f32
func.func @external(%x: f32) -> f32 {
  // expected-error @+1 {{expected a callee with a body, but 'extern' is only declared}}
  %0 = call @extern(%x) : (f32) -> f32
  return %0 : f32
}

// -----

func.func private @even(%x: f32) -> f32 {
  %0 = call @odd(%x) : (f32) -> f32
  return %0 : f32
}
func.func private @odd(%x: f32) -> f32 {
  // expected-error @+1 {{recursive call of 'even' cannot be compiled into a kernel}}
  %0 = call @even(%x) : (f32) -> f32
  return %0 : f32
}
func.func @recursive(%x: f32) -> f32 {
  %0 = call @even(%x) : (f32) -> f32
  return %0 : f32
}

// -----

func.func private @f(%x: f32) -> f32 {
  return %x : f32
}
func.func @indirect(%x: f32) -> f32 {
  %f = constant @f : (f32) -> f32
  // expected-error @+1 {{expected a direct call, but got an indirect one}}
  %0 = call_indirect %f(%x) : (f32) -> f32
  return %0 : f32
}

// -----

// expected-error @+1 {{expected the symbol 'taken__shapes' to be free for the function that computes result shapes}}
func.func @taken(%x: f32) {
  return
}
// expected-note @+1 {{defined here}}
func.func private @taken__shapes(%x: f32) {
  return
}
