// RUN: linattn-opt %s --split-input-file --linattn-lower-to-vector='vector-bits=512 registers=32' --canonicalize --cse --verify-diagnostics | FileCheck %s

// S X, panel by panel: numbers of the state with a vector of tokens, for two blocks of rows. The sums are
// transposed and written when both panels have been.

// CHECK-LABEL: func.func @additive(
// CHECK-SAME:    %[[O:[^:]+]]: memref<1x2x48x64xf32>, %[[P:[^:]+]]: memref<1x2x48x64xf32>, %[[S:[^:]+]]: memref<1x2x64x64xf32>)
// CHECK:         %[[TILE:.+]] = memref.alloca() {{.*}}: memref<2x64x32xf32>
// CHECK:           vector.transfer_write {{.*}} %[[O]]
// CHECK:           scf.for {{.*}} -> ({{(vector<16xf32>, ){15}(vector<16xf32>)}})
// CHECK:             memref.load %[[TILE]]
// CHECK:             vector.fma {{.*}} : vector<16xf32>
// CHECK:           vector.store {{.*}} %[[TILE]]
// CHECK-COUNT-64:  vector.shuffle
// CHECK:           vector.transfer_write {{.*}} %[[P]]
// CHECK:         vector.transfer_write {{.*}} %[[S]]
func.func @additive(%q: memref<1x2x48x64xf32>, %k: memref<1x2x48x64xf32>, %v: memref<1x2x48x64xf32>, %x: memref<1x2x48x64xf32>, %o: memref<1x2x48x64xf32>, %p: memref<1x2x48x64xf32>, %s: memref<1x2x64x64xf32>) {
  linattn.sweep %q, %k, %v value_query(%x) into(%o, %p) init(%s) {config = #linattn.config<form = chunk, chunk = 16, rows = 8, cols = 32, block = 32>}
    : (memref<1x2x48x64xf32>, memref<1x2x48x64xf32>, memref<1x2x48x64xf32>, memref<1x2x48x64xf32>, memref<1x2x48x64xf32>, memref<1x2x48x64xf32>, memref<1x2x64x64xf32>) -> ()
  return
}

// -----

// The query is a, which sees the same state: rows of the solution are the outputs, and nothing packs queries.

// CHECK-LABEL: func.func @solution(
// CHECK-SAME:    %[[K:[^:]+]]: memref<1x2x48x64xf32>, %[[V:[^:]+]]: memref<1x2x48x64xf32>, %[[A:[^:]+]]: memref<1x2x48x64xf32>
// CHECK-COUNT-4: vector.transfer_read %[[A]]
// CHECK-NOT:     vector.transfer_read %[[A]]
func.func @solution(%k: memref<1x2x48x64xf32>, %v: memref<1x2x48x64xf32>, %a: memref<1x2x48x64xf32>, %o: memref<1x2x48x64xf32>, %s: memref<1x2x64x64xf32>) {
  linattn.scan %a, %k, %v a(%a) b(%k) update(dplr) readout(exclusive) transition(before) into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 16, rows = 8, cols = 32, block = 32>}
    : (memref<1x2x48x64xf32>, memref<1x2x48x64xf32>, memref<1x2x48x64xf32>, memref<1x2x48x64xf32>, memref<1x2x48x64xf32>, memref<1x2x48x64xf32>, memref<1x2x64x64xf32>) -> ()
  return
}

// -----

// Any other state than a sees has its own read.

// CHECK-LABEL: func.func @inclusive(
// CHECK-SAME:    %[[K:[^:]+]]: memref<1x2x48x64xf32>, %[[V:[^:]+]]: memref<1x2x48x64xf32>, %[[A:[^:]+]]: memref<1x2x48x64xf32>
// CHECK-COUNT-5: vector.transfer_read %[[A]]
func.func @inclusive(%k: memref<1x2x48x64xf32>, %v: memref<1x2x48x64xf32>, %a: memref<1x2x48x64xf32>, %o: memref<1x2x48x64xf32>, %s: memref<1x2x64x64xf32>) {
  linattn.scan %a, %k, %v a(%a) b(%k) update(dplr) transition(before) into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 16, rows = 8, cols = 32, block = 32>}
    : (memref<1x2x48x64xf32>, memref<1x2x48x64xf32>, memref<1x2x48x64xf32>, memref<1x2x48x64xf32>, memref<1x2x48x64xf32>, memref<1x2x48x64xf32>, memref<1x2x64x64xf32>) -> ()
  return
}

// -----

func.func @other_form(%q: memref<1x2x?x4xf32>, %k: memref<1x2x?x4xf32>, %v: memref<1x2x?x3xf32>, %x: memref<1x2x?x3xf32>, %o: memref<1x2x?x3xf32>, %p: memref<1x2x?x4xf32>, %s: memref<1x2x4x3xf32>) {
  // expected-error @+1 {{expected config form chunk for all lengths, but got #linattn.config<form = token>}}
  linattn.sweep %q, %k, %v value_query(%x) into(%o, %p) init(%s) {config = #linattn.config<form = token>}
    : (memref<1x2x?x4xf32>, memref<1x2x?x4xf32>, memref<1x2x?x3xf32>, memref<1x2x?x3xf32>, memref<1x2x?x3xf32>, memref<1x2x?x4xf32>, memref<1x2x4x3xf32>) -> ()
  return
}
