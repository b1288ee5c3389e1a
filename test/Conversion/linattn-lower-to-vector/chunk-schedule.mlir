// RUN: linattn-opt %s --split-input-file --linattn-lower-to-vector='vector-bits=512 registers=32' --canonicalize --cse | FileCheck %s

// The rows of the next chunk are prefetched: keys while this one is solved,
// queries and outputs while it is read out, values while the state is updated.
// Past the last token it is the last one; past the span of tokens that all heads
// do in turn it is the next head's.

// CHECK-LABEL: func.func @prefetch(
// CHECK-SAME:    %[[Q:[^:]+]]: memref<1x2x?x64xf32>, %[[K:[^:]+]]: memref<1x2x?x64xf32>, %[[V:[^:]+]]: memref<1x2x?x64xf32>, %[[G:[^:]+]]: memref<1x2x?x64xf32>, %[[B:[^:]+]]: memref<1x2x?xf32>, %[[O:[^:]+]]: memref<1x2x?x64xf32>
//                    The solution.
// CHECK:             scf.for {{.*}} -> (vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>)
// CHECK:               arith.minsi
//                      A number, and rows.
// CHECK:               memref.prefetch %[[B]][%{{.+}}, %{{.+}}, %{{.+}}], read, locality<3>, data : memref<1x2x?xf32>
// CHECK-NOT:           memref.prefetch %[[V]]
//                      Rows may begin inside a line.
// CHECK-COUNT-3:       memref.prefetch %[[K]]{{.*}}, read, locality<3>, data
// CHECK-COUNT-3:       memref.prefetch %[[G]]{{.*}}, read, locality<3>, data
// CHECK-NOT:           memref.prefetch
// CHECK:               scf.for {{.*}} -> (vector<32xf32>
//                    The outputs.
// CHECK-COUNT-3:     memref.prefetch %[[Q]]{{.*}}, read, locality<3>, data
// CHECK-COUNT-3:     memref.prefetch %[[O]]{{.*}}, write, locality<3>, data
// CHECK-NOT:         memref.prefetch
// CHECK:             scf.for {{.*}} -> (vector<32xf32>
//                    The state.
// CHECK:             vector.transfer_write {{.*}} %[[O]]
// CHECK-COUNT-6:     memref.prefetch %[[V]]{{.*}}, read, locality<3>, data
// CHECK-NOT:         memref.prefetch
func.func @prefetch(%q: memref<1x2x?x64xf32>, %k: memref<1x2x?x64xf32>, %v: memref<1x2x?x64xf32>, %g: memref<1x2x?x64xf32>, %b: memref<1x2x?xf32>, %o: memref<1x2x?x64xf32>, %s: memref<1x2x64x64xf32>) {
  linattn.scan %q, %k, %v decay(%g) beta(%b) update(delta) into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 16>}
    : (memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?xf32>, memref<1x2x?x64xf32>, memref<1x2x64x64xf32>) -> ()
  return
}

// -----

// One chunk has no next one.

// CHECK-LABEL: func.func @one_chunk(
// CHECK-NOT:     memref.prefetch
func.func @one_chunk(%q: memref<1x2x16x64xf32>, %s: memref<1x2x64x64xf32>) {
  linattn.scan %q, %q, %q erase(%q) update(delta) into(%q) init(%s) {config = #linattn.config<form = chunk, chunk = 16>}
    : (memref<1x2x16x64xf32>, memref<1x2x16x64xf32>, memref<1x2x16x64xf32>, memref<1x2x16x64xf32>, memref<1x2x16x64xf32>, memref<1x2x64x64xf32>) -> ()
  return
}

// -----

// Rows of unknown size are left to the machine; they are summed all the same.

// CHECK-LABEL: func.func @open_sizes(
// CHECK-NOT:     memref.prefetch
// CHECK:         scf.for {{.*}} -> (vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>)
// CHECK-NOT:     memref.prefetch
func.func @open_sizes(%q: memref<1x2x?x?xf32>, %s: memref<1x2x?x?xf32>) {
  linattn.scan %q, %q, %q erase(%q) update(delta) into(%q) init(%s) {config = #linattn.config<form = chunk, chunk = 16>}
    : (memref<1x2x?x?xf32>, memref<1x2x?x?xf32>, memref<1x2x?x?xf32>, memref<1x2x?x?xf32>, memref<1x2x?x?xf32>, memref<1x2x?x?xf32>) -> ()
  return
}

// -----

// One state is two tasks, each with half of its four panels.

// CHECK-LABEL: func.func @one_state(
// CHECK-DAG:     %[[C2:.+]] = arith.constant 2 : index
// CHECK:         scf.parallel (%[[TASK:.+]]) = (%{{.+}}) to (%[[C2]])
// CHECK:           memref.alloca() {{.*}} : memref<2x128x32xf32>
// CHECK:           %[[PART:.+]] = arith.remsi %[[TASK]], %[[C2]]
func.func @one_state(%q: memref<1x1x?x128xf32>, %s: memref<1x1x128x128xf32>) {
  linattn.scan %q, %q, %q erase(%q) update(delta) into(%q) init(%s) {config = #linattn.config<form = chunk, chunk = 16>}
    : (memref<1x1x?x128xf32>, memref<1x1x?x128xf32>, memref<1x1x?x128xf32>, memref<1x1x?x128xf32>, memref<1x1x?x128xf32>, memref<1x1x128x128xf32>) -> ()
  return
}

// -----

// Two states are two tasks.

// CHECK-LABEL: func.func @two_states(
// CHECK-DAG:     %[[C2:.+]] = arith.constant 2 : index
// CHECK:         scf.parallel (%{{.+}}) = (%{{.+}}) to (%[[C2]])
// CHECK:           memref.alloca() {{.*}} : memref<4x128x32xf32>
func.func @two_states(%q: memref<1x2x?x128xf32>, %s: memref<1x2x128x128xf32>) {
  linattn.scan %q, %q, %q erase(%q) update(delta) into(%q) init(%s) {config = #linattn.config<form = chunk, chunk = 16>}
    : (memref<1x2x?x128xf32>, memref<1x2x?x128xf32>, memref<1x2x?x128xf32>, memref<1x2x?x128xf32>, memref<1x2x?x128xf32>, memref<1x2x128x128xf32>) -> ()
  return
}

// -----

// How many states there are is known later.

// CHECK-LABEL: func.func @some_states(
// CHECK-DAG:     %[[C1:.+]] = arith.constant 1 : index
// CHECK-DAG:     %[[C2:.+]] = arith.constant 2 : index
// CHECK:         %[[STATES:.+]] = arith.muli
// CHECK:         %[[SOME:.+]] = arith.maxsi %[[STATES]], %[[C1]]
// CHECK:         arith.divsi %[[C2]], %[[SOME]]
// CHECK:         scf.parallel
func.func @some_states(%q: memref<?x?x?x128xf32>, %s: memref<?x?x128x128xf32>) {
  linattn.scan %q, %q, %q erase(%q) update(delta) into(%q) init(%s) {config = #linattn.config<form = chunk, chunk = 16>}
    : (memref<?x?x?x128xf32>, memref<?x?x?x128xf32>, memref<?x?x?x128xf32>, memref<?x?x?x128xf32>, memref<?x?x?x128xf32>, memref<?x?x128x128xf32>) -> ()
  return
}

// -----

// A normalizer belongs to all columns.

// CHECK-LABEL: func.func @normalizer(
// CHECK-NOT:     scf.parallel
// CHECK:         memref.alloca() {{.*}} : memref<4x128x32xf32>
func.func @normalizer(%q: memref<1x1x?x128xf32>, %s: memref<1x1x128x128xf32>, %z: memref<1x1x128xf32>) {
  linattn.scan %q, %q, %q into(%q) init(%s) normalizer(%z) {config = #linattn.config<form = chunk, chunk = 16>, normalize = #linattn.normalize<eps = 1.0e-6>}
    : (memref<1x1x?x128xf32>, memref<1x1x?x128xf32>, memref<1x1x?x128xf32>, memref<1x1x?x128xf32>, memref<1x1x128x128xf32>, memref<1x1x128xf32>) -> ()
  return
}

// -----

// Under a decay per channel four keys are decayed and read at a time, and their
// scores summed together.

// CHECK-LABEL: func.func @four_keys(
// CHECK:         scf.for {{.*}} step %c4
// CHECK-COUNT-8:   vector.fma
// CHECK:           vector.shuffle
// CHECK:           vector.store {{.*}} vector<4xf32>
// CHECK:           vector.store {{.*}} vector<4xf32>
func.func @four_keys(%q: memref<1x2x?x16xf32>, %g: memref<1x2x?x16xf32>, %s: memref<1x2x16x16xf32>) {
  linattn.scan %q, %q, %q decay(%g) erase(%q) update(delta) into(%q) init(%s) {config = #linattn.config<form = chunk, chunk = 16>}
    : (memref<1x2x?x16xf32>, memref<1x2x?x16xf32>, memref<1x2x?x16xf32>, memref<1x2x?x16xf32>, memref<1x2x?x16xf32>, memref<1x2x?x16xf32>, memref<1x2x16x16xf32>) -> ()
  return
}

// -----

// Where the rows of a token's heads are neighbours, the last chunk of a span is
// followed by the first one of the next head, and that of the last head by the
// next span.

// CHECK-LABEL: func.func @next_head(
// CHECK-DAG:     %[[ZERO:.+]] = arith.constant 0 : index
// CHECK-DAG:     %[[ONE:.+]] = arith.constant 1 : index
// CHECK-DAG:     %[[HEADS:.+]] = arith.constant 8 : index
// CHECK-DAG:     %[[CHUNK:.+]] = arith.constant 16 : index
// CHECK:         scf.parallel
// CHECK:         scf.for %[[FIRST:.+]] = %[[FROM:.+]] to %[[TO:.+]] step %[[CHUNK]]
// CHECK:           %[[FOLLOW:.+]] = arith.addi %[[FIRST]], %[[CHUNK]]
// CHECK:           %[[OTHER:.+]] = arith.addi %[[HEAD:.+]], %[[ONE]]
// CHECK:           %[[LAST:.+]] = arith.cmpi sge, %[[FOLLOW]], %[[TO]]
// CHECK:           %[[LAST_HEAD:.+]] = arith.cmpi sge, %[[OTHER]], %[[HEADS]]
// CHECK:           %[[WRAPPED:.+]] = arith.select %[[LAST_HEAD]], %[[ZERO]], %[[OTHER]]
// CHECK:           %[[NEXT_HEAD:.+]] = arith.select %[[LAST]], %[[WRAPPED]], %[[HEAD]]
// CHECK:           %[[BEGIN:.+]] = arith.select %[[LAST_HEAD]], %[[TO]], %[[FROM]]
// CHECK:           %[[NEXT:.+]] = arith.select %[[LAST]], %[[BEGIN]], %[[FOLLOW]]
// CHECK:           %[[ROW:.+]] = arith.addi %[[NEXT]],
// CHECK:           %[[TOKEN:.+]] = arith.minsi %[[ROW]],
// CHECK:           memref.prefetch %{{.+}}[{{.+}}, %[[NEXT_HEAD]], %[[TOKEN]],
func.func @next_head(%q: memref<1x8x?x64xf32, strided<[?, 64, 512, 1]>>, %s: memref<1x8x64x64xf32>) {
  linattn.scan %q, %q, %q into(%q) init(%s) {config = #linattn.config<form = chunk, chunk = 16>}
    : (memref<1x8x?x64xf32, strided<[?, 64, 512, 1]>>, memref<1x8x?x64xf32, strided<[?, 64, 512, 1]>>, memref<1x8x?x64xf32, strided<[?, 64, 512, 1]>>, memref<1x8x?x64xf32, strided<[?, 64, 512, 1]>>, memref<1x8x64x64xf32>) -> ()
  return
}

// -----

// A map is computed for several vectors side by side, if they divide the row;
// what is only copied goes vector by vector.

// CHECK-LABEL: func.func @wide_map(
// CHECK-DAG:     vector.transfer_read {{.*}} vector<64xf32>
// CHECK-DAG:     vector.transfer_read {{.*}} vector<16xf32>
func.func @wide_map(%q: memref<1x2x?x64xf32>, %s: memref<1x2x64x64xf32>) {
  linattn.scan %q, %q, %q into(%q) init(%s) {feature_map = #linattn.feature_map<elu1>, config = #linattn.config<form = chunk, chunk = 16>}
    : (memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x64x64xf32>) -> ()
  return
}

// -----

// CHECK-LABEL: func.func @narrow_map(
// CHECK-NOT:     vector.transfer_read {{.*}} vector<{{(64|32)}}xf32>
// CHECK:         memref.dealloc
func.func @narrow_map(%q: memref<1x2x?x?xf32>, %s: memref<1x2x?x?xf32>) {
  linattn.scan %q, %q, %q into(%q) init(%s) {feature_map = #linattn.feature_map<elu1>, config = #linattn.config<form = chunk, chunk = 16, cols = 16>}
    : (memref<1x2x?x?xf32>, memref<1x2x?x?xf32>, memref<1x2x?x?xf32>, memref<1x2x?x?xf32>, memref<1x2x?x?xf32>) -> ()
  return
}
