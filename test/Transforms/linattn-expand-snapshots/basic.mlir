// RUN: linattn-opt %s --linattn-expand-snapshots --canonicalize --split-input-file | FileCheck %s
// RUN: linattn-opt %s --linattn-expand-snapshots --split-input-file --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// A loop of scans; the state after each is put among the snapshots, and a last
// scan has the two tokens that are left.

// REMARK: remark: [Passed] expand-snapshots {{.*}}"runs in a loop of 4 tokens, for its snapshots"
// CHECK-LABEL: func.func @static(
// CHECK-SAME:    %[[Q:[^:]+]]: tensor<2x3x10x8xf32>, %[[O:[^:]+]]: tensor<2x3x10x8xf32>, %[[S:[^:]+]]: tensor<2x3x8x8xf32>, %[[P:[^:]+]]: tensor<2x2x3x8x8xf32>
// CHECK:         %[[R:.+]]:3 = scf.for %[[I:.+]] = %c0 to %c2 step %c1 iter_args(%[[OUT:.+]] = %[[O]], %[[STATE:.+]] = %[[S]], %[[KEPT:.+]] = %[[P]])
// CHECK:           %[[FIRST:.+]] = affine.apply #{{.*}}()[%[[I]]]
// CHECK:           tensor.extract_slice %[[Q]][0, 0, %[[FIRST]], 0] [2, 3, 4, 8]
// CHECK:           %[[N:.+]]:2 = linattn.scan {{.*}} init(%[[STATE]]) : (tensor<2x3x4x8xf32>
// CHECK:           %[[NEXT:.+]] = tensor.insert_slice %[[N]]#0 into %[[OUT]][0, 0, %[[FIRST]], 0] [2, 3, 4, 8]
// CHECK:           %[[MORE:.+]] = tensor.insert_slice %[[N]]#1 into %[[KEPT]][0, %[[I]], 0, 0, 0] [2, 1, 3, 8, 8]
// CHECK:           scf.yield %[[NEXT]], %[[N]]#1, %[[MORE]]
// CHECK:         tensor.extract_slice %[[Q]][0, 0, 8, 0] [2, 3, 2, 8]
// CHECK:         linattn.scan {{.*}} init(%[[R]]#1) : (tensor<2x3x2x8xf32>
func.func @static(%q: tensor<2x3x10x8xf32>, %o: tensor<2x3x10x8xf32>, %s: tensor<2x3x8x8xf32>, %p: tensor<2x2x3x8x8xf32>) -> (tensor<2x3x10x8xf32>, tensor<2x3x8x8xf32>, tensor<2x2x3x8x8xf32>) {
  %r:3 = linattn.scan %q, %q, %q into(%o) init(%s) snapshots(%p) {every = 4} : (tensor<2x3x10x8xf32>, tensor<2x3x10x8xf32>, tensor<2x3x10x8xf32>, tensor<2x3x10x8xf32>, tensor<2x3x8x8xf32>, tensor<2x2x3x8x8xf32>) -> (tensor<2x3x10x8xf32>, tensor<2x3x8x8xf32>, tensor<2x2x3x8x8xf32>)
  return %r#0, %r#1, %r#2 : tensor<2x3x10x8xf32>, tensor<2x3x8x8xf32>, tensor<2x2x3x8x8xf32>
}

// -----

// Nothing is left of the tokens; gates are cut with them, those of heads are not.

// CHECK-LABEL: func.func @gates(
// CHECK:         scf.for
// CHECK-COUNT-1:   linattn.scan {{.*}} decay(%arg1) {{.*}} mask(%{{.*}}) {{.*}} : (tensor<2x3x5x8xf32>, {{.*}}, tensor<3xf32>, {{.*}}, tensor<2x5xi1>
// CHECK-NOT:     linattn.scan
func.func @gates(%q: tensor<2x3x10x8xf32>, %g: tensor<3xf32>, %u: tensor<3x8xf32>, %m: tensor<2x10xi1>, %s: tensor<2x3x8x8xf32>, %p: tensor<2x2x3x8x8xf32>) -> tensor<2x2x3x8x8xf32> {
  %r:3 = linattn.scan %q, %q, %q decay(%g) bonus(%u) mask(%m) readout(exclusive) into(%q) init(%s) snapshots(%p) {every = 5} : (tensor<2x3x10x8xf32>, tensor<2x3x10x8xf32>, tensor<2x3x10x8xf32>, tensor<3xf32>, tensor<3x8xf32>, tensor<2x10xi1>, tensor<2x3x10x8xf32>, tensor<2x3x8x8xf32>, tensor<2x2x3x8x8xf32>) -> (tensor<2x3x10x8xf32>, tensor<2x3x8x8xf32>, tensor<2x2x3x8x8xf32>)
  return %r#2 : tensor<2x2x3x8x8xf32>
}

// -----

// From the last tokens to the first, of which there may be any number.

// CHECK-DAG:   #[[COUNT:.+]] = affine_map<()[s0] -> (s0 floordiv 4)>
// CHECK-DAG:   #[[FIRST:.+]] = affine_map<()[s0, s1] -> (s0 * -4 + s1 - 4)>
// CHECK-DAG:   #[[REST:.+]] = affine_map<()[s0] -> (s0 mod 4)>
// CHECK-LABEL: func.func @dynamic(
// CHECK:         %[[T:.+]] = tensor.dim
// CHECK:         %[[COUNTED:.+]] = affine.apply #[[COUNT]]()[%[[T]]]
// CHECK:         %[[LEFT:.+]] = affine.apply #[[REST]]()[%[[T]]]
// CHECK:         scf.for %[[I:.+]] = %c0 to %[[COUNTED]]
// CHECK:           affine.apply #[[FIRST]]()[%[[I]], %[[T]]]
// CHECK:           linattn.scan {{.*}} {reverse} : (tensor<?x3x4x8xf32>
// CHECK:         tensor.extract_slice %{{.*}}[0, 0, 0, 0] [%{{.*}}, 3, %[[LEFT]], 8]
// CHECK:         linattn.scan {{.*}} {reverse}
func.func @dynamic(%q: tensor<?x3x?x8xf32>, %s: tensor<?x3x8x8xf32>, %p: tensor<?x?x3x8x8xf32>) -> (tensor<?x3x8x8xf32>, tensor<?x?x3x8x8xf32>) {
  %r:3 = linattn.scan %q, %q, %q into(%q) init(%s) snapshots(%p) {reverse, every = 4} : (tensor<?x3x?x8xf32>, tensor<?x3x?x8xf32>, tensor<?x3x?x8xf32>, tensor<?x3x?x8xf32>, tensor<?x3x8x8xf32>, tensor<?x?x3x8x8xf32>) -> (tensor<?x3x?x8xf32>, tensor<?x3x8x8xf32>, tensor<?x?x3x8x8xf32>)
  return %r#1, %r#2 : tensor<?x3x8x8xf32>, tensor<?x?x3x8x8xf32>
}

// -----

// More than there are: one scan.

// CHECK-LABEL: func.func @longer(
// CHECK-NOT:     scf.for
// CHECK:         linattn.scan {{.*}} : (tensor<2x3x10x8xf32>
func.func @longer(%q: tensor<2x3x10x8xf32>, %s: tensor<2x3x8x8xf32>, %p: tensor<2x0x3x8x8xf32>) -> (tensor<2x3x8x8xf32>, tensor<2x0x3x8x8xf32>) {
  %r:3 = linattn.scan %q, %q, %q into(%q) init(%s) snapshots(%p) {every = 11} : (tensor<2x3x10x8xf32>, tensor<2x3x10x8xf32>, tensor<2x3x10x8xf32>, tensor<2x3x10x8xf32>, tensor<2x3x8x8xf32>, tensor<2x0x3x8x8xf32>) -> (tensor<2x3x10x8xf32>, tensor<2x3x8x8xf32>, tensor<2x0x3x8x8xf32>)
  return %r#1, %r#2 : tensor<2x3x8x8xf32>, tensor<2x0x3x8x8xf32>
}

// -----

// Segments for which no kernel is made.

// CHECK-LABEL: func.func @long(
// CHECK:         affine.min
// CHECK:         linattn.scan {{.*}} : (tensor<2x3x?x8xf32>
func.func @long(%q: tensor<2x3x?x8xf32>, %s: tensor<2x3x8x8xf32>, %p: tensor<2x?x3x8x8xf32>) -> tensor<2x?x3x8x8xf32> {
  %r:3 = linattn.scan %q, %q, %q into(%q) init(%s) snapshots(%p) {every = 100000} : (tensor<2x3x?x8xf32>, tensor<2x3x?x8xf32>, tensor<2x3x?x8xf32>, tensor<2x3x?x8xf32>, tensor<2x3x8x8xf32>, tensor<2x?x3x8x8xf32>) -> (tensor<2x3x?x8xf32>, tensor<2x3x8x8xf32>, tensor<2x?x3x8x8xf32>)
  return %r#2 : tensor<2x?x3x8x8xf32>
}
