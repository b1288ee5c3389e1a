// RUN: linattn-opt %s | linattn-opt | FileCheck %s
// RUN: linattn-opt %s --mlir-print-op-generic | linattn-opt | FileCheck %s

// Every op, each of its optional clauses, on tensors and on buffers.

//===----------------------------------------------------------------------===//
// attention
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @attention
// CHECK-SAME: (%[[Q:.+]]: tensor<2x8x16x64xf32>, %[[K:.+]]: tensor<2x8x16x64xf32>, %[[V:.+]]: tensor<2x8x16x32xf32>)
func.func @attention(%q: tensor<2x8x16x64xf32>, %k: tensor<2x8x16x64xf32>, %v: tensor<2x8x16x32xf32>) -> tensor<2x8x16x32xf32> {
  // CHECK: linattn.attention %[[Q]], %[[K]], %[[V]] : (tensor<2x8x16x64xf32>, tensor<2x8x16x64xf32>, tensor<2x8x16x32xf32>) -> tensor<2x8x16x32xf32>
  %o = linattn.attention %q, %k, %v : (tensor<2x8x16x64xf32>, tensor<2x8x16x64xf32>, tensor<2x8x16x32xf32>) -> tensor<2x8x16x32xf32>
  return %o : tensor<2x8x16x32xf32>
}

// CHECK-LABEL: func.func @attention_attributes
func.func @attention_attributes(%q: tensor<2x8x?x64xf32>, %k: tensor<2x8x?x64xf32>, %v: tensor<2x8x?x64xf32>) -> tensor<2x8x?x64xf32> {
  // CHECK: linattn.attention %{{.+}}, %{{.+}}, %{{.+}} {causal, config = #linattn.config<form = state_tile, rows = 8, cols = 32, block = 32>,
  // CHECK-SAME: feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.000000e-05 : f64>, scale = 1.250000e-01 : f64}
  %o = linattn.attention %q, %k, %v {causal, feature_map = #linattn.feature_map<elu1>,
      normalize = #linattn.normalize<eps = 1.0e-5>, scale = 0.125 : f64,
      config = #linattn.config<form = state_tile, rows = 8, cols = 32, block = 32>}
    : (tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>) -> tensor<2x8x?x64xf32>
  return %o : tensor<2x8x?x64xf32>
}

// CHECK-LABEL: func.func @attention_softmax
func.func @attention_softmax(%q: tensor<2x8x4x64xbf16>, %k: tensor<2x2x16x64xbf16>, %v: tensor<2x4x16x64xbf16>, %mask: tensor<2x16xi1>) -> tensor<2x8x4x64xbf16> {
  // CHECK: linattn.attention %{{.+}}, %{{.+}}, %{{.+}} mask(%{{.+}}) weights(softmax) :
  %o = linattn.attention %q, %k, %v mask(%mask) weights(softmax)
    : (tensor<2x8x4x64xbf16>, tensor<2x2x16x64xbf16>, tensor<2x4x16x64xbf16>, tensor<2x16xi1>) -> tensor<2x8x4x64xbf16>
  return %o : tensor<2x8x4x64xbf16>
}

// The default spelled out is not printed.
// CHECK-LABEL: func.func @attention_default_weights
func.func @attention_default_weights(%q: tensor<1x1x2x4xf64>, %k: tensor<1x1x2x4xf64>, %v: tensor<1x1x2x4xf64>) -> tensor<1x1x2x4xf64> {
  // CHECK: linattn.attention %{{.+}}, %{{.+}}, %{{.+}} :
  %o = linattn.attention %q, %k, %v weights(linear) : (tensor<1x1x2x4xf64>, tensor<1x1x2x4xf64>, tensor<1x1x2x4xf64>) -> tensor<1x1x2x4xf64>
  return %o : tensor<1x1x2x4xf64>
}

// CHECK-LABEL: func.func @attention_region
func.func @attention_region(%q: tensor<1x1x2x4xf16>, %k: tensor<1x1x2x4xf16>, %v: tensor<1x1x2x4xf16>) -> tensor<1x1x2x4xf16> {
  // CHECK: linattn.attention %{{.+}}, %{{.+}}, %{{.+}} {feature_map = #linattn.feature_map<region>} phi {
  // CHECK-NEXT: ^bb0(%[[X:.+]]: f32):
  // CHECK-NEXT:   %[[Y:.+]] = math.tanh %[[X]] : f32
  // CHECK-NEXT:   linattn.yield %[[Y]] : f32
  // CHECK-NEXT: } :
  %o = linattn.attention %q, %k, %v {feature_map = #linattn.feature_map<region>} phi {
  ^bb0(%x: f32):
    %y = math.tanh %x : f32
    linattn.yield %y : f32
  } : (tensor<1x1x2x4xf16>, tensor<1x1x2x4xf16>, tensor<1x1x2x4xf16>) -> tensor<1x1x2x4xf16>
  return %o : tensor<1x1x2x4xf16>
}

//===----------------------------------------------------------------------===//
// quadratic
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @quadratic
func.func @quadratic(%q: tensor<2x8x?x64xf32>, %k: tensor<2x8x?x64xf32>, %v: tensor<2x8x?x64xf32>, %o: tensor<2x8x?x64xf32>) -> tensor<2x8x?x64xf32> {
  // CHECK: linattn.quadratic %{{.+}}, %{{.+}}, %{{.+}} weights(softmax) into(%{{.+}}) {causal, scale = 1.250000e-01 : f64} :
  %r = linattn.quadratic %q, %k, %v weights(softmax) into(%o) {causal, scale = 0.125 : f64}
    : (tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>) -> tensor<2x8x?x64xf32>
  return %r : tensor<2x8x?x64xf32>
}

// CHECK-LABEL: func.func @quadratic_buffers
func.func @quadratic_buffers(%q: memref<2x8x16x64xf32>, %k: memref<2x8x16x64xf32>, %v: memref<2x8x16x64xf32>, %mask: memref<2x16xi1>, %o: memref<2x8x16x64xf32>) {
  // CHECK: linattn.quadratic %{{.+}}, %{{.+}}, %{{.+}} mask(%{{.+}}) into(%{{.+}}) {feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<floor = 1.000000e-04 : f64, clamp = 1.000000e+01 : f64>} :
  // CHECK-SAME: (memref<2x8x16x64xf32>, memref<2x8x16x64xf32>, memref<2x8x16x64xf32>, memref<2x16xi1>, memref<2x8x16x64xf32>) -> ()
  linattn.quadratic %q, %k, %v mask(%mask) into(%o)
      {feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<floor = 1.0e-4, clamp = 10.0>}
    : (memref<2x8x16x64xf32>, memref<2x8x16x64xf32>, memref<2x8x16x64xf32>, memref<2x16xi1>, memref<2x8x16x64xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @quadratic_region
func.func @quadratic_region(%q: memref<?x?x?x?xf64>, %k: memref<?x?x?x?xf64>, %v: memref<?x?x?x?xf64>, %o: memref<?x?x?x?xf64>) {
  // CHECK: linattn.quadratic %{{.+}} into(%{{.+}}) {feature_map = #linattn.feature_map<region>} phi {
  linattn.quadratic %q, %k, %v into(%o) {feature_map = #linattn.feature_map<region>} phi {
  ^bb0(%x: f64):
    %y = arith.mulf %x, %x : f64
    linattn.yield %y : f64
  } : (memref<?x?x?x?xf64>, memref<?x?x?x?xf64>, memref<?x?x?x?xf64>, memref<?x?x?x?xf64>) -> ()
  return
}

//===----------------------------------------------------------------------===//
// scan
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @scan
func.func @scan(%q: tensor<2x4x?x8xf32>, %k: tensor<2x4x?x8xf32>, %v: tensor<2x4x?x16xf32>, %o: tensor<2x4x?x16xf32>, %s: tensor<2x4x8x16xf32>) -> (tensor<2x4x?x16xf32>, tensor<2x4x8x16xf32>) {
  // CHECK: linattn.scan %{{.+}}, %{{.+}}, %{{.+}} into(%{{.+}}) init(%{{.+}}) :
  // CHECK-SAME: (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>, tensor<2x4x8x16xf32>) -> (tensor<2x4x?x16xf32>, tensor<2x4x8x16xf32>)
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s)
    : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>, tensor<2x4x8x16xf32>) -> (tensor<2x4x?x16xf32>, tensor<2x4x8x16xf32>)
  return %r#0, %r#1 : tensor<2x4x?x16xf32>, tensor<2x4x8x16xf32>
}

// A decay per head, and per value channel.
// CHECK-LABEL: func.func @scan_decays
func.func @scan_decays(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %g: tensor<4xf32>, %gv: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32> {
  // CHECK: linattn.scan %{{.+}}, %{{.+}}, %{{.+}} decay(%{{.+}}) value_decay(%{{.+}}) into(%{{.+}}) init(%{{.+}}) {reverse} :
  %r:2 = linattn.scan %q, %k, %v decay(%g) value_decay(%gv) into(%o) init(%s) {reverse}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<4xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>) -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return %r#1 : tensor<2x4x8x16xf32>
}

// Decays beside half-precision tokens may be f32; the state is.
// CHECK-LABEL: func.func @scan_delta
func.func @scan_delta(%q: tensor<2x4x6x8xbf16>, %k: tensor<2x4x6x8xbf16>, %v: tensor<2x4x6x16xbf16>, %g: tensor<2x4x6xf32>, %beta: tensor<2x4x6xf32>, %o: tensor<2x4x6x16xbf16>, %s: tensor<2x4x8x16xf32>) -> tensor<2x4x6x16xbf16> {
  // CHECK: linattn.scan %{{.+}}, %{{.+}}, %{{.+}} decay(%{{.+}}) beta(%{{.+}}) update(delta) into(%{{.+}}) init(%{{.+}}) :
  %r:2 = linattn.scan %q, %k, %v decay(%g) beta(%beta) update(delta) into(%o) init(%s)
    : (tensor<2x4x6x8xbf16>, tensor<2x4x6x8xbf16>, tensor<2x4x6x16xbf16>, tensor<2x4x6xf32>, tensor<2x4x6xf32>, tensor<2x4x6x16xbf16>, tensor<2x4x8x16xf32>) -> (tensor<2x4x6x16xbf16>, tensor<2x4x8x16xf32>)
  return %r#0 : tensor<2x4x6x16xbf16>
}

// CHECK-LABEL: func.func @scan_erase_write
func.func @scan_erase_write(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %g: tensor<2x4x6x8xf32>, %beta: tensor<2x4x6x16xf32>, %erase: tensor<2x4x6x8xf32>, %write: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) -> tensor<2x4x6x16xf32> {
  // CHECK: linattn.scan %{{.+}}, %{{.+}}, %{{.+}} decay(%{{.+}}) beta(%{{.+}}) erase(%{{.+}}) write(%{{.+}}) update(delta) into(%{{.+}}) init(%{{.+}}) :
  %r:2 = linattn.scan %q, %k, %v decay(%g) beta(%beta) erase(%erase) write(%write) update(delta) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>) -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return %r#0 : tensor<2x4x6x16xf32>
}

// CHECK-LABEL: func.func @scan_dplr
func.func @scan_dplr(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %a: tensor<2x4x6x8xf32>, %b: tensor<2x4x6x8xf32>, %mask: tensor<2x6xi1>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>) -> tensor<2x4x6x16xf32> {
  // CHECK: linattn.scan %{{.+}}, %{{.+}}, %{{.+}} a(%{{.+}}) b(%{{.+}}) mask(%{{.+}}) update(dplr) into(%{{.+}}) init(%{{.+}}) :
  %r:2 = linattn.scan %q, %k, %v a(%a) b(%b) mask(%mask) update(dplr) into(%o) init(%s)
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x6xi1>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>) -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>)
  return %r#0 : tensor<2x4x6x16xf32>
}

// Three packed sequences; the state is one per sequence.
// CHECK-LABEL: func.func @scan_bonus_cu_seqlens
func.func @scan_bonus_cu_seqlens(%q: tensor<1x4x?x8xf32>, %k: tensor<1x4x?x8xf32>, %v: tensor<1x4x?x16xf32>, %u: tensor<4x8xf32>, %offsets: tensor<4xi32>, %o: tensor<1x4x?x16xf32>, %s: tensor<3x4x8x16xf32>) -> tensor<3x4x8x16xf32> {
  // CHECK: linattn.scan %{{.+}}, %{{.+}}, %{{.+}} bonus(%{{.+}}) cu_seqlens(%{{.+}}) readout(exclusive) into(%{{.+}}) init(%{{.+}}) :
  %r:2 = linattn.scan %q, %k, %v bonus(%u) cu_seqlens(%offsets) readout(exclusive) into(%o) init(%s)
    : (tensor<1x4x?x8xf32>, tensor<1x4x?x8xf32>, tensor<1x4x?x16xf32>, tensor<4x8xf32>, tensor<4xi32>, tensor<1x4x?x16xf32>, tensor<3x4x8x16xf32>) -> (tensor<1x4x?x16xf32>, tensor<3x4x8x16xf32>)
  return %r#1 : tensor<3x4x8x16xf32>
}

// CHECK-LABEL: func.func @scan_running_max
func.func @scan_running_max(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %o: tensor<2x4x6x16xf32>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x8xf32>, %m: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // CHECK: linattn.scan %{{.+}}, %{{.+}}, %{{.+}} into(%{{.+}}) init(%{{.+}}) normalizer(%{{.+}}) running_max(%{{.+}}) {feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<>} :
  %r:4 = linattn.scan %q, %k, %v into(%o) init(%s) normalizer(%z) running_max(%m)
      {feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>)
    -> (tensor<2x4x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>)
  return %r#3 : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @scan_oja
func.func @scan_oja(%q: tensor<2x4x6x8xf16>, %k: tensor<2x4x6x8xf16>, %v: tensor<2x4x6x16xf16>, %gv: tensor<2x4x6x16xf32>, %beta: tensor<2x4x6xf32>, %o: tensor<2x4x6x16xf16>, %s: tensor<2x4x8x16xf64>) -> tensor<2x4x6x16xf16> {
  // CHECK: linattn.scan %{{.+}}, %{{.+}}, %{{.+}} value_decay(%{{.+}}) beta(%{{.+}}) update(oja) into(%{{.+}}) init(%{{.+}}) :
  %r:2 = linattn.scan %q, %k, %v value_decay(%gv) beta(%beta) update(oja) into(%o) init(%s)
    : (tensor<2x4x6x8xf16>, tensor<2x4x6x8xf16>, tensor<2x4x6x16xf16>, tensor<2x4x6x16xf32>, tensor<2x4x6xf32>, tensor<2x4x6x16xf16>, tensor<2x4x8x16xf64>) -> (tensor<2x4x6x16xf16>, tensor<2x4x8x16xf64>)
  return %r#0 : tensor<2x4x6x16xf16>
}

// mLSTM, on buffers with open sizes.
// CHECK-LABEL: func.func @scan_input_gate
func.func @scan_input_gate(%q: memref<?x4x?x8xf32>, %k: memref<?x4x?x8xf32>, %v: memref<?x4x?x16xf32>, %f: memref<?x4x?xf32>, %i: memref<?x4x?xf32>, %mask: memref<?x?xi1>, %o: memref<?x4x?x16xf32>, %s: memref<?x4x8x16xf32>, %z: memref<?x4x8xf32>, %m: memref<?x4xf32>) {
  // CHECK: linattn.scan %{{.+}}, %{{.+}}, %{{.+}} decay(%{{.+}}) input_gate(%{{.+}}) mask(%{{.+}}) into(%{{.+}}) init(%{{.+}}) normalizer(%{{.+}}) running_max(%{{.+}}) {normalize = #linattn.normalize<eps = 9.9{{.*}}E-7 : f64, abs_floor = 1.000000e+00 : f64>} :
  linattn.scan %q, %k, %v decay(%f) input_gate(%i) mask(%mask) into(%o) init(%s) normalizer(%z) running_max(%m)
      {normalize = #linattn.normalize<eps = 1.0e-6, abs_floor = 1.0>}
    : (memref<?x4x?x8xf32>, memref<?x4x?x8xf32>, memref<?x4x?x16xf32>, memref<?x4x?xf32>, memref<?x4x?xf32>, memref<?x?xi1>, memref<?x4x?x16xf32>, memref<?x4x8x16xf32>, memref<?x4x8xf32>, memref<?x4xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @read_running_max
func.func @read_running_max(%q: tensor<2x4x?x8xf32>, %s: tensor<2x4x8x16xf64>, %z: tensor<2x4x8xf64>, %m: tensor<2x4xf64>, %o: tensor<2x4x?x16xf32>) -> tensor<2x4x?x16xf32> {
  // CHECK: linattn.read %{{.+}}, %{{.+}} normalizer(%{{.+}}) running_max(%{{.+}}) into(%{{.+}}) {normalize = #linattn.normalize<abs_floor = 1.000000e+00 : f64>} :
  %r = linattn.read %q, %s normalizer(%z) running_max(%m) into(%o) {normalize = #linattn.normalize<abs_floor = 1.0>}
    : (tensor<2x4x?x8xf32>, tensor<2x4x8x16xf64>, tensor<2x4x8xf64>, tensor<2x4xf64>, tensor<2x4x?x16xf32>) -> tensor<2x4x?x16xf32>
  return %r : tensor<2x4x?x16xf32>
}

// CHECK-LABEL: func.func @scan_buffers
func.func @scan_buffers(%q: memref<2x4x?x8xf16, strided<[?, ?, ?, 1], offset: ?>>, %k: memref<2x4x?x8xf16>, %v: memref<2x4x?x16xf16>, %g: memref<2x4x?xf32>, %o: memref<2x4x?x16xf16>, %s: memref<2x4x8x16xf32>, %z: memref<2x4x8xf32>) {
  // CHECK: linattn.scan %{{.+}}, %{{.+}}, %{{.+}} decay(%{{.+}}) into(%{{.+}}) init(%{{.+}}) normalizer(%{{.+}}) {feature_map = #linattn.feature_map<region>, normalize = #linattn.normalize<>} phi {
  // CHECK: -> ()
  linattn.scan %q, %k, %v decay(%g) into(%o) init(%s) normalizer(%z)
      {feature_map = #linattn.feature_map<region>, normalize = #linattn.normalize<>} phi {
  ^bb0(%x: f32):
    %y = math.absf %x : f32
    linattn.yield %y : f32
  } : (memref<2x4x?x8xf16, strided<[?, ?, ?, 1], offset: ?>>, memref<2x4x?x8xf16>, memref<2x4x?x16xf16>, memref<2x4x?xf32>, memref<2x4x?x16xf16>, memref<2x4x8x16xf32>, memref<2x4x8xf32>) -> ()
  return
}

//===----------------------------------------------------------------------===//
// state, read
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @state
func.func @state(%k: tensor<2x4x?x8xf32>, %v: tensor<2x4x?x16xf32>, %s: tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32> {
  // CHECK: linattn.state %{{.+}}, %{{.+}} init(%{{.+}}) : (tensor<2x4x?x8xf32>, tensor<2x4x?x16xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = linattn.state %k, %v init(%s) : (tensor<2x4x?x8xf32>, tensor<2x4x?x16xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  return %r : tensor<2x4x8x16xf32>
}

// CHECK-LABEL: func.func @state_running_max
func.func @state_running_max(%k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x16xf32>, %mask: tensor<2x6xi1>, %s: tensor<2x4x8x16xf32>, %z: tensor<2x4x8xf32>, %m: tensor<2x4xf32>) -> tensor<2x4x8xf32> {
  // CHECK: linattn.state %{{.+}}, %{{.+}} mask(%{{.+}}) init(%{{.+}}) normalizer(%{{.+}}) running_max(%{{.+}}) {config = #linattn.config<form = chunk, chunk = 64>, feature_map = #linattn.feature_map<exp>} :
  %r:3 = linattn.state %k, %v mask(%mask) init(%s) normalizer(%z) running_max(%m)
      {feature_map = #linattn.feature_map<exp>, config = #linattn.config<form = chunk, chunk = 64>}
    : (tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>, tensor<2x6xi1>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>)
    -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>)
  return %r#1 : tensor<2x4x8xf32>
}

// CHECK-LABEL: func.func @state_buffers
func.func @state_buffers(%k: memref<2x1x6x8xf32>, %v: memref<2x4x6x16xf32>, %s: memref<2x4x8x16xf32>, %z: memref<2x4x8xf32>) {
  // CHECK: linattn.state %{{.+}}, %{{.+}} init(%{{.+}}) normalizer(%{{.+}}) {feature_map = #linattn.feature_map<region>} phi {
  // CHECK: -> ()
  linattn.state %k, %v init(%s) normalizer(%z) {feature_map = #linattn.feature_map<region>} phi {
  ^bb0(%x: f32):
    %one = arith.constant 1.0 : f32
    %y = arith.addf %x, %one : f32
    linattn.yield %y : f32
  } : (memref<2x1x6x8xf32>, memref<2x4x6x16xf32>, memref<2x4x8x16xf32>, memref<2x4x8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @read
func.func @read(%q: tensor<2x8x?x8xf16>, %s: tensor<2x4x8x16xf32>, %o: tensor<2x8x?x16xf16>) -> tensor<2x8x?x16xf16> {
  // CHECK: linattn.read %{{.+}}, %{{.+}} into(%{{.+}}) {scale = 5.000000e-01 : f64} : (tensor<2x8x?x8xf16>, tensor<2x4x8x16xf32>, tensor<2x8x?x16xf16>) -> tensor<2x8x?x16xf16>
  %r = linattn.read %q, %s into(%o) {scale = 0.5 : f64} : (tensor<2x8x?x8xf16>, tensor<2x4x8x16xf32>, tensor<2x8x?x16xf16>) -> tensor<2x8x?x16xf16>
  return %r : tensor<2x8x?x16xf16>
}

// CHECK-LABEL: func.func @read_buffers
func.func @read_buffers(%q: memref<2x8x6x8xf32>, %s: memref<2x4x8x16xf32>, %z: memref<2x4x8xf32>, %o: memref<2x8x6x16xf32>) {
  // CHECK: linattn.read %{{.+}}, %{{.+}} normalizer(%{{.+}}) into(%{{.+}}) {feature_map = #linattn.feature_map<softmax_kernel>, normalize = #linattn.normalize<eps = 0.000000e+00 : f64>} :
  linattn.read %q, %s normalizer(%z) into(%o) {feature_map = #linattn.feature_map<softmax_kernel>, normalize = #linattn.normalize<eps = 0.0>}
    : (memref<2x8x6x8xf32>, memref<2x4x8x16xf32>, memref<2x4x8xf32>, memref<2x8x6x16xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @read_region
func.func @read_region(%q: tensor<2x8x6x8xf32>, %s: tensor<2x4x8x16xf32>, %o: tensor<2x8x6x16xf32>) -> tensor<2x8x6x16xf32> {
  // CHECK: linattn.read %{{.+}}, %{{.+}} into(%{{.+}}) {feature_map = #linattn.feature_map<region>} phi {
  %r = linattn.read %q, %s into(%o) {feature_map = #linattn.feature_map<region>} phi {
  ^bb0(%x: f32):
    linattn.yield %x : f32
  } : (tensor<2x8x6x8xf32>, tensor<2x4x8x16xf32>, tensor<2x8x6x16xf32>) -> tensor<2x8x6x16xf32>
  return %r : tensor<2x8x6x16xf32>
}

//===----------------------------------------------------------------------===//
// feature_map
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @feature_maps
func.func @feature_maps(%x: tensor<2x8x?x64xf32>, %o: tensor<2x8x?x64xf32>) -> tensor<2x8x?x64xf32> {
  // CHECK: linattn.feature_map %{{.+}} into(%{{.+}}) : (tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>) -> tensor<2x8x?x64xf32>
  %0 = linattn.feature_map %x into(%o) : (tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>) -> tensor<2x8x?x64xf32>
  // CHECK: linattn.feature_map %{{.+}} into(%{{.+}}) {feature_map = #linattn.feature_map<identity>} :
  %1 = linattn.feature_map %0 into(%o) {feature_map = #linattn.feature_map<identity>} : (tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>) -> tensor<2x8x?x64xf32>
  // CHECK: #linattn.feature_map<relu>
  %2 = linattn.feature_map %1 into(%o) {feature_map = #linattn.feature_map<relu>} : (tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>) -> tensor<2x8x?x64xf32>
  // CHECK: #linattn.feature_map<relu2>
  %3 = linattn.feature_map %2 into(%o) {feature_map = #linattn.feature_map<relu2>} : (tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>) -> tensor<2x8x?x64xf32>
  // CHECK: #linattn.feature_map<softmax_kernel>
  %4 = linattn.feature_map %3 into(%o) {feature_map = #linattn.feature_map<softmax_kernel>} : (tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>) -> tensor<2x8x?x64xf32>
  // CHECK: #linattn.feature_map<exp>
  %5 = linattn.feature_map %4 into(%o) {feature_map = #linattn.feature_map<exp>} : (tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>) -> tensor<2x8x?x64xf32>
  return %5 : tensor<2x8x?x64xf32>
}

// CHECK-LABEL: func.func @feature_map_buffers
func.func @feature_map_buffers(%x: memref<2x8x16x64xbf16>, %o: memref<2x8x16x64xbf16>) {
  // CHECK: linattn.feature_map %{{.+}} into(%{{.+}}) {feature_map = #linattn.feature_map<region>} phi {
  // CHECK: } : (memref<2x8x16x64xbf16>, memref<2x8x16x64xbf16>) -> ()
  linattn.feature_map %x into(%o) {feature_map = #linattn.feature_map<region>} phi {
  ^bb0(%e: f32):
    %zero = arith.constant 0.0 : f32
    %isPositive = arith.cmpf ogt, %e, %zero : f32
    %y = arith.select %isPositive, %e, %zero : f32
    linattn.yield %y : f32
  } : (memref<2x8x16x64xbf16>, memref<2x8x16x64xbf16>) -> ()
  return
}

//===----------------------------------------------------------------------===//
// attributes
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func private @attributes
// CHECK-SAME: a = #linattn.config<form = auto>
// CHECK-SAME: b = #linattn.config<form = quadratic>
// CHECK-SAME: c = #linattn.config<form = token>
// CHECK-SAME: d = #linattn.normalize<eps = 1.000000e-05 : f64, clamp = 1.000000e+00 : f64>
func.func private @attributes() attributes {
  a = #linattn.config<form = auto>,
  b = #linattn.config<form = quadratic, chunk = 0>,
  c = #linattn.config<form = token>,
  d = #linattn.normalize<eps = 1.0e-5, clamp = 1.0>
}
