// RUN: linattn-opt %s --linattn-lower-to-vector --canonicalize --cse | FileCheck %s

// Tokens [B, H, T, D] in memory as [B, H, D, T], a state [N, H, K, V] as
// [N, H, V, K]: blocks of 16 by 16 are transposed in registers, and no element
// is loaded alone.

!tokens = memref<1x2x64x32xf32, strided<[?, ?, 1, ?], offset: ?>>
!state = memref<1x2x32x32xf32, strided<[?, ?, 1, ?], offset: ?>>
!any = memref<1x2x?x24xf32, strided<[?, ?, 1, ?], offset: ?>>

// CHECK-LABEL: func.func @chunk(
// CHECK:         scf.parallel
// Whole lines of the state.
// CHECK:           %[[S:.+]] = memref.transpose %{{.*}} (d0, d1, d2, d3) -> (d0, d1, d3, d2) : memref<1x2x32x32xf32
// CHECK:           vector.load %[[S]]{{.*}}, vector<16xf32>
// CHECK-COUNT-64:  vector.shuffle
// Lines of tokens, whose number ends where it may.
// CHECK:           %[[Q:.+]] = memref.transpose %{{.*}} (d0, d1, d2, d3) -> (d0, d1, d3, d2) : memref<1x2x64x32xf32
// CHECK:           vector.create_mask
// CHECK:           vector.maskedload %[[Q]]
// CHECK-COUNT-64:  vector.shuffle
func.func @chunk(%q: !tokens, %b: memref<1x2x64xf32>, %s: !state, %o: memref<1x2x64x32xf32>) {
  linattn.scan %q, %q, %q beta(%b) update(delta) into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 16>} : (!tokens, !tokens, !tokens, memref<1x2x64xf32>, memref<1x2x64x32xf32>, !state) -> ()
  return
}

// One token: a block of the state is read, swept and written.

// CHECK-LABEL: func.func @step(
// CHECK:         vector.load {{.*}} : memref<1x2x32x32xf32, {{.*}}>, vector<16xf32>
// CHECK-COUNT-64: vector.shuffle
// CHECK:         vector.fma
// CHECK-COUNT-64: vector.shuffle
// CHECK:         vector.store {{.*}} : memref<1x2x32x32xf32, {{.*}}>, vector<16xf32>
func.func @step(%q: memref<1x2x1x32xf32>, %s: !state, %o: memref<1x2x1x32xf32>) {
  linattn.scan %q, %q, %q into(%o) init(%s) {config = #linattn.config<form = token>} : (memref<1x2x1x32xf32>, memref<1x2x1x32xf32>, memref<1x2x1x32xf32>, memref<1x2x1x32xf32>, !state) -> ()
  return
}

// Any number of tokens, features that are no whole block: lines past the last
// one are masked.

// CHECK-LABEL: func.func @dynamic(
// CHECK:         vector.create_mask
// CHECK:         vector.maskedload
func.func @dynamic(%q: !any, %s: memref<1x2x24x24xf32>, %o: memref<1x2x?x24xf32>) {
  linattn.scan %q, %q, %q into(%o) init(%s) {config = #linattn.config<form = state_tile>} : (!any, !any, !any, memref<1x2x?x24xf32>, memref<1x2x24x24xf32>) -> ()
  return
}
