// RUN: linattn-opt %s --linattn-lower-to-vector | FileCheck %s

// Chunks of tokens: the triangular system, the outputs and the state, each a
// product with 8 rows of sums in registers.

// CHECK-LABEL: func.func @delta(
// CHECK-SAME:    %[[Q:[^:]+]]: memref<1x2x40x64xf32>, %[[B:[^:]+]]: memref<1x2x40xf32>, %[[O:[^:]+]]: memref<1x2x40x64xf32>, %[[S:[^:]+]]: memref<1x2x64x64xf32>
// CHECK:         scf.parallel
// CHECK:           scf.for {{.*}} step %c16
// CHECK-NOT:         math.exp
//                    The state is read by −β times the key, which has no row
//                    of its own.
// CHECK:             %[[BETA:.+]] = vector.load {{.*}} : memref<16xf32>, vector<16xf32>
// CHECK:             arith.negf %[[BETA]] : vector<16xf32>
//                    The scores, a vector of keys at a time, with two blocks of
//                    rows.
// CHECK:             scf.for {{.*}} -> ({{(vector<16xf32>, ){15}(vector<16xf32>)}})
// CHECK-COUNT-16:      vector.fma {{.*}} : vector<16xf32>
//                    δ from the state and from the rows before.
// CHECK:             scf.for {{.*}} -> (vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>)
// CHECK:             scf.for {{.*}} -> (vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>)
// CHECK:             vector.store
// CHECK:             vector.transfer_write {{.*}} %[[O]]
// CHECK:           vector.transfer_write {{.*}} %[[S]]
func.func @delta(%q: memref<1x2x40x64xf32>, %b: memref<1x2x40xf32>, %o: memref<1x2x40x64xf32>, %s: memref<1x2x64x64xf32>) {
  linattn.scan %q, %q, %q beta(%b) update(delta) into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 16>}
    : (memref<1x2x40x64xf32>, memref<1x2x40x64xf32>, memref<1x2x40x64xf32>, memref<1x2x40xf32>, memref<1x2x40x64xf32>, memref<1x2x64x64xf32>) -> ()
  return
}

// A decay per token: exponentials of sums of logarithms, from the start of the
// chunk and from every key on, never of a difference of them.

// CHECK-LABEL: func.func @scalar_decay(
// CHECK:         %[[LOGS:.+]] = vector.load {{.*}} : memref<16xf32>, vector<16xf32>
// CHECK:         vector.shuffle %[[LOGS]], %{{.+}} [16, 0, 1,
// CHECK-COUNT-3: vector.shuffle
// CHECK:         arith.addf
// CHECK-NEXT:    %[[SUMS:.+]] = arith.addf %{{.+}}, %{{arg.+}} : vector<16xf32>
// CHECK:         math.exp %[[SUMS]] : vector<16xf32>
// CHECK:         scf.for {{.*}} iter_args(%[[PAST:.+]] = {{.*}}) -> (vector<16xf32>)
// CHECK:           %[[SUM:.+]] = arith.addf %[[PAST]], {{.*}} : vector<16xf32>
// CHECK:           %[[OWN:.+]] = arith.select %{{.+}}, %[[SUM]], {{.*}} : vector<16xi1>, vector<16xf32>
// CHECK:           math.exp %[[OWN]] : vector<16xf32>
// CHECK-NOT:     math.exp
func.func @scalar_decay(%q: memref<1x2x?x64xf32>, %g: memref<1x2x?xf32>, %o: memref<1x2x?x64xf32>, %s: memref<1x2x64x64xf32>) {
  linattn.scan %q, %q, %q decay(%g) into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 16>}
    : (memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?xf32>, memref<1x2x?x64xf32>, memref<1x2x64x64xf32>) -> ()
  return
}

// A decay per head: the first chunk of a task makes the factors, and one that
// is not whole.

// CHECK-LABEL: func.func @head_decay(
// CHECK-NOT:     math.exp
// CHECK:         %[[FILLS:.+]] = arith.ori %{{.+}}, %{{.+}} : i1
// CHECK-NEXT:    scf.if %[[FILLS]] {
// CHECK-COUNT-2:   math.exp %{{.+}} : vector<16xf32>
// CHECK-NOT:     math.exp
func.func @head_decay(%q: memref<1x2x?x64xf32>, %g: memref<2xf32>, %o: memref<1x2x?x64xf32>, %s: memref<1x2x64x64xf32>) {
  linattn.scan %q, %q, %q decay(%g) into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 16>}
    : (memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<2xf32>, memref<1x2x?x64xf32>, memref<1x2x64x64xf32>) -> ()
  return
}

// Maxima, their running maximum and denominators: 16 tokens at a time.

// CHECK-LABEL: func.func @exponential(
// CHECK-SAME:    %[[M:[^:]+]]: memref<1x2xf32>
// CHECK:         %[[OLD:.+]] = memref.load %[[M]]
// CHECK:         %[[LARGER:.+]] = arith.cmpf ogt, %[[X:.+]], %[[BEST:.+]] : vector<16xf32>
// CHECK-NEXT:    arith.select %[[LARGER]], %[[X]], %[[BEST]] : vector<16xi1>, vector<16xf32>
// CHECK:         %[[LAST:.+]] = vector.extract %{{.+}}[15] : f32 from vector<16xf32>
// CHECK:         memref.store %[[LAST]], %[[M]]
// CHECK-NOT:     memref.load %[[M]]
// CHECK:         arith.divf %{{.+}}, %{{.+}} : vector<16xf32>
// CHECK-NOT:     arith.divf
func.func @exponential(%m: memref<1x2xf32>, %q: memref<1x2x?x64xf32>, %s: memref<1x2x64x64xf32>, %z: memref<1x2x64xf32>) {
  linattn.scan %q, %q, %q into(%q) init(%s) normalizer(%z) running_max(%m) {config = #linattn.config<form = chunk, chunk = 16>, feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<eps = 1.0e-6>}
    : (memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x?x64xf32>, memref<1x2x64x64xf32>, memref<1x2x64xf32>, memref<1x2xf32>) -> ()
  return
}

// A decay per channel, all sizes open, no form given: the keys of the chunk are
// decayed in memory.

// CHECK-LABEL: func.func @channel_decay(
// CHECK:         math.exp
// CHECK-NOT:     math.exp
// CHECK:         %[[DECAYED:.+]] = arith.mulf %{{.+}}, %{{.+}} : vector<16xf32>
// CHECK:         vector.store %[[DECAYED]]
// CHECK:         vector.fma {{.*}}, %[[DECAYED]], {{.*}} : vector<16xf32>
func.func @channel_decay(%q: memref<?x?x?x?xf32>, %b: memref<?x?x?xf32>, %s: memref<?x?x?x?xf32>) {
  linattn.scan %q, %q, %q decay(%q) beta(%b) update(delta) into(%q) init(%s)
    : (memref<?x?x?x?xf32>, memref<?x?x?x?xf32>, memref<?x?x?x?xf32>, memref<?x?x?x?xf32>, memref<?x?x?xf32>, memref<?x?x?x?xf32>, memref<?x?x?x?xf32>) -> ()
  return
}

// Token by token, the state is read twice and written once where it lies.

// CHECK-LABEL: func.func @token(
// CHECK-SAME:    %[[S:[^:]+]]: memref<1x2x64x64xf32>)
// CHECK:         scf.for {{.*}} -> (vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>)
// CHECK:           vector.transfer_read %[[S]]
// CHECK-NOT:       vector.transfer_write {{.*}} %[[S]]
// CHECK:         scf.for {{.*}} -> (vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>)
// CHECK:           vector.transfer_read %[[S]]
// CHECK:           vector.transfer_write {{.*}} %[[S]]
func.func @token(%q: memref<1x2x1x64xf32>, %b: memref<1x2x1xf32>, %o: memref<1x2x1x64xf32>, %s: memref<1x2x64x64xf32>) {
  linattn.scan %q, %q, %q beta(%b) update(delta) into(%o) init(%s) {config = #linattn.config<form = token>}
    : (memref<1x2x1x64xf32>, memref<1x2x1x64xf32>, memref<1x2x1x64xf32>, memref<1x2x1xf32>, memref<1x2x1x64xf32>, memref<1x2x64x64xf32>) -> ()
  return
}
