// RUN: linattn-opt %s --linattn-chunk --canonicalize | FileCheck %s
// RUN: linattn-opt %s --linattn-chunk=chunk-size=16 --canonicalize | FileCheck %s --check-prefix=SIXTEEN
// RUN: linattn-opt %s --linattn-chunk=chunk-size=16 --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// The state is carried from chunk to chunk; the last chunk may be short.

// CHECK-DAG:   #[[LAST:.+]] = affine_map<(d0)[s0] -> (-d0 + s0, 32)>
// CHECK-LABEL: func.func @dynamic(
// CHECK-SAME:    %[[Q:[^:]+]]: tensor<2x3x?x64xf32>, %[[O:[^:]+]]: tensor<2x3x?x64xf32>, %[[S:[^:]+]]: tensor<2x3x64x64xf32>
// CHECK:         %[[T:.+]] = tensor.dim %[[O]]
// CHECK:         scf.for %[[I:.+]] = %c0 to %[[T]] step %c32 iter_args(%[[OUT:.+]] = %[[O]], %[[STATE:.+]] = %[[S]])
// CHECK:           %[[N:.+]] = affine.min #[[LAST]](%[[I]])[%[[T]]]
// CHECK:           tensor.extract_slice %[[Q]][0, 0, %[[I]], 0] [2, 3, %[[N]], 64]
// CHECK:           %[[TILE:.+]] = tensor.extract_slice %[[OUT]][0, 0, %[[I]], 0] [2, 3, %[[N]], 64]
// CHECK:           %[[R:.+]]:2 = linattn.scan {{.*}} into(%[[TILE]]) init(%[[STATE]])
// CHECK:           %[[NEW:.+]] = tensor.insert_slice %[[R]]#0 into %[[OUT]]
// CHECK:           scf.yield %[[NEW]], %[[R]]#1
// SIXTEEN-LABEL: func.func @dynamic(
// SIXTEEN:         scf.for {{.*}} step %c16
// REMARK:      remark: [Passed] chunk {{.*}}"runs in chunks of 16 tokens"
func.func @dynamic(%q: tensor<2x3x?x64xf32>, %o: tensor<2x3x?x64xf32>, %s: tensor<2x3x64x64xf32>) -> (tensor<2x3x?x64xf32>, tensor<2x3x64x64xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%o) init(%s) {config = #linattn.config<form = chunk, chunk = 32>} : (tensor<2x3x?x64xf32>, tensor<2x3x?x64xf32>, tensor<2x3x?x64xf32>, tensor<2x3x?x64xf32>, tensor<2x3x64x64xf32>) -> (tensor<2x3x?x64xf32>, tensor<2x3x64x64xf32>)
  return %r#0, %r#1 : tensor<2x3x?x64xf32>, tensor<2x3x64x64xf32>
}

// Other forms stay whole unless the option names all.

// CHECK-LABEL: func.func @tile(
// CHECK-NOT:     scf.for
// CHECK:         linattn.scan
// SIXTEEN-LABEL: func.func @tile(
// SIXTEEN:         scf.for
func.func @tile(%q: tensor<2x3x?x64xf32>, %o: tensor<2x3x?x64xf32>, %s: tensor<2x3x64x64xf32>) -> (tensor<2x3x?x64xf32>, tensor<2x3x64x64xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%o) init(%s) {config = #linattn.config<form = state_tile>} : (tensor<2x3x?x64xf32>, tensor<2x3x?x64xf32>, tensor<2x3x?x64xf32>, tensor<2x3x?x64xf32>, tensor<2x3x64x64xf32>) -> (tensor<2x3x?x64xf32>, tensor<2x3x64x64xf32>)
  return %r#0, %r#1 : tensor<2x3x?x64xf32>, tensor<2x3x64x64xf32>
}

// Gates are cut with the tokens, per-head ones are not.

// SIXTEEN-LABEL: func.func @gates(
// SIXTEEN-SAME:    %[[G:[^:]+]]: tensor<2xf32>, %[[BETA:[^:]+]]: tensor<1x2x64xf32>, %[[M:[^:]+]]: tensor<1x64xi1>
// SIXTEEN:         scf.for %[[I:.+]] = %c0 to %c64
// SIXTEEN-DAG:       %[[B:.+]] = tensor.extract_slice %[[BETA]][0, 0, %[[I]]] [1, 2, 16] [1, 1, 1]
// SIXTEEN-DAG:       %[[MI:.+]] = tensor.extract_slice %[[M]][0, %[[I]]] [1, 16] [1, 1]
// SIXTEEN:           linattn.scan {{.*}} decay(%[[G]]) beta(%[[B]]) mask(%[[MI]]) update(delta)
func.func @gates(%q: tensor<1x2x64x4xf32>, %g: tensor<2xf32>, %beta: tensor<1x2x64xf32>, %m: tensor<1x64xi1>, %o: tensor<1x2x64x4xf32>, %s: tensor<1x2x4x4xf32>) -> (tensor<1x2x64x4xf32>, tensor<1x2x4x4xf32>) {
  %r:2 = linattn.scan %q, %q, %q decay(%g) beta(%beta) mask(%m) update(delta) into(%o) init(%s)
    : (tensor<1x2x64x4xf32>, tensor<1x2x64x4xf32>, tensor<1x2x64x4xf32>, tensor<2xf32>, tensor<1x2x64xf32>, tensor<1x64xi1>, tensor<1x2x64x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x64x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0, %r#1 : tensor<1x2x64x4xf32>, tensor<1x2x4x4xf32>
}

// SIXTEEN-LABEL: func.func @few(
// SIXTEEN-NOT:     scf.for
// REMARK:      remark: [Missed] chunk {{.*}}"the 4 tokens fit one chunk of 16"
func.func @few(%q: tensor<1x2x4x4xf32>, %o: tensor<1x2x4x4xf32>, %s: tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> {
  %r:2 = linattn.scan %q, %q, %q into(%o) init(%s)
    : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0 : tensor<1x2x4x4xf32>
}
