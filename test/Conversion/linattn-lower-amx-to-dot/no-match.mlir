// RUN: linattn-opt %s --linattn-lower-amx-to-dot --split-input-file --verify-diagnostics

func.func @half(%a: memref<16x32xf16>, %c: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %x = amx.tile_load %a[%c0, %c0] : memref<16x32xf16> into !amx.tile<16x32xf16>
  %z = amx.tile_load %c[%c0, %c0] : memref<16x16xf32> into !amx.tile<16x16xf32>
  // expected-error @+1 {{has no dot products: its factors are not bf16}}
  %y = amx.tile_mulf %x, %x, %z : !amx.tile<16x32xf16>, !amx.tile<16x32xf16>, !amx.tile<16x16xf32>
  amx.tile_store %c[%c0, %c0], %y : memref<16x16xf32>, !amx.tile<16x16xf32>
  return
}

// -----

func.func @columns(%a: memref<16x32xbf16>, %c: memref<16x8xf32>) {
  %c0 = arith.constant 0 : index
  %x = amx.tile_load %a[%c0, %c0] : memref<16x32xbf16> into !amx.tile<16x32xbf16>
  %w = amx.tile_load %a[%c0, %c0] : memref<16x32xbf16> into !amx.tile<16x16xbf16>
  %z = amx.tile_load %c[%c0, %c0] : memref<16x8xf32> into !amx.tile<16x8xf32>
  // expected-error @+1 {{has no dot products: its sums have 8 columns, not 16}}
  %y = amx.tile_mulf %x, %w, %z : !amx.tile<16x32xbf16>, !amx.tile<16x16xbf16>, !amx.tile<16x8xf32>
  amx.tile_store %c[%c0, %c0], %y : memref<16x8xf32>, !amx.tile<16x8xf32>
  return
}

// -----

func.func @zero(%c: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %x = amx.tile_zero : !amx.tile<16x32xbf16>
  %z = amx.tile_zero : !amx.tile<16x16xf32>
  // expected-error @+1 {{has no dot products: its operand is not a tile in memory}}
  %y = amx.tile_mulf %x, %x, %z : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
  amx.tile_store %c[%c0, %c0], %y : memref<16x16xf32>, !amx.tile<16x16xf32>
  return
}

// -----

func.func @changed(%a: memref<16x32xbf16>, %c: memref<16x16xf32>, %n: bf16) {
  %c0 = arith.constant 0 : index
  %x = amx.tile_load %a[%c0, %c0] : memref<16x32xbf16> into !amx.tile<16x32xbf16>
  memref.store %n, %a[%c0, %c0] : memref<16x32xbf16>
  %z = amx.tile_zero : !amx.tile<16x16xf32>
  // expected-error @+1 {{has no dot products: the memory of its operand may have changed}}
  %y = amx.tile_mulf %x, %x, %z : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
  amx.tile_store %c[%c0, %c0], %y : memref<16x16xf32>, !amx.tile<16x16xf32>
  return
}

// -----

func.func @operand(%a: memref<16x32xbf16>, %b: memref<16x32xbf16>) {
  %c0 = arith.constant 0 : index
  %x = amx.tile_load %a[%c0, %c0] : memref<16x32xbf16> into !amx.tile<16x32xbf16>
  // expected-error @+1 {{has no dot products: it does not store sums}}
  amx.tile_store %b[%c0, %c0], %x : memref<16x32xbf16>, !amx.tile<16x32xbf16>
  return
}
