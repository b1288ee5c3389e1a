// RUN: linattn-opt %s --linattn-expand-form=tasks --canonicalize --cse | FileCheck %s
// RUN: linattn-opt %s --linattn-expand-form=tasks --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: linattn-opt %s --linattn-lower-to-cpu-pipeline=through-chunks | FileCheck %s --check-prefix=LLVM

// LLVM-NOT: linattn.chunk

// A task a head; what is left of the tokens is a chunk of five.

// CHECK-LABEL: func.func @known(
// CHECK:         scf.forall (%{{.+}}, %{{.+}}) in (2, 4)
// CHECK:           scf.for %{{.+}} = %c0 to %c32 step %c16
// CHECK:             linattn.chunk.update {{.*}}tensor<1x1x16x16xf32>
// CHECK:           linattn.chunk.update {{.*}}tensor<1x1x5x16xf32>
// CHECK-NOT:     linattn.scan
// REMARK: [Passed] expand-form {{.*}}"becomes a loop over chunks of 16 tokens"
func.func @known(%q: tensor<2x4x37x16xf32>, %s: tensor<2x4x16x16xf32>) -> (tensor<2x4x37x16xf32>, tensor<2x4x16x16xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) : (tensor<2x4x37x16xf32>, tensor<2x4x37x16xf32>, tensor<2x4x37x16xf32>, tensor<2x4x37x16xf32>, tensor<2x4x16x16xf32>) -> (tensor<2x4x37x16xf32>, tensor<2x4x16x16xf32>)
  return %r#0, %r#1 : tensor<2x4x37x16xf32>, tensor<2x4x16x16xf32>
}

// Of a dynamic number, one by one.

// CHECK-LABEL: func.func @dynamic(
// CHECK:         scf.forall
// CHECK:           arith.remui
// CHECK:           scf.for
// CHECK:             linattn.chunk.update {{.*}}tensor<1x1x16x16xf32>
// CHECK:           scf.for
// CHECK:             linattn.chunk.update {{.*}}tensor<1x1x1x16xf32>
// CHECK-NOT:     linattn.scan
func.func @dynamic(%q: tensor<?x4x?x16xf32>, %s: tensor<?x4x16x16xf32>) -> (tensor<?x4x?x16xf32>, tensor<?x4x16x16xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) : (tensor<?x4x?x16xf32>, tensor<?x4x?x16xf32>, tensor<?x4x?x16xf32>, tensor<?x4x?x16xf32>, tensor<?x4x16x16xf32>) -> (tensor<?x4x?x16xf32>, tensor<?x4x16x16xf32>)
  return %r#0, %r#1 : tensor<?x4x?x16xf32>, tensor<?x4x16x16xf32>
}

// A task owns a state that is not read afterwards: zeros, or a copy of its part.

// CHECK-LABEL: func.func @from_zeros(
// CHECK-NOT:     linalg.fill
// CHECK:         scf.forall {{.*}} shared_outs(%{{[^,]+}}) -> (tensor<2x4x32x16xf32>)
// CHECK:           %[[OWN:.+]] = linalg.fill {{.*}} -> tensor<1x1x16x16xf32>
// CHECK:           scf.for {{.*}}%[[OWN]]
func.func @from_zeros(%q: tensor<2x4x32x16xf32>) -> tensor<2x4x32x16xf32> {
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x16x16xf32>
  %s = linalg.fill ins(%c : f32) outs(%e : tensor<2x4x16x16xf32>) -> tensor<2x4x16x16xf32>
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) : (tensor<2x4x32x16xf32>, tensor<2x4x32x16xf32>, tensor<2x4x32x16xf32>, tensor<2x4x32x16xf32>, tensor<2x4x16x16xf32>) -> (tensor<2x4x32x16xf32>, tensor<2x4x16x16xf32>)
  return %r#0 : tensor<2x4x32x16xf32>
}

// CHECK-LABEL: func.func @unread_state(
// CHECK-SAME:      %[[S:[^:,]+]]: tensor<2x4x16x16xf32>) -> tensor<2x4x?x16xf32>
// CHECK:         scf.forall {{.*}} shared_outs(%{{[^,]+}}) -> (tensor<2x4x?x16xf32>)
// CHECK:           %[[PART:.+]] = tensor.extract_slice %[[S]]
// CHECK:           %[[OWN:.+]] = linalg.copy ins(%[[PART]]
// CHECK:           scf.for {{.*}}%[[OWN]]
func.func @unread_state(%q: tensor<2x4x?x16xf32>, %s: tensor<2x4x16x16xf32>) -> tensor<2x4x?x16xf32> {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) : (tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>, tensor<2x4x16x16xf32>) -> (tensor<2x4x?x16xf32>, tensor<2x4x16x16xf32>)
  return %r#0 : tensor<2x4x?x16xf32>
}

// Two heads of queries read a state: a loop within the chunk, whose keys and values are packed once.

// CHECK-LABEL: func.func @grouped(
// CHECK:         scf.forall (%[[HEAD:.+]]) in (2)
// CHECK:           affine.apply {{.*}}(%[[HEAD]])
// CHECK:           scf.for %{{.+}} = %c0 to %c32 step %c16
// CHECK-COUNT-2:     linattn.chunk.pack
// CHECK:             scf.for %[[READER:.+]] = %c0 to %c2 step %c1
// CHECK:               tensor.extract_slice %{{.+}}[0, %[[READER]], 0, 0] [1, 1, 16, 16]
// CHECK:               linattn.chunk.read
// CHECK:             linattn.chunk.update
// CHECK-NOT:     linattn.scan
func.func @grouped(%q: tensor<1x4x32x16xf32>, %k: tensor<1x2x32x16xf32>, %v: tensor<1x2x32x16xf32>, %s: tensor<1x2x16x16xf32>) -> (tensor<1x4x32x16xf32>, tensor<1x2x16x16xf32>) {
  %r:2 = linattn.scan %q, %k, %v into(%q) init(%s) : (tensor<1x4x32x16xf32>, tensor<1x2x32x16xf32>, tensor<1x2x32x16xf32>, tensor<1x4x32x16xf32>, tensor<1x2x16x16xf32>) -> (tensor<1x4x32x16xf32>, tensor<1x2x16x16xf32>)
  return %r#0, %r#1 : tensor<1x4x32x16xf32>, tensor<1x2x16x16xf32>
}

// A sequence is as long as its offsets say, and has a state of its own.

// CHECK-LABEL: func.func @packed(
// CHECK:         scf.forall (%[[SEQUENCE:.+]], %[[HEAD:.+]]) in (%{{.+}}, 2)
// CHECK:           tensor.extract %{{.+}}[%[[SEQUENCE]]]
// CHECK:           %[[TOKENS:.+]] = arith.subi
// CHECK:           tensor.extract_slice %{{.+}}[0, %[[HEAD]], %[[BEGIN:.+]], 0] [1, 1, %[[TOKENS]], 16]
// CHECK:           linattn.chunk.update {{.*}}tensor<1x1x16x16xf32>
// CHECK:           linattn.chunk.update {{.*}}tensor<1x1x1x16xf32>
// CHECK:           tensor.parallel_insert_slice %{{.+}} into %{{.+}}[0, %[[HEAD]], %[[BEGIN]], 0] [1, 1, %[[TOKENS]], 16]
// CHECK:           tensor.parallel_insert_slice %{{.+}} into %{{.+}}[%[[SEQUENCE]], %[[HEAD]], 0, 0]
// CHECK-NOT:     linattn.scan
func.func @packed(%q: tensor<1x2x?x16xf32>, %offsets: tensor<?xi32>, %s: tensor<?x2x16x16xf32>) -> (tensor<1x2x?x16xf32>, tensor<?x2x16x16xf32>) {
  %r:2 = linattn.scan %q, %q, %q cu_seqlens(%offsets) into(%q) init(%s) : (tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<?xi32>, tensor<1x2x?x16xf32>, tensor<?x2x16x16xf32>) -> (tensor<1x2x?x16xf32>, tensor<?x2x16x16xf32>)
  return %r#0, %r#1 : tensor<1x2x?x16xf32>, tensor<?x2x16x16xf32>
}

// Of the halves of attention without a mask, a state has no queries. A read has
// nothing to carry but its outputs.

// CHECK-LABEL: func.func @halves(
// CHECK:         scf.forall
// CHECK:           scf.for
// CHECK:             linattn.chunk.update
// CHECK:         scf.forall
// CHECK:           scf.for {{.*}}-> (tensor<1x1x48x16xf32>)
// CHECK:             linattn.chunk.read
// CHECK-NOT:     linattn.{{state|read}}
func.func @halves(%q: tensor<1x2x48x16xf32>, %k: tensor<1x2x32x16xf32>, %s: tensor<1x2x16x16xf32>) -> tensor<1x2x48x16xf32> {
  %S = linattn.state %k, %k init(%s) : (tensor<1x2x32x16xf32>, tensor<1x2x32x16xf32>, tensor<1x2x16x16xf32>) -> tensor<1x2x16x16xf32>
  %o = linattn.read %q, %S into(%q) : (tensor<1x2x48x16xf32>, tensor<1x2x16x16xf32>, tensor<1x2x48x16xf32>) -> tensor<1x2x48x16xf32>
  return %o : tensor<1x2x48x16xf32>
}

// A decay per channel is one of rows, keys and state.

// CHECK-LABEL: func.func @channels(
// CHECK:         scf.forall
// CHECK:           %[[G:.+]] = linattn.chunk.pack {{.*}} -> tensor<1x1x16x16xf32>
// CHECK:           linattn.chunk.scores {{.*}} decay(%[[G]])
// CHECK:           linattn.chunk.decay {{.*}} by(%[[G]])
// CHECK:           linattn.chunk.update {{.*}} decay(%[[G]])
// CHECK-NOT:     linattn.scan
func.func @channels(%q: tensor<1x2x16x16xf32>, %s: tensor<1x2x16x16xf32>) -> (tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32>) {
  %r:2 = linattn.scan %q, %q, %q decay(%q) into(%q) init(%s) : (tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32>) -> (tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32>)
  return %r#0, %r#1 : tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32>
}

// A normaliser is a state of one column, the row of each task as a column. Maps
// are ops of the chunk.

// CHECK-LABEL: func.func @normalized(
// CHECK:         scf.forall
// CHECK:           tensor.expand_shape {{.*}} : tensor<1x1x16xf32> into tensor<1x1x16x1xf32>
// CHECK:           linattn.feature_map {{.*}} : (tensor<1x1x16x16xf32>,
// CHECK:           linattn.chunk.update {{.*}} : (tensor<1x1x16x16xf32>, tensor<1x1x16x1xf32>, tensor<1x1x16x1xf32>)
// CHECK:           tensor.collapse_shape {{.*}} : tensor<1x1x16x1xf32> into tensor<1x1x16xf32>
// CHECK:         scf.forall
// CHECK:           linattn.chunk.read {{.*}}-> tensor<1x1x16x1xf32>
// CHECK:           linattn.chunk.unpack {{.*}} denominator(
func.func @normalized(%q: tensor<1x2x32x16xf32>, %s: tensor<1x2x16x16xf32>, %z: tensor<1x2x16xf32>) -> tensor<1x2x32x16xf32> {
  %S:2 = linattn.state %q, %q init(%s) normalizer(%z) {feature_map = #linattn.feature_map<elu1>} : (tensor<1x2x32x16xf32>, tensor<1x2x32x16xf32>, tensor<1x2x16x16xf32>, tensor<1x2x16xf32>) -> (tensor<1x2x16x16xf32>, tensor<1x2x16xf32>)
  %o = linattn.read %q, %S#0 normalizer(%S#1) into(%q) {feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.0e-6>} : (tensor<1x2x32x16xf32>, tensor<1x2x16x16xf32>, tensor<1x2x16xf32>, tensor<1x2x32x16xf32>) -> tensor<1x2x32x16xf32>
  return %o : tensor<1x2x32x16xf32>
}

// A norm that alone reads the outputs is applied to rows of f32, of all heads of
// a task, wherever its other operands are computed.

// CHECK-LABEL: func.func @normed(
// CHECK:         linattn.feature_map
// CHECK:         scf.forall
// CHECK:           %[[WEIGHTS:.+]] = tensor.extract_slice %{{.+}}[%[[FIRST:.+]], 0] [2, 16]
// CHECK:           %[[GATES:.+]] = tensor.extract_slice %{{.+}}[0, %[[FIRST]], 0, 0] [1, 2, 37, 16]
// CHECK:           scf.for {{.+}} step %c16
// CHECK:             %[[ROWS:.+]] = scf.for {{.+}} -> (tensor<1x2x16x16xf32>)
// CHECK-NOT:           linattn.chunk.unpack
// CHECK:             linattn.chunk.update
// CHECK:             %[[GATE:.+]] = tensor.extract_slice %[[GATES]]{{.+}} [1, 2, 16, 16]
// CHECK:             linattn.output_norm %[[ROWS]] weight(%[[WEIGHTS]]) gate(%[[GATE]])
// CHECK-SAME:          (tensor<1x2x16x16xf32>, tensor<2x16xf32>, tensor<1x2x16x16xbf16>, tensor<1x2x16x16xbf16>)
// CHECK:           linattn.output_norm {{.+}} (tensor<1x2x5x16xf32>,
// CHECK-NOT:     linattn.output_norm
// REMARK: [Passed] expand-form {{.*}}"is applied by the kernel of its recurrence"
func.func @normed(%q: tensor<1x4x37x16xbf16>, %k: tensor<1x2x37x16xbf16>, %w: tensor<4x16xf32>, %s: tensor<1x2x16x16xf32>) -> (tensor<1x4x37x16xbf16>, tensor<1x2x16x16xf32>) {
  %r:2 = linattn.scan %q, %k, %k into(%q) init(%s) : (tensor<1x4x37x16xbf16>, tensor<1x2x37x16xbf16>, tensor<1x2x37x16xbf16>, tensor<1x4x37x16xbf16>, tensor<1x2x16x16xf32>) -> (tensor<1x4x37x16xbf16>, tensor<1x2x16x16xf32>)
  %g = linattn.feature_map %q into(%q) {feature_map = #linattn.feature_map<relu>} : (tensor<1x4x37x16xbf16>, tensor<1x4x37x16xbf16>) -> tensor<1x4x37x16xbf16>
  %n = linattn.output_norm %r#0 weight(%w) gate(%g) into(%q) : (tensor<1x4x37x16xbf16>, tensor<4x16xf32>, tensor<1x4x37x16xbf16>, tensor<1x4x37x16xbf16>) -> tensor<1x4x37x16xbf16>
  return %n, %r#1 : tensor<1x4x37x16xbf16>, tensor<1x2x16x16xf32>
}

// Of a read, and of packed sequences of any length.

// CHECK-LABEL: func.func @normed_read(
// CHECK:         scf.forall
// CHECK:           linattn.chunk.read
// CHECK:           linattn.output_norm {{.+}} kind(none) skip(%{{.+}}) skip_weight(%{{.+}}) into(%{{.+}}) : (tensor<1x1x16x16xf32>,
// CHECK-NOT:     linattn.output_norm
func.func @normed_read(%q: tensor<1x2x16x16xbf16>, %w: tensor<16xf32>, %s: tensor<1x2x16x16xf32>) -> tensor<1x2x16x16xbf16> {
  %o = linattn.read %q, %s into(%q) : (tensor<1x2x16x16xbf16>, tensor<1x2x16x16xf32>, tensor<1x2x16x16xbf16>) -> tensor<1x2x16x16xbf16>
  %n = linattn.output_norm %o kind(none) skip(%q) skip_weight(%w) into(%q) : (tensor<1x2x16x16xbf16>, tensor<1x2x16x16xbf16>, tensor<16xf32>, tensor<1x2x16x16xbf16>) -> tensor<1x2x16x16xbf16>
  return %n : tensor<1x2x16x16xbf16>
}

// CHECK-LABEL: func.func @normed_packed(
// CHECK:         scf.forall
// CHECK:           %[[TOKENS:.+]] = arith.subi
// CHECK:           tensor.extract_slice %{{.+}}[0, %[[HEAD:.+]], %[[BEGIN:.+]], 0] [1, 1, %[[TOKENS]], 16]
// CHECK:           linattn.output_norm {{.+}} (tensor<1x1x16x16xf32>,
// CHECK:           linattn.output_norm {{.+}} (tensor<1x1x1x16xf32>,
// CHECK:           tensor.parallel_insert_slice %{{.+}} into %{{.+}}[0, %[[HEAD]], %[[BEGIN]], 0] [1, 1, %[[TOKENS]], 16]
func.func @normed_packed(%q: tensor<1x2x?x16xf32>, %offsets: tensor<?xi32>, %s: tensor<?x2x16x16xf32>) -> (tensor<1x2x?x16xf32>, tensor<?x2x16x16xf32>) {
  %r:2 = linattn.scan %q, %q, %q cu_seqlens(%offsets) into(%q) init(%s) : (tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<?xi32>, tensor<1x2x?x16xf32>, tensor<?x2x16x16xf32>) -> (tensor<1x2x?x16xf32>, tensor<?x2x16x16xf32>)
  %n = linattn.output_norm %r#0 gate(%q) into(%q) : (tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>) -> tensor<1x2x?x16xf32>
  return %n, %r#1 : tensor<1x2x?x16xf32>, tensor<?x2x16x16xf32>
}

// A norm of outputs that something else reads, or that needs what the
// recurrence computes, comes behind it.

// CHECK-LABEL: func.func @norm_beside(
// CHECK:         scf.forall
// CHECK:         linattn.output_norm
// CHECK-LABEL: func.func @norm_of_state(
// CHECK-COUNT-2: scf.forall.in_parallel
// CHECK:         linattn.output_norm
// CHECK-LABEL: func.func @norm_of_double(
// CHECK:         scf.forall
// CHECK:         linattn.output_norm
// REMARK: [Missed] expand-form {{.*}}"runs as a kernel of its own: its operands are computed from the recurrence"
// REMARK: [Missed] expand-form {{.*}}"runs as a kernel of its own: the recurrence computes in another type"
func.func @norm_beside(%q: tensor<1x2x16x16xf32>, %s: tensor<1x2x16x16xf32>) -> (tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32>) {
  %o = linattn.read %q, %s into(%q) : (tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32>) -> tensor<1x2x16x16xf32>
  %n = linattn.output_norm %o into(%q) : (tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32>) -> tensor<1x2x16x16xf32>
  return %o, %n : tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32>
}
func.func @norm_of_state(%q: tensor<1x2x16x16xf32>, %k: tensor<1x2x?x16xf32>, %e: tensor<1x2x?x16xf32>, %s: tensor<1x2x16x16xf32>) -> tensor<1x2x?x16xf32> {
  %r:2 = linattn.scan %k, %k, %k into(%e) init(%s) : (tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x16x16xf32>) -> (tensor<1x2x?x16xf32>, tensor<1x2x16x16xf32>)
  %g = linattn.read %k, %r#1 into(%e) : (tensor<1x2x?x16xf32>, tensor<1x2x16x16xf32>, tensor<1x2x?x16xf32>) -> tensor<1x2x?x16xf32>
  %n = linattn.output_norm %r#0 gate(%g) into(%e) : (tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>) -> tensor<1x2x?x16xf32>
  return %n : tensor<1x2x?x16xf32>
}
func.func @norm_of_double(%q: tensor<1x2x16x16xbf16>, %s: tensor<1x2x16x16xf64>) -> tensor<1x2x16x16xbf16> {
  %o = linattn.read %q, %s into(%q) : (tensor<1x2x16x16xbf16>, tensor<1x2x16x16xf64>, tensor<1x2x16x16xbf16>) -> tensor<1x2x16x16xbf16>
  %n = linattn.output_norm %o into(%q) : (tensor<1x2x16x16xbf16>, tensor<1x2x16x16xbf16>) -> tensor<1x2x16x16xbf16>
  return %n : tensor<1x2x16x16xbf16>
}

// Others stay.

// CHECK-LABEL: func.func @dynamic_heads(
// CHECK:         linattn.scan
// REMARK: [Missed] expand-form {{.*}}"stays a scan: its operands have dynamic head counts"
func.func @dynamic_heads(%q: tensor<1x?x32x16xf32>, %k: tensor<1x2x32x16xf32>, %s: tensor<1x2x16x16xf32>) -> (tensor<1x?x32x16xf32>, tensor<1x2x16x16xf32>) {
  %r:2 = linattn.scan %q, %k, %k into(%q) init(%s) : (tensor<1x?x32x16xf32>, tensor<1x2x32x16xf32>, tensor<1x2x32x16xf32>, tensor<1x?x32x16xf32>, tensor<1x2x16x16xf32>) -> (tensor<1x?x32x16xf32>, tensor<1x2x16x16xf32>)
  return %r#0, %r#1 : tensor<1x?x32x16xf32>, tensor<1x2x16x16xf32>
}

// CHECK-LABEL: func.func @pool(
// CHECK:         linattn.scan
// REMARK: "stays a scan: its states are rows of a pool, or kept between tokens"
func.func @pool(%q: tensor<1x2x32x16xf32>, %rows: tensor<1xi32>, %s: tensor<4x2x16x16xf32>) -> (tensor<1x2x32x16xf32>, tensor<4x2x16x16xf32>) {
  %r:2 = linattn.scan %q, %q, %q state_indices(%rows) into(%q) init(%s) : (tensor<1x2x32x16xf32>, tensor<1x2x32x16xf32>, tensor<1x2x32x16xf32>, tensor<1xi32>, tensor<1x2x32x16xf32>, tensor<4x2x16x16xf32>) -> (tensor<1x2x32x16xf32>, tensor<4x2x16x16xf32>)
  return %r#0, %r#1 : tensor<1x2x32x16xf32>, tensor<4x2x16x16xf32>
}

// CHECK-LABEL: func.func @stabilised(
// CHECK:         linattn.state
// CHECK:         linattn.read
// REMARK: "stays a state: it has a running maximum"
// REMARK: "stays a read: it has a running maximum"
func.func @stabilised(%q: tensor<1x2x32x16xf32>, %s: tensor<1x2x16x16xf32>, %z: tensor<1x2x16xf32>, %m: tensor<1x2xf32>) -> tensor<1x2x32x16xf32> {
  %S:3 = linattn.state %q, %q init(%s) normalizer(%z) running_max(%m) {feature_map = #linattn.feature_map<exp>} : (tensor<1x2x32x16xf32>, tensor<1x2x32x16xf32>, tensor<1x2x16x16xf32>, tensor<1x2x16xf32>, tensor<1x2xf32>) -> (tensor<1x2x16x16xf32>, tensor<1x2x16xf32>, tensor<1x2xf32>)
  %o = linattn.read %q, %S#0 normalizer(%S#1) into(%q) {feature_map = #linattn.feature_map<exp>, normalize = #linattn.normalize<eps = 1.0e-6>} : (tensor<1x2x32x16xf32>, tensor<1x2x16x16xf32>, tensor<1x2x16xf32>, tensor<1x2x32x16xf32>) -> tensor<1x2x32x16xf32>
  return %o : tensor<1x2x32x16xf32>
}

// CHECK-LABEL: func.func @bonus(
// CHECK:         linattn.scan
// REMARK: "stays a scan: it has a bonus"
func.func @bonus(%q: tensor<1x2x32x16xf32>, %u: tensor<2x16xf32>, %s: tensor<1x2x16x16xf32>) -> (tensor<1x2x32x16xf32>, tensor<1x2x16x16xf32>) {
  %r:2 = linattn.scan %q, %q, %q bonus(%u) readout(exclusive) into(%q) init(%s) : (tensor<1x2x32x16xf32>, tensor<1x2x32x16xf32>, tensor<1x2x32x16xf32>, tensor<2x16xf32>, tensor<1x2x32x16xf32>, tensor<1x2x16x16xf32>) -> (tensor<1x2x32x16xf32>, tensor<1x2x16x16xf32>)
  return %r#0, %r#1 : tensor<1x2x32x16xf32>, tensor<1x2x16x16xf32>
}

// CHECK-LABEL: func.func @narrow(
// CHECK:         linattn.scan
// REMARK: "stays a scan: its head sizes are not static multiples of 16"
func.func @narrow(%q: tensor<1x2x32x8xf32>, %s: tensor<1x2x8x8xf32>) -> (tensor<1x2x32x8xf32>, tensor<1x2x8x8xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) : (tensor<1x2x32x8xf32>, tensor<1x2x32x8xf32>, tensor<1x2x32x8xf32>, tensor<1x2x32x8xf32>, tensor<1x2x8x8xf32>) -> (tensor<1x2x32x8xf32>, tensor<1x2x8x8xf32>)
  return %r#0, %r#1 : tensor<1x2x32x8xf32>, tensor<1x2x8x8xf32>
}

// CHECK-LABEL: func.func @scheduled(
// CHECK:         linattn.scan
// REMARK: "stays a scan: its schedule is not chunks"
func.func @scheduled(%q: tensor<1x2x32x16xf32>, %s: tensor<1x2x16x16xf32>) -> (tensor<1x2x32x16xf32>, tensor<1x2x16x16xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) {config = #linattn.config<form = state_tile>} : (tensor<1x2x32x16xf32>, tensor<1x2x32x16xf32>, tensor<1x2x32x16xf32>, tensor<1x2x32x16xf32>, tensor<1x2x16x16xf32>) -> (tensor<1x2x32x16xf32>, tensor<1x2x16x16xf32>)
  return %r#0, %r#1 : tensor<1x2x32x16xf32>, tensor<1x2x16x16xf32>
}
