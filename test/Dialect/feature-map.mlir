// RUN: linattn-opt %s | linattn-opt | FileCheck %s
// RUN: linattn-opt %s --mlir-print-op-generic | linattn-opt | FileCheck %s
// RUN: linattn-opt %s --canonicalize --cse | FileCheck %s

// The maps of whole tokens: each kind, its operands and its parameters. They are
// no consumer's to take over: canonicalization leaves them where they are.

// CHECK-LABEL: func.func @without_operands
func.func @without_operands(%x: tensor<2x3x?x8xf32>, %same: tensor<2x3x?x8xf32>, %dpfp: tensor<2x3x?x48xf32>, %taylor: tensor<2x3x?x45xf32>, %full: tensor<2x3x?x73xf32>)
    -> (tensor<2x3x?x8xf32>, tensor<2x3x?x8xf32>, tensor<2x3x?x8xf32>, tensor<2x3x?x48xf32>, tensor<2x3x?x45xf32>, tensor<2x3x?x73xf32>) {
  // CHECK: linattn.feature_map %{{.+}} into(%{{.+}}) {feature_map = #linattn.feature_map<softmax, scale = 5.000000e-01 : f64>} : (tensor<2x3x?x8xf32>, tensor<2x3x?x8xf32>) -> tensor<2x3x?x8xf32>
  %0 = linattn.feature_map %x into(%same) {feature_map = #linattn.feature_map<softmax, scale = 0.5>} : (tensor<2x3x?x8xf32>, tensor<2x3x?x8xf32>) -> tensor<2x3x?x8xf32>
  // CHECK: #linattn.feature_map<l2norm, eps = 1.000000e-05 : f64>
  %1 = linattn.feature_map %x into(%same) {feature_map = #linattn.feature_map<l2norm, eps = 1.0e-5>} : (tensor<2x3x?x8xf32>, tensor<2x3x?x8xf32>) -> tensor<2x3x?x8xf32>
  // CHECK: #linattn.feature_map<sum_norm>
  %2 = linattn.feature_map %x into(%same) {feature_map = #linattn.feature_map<sum_norm>} : (tensor<2x3x?x8xf32>, tensor<2x3x?x8xf32>) -> tensor<2x3x?x8xf32>
  // CHECK: #linattn.feature_map<dpfp, shifts = 3>
  %3 = linattn.feature_map %x into(%dpfp) {feature_map = #linattn.feature_map<dpfp, shifts = 3>} : (tensor<2x3x?x8xf32>, tensor<2x3x?x48xf32>) -> tensor<2x3x?x48xf32>
  // CHECK: #linattn.feature_map<taylor>
  %4 = linattn.feature_map %x into(%taylor) {feature_map = #linattn.feature_map<taylor>} : (tensor<2x3x?x8xf32>, tensor<2x3x?x45xf32>) -> tensor<2x3x?x45xf32>
  // CHECK: #linattn.feature_map<taylor_full>
  %5 = linattn.feature_map %x into(%full) {feature_map = #linattn.feature_map<taylor_full>} : (tensor<2x3x?x8xf32>, tensor<2x3x?x73xf32>) -> tensor<2x3x?x73xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<2x3x?x8xf32>, tensor<2x3x?x8xf32>, tensor<2x3x?x8xf32>, tensor<2x3x?x48xf32>, tensor<2x3x?x45xf32>, tensor<2x3x?x73xf32>
}

// CHECK-LABEL: func.func @with_matrices
func.func @with_matrices(%x: tensor<2x3x?x8xbf16>, %w: tensor<6x8xf32>, %perHead: tensor<3x6x8xf64>, %b: tensor<3x6xf32>, %once: tensor<2x3x?x6xbf16>, %twice: tensor<2x3x?x12xf32>)
    -> (tensor<2x3x?x6xbf16>, tensor<2x3x?x12xf32>, tensor<2x3x?x12xf32>, tensor<2x3x?x12xf32>, tensor<2x3x?x6xbf16>, tensor<2x3x?x6xbf16>, tensor<2x3x?x6xbf16>) {
  // CHECK: linattn.feature_map %{{.+}} params(%{{.+}}) into(%{{.+}}) {feature_map = #linattn.feature_map<favor, log = true>} : (tensor<2x3x?x8xbf16>, tensor<6x8xf32>, tensor<2x3x?x6xbf16>)
  %0 = linattn.feature_map %x params(%w) into(%once) {feature_map = #linattn.feature_map<favor, log = true>} : (tensor<2x3x?x8xbf16>, tensor<6x8xf32>, tensor<2x3x?x6xbf16>) -> tensor<2x3x?x6xbf16>
  // CHECK: #linattn.feature_map<favor_hyperbolic>{{.+}} -> tensor<2x3x?x12xf32>
  %1 = linattn.feature_map %x params(%w) into(%twice) {feature_map = #linattn.feature_map<favor_hyperbolic>} : (tensor<2x3x?x8xbf16>, tensor<6x8xf32>, tensor<2x3x?x12xf32>) -> tensor<2x3x?x12xf32>
  // CHECK: #linattn.feature_map<random_fourier>
  %2 = linattn.feature_map %x params(%perHead) into(%twice) {feature_map = #linattn.feature_map<random_fourier>} : (tensor<2x3x?x8xbf16>, tensor<3x6x8xf64>, tensor<2x3x?x12xf32>) -> tensor<2x3x?x12xf32>
  // CHECK: #linattn.feature_map<random_fourier_exp>
  %3 = linattn.feature_map %x params(%perHead) into(%twice) {feature_map = #linattn.feature_map<random_fourier_exp>} : (tensor<2x3x?x8xbf16>, tensor<3x6x8xf64>, tensor<2x3x?x12xf32>) -> tensor<2x3x?x12xf32>
  // CHECK: params(%{{.+}}, %{{.+}}) into(%{{.+}}) {feature_map = #linattn.feature_map<t2r>}
  %4 = linattn.feature_map %x params(%w, %b) into(%once) {feature_map = #linattn.feature_map<t2r>} : (tensor<2x3x?x8xbf16>, tensor<6x8xf32>, tensor<3x6xf32>, tensor<2x3x?x6xbf16>) -> tensor<2x3x?x6xbf16>
  // CHECK: params(%{{.+}}) into(%{{.+}}) {feature_map = #linattn.feature_map<t2r>}
  %5 = linattn.feature_map %x params(%perHead) into(%once) {feature_map = #linattn.feature_map<t2r>} : (tensor<2x3x?x8xbf16>, tensor<3x6x8xf64>, tensor<2x3x?x6xbf16>) -> tensor<2x3x?x6xbf16>
  // CHECK: #linattn.feature_map<hadamard>
  %6 = linattn.feature_map %x params(%w, %perHead) into(%once) {feature_map = #linattn.feature_map<hadamard>} : (tensor<2x3x?x8xbf16>, tensor<6x8xf32>, tensor<3x6x8xf64>, tensor<2x3x?x6xbf16>) -> tensor<2x3x?x6xbf16>
  return %0, %1, %2, %3, %4, %5, %6 : tensor<2x3x?x6xbf16>, tensor<2x3x?x12xf32>, tensor<2x3x?x12xf32>, tensor<2x3x?x12xf32>, tensor<2x3x?x6xbf16>, tensor<2x3x?x6xbf16>, tensor<2x3x?x6xbf16>
}

// CHECK-LABEL: func.func @on_buffers
func.func @on_buffers(%x: memref<2x3x?x8xf32>, %w: memref<8x8xf32>, %g: memref<8xf32>, %p: memref<?xi32>, %pb: memref<2x?xi64>, %o: memref<2x3x?x16xf32>, %pairs: memref<2x3x?x36xf32>) {
  // CHECK: linattn.feature_map %{{.+}} positions(%{{.+}}) into(%{{.+}}) {feature_map = #linattn.feature_map<cosformer, max_length = 64>} : (memref<2x3x?x8xf32>, memref<?xi32>, memref<2x3x?x16xf32>) -> ()
  linattn.feature_map %x positions(%p) into(%o) {feature_map = #linattn.feature_map<cosformer, max_length = 64>} : (memref<2x3x?x8xf32>, memref<?xi32>, memref<2x3x?x16xf32>) -> ()
  // CHECK: positions(%{{.+}}) into
  linattn.feature_map %x positions(%pb) into(%o) {feature_map = #linattn.feature_map<cosformer, max_length = 64>} : (memref<2x3x?x8xf32>, memref<2x?xi64>, memref<2x3x?x16xf32>) -> ()
  // CHECK: #linattn.feature_map<hedgehog>
  linattn.feature_map %x params(%w) into(%o) {feature_map = #linattn.feature_map<hedgehog>} : (memref<2x3x?x8xf32>, memref<8x8xf32>, memref<2x3x?x16xf32>) -> ()
  // CHECK: #linattn.feature_map<hedgehog_exp, log = true>
  linattn.feature_map %x params(%w) into(%o) {feature_map = #linattn.feature_map<hedgehog_exp, log = true>} : (memref<2x3x?x8xf32>, memref<8x8xf32>, memref<2x3x?x16xf32>) -> ()
  // CHECK: #linattn.feature_map<outer_product>
  linattn.feature_map %x params(%w, %w) into(%pairs) {feature_map = #linattn.feature_map<outer_product>} : (memref<2x3x?x8xf32>, memref<8x8xf32>, memref<8x8xf32>, memref<2x3x?x36xf32>) -> ()
  // CHECK: #linattn.feature_map<rebased>
  linattn.feature_map %x params(%g, %g) into(%pairs) {feature_map = #linattn.feature_map<rebased>} : (memref<2x3x?x8xf32>, memref<8xf32>, memref<8xf32>, memref<2x3x?x36xf32>) -> ()
  return
}

// One map for queries, another for keys, before the consumer's own.
// CHECK-LABEL: func.func @consumed
func.func @consumed(%q: tensor<2x3x?x8xf32>, %v: tensor<2x3x?x8xf32>, %w: tensor<6x8xf32>, %u: tensor<6x8xf32>, %d: tensor<2x3x?x6xf32>) -> tensor<2x3x?x8xf32> {
  // CHECK-COUNT-2: linattn.feature_map
  %fq = linattn.feature_map %q params(%w) into(%d) {feature_map = #linattn.feature_map<favor, log = true>} : (tensor<2x3x?x8xf32>, tensor<6x8xf32>, tensor<2x3x?x6xf32>) -> tensor<2x3x?x6xf32>
  %fk = linattn.feature_map %q params(%u) into(%d) {feature_map = #linattn.feature_map<favor, log = true>} : (tensor<2x3x?x8xf32>, tensor<6x8xf32>, tensor<2x3x?x6xf32>) -> tensor<2x3x?x6xf32>
  // CHECK: linattn.attention %{{.+}}, %{{.+}}, %{{.+}} {causal, feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<>}
  %o = linattn.attention %fq, %fk, %v {causal, feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<>} : (tensor<2x3x?x6xf32>, tensor<2x3x?x6xf32>, tensor<2x3x?x8xf32>) -> tensor<2x3x?x8xf32>
  return %o : tensor<2x3x?x8xf32>
}

// A map that widens its tokens stays too, since its consumer would take narrow
// ones.
// CHECK-LABEL: func.func @widening
func.func @widening(%k: tensor<2x3x?x8xf16>, %v: tensor<2x3x?x8xf32>, %d: tensor<2x3x?x8xf32>, %s: tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32> {
  // CHECK: linattn.feature_map
  %f = linattn.feature_map %k into(%d) {feature_map = #linattn.feature_map<relu>} : (tensor<2x3x?x8xf16>, tensor<2x3x?x8xf32>) -> tensor<2x3x?x8xf32>
  // CHECK: linattn.state
  %r = linattn.state %f, %v init(%s) : (tensor<2x3x?x8xf32>, tensor<2x3x?x8xf32>, tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32>
  return %r : tensor<2x3x8x8xf32>
}
