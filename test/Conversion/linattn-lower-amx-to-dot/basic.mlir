// RUN: linattn-opt %s --linattn-lower-amx-to-dot | FileCheck %s

// A vector for each row of sums, which one loop over pairs carries. A pair of the
// left tile is in all lanes, a row of the right one has a pair for each column.

// CHECK-LABEL: func.func @product(
// CHECK-SAME:    %[[A:.+]]: memref<4x16x32xbf16>, %[[C:.+]]: memref<16x16xf32>
// CHECK:         %[[SUMS:.+]]:16 = scf.for %[[P:[^ ]+]] = %c0{{.*}} to %c16{{.*}} iter_args(%[[X:[^ ]+]] = %{{.+}}, {{.*}}) -> (vector<16xf32>,
// CHECK:           %[[B:.+]] = vector.load %[[A]][%c1{{.*}}, %{{.+}}, %{{.+}}] : memref<4x16x32xbf16>, vector<32xbf16>
// CHECK:           %[[PAIR:.+]] = vector.load %[[A]][%c0{{.*}}, %{{.+}}, %{{.+}}] : memref<4x16x32xbf16>, vector<2xbf16>
// CHECK:           %[[WORD:.+]] = vector.bitcast %[[PAIR]] : vector<2xbf16> to vector<1xi32>
// CHECK:           %[[ALL:.+]] = vector.bitcast %{{.+}} : vector<16xi32> to vector<32xbf16>
// CHECK:           llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%[[X]], %[[B]], %[[ALL]])
// CHECK-COUNT-15:  llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// CHECK-NOT:       llvm.call_intrinsic
// CHECK:         vector.store %[[SUMS]]#0, %[[C]]
// CHECK-COUNT-15: vector.store
// CHECK-NOT:     amx.
func.func @product(%a: memref<4x16x32xbf16>, %c: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = amx.tile_zero : !amx.tile<16x16xf32>
  %a0 = amx.tile_load %a[%c0, %c0, %c0] : memref<4x16x32xbf16> into !amx.tile<16x32xbf16>
  %b0 = amx.tile_load %a[%c1, %c0, %c0] : memref<4x16x32xbf16> into !amx.tile<16x32xbf16>
  %x = amx.tile_mulf %a0, %b0, %z : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
  amx.tile_store %c[%c0, %c0], %x : memref<16x16xf32>, !amx.tile<16x16xf32>
  return
}

// A product adds to sums that were in memory, and of two products the first one
// may be stored between them.

// CHECK-LABEL: func.func @added(
// CHECK-COUNT-16: vector.load %{{.+}} : memref<?xf32>, vector<16xf32>
// CHECK:         %[[FIRST:.+]]:16 = scf.for
// CHECK:         vector.store %[[FIRST]]#0
// CHECK:         scf.for {{.*}} iter_args(%{{.+}} = %[[FIRST]]#0,
func.func @added(%a: memref<16x32xbf16>, %c: memref<?xf32>, %s: index) {
  %c0 = arith.constant 0 : index
  %z = amx.tile_load %c[%c0], %s : memref<?xf32> into !amx.tile<16x16xf32>
  %a0 = amx.tile_load %a[%c0, %c0] : memref<16x32xbf16> into !amx.tile<16x32xbf16>
  %x = amx.tile_mulf %a0, %a0, %z : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
  amx.tile_store %c[%c0], %x, %s : memref<?xf32>, !amx.tile<16x16xf32>
  %y = amx.tile_mulf %a0, %a0, %x : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
  amx.tile_store %c[%c0], %y, %s : memref<?xf32>, !amx.tile<16x16xf32>
  return
}

// Tiles that follow one another in memory are steps of one loop, from three on.

// CHECK-LABEL: func.func @chain(
// CHECK-SAME:    %[[A:.+]]: memref<3x16x32xbf16>, %[[B:.+]]: memref<8x16x32xbf16>
// CHECK:         scf.for %[[STEP:.+]] = %c0{{.*}} to %c3{{.*}} step
// CHECK:           scf.for
// CHECK:             %[[TILE:.+]] = arith.addi %[[STEP]], %c2
// CHECK:             vector.load %[[B]][%[[TILE]], {{.+}} : memref<8x16x32xbf16>, vector<32xbf16>
// CHECK:             vector.load %[[A]][%[[STEP]], {{.+}} : memref<3x16x32xbf16>, vector<2xbf16>
// CHECK-COUNT-16:    llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// CHECK-NOT:     llvm.call_intrinsic
// CHECK:         return
func.func @chain(%a: memref<3x16x32xbf16>, %b: memref<8x16x32xbf16>, %c: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %z = amx.tile_zero : !amx.tile<16x16xf32>
  %a0 = amx.tile_load %a[%c0, %c0, %c0] : memref<3x16x32xbf16> into !amx.tile<16x32xbf16>
  %b0 = amx.tile_load %b[%c2, %c0, %c0] : memref<8x16x32xbf16> into !amx.tile<16x32xbf16>
  %x = amx.tile_mulf %a0, %b0, %z : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
  %a1 = amx.tile_load %a[%c1, %c0, %c0] : memref<3x16x32xbf16> into !amx.tile<16x32xbf16>
  %b1 = amx.tile_load %b[%c3, %c0, %c0] : memref<8x16x32xbf16> into !amx.tile<16x32xbf16>
  %y = amx.tile_mulf %a1, %b1, %x : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
  %a2 = amx.tile_load %a[%c2, %c0, %c0] : memref<3x16x32xbf16> into !amx.tile<16x32xbf16>
  %b2 = amx.tile_load %b[%c4, %c0, %c0] : memref<8x16x32xbf16> into !amx.tile<16x32xbf16>
  %w = amx.tile_mulf %a2, %b2, %y : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
  amx.tile_store %c[%c0, %c0], %w : memref<16x16xf32>, !amx.tile<16x16xf32>
  return
}

// Two steps are two loops, as are tiles between whose products memory changes, that another reads, and that lie elsewhere.

// CHECK-LABEL: func.func @unchained(
// CHECK-COUNT-2: scf.for
// CHECK-NOT:     scf.for
// CHECK:         vector.store
// CHECK:         scf.for
// CHECK-NOT:     scf.for
// CHECK:         return
func.func @unchained(%a: memref<3x16x32xbf16>, %b: memref<3x16x32xbf16>, %c: memref<2x16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %z = amx.tile_zero : !amx.tile<16x16xf32>
  %a0 = amx.tile_load %a[%c0, %c0, %c0] : memref<3x16x32xbf16> into !amx.tile<16x32xbf16>
  %b0 = amx.tile_load %b[%c0, %c0, %c0] : memref<3x16x32xbf16> into !amx.tile<16x32xbf16>
  %x = amx.tile_mulf %a0, %b0, %z : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
  %a1 = amx.tile_load %a[%c1, %c0, %c0] : memref<3x16x32xbf16> into !amx.tile<16x32xbf16>
  %b1 = amx.tile_load %b[%c1, %c0, %c0] : memref<3x16x32xbf16> into !amx.tile<16x32xbf16>
  %y = amx.tile_mulf %a1, %b1, %x : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
  amx.tile_store %c[%c0, %c0, %c0], %y : memref<2x16x16xf32>, !amx.tile<16x16xf32>
  %a2 = amx.tile_load %a[%c2, %c0, %c0] : memref<3x16x32xbf16> into !amx.tile<16x32xbf16>
  %b2 = amx.tile_load %b[%c2, %c0, %c0] : memref<3x16x32xbf16> into !amx.tile<16x32xbf16>
  %w = amx.tile_mulf %a2, %b2, %y : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
  amx.tile_store %c[%c1, %c0, %c0], %w : memref<2x16x16xf32>, !amx.tile<16x16xf32>
  return
}
