// RUN: linattn-opt %s --pass-pipeline='builtin.module(func.func(linattn-lower-to-vector{vector-bits=512 registers=32},canonicalize))' | FileCheck %s --check-prefixes=CHECK,WIDE
// RUN: linattn-opt %s --pass-pipeline='builtin.module(func.func(linattn-lower-to-vector{vector-bits=256 registers=16},canonicalize))' | FileCheck %s --check-prefixes=CHECK,NARROW

// One token passes over the state once: whole rows where the registers can
// accumulate them, prefetched memory, scratch on the stack.
// CHECK-LABEL: func.func @add
// CHECK: scf.parallel
// CHECK-COUNT-3: memref.alloca() {alignment = 64 : i64} : memref<{{(1x)?}}1x128xf32>
// CHECK-NOT: memref.alloc()
// CHECK: scf.for {{.+}} = %c0 to %c128 step %c1
// CHECK: memref.prefetch {{.+}}, write, locality<3>, data
// WIDE: vector.transfer_read {{.+}}, vector<128xf32>
// NARROW: vector.transfer_read {{.+}}, vector<64xf32>
// CHECK: vector.transfer_write
// CHECK: return
func.func @add(%q: memref<1x2x1x128xf32>, %o: memref<1x2x1x128xf32>, %s: memref<1x2x128x128xf32>) {
  linattn.scan %q, %q, %q into(%o) init(%s) {config = #linattn.config<form = token>}
    : (memref<1x2x1x128xf32>, memref<1x2x1x128xf32>, memref<1x2x1x128xf32>, memref<1x2x1x128xf32>, memref<1x2x128x128xf32>) -> ()
  return
}

// A rank-1 update reads a panel before it writes it, from the last row, and
// prefetches the next panel meanwhile, each row after the one that is written.
// CHECK-LABEL: func.func @delta
// CHECK: scf.parallel
// CHECK-NOT: memref.alloc()
// CHECK: scf.for
// CHECK-NOT: memref.prefetch
// CHECK: scf.yield
// WIDE: vector.transfer_read {{.+}}, vector<32xf32>
// NARROW: vector.transfer_read {{.+}}, vector<16xf32>
// CHECK-NOT: memref.prefetch
// CHECK: vector.transfer_write
// CHECK: memref.prefetch {{.+}}, write, locality<3>, data
// CHECK: vector.transfer_write
// CHECK: return
func.func @delta(%q: memref<1x2x1x128xf32>, %beta: memref<1x2x1xf32>, %o: memref<1x2x1x128xf32>, %s: memref<1x2x128x128xf32>) {
  linattn.scan %q, %q, %q beta(%beta) update(delta) into(%o) init(%s) {config = #linattn.config<form = token>}
    : (memref<1x2x1x128xf32>, memref<1x2x1x128xf32>, memref<1x2x1x128xf32>, memref<1x2x1xf32>, memref<1x2x1x128xf32>, memref<1x2x128x128xf32>) -> ()
  return
}

// An open number of tokens: scratch for a block of them, which is large.
// CHECK-LABEL: func.func @dynamic
// CHECK: scf.parallel
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<32x128xf32>
// CHECK: return
func.func @dynamic(%q: memref<1x2x?x128xf32>, %o: memref<1x2x?x128xf32>, %s: memref<1x2x128x128xf32>) {
  linattn.scan %q, %q, %q into(%o) init(%s) {config = #linattn.config<form = token>}
    : (memref<1x2x?x128xf32>, memref<1x2x?x128xf32>, memref<1x2x?x128xf32>, memref<1x2x?x128xf32>, memref<1x2x128x128xf32>) -> ()
  return
}

// A few tokens see a row of the state one after the other while it is in
// registers: it is loaded and stored once, and each token has a sum.
// CHECK-LABEL: func.func @several
// WIDE: scf.for {{.+}} = %c0 to %c128 step %c1 iter_args({{.+}}, {{.+}}, {{.+}}, {{.+}}) -> (vector<64xf32>, vector<64xf32>, vector<64xf32>, vector<64xf32>)
// WIDE: vector.transfer_read {{.+}}, vector<64xf32>
// WIDE-COUNT-8: vector.fma
// WIDE-NEXT: vector.transfer_write
// WIDE-NEXT: scf.yield
// NARROW: scf.for {{.+}} = %c0 to %c128 step %c1 iter_args({{.+}}, {{.+}}, {{.+}}, {{.+}}) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// NARROW-COUNT-8: vector.fma
// NARROW-NEXT: vector.transfer_write
// CHECK: return
func.func @several(%q: memref<1x2x4x128xf32>, %o: memref<1x2x4x128xf32>, %s: memref<1x2x128x128xf32>) {
  linattn.scan %q, %q, %q into(%o) init(%s) {config = #linattn.config<form = token>}
    : (memref<1x2x4x128xf32>, memref<1x2x4x128xf32>, memref<1x2x4x128xf32>, memref<1x2x4x128xf32>, memref<1x2x128x128xf32>) -> ()
  return
}

// More than registers can accumulate: passes of the same length, here 5 and 4,
// and 3, 3 and 3.
// CHECK-LABEL: func.func @passes
// WIDE: scf.for {{.+}} = %c0 to %c128 {{.+}} -> (vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>)
// WIDE: scf.for {{.+}} = %c0 to %c128 {{.+}} -> (vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>) {
// NARROW-COUNT-3: scf.for {{.+}} = %c0 to %c128 {{.+}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>) {
// CHECK: return
func.func @passes(%q: memref<1x2x9x128xf32>, %o: memref<1x2x9x128xf32>, %s: memref<1x2x128x128xf32>) {
  linattn.scan %q, %q, %q into(%o) init(%s) {config = #linattn.config<form = token>}
    : (memref<1x2x9x128xf32>, memref<1x2x9x128xf32>, memref<1x2x9x128xf32>, memref<1x2x9x128xf32>, memref<1x2x128x128xf32>) -> ()
  return
}

// A rank-1 update needs the state of the token before for its read: for more
// than a few tokens the panel is copied to where its rows are neighbours.
// CHECK-LABEL: func.func @delta_several
// WIDE: %[[PANEL:.+]] = memref.alloca() {{.+}} : memref<128x32xf32>
// NARROW: %[[PANEL:.+]] = memref.alloca() {{.+}} : memref<128x16xf32>
// CHECK: vector.transfer_read
// CHECK: vector.store {{.+}}, %[[PANEL]]
// CHECK: scf.for {{.+}} = %c0 to %c4
// CHECK: vector.load %[[PANEL]]
// CHECK: memref.prefetch
// CHECK: vector.load %[[PANEL]]
// CHECK: vector.transfer_write
// CHECK: return
func.func @delta_several(%q: memref<1x2x4x128xf32>, %beta: memref<1x2x4xf32>, %o: memref<1x2x4x128xf32>, %s: memref<1x2x128x128xf32>) {
  linattn.scan %q, %q, %q beta(%beta) update(delta) into(%o) init(%s) {config = #linattn.config<form = token>}
    : (memref<1x2x4x128xf32>, memref<1x2x4x128xf32>, memref<1x2x4x128xf32>, memref<1x2x4xf32>, memref<1x2x4x128xf32>, memref<1x2x128x128xf32>) -> ()
  return
}
