// RUN: linattn-opt %s --linattn-differentiate --canonicalize --cse | FileCheck %s
// RUN: linattn-opt %s --linattn-differentiate --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// A sweep and a scan without a decay: each read is inclusive, no ops in between.

// CHECK-LABEL: func.func @linear(
// CHECK-NOT: linattn.differentiate
// CHECK-LABEL: func.func @linear_vjp(
// CHECK-SAME: %[[Q:[^:]+]]: tensor<1x2x7x4xf32>, %[[K:[^:]+]]: tensor<1x2x7x4xf32>, %[[V:[^:]+]]: tensor<1x2x7x5xf32>, %[[S:[^:]+]]: tensor<1x2x4x5xf32>, %[[DO:[^:]+]]: tensor<1x2x7x5xf32>, %[[DS:[^:]+]]: tensor<1x2x4x5xf32>)
// CHECK-DAG: %[[ST:.+]] = linalg.generic {{.+}} ins(%[[S]] : tensor<1x2x4x5xf32>)
// CHECK-DAG: %[[H:.+]]:3 = linattn.sweep %[[K]], %[[Q]], %[[DO]] value_query(%[[V]]) into(%{{.+}}, %{{.+}}) init(%[[DS]]) {reverse}
// CHECK-DAG: %[[DQ:.+]]:2 = linattn.scan %[[DO]], %[[V]], %[[K]] into(%{{.+}}) init(%[[ST]]) :
// CHECK-NOT: linattn.scan
// CHECK: return %[[DQ]]#0, %[[H]]#1, %[[H]]#0, %[[H]]#2
func.func @linear(%q: tensor<1x2x7x4xf32>, %k: tensor<1x2x7x4xf32>, %v: tensor<1x2x7x5xf32>, %s: tensor<1x2x4x5xf32>) -> (tensor<1x2x7x5xf32>, tensor<1x2x4x5xf32>) attributes {linattn.differentiate = array<i64: 0, 1, 2, 3>} {
  %e = tensor.empty() : tensor<1x2x7x5xf32>
  %r:2 = linattn.scan %q, %k, %v into(%e) init(%s)
    : (tensor<1x2x7x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x5xf32>, tensor<1x2x7x5xf32>, tensor<1x2x4x5xf32>) -> (tensor<1x2x7x5xf32>, tensor<1x2x4x5xf32>)
  return %r#0, %r#1 : tensor<1x2x7x5xf32>, tensor<1x2x4x5xf32>
}

// Gradients that nothing needs are not computed: one scan for dq.

// CHECK-LABEL: func.func @query_only_vjp(
// CHECK: linattn.scan
// CHECK-NOT: linattn.scan
// CHECK: return %{{.+}} : tensor<1x2x7x4xf32>
func.func @query_only(%q: tensor<1x2x7x4xf32>, %k: tensor<1x2x7x4xf32>, %v: tensor<1x2x7x5xf32>, %s: tensor<1x2x4x5xf32>) -> tensor<1x2x7x5xf32> attributes {linattn.differentiate = array<i64: 0>} {
  %e = tensor.empty() : tensor<1x2x7x5xf32>
  %r:2 = linattn.scan %q, %k, %v into(%e) init(%s)
    : (tensor<1x2x7x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x5xf32>, tensor<1x2x7x5xf32>, tensor<1x2x4x5xf32>) -> (tensor<1x2x7x5xf32>, tensor<1x2x4x5xf32>)
  return %r#0 : tensor<1x2x7x5xf32>
}

// Without a gradient of the values there is nothing to share: one scan for dk.

// CHECK-LABEL: func.func @key_only_vjp(
// CHECK: linattn.scan
// CHECK-NOT: linattn.scan
// CHECK: return %{{.+}} : tensor<1x2x7x4xf32>
func.func @key_only(%q: tensor<1x2x7x4xf32>, %k: tensor<1x2x7x4xf32>, %v: tensor<1x2x7x5xf32>, %s: tensor<1x2x4x5xf32>) -> tensor<1x2x7x5xf32> attributes {linattn.differentiate = array<i64: 1>} {
  %e = tensor.empty() : tensor<1x2x7x5xf32>
  %r:2 = linattn.scan %q, %k, %v into(%e) init(%s)
    : (tensor<1x2x7x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x5xf32>, tensor<1x2x7x5xf32>, tensor<1x2x4x5xf32>) -> (tensor<1x2x7x5xf32>, tensor<1x2x4x5xf32>)
  return %r#0 : tensor<1x2x7x5xf32>
}

// A decay: exclusive reads of what has met the decay of its token; the sums over later tokens are in f64.

// CHECK-LABEL: func.func @decay_vjp(
// CHECK-DAG: linattn.sweep %{{.+}} decay(%{{.+}}) value_query(%{{.+}}) readout(exclusive) into(%{{.+}}, %{{.+}}) init(%{{.+}}) {decay_writes, reverse}
// CHECK-DAG: linattn.scan %{{.+}} into(%{{.+}}) init(%{{.+}}) {reverse} : {{.+}} tensor<1x2x1x1xf64>) -> (tensor<1x2x7x1xf64>, tensor<1x2x1x1xf64>)
func.func @decay(%q: tensor<1x2x7x4xf32>, %k: tensor<1x2x7x4xf32>, %v: tensor<1x2x7x5xf32>, %g: tensor<1x2x7xf32>, %s: tensor<1x2x4x5xf32>) -> tensor<1x2x7x5xf32> attributes {linattn.differentiate = array<i64>} {
  %e = tensor.empty() : tensor<1x2x7x5xf32>
  %r:2 = linattn.scan %q, %k, %v decay(%g) into(%e) init(%s)
    : (tensor<1x2x7x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x5xf32>, tensor<1x2x7xf32>, tensor<1x2x7x5xf32>, tensor<1x2x4x5xf32>) -> (tensor<1x2x7x5xf32>, tensor<1x2x4x5xf32>)
  return %r#0 : tensor<1x2x7x5xf32>
}

// A structured op: its loops, what an input lacks summed.

// CHECK-LABEL: func.func @scaled_vjp(
// CHECK-SAME: %[[X:[^:]+]]: tensor<3x4xf32>, %[[W:[^:]+]]: tensor<4xf32>, %[[D:[^:]+]]: tensor<3x4xf32>)
// CHECK: linalg.generic {{.+}} iterator_types = ["parallel", "parallel"]
// CHECK: linalg.generic {{.+}} iterator_types = ["reduction", "parallel"]
func.func @scaled(%x: tensor<3x4xf32>, %w: tensor<4xf32>) -> tensor<3x4xf32> attributes {linattn.differentiate = array<i64>} {
  %e = tensor.empty() : tensor<3x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %w : tensor<3x4xf32>, tensor<4xf32>) outs(%e : tensor<3x4xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %0 = math.exp %a : f32
    %1 = arith.mulf %0, %b : f32
    linalg.yield %1 : f32
  } -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}

// An operand that the result does not depend on has zeros; integers have no cotangent.

// CHECK-LABEL: func.func @unused_vjp(
// CHECK-SAME: %{{[^:]+}}: tensor<?xf32>, %{{[^:]+}}: tensor<?xf32>, %{{[^:]+}}: tensor<?xi32>, %[[D:[^:]+]]: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
// CHECK: %[[ZERO:.+]] = linalg.fill
// CHECK: return %[[ZERO]], %[[D]]
func.func @unused(%x: tensor<?xf32>, %y: tensor<?xf32>, %i: tensor<?xi32>) -> (tensor<?xf32>, tensor<?xi32>) attributes {linattn.differentiate = array<i64>} {
  return %y, %i : tensor<?xf32>, tensor<?xi32>
}

// No state goes in or out: reads take the scale, and the queries stay as they
// are.

// REMARK: remark: {{.*}}keeps only operands for the backward pass; computed again without stored states: scans 1, sweeps 1
// CHECK-LABEL: func.func @stateless_vjp(
// CHECK-SAME: %[[Q:[^:]+]]: tensor<1x2x7x4xf32>, %[[K:[^:]+]]: tensor<1x2x7x4xf32>, %[[V:[^:]+]]: tensor<1x2x7x5xf32>, %[[DO:[^:]+]]: tensor<1x2x7x5xf32>)
// CHECK-NOT: linalg.generic
// CHECK-DAG: linattn.sweep %[[K]], %[[Q]], %[[DO]] value_query(%[[V]]) into(%{{.+}}, %{{.+}}) init(%{{.+}}) {reverse, scale = 5.000000e-01 : f64}
// CHECK-DAG: linattn.scan %[[DO]], %[[V]], %[[K]] into(%{{.+}}) init(%{{.+}}) {scale = 5.000000e-01 : f64}
// CHECK: return
func.func @stateless(%q: tensor<1x2x7x4xf32>, %k: tensor<1x2x7x4xf32>, %v: tensor<1x2x7x5xf32>) -> tensor<1x2x7x5xf32> attributes {linattn.differentiate = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2x7x5xf32>
  %s0 = tensor.empty() : tensor<1x2x4x5xf32>
  %s = linalg.fill ins(%zero : f32) outs(%s0 : tensor<1x2x4x5xf32>) -> tensor<1x2x4x5xf32>
  %r:2 = linattn.scan %q, %k, %v into(%e) init(%s) {scale = 0.5}
    : (tensor<1x2x7x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x5xf32>, tensor<1x2x7x5xf32>, tensor<1x2x4x5xf32>) -> (tensor<1x2x7x5xf32>, tensor<1x2x4x5xf32>)
  return %r#0 : tensor<1x2x7x5xf32>
}

// The gradient of a gate of 16 bits comes from sums in f64 by way of f32.

// CHECK-LABEL: func.func @half_vjp(
// CHECK: %[[F32:.+]] = arith.truncf %{{.+}} : tensor<1x2x7xf64> to tensor<1x2x7xf32>
// CHECK: %[[F16:.+]] = arith.truncf %[[F32]] : tensor<1x2x7xf32> to tensor<1x2x7xf16>
// CHECK: return %[[F16]]
func.func @half(%q: tensor<1x2x7x4xf16>, %v: tensor<1x2x7x5xf16>, %g: tensor<1x2x7xf16>, %s: tensor<1x2x4x5xf32>) -> tensor<1x2x7x5xf16> attributes {linattn.differentiate = array<i64: 2>} {
  %e = tensor.empty() : tensor<1x2x7x5xf16>
  %o:2 = linattn.scan %q, %q, %v decay(%g) into(%e) init(%s)
    : (tensor<1x2x7x4xf16>, tensor<1x2x7x4xf16>, tensor<1x2x7x5xf16>, tensor<1x2x7xf16>, tensor<1x2x7x5xf16>, tensor<1x2x4x5xf32>) -> (tensor<1x2x7x5xf16>, tensor<1x2x4x5xf32>)
  return %o#0 : tensor<1x2x7x5xf16>
}

// A scale that is an operand multiplies the queries that a sweep writes; a scan takes it.

// CHECK-LABEL: func.func @scale_operand_vjp(
// CHECK-SAME: %[[SCALE:[a-z0-9]+]]: f64
// CHECK: arith.truncf %[[SCALE]] : f64 to f32
// CHECK: linattn.sweep
// CHECK: linattn.scan {{.+}} scale(%[[SCALE]])
// CHECK: return
func.func @scale_operand(%q: tensor<1x2x?x4xf32>, %scale: f64, %e: tensor<1x2x?x4xf32>, %s: tensor<1x2x4x4xf32>) -> tensor<1x2x?x4xf32> attributes {linattn.differentiate = array<i64: 0>} {
  %r:2 = linattn.scan %q, %q, %q scale(%scale) into(%e) init(%s)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, f64, tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0 : tensor<1x2x?x4xf32>
}

// The gradient of a sweep is that of its scans: for the key, a read of the state of the one and the other way round.

// CHECK-LABEL: func.func @twice_vjp(
// CHECK-COUNT-2: linattn.scan
// CHECK-NOT: linattn.s
// CHECK: return %{{.+}} : tensor<1x2x7x4xf32>
func.func @twice(%q: tensor<1x2x7x4xf32>, %k: tensor<1x2x7x4xf32>, %v: tensor<1x2x7x5xf32>, %x: tensor<1x2x7x5xf32>, %o: tensor<1x2x7x5xf32>, %p: tensor<1x2x7x4xf32>, %s: tensor<1x2x4x5xf32>) -> (tensor<1x2x7x5xf32>, tensor<1x2x7x4xf32>, tensor<1x2x4x5xf32>) attributes {linattn.differentiate = array<i64: 1>} {
  %r:3 = linattn.sweep %q, %k, %v value_query(%x) into(%o, %p) init(%s)
    : (tensor<1x2x7x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x5xf32>, tensor<1x2x7x5xf32>, tensor<1x2x7x5xf32>, tensor<1x2x7x4xf32>, tensor<1x2x4x5xf32>) -> (tensor<1x2x7x5xf32>, tensor<1x2x7x4xf32>, tensor<1x2x4x5xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x7x5xf32>, tensor<1x2x7x4xf32>, tensor<1x2x4x5xf32>
}

// Nothing is rounded to 16 bits in between: the gradient of what is used twice is summed in f32.

// CHECK-LABEL: func.func @narrow_vjp(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?xbf16>, %[[W:[a-z0-9]+]]: tensor<?xf32>, %[[D:[a-z0-9]+]]: tensor<?xbf16>
// CHECK-NOT: arith.truncf
// CHECK: linalg.generic
// CHECK: ^bb0(%{{.+}}: f32, %{{.+}}: f32, %{{.+}}: f32, %{{.+}}: f32)
// CHECK-NOT: arith.truncf
// CHECK: %[[SUM:.+]] = arith.addf %{{.+}} : tensor<?xf32>
// CHECK-NEXT: %[[R:.+]] = arith.truncf %[[SUM]] : tensor<?xf32> to tensor<?xbf16>
// CHECK-NEXT: return %[[R]]
func.func @narrow(%x: tensor<?xbf16>, %w: tensor<?xf32>) -> tensor<?xbf16> attributes {linattn.differentiate = array<i64: 0>} {
  %c0 = arith.constant 0 : index
  %half = arith.constant 0.5 : bf16
  %n = tensor.dim %x, %c0 : tensor<?xbf16>
  %e = tensor.empty(%n) : tensor<?xbf16>
  %y = linalg.map ins(%x, %w : tensor<?xbf16>, tensor<?xf32>) outs(%e : tensor<?xbf16>)
    (%a: bf16, %b: f32, %out: bf16) {
      %0 = arith.extf %a : bf16 to f32
      %1 = arith.mulf %0, %b : f32
      %2 = arith.truncf %1 : f32 to bf16
      %3 = arith.mulf %2, %half : bf16
      linalg.yield %3 : bf16
    }
  %z = arith.mulf %x, %y : tensor<?xbf16>
  return %z : tensor<?xbf16>
}

// Bits are what they are: types stay.

// CHECK-LABEL: func.func @bits_vjp(
// CHECK: %[[R:.+]] = arith.mulf %{{.+}} : tensor<4xbf16>
// CHECK-NEXT: return %[[R]]
// REMARK: remark: {{.*}}gradients are rounded to 16 bits between ops: 'arith.bitcast' takes numbers as they are
func.func @bits(%x: tensor<4xbf16>, %i: tensor<4xi16>) -> tensor<4xbf16> attributes {linattn.differentiate = array<i64: 0>} {
  %w = arith.bitcast %i : tensor<4xi16> to tensor<4xbf16>
  %0 = arith.mulf %x, %w : tensor<4xbf16>
  return %0 : tensor<4xbf16>
}

// A state under a running maximum is that of keys relative to the maximum of all tokens: dV reads it, dk is e^(k − m) times a read.

// CHECK-LABEL: func.func @relative_vjp(
// CHECK: %[[MAX:.+]] = linalg.generic {{.+}}iterator_types = ["parallel", "parallel", "reduction", "reduction"]
// CHECK: arith.maximumf
// CHECK: math.exp
// CHECK-NOT: linattn.scan
// CHECK-COUNT-2: linattn.read
// CHECK: return
func.func @relative(%k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x5xf32>, %s: tensor<1x2x4x5xf32>, %z: tensor<1x2x4xf32>, %m: tensor<1x2xf32>) -> (tensor<1x2x4x5xf32>, tensor<1x2x4xf32>, tensor<1x2xf32>) attributes {linattn.differentiate = array<i64: 0, 1>} {
  %r:3 = linattn.state %k, %v init(%s) normalizer(%z) running_max(%m) {feature_map = #linattn.feature_map<exp>}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x5xf32>, tensor<1x2x4x5xf32>, tensor<1x2x4xf32>, tensor<1x2xf32>) -> (tensor<1x2x4x5xf32>, tensor<1x2x4xf32>, tensor<1x2xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x4x5xf32>, tensor<1x2x4xf32>, tensor<1x2xf32>
}

// Under a decay it is a scan, whose running maximum is a loop over tokens.

// CHECK-LABEL: func.func @relative_decayed_vjp(
// CHECK: scf.for
// CHECK: linattn.scan
func.func @relative_decayed(%k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x5xf32>, %g: tensor<1x2x?xf32>, %s: tensor<1x2x4x5xf32>, %z: tensor<1x2x4xf32>, %m: tensor<1x2xf32>) -> (tensor<1x2x4x5xf32>, tensor<1x2x4xf32>, tensor<1x2xf32>) attributes {linattn.differentiate = array<i64: 0, 1>} {
  %r:3 = linattn.state %k, %v decay(%g) init(%s) normalizer(%z) running_max(%m) {feature_map = #linattn.feature_map<exp>}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x5xf32>, tensor<1x2x?xf32>, tensor<1x2x4x5xf32>, tensor<1x2x4xf32>, tensor<1x2xf32>) -> (tensor<1x2x4x5xf32>, tensor<1x2x4xf32>, tensor<1x2xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x4x5xf32>, tensor<1x2x4xf32>, tensor<1x2xf32>
}
