// RUN: linattn-opt %s --linattn-emulate-amx --split-input-file --verify-diagnostics

func.func @half(%a: memref<16x32xf16>, %c: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %x = amx.tile_load %a[%c0, %c0] : memref<16x32xf16> into !amx.tile<16x32xf16>
  %z = amx.tile_load %c[%c0, %c0] : memref<16x16xf32> into !amx.tile<16x16xf32>
  // expected-error @+1 {{cannot be emulated: its factors are not bf16}}
  %y = amx.tile_mulf %x, %x, %z : !amx.tile<16x32xf16>, !amx.tile<16x32xf16>, !amx.tile<16x16xf32>
  amx.tile_store %c[%c0, %c0], %y : memref<16x16xf32>, !amx.tile<16x16xf32>
  return
}

// -----

func.func @carried(%c: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = amx.tile_zero : !amx.tile<16x16xf32>
  %r = scf.for %k = %c0 to %c1 step %c1 iter_args(%x = %z) -> (!amx.tile<16x16xf32>) {
    %y = amx.tile_zero : !amx.tile<16x16xf32>
    // expected-error @+1 {{cannot be emulated: it takes a tile from its block to another one}}
    scf.yield %y : !amx.tile<16x16xf32>
  }
  amx.tile_store %c[%c0, %c0], %r : memref<16x16xf32>, !amx.tile<16x16xf32>
  return
}

// -----

func.func @outer(%c: memref<16x16xf32>, %b: i1) {
  %c0 = arith.constant 0 : index
  %z = amx.tile_zero : !amx.tile<16x16xf32>
  scf.if %b {
    // expected-error @+1 {{cannot be emulated: it takes a tile of another block}}
    amx.tile_store %c[%c0, %c0], %z : memref<16x16xf32>, !amx.tile<16x16xf32>
  }
  return
}

// -----

func.func @integers(%a: memref<16x64xi8>, %c: memref<16x16xi32>) {
  %c0 = arith.constant 0 : index
  %x = amx.tile_load %a[%c0, %c0] : memref<16x64xi8> into !amx.tile<16x64xi8>
  %z = amx.tile_load %c[%c0, %c0] : memref<16x16xi32> into !amx.tile<16x16xi32>
  // expected-error @+1 {{cannot be emulated: it is not a product of floats}}
  %y = amx.tile_muli %x, %x, %z : !amx.tile<16x64xi8>, !amx.tile<16x64xi8>, !amx.tile<16x16xi32>
  amx.tile_store %c[%c0, %c0], %y : memref<16x16xi32>, !amx.tile<16x16xi32>
  return
}
