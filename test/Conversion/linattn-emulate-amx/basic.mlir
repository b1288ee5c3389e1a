// RUN: linattn-opt %s --linattn-emulate-amx | FileCheck %s
// RUN: linattn-opt %s --linattn-emulate-amx=keep-subnormals | FileCheck %s --check-prefix=KEEP

// Two chains of fused products, their sum, and the sum with what was there; each
// flushed. A second product of the same sums takes their place, and the
// operands of the first one go.

// CHECK-LABEL: func.func @products(
// CHECK-COUNT-2: memref.alloca() {{.*}} : memref<16x32xbf16>
// CHECK:         memref.alloca() {{.*}} : memref<16x16xf32>
// CHECK-NOT:     memref.alloca
// CHECK:         %[[CHAINS:.+]]:2 = scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>)
// CHECK:           vector.deinterleave {{.*}} : vector<32xbf16> -> vector<16xbf16>
// CHECK:           %[[EVEN:.+]] = vector.fma
// CHECK:           math.absf %[[EVEN]]
// CHECK:           %[[ODD:.+]] = vector.fma
// CHECK:           math.absf %[[ODD]]
// CHECK:         %[[BOTH:.+]] = arith.addf %[[CHAINS]]#0, %[[CHAINS]]#1
// CHECK:         math.absf %[[BOTH]]
// CHECK:         arith.addf
// CHECK:         vector.deinterleave
// CHECK-NOT:     amx.
// KEEP-LABEL: func.func @products(
// KEEP-NOT:      math.absf
// KEEP:          vector.fma
// KEEP-NOT:      math.absf
func.func @products(%a: memref<4x16x32xbf16>, %c: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = amx.tile_zero : !amx.tile<16x16xf32>
  %a0 = amx.tile_load %a[%c0, %c0, %c0] : memref<4x16x32xbf16> into !amx.tile<16x32xbf16>
  %b0 = amx.tile_load %a[%c1, %c0, %c0] : memref<4x16x32xbf16> into !amx.tile<16x32xbf16>
  %x = amx.tile_mulf %a0, %b0, %z : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
  %a1 = amx.tile_load %a[%c1, %c0, %c0] : memref<4x16x32xbf16> into !amx.tile<16x32xbf16>
  %b1 = amx.tile_load %a[%c0, %c0, %c0] : memref<4x16x32xbf16> into !amx.tile<16x32xbf16>
  %y = amx.tile_mulf %a1, %b1, %x : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
  amx.tile_store %c[%c0, %c0], %y : memref<16x16xf32>, !amx.tile<16x16xf32>
  return
}

// Sums that are used again are copied first.

// CHECK-LABEL: func.func @reused(
// CHECK:         %[[NEW:.+]] = memref.alloca() {{.*}} : memref<16x16xf32>
// CHECK:         %[[OLD:.+]] = memref.alloca() {{.*}} : memref<16x16xf32>
// CHECK:         %[[ROW:.+]] = vector.load %[[OLD]][{{.*}}] : memref<16x16xf32>, vector<16xf32>
// CHECK:         vector.store %[[ROW]], %[[NEW]][{{.*}}] : memref<16x16xf32>, vector<16xf32>
func.func @reused(%a: memref<16x32xbf16>, %c: memref<2x16x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = amx.tile_zero : !amx.tile<16x16xf32>
  %a0 = amx.tile_load %a[%c0, %c0] : memref<16x32xbf16> into !amx.tile<16x32xbf16>
  %x = amx.tile_mulf %a0, %a0, %z : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
  amx.tile_store %c[%c0, %c0, %c0], %x : memref<2x16x16xf32>, !amx.tile<16x16xf32>
  amx.tile_store %c[%c1, %c0, %c0], %z : memref<2x16x16xf32>, !amx.tile<16x16xf32>
  return
}

// Rows of a buffer of one dimension follow the stride.

// CHECK-LABEL: func.func @strided(
// CHECK-SAME:    %[[A:.+]]: memref<?xf32>, %[[S:.+]]: index
// CHECK:         %[[PLACE:.+]] = arith.muli %[[S]],
// CHECK:         vector.load %[[A]][%{{.+}}] : memref<?xf32>, vector<16xf32>
// CHECK:         arith.muli %[[S]],
// CHECK:         vector.store %{{.+}}, %[[A]][%{{.+}}] : memref<?xf32>, vector<16xf32>
func.func @strided(%a: memref<?xf32>, %s: index) {
  %c0 = arith.constant 0 : index
  %t = amx.tile_load %a[%c0], %s : memref<?xf32> into !amx.tile<4x16xf32>
  amx.tile_store %a[%c0], %t, %s : memref<?xf32>, !amx.tile<4x16xf32>
  return
}
