// RUN: linattn-opt %s --linattn-expand-form='tasks matrix-unit' --canonicalize --cse | FileCheck %s
// RUN: linattn-opt %s --linattn-expand-form='tasks matrix-unit fast-products' | FileCheck %s --check-prefix=FAST
// RUN: linattn-opt %s --linattn-expand-form='tasks matrix-unit fill-from=75' --canonicalize --cse | FileCheck %s --check-prefix=FILL
// RUN: linattn-opt %s --linattn-expand-form='tasks matrix-unit tokens=100' --canonicalize --cse | FileCheck %s --check-prefix=HINT-FEW
// RUN: linattn-opt %s --linattn-expand-form='tasks matrix-unit cores=8' --canonicalize --cse | FileCheck %s --check-prefix=CORES
// RUN: linattn-opt %s --linattn-expand-form='tasks matrix-unit cores=8' --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=CORES-REMARK
// RUN: linattn-opt %s --linattn-expand-form='tasks matrix-unit cores=8 sequences=4' --canonicalize --cse | FileCheck %s --check-prefix=SEQUENCES
// RUN: linattn-opt %s --linattn-expand-form='tasks matrix-unit tokens=128' --canonicalize --cse | FileCheck %s --check-prefix=HINT-MANY
// RUN: linattn-opt %s --linattn-expand-form='tasks matrix-unit' --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// Chunks of 64 tokens, of 32 under a delta rule, of the schedule's size. The scan
// itself goes on from them with less than half a chunk.

// CHECK-LABEL: func.func @additive(
// CHECK:         %[[CHUNKS:.+]]:2 = scf.for %{{.+}} = %c0 to %c128 step %c64
// CHECK:           linattn.chunk.update {{.*}}tensor<1x1x64x32xf32>
// CHECK:         %[[INTO:.+]] = tensor.extract_slice %[[CHUNKS]]#0[0, 0, 128, 0] [1, 1, 31, 32]
// CHECK:         %[[REST:.+]]:2 = linattn.scan {{.+}} into(%[[INTO]]) init(%[[CHUNKS]]#1) {linattn.remainder} :
// CHECK:         %[[ALL:.+]] = tensor.insert_slice %[[REST]]#0 into %[[CHUNKS]]#0[0, 0, 128, 0]
// CHECK:         scf.forall.in_parallel
// CHECK-NEXT:      tensor.parallel_insert_slice %[[ALL]]
// CHECK-NEXT:      tensor.parallel_insert_slice %[[REST]]#1
func.func @additive(%q: tensor<1x2x159x32xbf16>, %s: tensor<1x2x32x32xf32>) -> (tensor<1x2x159x32xbf16>, tensor<1x2x32x32xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) : (tensor<1x2x159x32xbf16>, tensor<1x2x159x32xbf16>, tensor<1x2x159x32xbf16>, tensor<1x2x159x32xbf16>, tensor<1x2x32x32xf32>) -> (tensor<1x2x159x32xbf16>, tensor<1x2x32x32xf32>)
  return %r#0, %r#1 : tensor<1x2x159x32xbf16>, tensor<1x2x32x32xf32>
}

// Zeros fill up half a chunk or more. Chunks have one body.

// CHECK-LABEL: func.func @filled_up(
// CHECK:         scf.for %[[AT:.+]] = %c0 to %c160 step %c64
// CHECK-NEXT:      %[[COUNT:.+]] = affine.min {{.+}}(%[[AT]])
// CHECK:           %[[TOKENS:.+]] = tensor.extract_slice {{.+}}[0, 0, %[[AT]], 0] [1, 1, %[[COUNT]], 32]
// CHECK:           linattn.chunk.pack %[[TOKENS]] into({{.+}}) {padded} : (tensor<1x1x?x32xbf16>, tensor<1x1x64x32xf32>)
// CHECK:           %[[ROWS:.+]] = linattn.chunk.read
// CHECK:           %[[PART:.+]] = tensor.extract_slice %[[ROWS]][0, 0, 0, 0] [1, 1, %[[COUNT]], 32]
// CHECK:           linattn.chunk.unpack %[[PART]]
// CHECK:           linattn.chunk.update {{.*}}tensor<1x1x64x32xf32>
// CHECK-NOT:     linattn.scan
// REMARK: "becomes a loop over chunks of 64 tokens, filled up with zeros from 32 on, and stays as it is for fewer behind them"
// FILL-LABEL: func.func @filled_up(
// FILL:         scf.for %{{.+}} = %c0 to %c128 step %c64
// FILL:         linattn.scan {{.+}} {linattn.remainder} : (tensor<1x1x32x32xbf16>
func.func @filled_up(%q: tensor<1x2x160x32xbf16>, %s: tensor<1x2x32x32xf32>) -> (tensor<1x2x160x32xbf16>, tensor<1x2x32x32xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) : (tensor<1x2x160x32xbf16>, tensor<1x2x160x32xbf16>, tensor<1x2x160x32xbf16>, tensor<1x2x160x32xbf16>, tensor<1x2x32x32xf32>) -> (tensor<1x2x160x32xbf16>, tensor<1x2x32x32xf32>)
  return %r#0, %r#1 : tensor<1x2x160x32xbf16>, tensor<1x2x32x32xf32>
}

// One chunk that is not full needs no loop. A norm has its rows, too.

// CHECK-LABEL: func.func @filled_up_with_norm(
// CHECK-NOT:     scf.for %
// CHECK:         linattn.chunk.pack {{.+}} {padded} : (tensor<1x1x40x32xbf16>, tensor<1x1x64x32xf32>)
// CHECK:         %[[PART:.+]] = tensor.extract_slice %{{.+}}[0, 0, 0, 0] [1, 1, 40, 32] {{.+}} : tensor<1x1x64x32xf32>
// CHECK:         linattn.output_norm {{.+}} (tensor<1x1x40x32xf32>, tensor<1x1x40x32xbf16>)
// CHECK-NOT:     linattn.scan
func.func @filled_up_with_norm(%q: tensor<1x2x40x32xbf16>, %s: tensor<1x2x32x32xf32>) -> (tensor<1x2x40x32xbf16>, tensor<1x2x32x32xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) : (tensor<1x2x40x32xbf16>, tensor<1x2x40x32xbf16>, tensor<1x2x40x32xbf16>, tensor<1x2x40x32xbf16>, tensor<1x2x32x32xf32>) -> (tensor<1x2x40x32xbf16>, tensor<1x2x32x32xf32>)
  %n = linattn.output_norm %r#0 into(%q) : (tensor<1x2x40x32xbf16>, tensor<1x2x40x32xbf16>) -> tensor<1x2x40x32xbf16>
  return %n, %r#1 : tensor<1x2x40x32xbf16>, tensor<1x2x32x32xf32>
}

// A decay of a head goes on for as many tokens as there are: rows of the last
// chunk have numbers of their own, which are packed in front of the loop.

// CHECK-LABEL: func.func @decays_by_head(
// CHECK:         %[[WHOLE:.+]] = linattn.chunk.pack %{{.+}} : (tensor<1xf32>, tensor<1x1x64xf32>)
// CHECK:         %[[COUNT:.+]] = arith.remui %{{.+}}, %c64
// CHECK:         %[[PART:.+]] = tensor.extract_slice %[[WHOLE]][0, 0, 0] [1, 1, %[[COUNT]]]
// CHECK:         %[[LAST:.+]] = linattn.chunk.pack %[[PART]] into(%{{.+}}) {padded}
// CHECK:         scf.for
// CHECK:           %[[IS_WHOLE:.+]] = arith.cmpi eq, %{{.+}}, %c64
// CHECK:           %[[DECAY:.+]] = arith.select %[[IS_WHOLE]], %[[WHOLE]], %[[LAST]]
// CHECK:           linattn.chunk.decay %{{.+}} by(%[[DECAY]])
// CHECK:           linattn.chunk.update {{.+}} decay(%[[DECAY]])
// CHECK:         linattn.scan {{.+}} decay(%{{.+}}) {{.+}}linattn.remainder
func.func @decays_by_head(%q: tensor<1x2x?x32xbf16>, %g: tensor<2xf32>, %s: tensor<1x2x32x32xf32>) -> tensor<1x2x?x32xbf16> {
  %r:2 = linattn.scan %q, %q, %q decay(%g) into(%q) init(%s) : (tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<2xf32>, tensor<1x2x?x32xbf16>, tensor<1x2x32x32xf32>) -> (tensor<1x2x?x32xbf16>, tensor<1x2x32x32xf32>)
  return %r#0 : tensor<1x2x?x32xbf16>
}

// Of whole chunks alone all rows have one.

// CHECK-LABEL: func.func @decays_whole(
// CHECK:         linattn.chunk.pack %{{.+}} : (tensor<1xf32>, tensor<1x1x64xf32>)
// CHECK-NOT:     padded
// CHECK-NOT:     arith.select
// CHECK:         return
func.func @decays_whole(%q: tensor<1x2x128x32xbf16>, %g: tensor<2xf32>, %s: tensor<1x2x32x32xf32>) -> tensor<1x2x128x32xbf16> {
  %r:2 = linattn.scan %q, %q, %q decay(%g) into(%q) init(%s) : (tensor<1x2x128x32xbf16>, tensor<1x2x128x32xbf16>, tensor<1x2x128x32xbf16>, tensor<2xf32>, tensor<1x2x128x32xbf16>, tensor<1x2x32x32xf32>) -> (tensor<1x2x128x32xbf16>, tensor<1x2x32x32xf32>)
  return %r#0 : tensor<1x2x128x32xbf16>
}

// A mask and a gate on values are packed with their tokens, which are then not
// filled up.

// CHECK-LABEL: func.func @masked(
// CHECK:         scf.for %{{.+}} = %c0 to %c128 step %c64
// CHECK-NOT:     padded
// CHECK:         linattn.scan
// REMARK: "becomes {{.*}}fill none: its tokens have a mask, another order or a gate of their own"
func.func @masked(%q: tensor<1x2x160x32xbf16>, %m: tensor<1x160xi1>, %s: tensor<1x2x32x32xf32>) -> tensor<1x2x160x32xbf16> {
  %r:2 = linattn.scan %q, %q, %q mask(%m) into(%q) init(%s) : (tensor<1x2x160x32xbf16>, tensor<1x2x160x32xbf16>, tensor<1x2x160x32xbf16>, tensor<1x160xi1>, tensor<1x2x160x32xbf16>, tensor<1x2x32x32xf32>) -> (tensor<1x2x160x32xbf16>, tensor<1x2x32x32xf32>)
  return %r#0 : tensor<1x2x160x32xbf16>
}

// A map may make features of zeros. Their values are zeros, and the ones that a
// normaliser adds up end with the tokens.

// CHECK-LABEL: func.func @maps_zeros(
// CHECK:         scf.for %{{.+}} = %c0 to %c160 step %c64
// CHECK-NEXT:      %[[COUNT:.+]] = affine.min
// CHECK:           linattn.chunk.pack {{.+}} {padded}
// CHECK:           linattn.feature_map
// CHECK:           %[[ONES:.+]] = linalg.fill ins({{.+}}) outs({{.+}} : tensor<1x1x64x1xf32>)
// CHECK:           %[[DENOMINATORS:.+]] = tensor.extract_slice {{.+}}[0, 0, 0, 0] [1, 1, %[[COUNT]], 1]
// CHECK:           linattn.chunk.unpack {{.+}} denominator(%[[DENOMINATORS]])
// CHECK:           %[[SOME:.+]] = tensor.extract_slice %[[ONES]][0, 0, 0, 0] [1, 1, %[[COUNT]], 1]
// CHECK:           %[[PADDED:.+]] = linattn.chunk.pack %[[SOME]] into({{.+}}) {padded}
// CHECK:           linattn.chunk.update {{.+}} values(%[[PADDED]])
// CHECK-NOT:     linattn.scan
func.func @maps_zeros(%q: tensor<1x2x160x128xbf16>, %s: tensor<1x2x128x128xf32>, %z: tensor<1x2x128xf32>) -> (tensor<1x2x160x128xbf16>, tensor<1x2x128xf32>) {
  %r:3 = linattn.scan %q, %q, %q into(%q) init(%s) normalizer(%z) {feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.0e-6>}
    : (tensor<1x2x160x128xbf16>, tensor<1x2x160x128xbf16>, tensor<1x2x160x128xbf16>, tensor<1x2x160x128xbf16>, tensor<1x2x128x128xf32>, tensor<1x2x128xf32>) -> (tensor<1x2x160x128xbf16>, tensor<1x2x128x128xf32>, tensor<1x2x128xf32>)
  return %r#0, %r#2 : tensor<1x2x160x128xbf16>, tensor<1x2x128xf32>
}

// Of a dynamic number of tokens there may be no chunk, which then costs nothing.

// CHECK-LABEL: func.func @delta(
// CHECK:         %[[BEHIND:.+]] = arith.remui %{{.+}}, %c32
// CHECK:         %[[FEW:.+]] = arith.cmpi ult, %[[BEHIND]], %c16
// CHECK:         %[[LEFT:.+]] = arith.select %[[FEW]], %[[BEHIND]], %c0
// CHECK:         %[[WHOLE:.+]] = arith.subi %{{.+}}, %[[LEFT]]
// CHECK:         %[[SOME:.+]] = arith.cmpi ne, %[[WHOLE]], %c0
// CHECK:         %[[CHUNKS:.+]]:2 = scf.if %[[SOME]]
// CHECK:           scf.for %{{.+}} = %c0 to %[[WHOLE]] step %c32
// CHECK:             linattn.chunk.update {{.*}}tensor<1x1x32x32xf32>
// CHECK:         else
// CHECK:         linattn.scan {{.+}} init(%[[CHUNKS]]#1)
// CHECK-NOT:     linattn.scan
func.func @delta(%q: tensor<1x2x?x32xbf16>, %b: tensor<1x2x?xf32>, %s: tensor<1x2x32x32xf32>) -> (tensor<1x2x?x32xbf16>, tensor<1x2x32x32xf32>) {
  %r:2 = linattn.scan %q, %q, %q beta(%b) update(delta) into(%q) init(%s) : (tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x?xf32>, tensor<1x2x?x32xbf16>, tensor<1x2x32x32xf32>) -> (tensor<1x2x?x32xbf16>, tensor<1x2x32x32xf32>)
  return %r#0, %r#1 : tensor<1x2x?x32xbf16>, tensor<1x2x32x32xf32>
}

// Backwards, the first tokens are the last.

// CHECK-LABEL: func.func @backwards(
// CHECK:         %[[LEFT:.+]] = arith.remui %{{.+}}, %c64
// CHECK:         scf.for %{{.+}} = %[[LEFT]] to %{{.+}} step %c64
// CHECK:         %[[REST:.+]]:2 = linattn.scan {{.+}} {reverse}
// CHECK:         tensor.insert_slice %[[REST]]#0 into %{{.+}}[0, 0, 0, 0] [1, 1, %[[LEFT]], 32]
func.func @backwards(%q: tensor<1x2x?x32xbf16>, %s: tensor<1x2x32x32xf32>) -> (tensor<1x2x?x32xbf16>, tensor<1x2x32x32xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) {reverse} : (tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x32x32xf32>) -> (tensor<1x2x?x32xbf16>, tensor<1x2x32x32xf32>)
  return %r#0, %r#1 : tensor<1x2x?x32xbf16>, tensor<1x2x32x32xf32>
}

// So it is with the halves of attention over all keys, their normaliser, and
// with a norm, which the remainder has for itself.

// CHECK-LABEL: func.func @rest_of_halves(
// CHECK:         scf.forall
// CHECK:           linattn.chunk.update
// CHECK:           %[[Z:.+]] = tensor.collapse_shape
// CHECK:           linattn.state {{.+}} normalizer(%[[Z]])
// CHECK-SAME:        (tensor<1x1x6x128xbf16>,
// CHECK:         scf.forall
// CHECK:           linattn.output_norm {{.+}} (tensor<1x1x64x32xf32>, tensor<1x1x64x32xbf16>)
// CHECK:           %[[ROWS:.+]] = linattn.read {{.+}} normalizer(
// CHECK-SAME:        -> tensor<1x1x1x32xbf16>
// CHECK:           linattn.output_norm %[[ROWS]] into(%{{.+}}) : (tensor<1x1x1x32xbf16>, tensor<1x1x1x32xbf16>)
func.func @rest_of_halves(%q: tensor<1x2x65x128xbf16>, %k: tensor<1x2x70x128xbf16>, %v: tensor<1x2x70x32xbf16>, %o: tensor<1x2x65x32xbf16>, %s: tensor<1x2x128x32xf32>, %z: tensor<1x2x128xf32>) -> tensor<1x2x65x32xbf16> {
  %S:2 = linattn.state %k, %v init(%s) normalizer(%z) {feature_map = #linattn.feature_map<relu>} : (tensor<1x2x70x128xbf16>, tensor<1x2x70x32xbf16>, tensor<1x2x128x32xf32>, tensor<1x2x128xf32>) -> (tensor<1x2x128x32xf32>, tensor<1x2x128xf32>)
  %r = linattn.read %q, %S#0 normalizer(%S#1) into(%o) {feature_map = #linattn.feature_map<relu>, normalize = #linattn.normalize<eps = 1.0e-6>} : (tensor<1x2x65x128xbf16>, tensor<1x2x128x32xf32>, tensor<1x2x128xf32>, tensor<1x2x65x32xbf16>) -> tensor<1x2x65x32xbf16>
  %n = linattn.output_norm %r into(%o) : (tensor<1x2x65x32xbf16>, tensor<1x2x65x32xbf16>) -> tensor<1x2x65x32xbf16>
  return %n : tensor<1x2x65x32xbf16>
}

// CHECK-LABEL: func.func @scheduled(
// CHECK:         linattn.chunk.update {{.*}}tensor<1x1x48x32xf32>
func.func @scheduled(%q: tensor<1x2x96x32xbf16>, %s: tensor<1x2x32x32xf32>) -> (tensor<1x2x96x32xbf16>, tensor<1x2x32x32xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) {config = #linattn.config<form = chunk, chunk = 48>} : (tensor<1x2x96x32xbf16>, tensor<1x2x96x32xbf16>, tensor<1x2x96x32xbf16>, tensor<1x2x96x32xbf16>, tensor<1x2x32x32xf32>) -> (tensor<1x2x96x32xbf16>, tensor<1x2x32x32xf32>)
  return %r#0, %r#1 : tensor<1x2x96x32xbf16>, tensor<1x2x32x32xf32>
}

// CHECK-LABEL: func.func @wide(
// CHECK:         linattn.scan
// FAST-LABEL: func.func @wide(
// FAST-NOT:      linattn.scan
// REMARK: [Missed] expand-form {{.*}}"stays a scan: its tokens have more than 16 bits, for which a matrix unit of bf16 takes six products in place of one"
func.func @wide(%q: tensor<1x2x64x128xf32>, %s: tensor<1x2x128x128xf32>) -> (tensor<1x2x64x128xf32>, tensor<1x2x128x128xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) : (tensor<1x2x64x128xf32>, tensor<1x2x64x128xf32>, tensor<1x2x64x128xf32>, tensor<1x2x64x128xf32>, tensor<1x2x128x128xf32>) -> (tensor<1x2x64x128xf32>, tensor<1x2x128x128xf32>)
  return %r#0, %r#1 : tensor<1x2x64x128xf32>, tensor<1x2x128x128xf32>
}

// CHECK-LABEL: func.func @double(
// CHECK:         linattn.scan
// FAST-LABEL: func.func @double(
// FAST:          linattn.scan
// REMARK: "stays a scan: its state is not f32"
func.func @double(%q: tensor<1x2x64x32xf64>, %s: tensor<1x2x32x32xf64>) -> (tensor<1x2x64x32xf64>, tensor<1x2x32x32xf64>) {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) : (tensor<1x2x64x32xf64>, tensor<1x2x64x32xf64>, tensor<1x2x64x32xf64>, tensor<1x2x64x32xf64>, tensor<1x2x32x32xf64>) -> (tensor<1x2x64x32xf64>, tensor<1x2x32x32xf64>)
  return %r#0, %r#1 : tensor<1x2x64x32xf64>, tensor<1x2x32x32xf64>
}

// From a state the form of a few tokens is that of a remainder.

// CHECK-LABEL: func.func @few_tokens(
// CHECK:         linattn.scan {{.+}} {linattn.remainder}
// REMARK: "stays a scan: it has fewer than 32 tokens"
func.func @few_tokens(%q: tensor<1x2x16x32xbf16>, %s: tensor<1x2x32x32xf32>) -> tensor<1x2x16x32xbf16> {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) : (tensor<1x2x16x32xbf16>, tensor<1x2x16x32xbf16>, tensor<1x2x16x32xbf16>, tensor<1x2x16x32xbf16>, tensor<1x2x32x32xf32>) -> (tensor<1x2x16x32xbf16>, tensor<1x2x32x32xf32>)
  return %r#0 : tensor<1x2x16x32xbf16>
}

// A scan from zeros is the op itself for fewer tokens, since vectors then read
// no state, and write none that is not read afterwards. Each side fills the state.

// CHECK-LABEL: func.func @from_zeros(
// CHECK:         scf.forall
// CHECK:           %[[FEW:.+]] = arith.cmpi ult, %{{.+}}, %c128
// CHECK:           scf.if %[[FEW]] -> (tensor<1x1x?x32xbf16>)
// CHECK-NEXT:        %[[ZEROS:.+]] = linalg.fill
// CHECK:             linattn.scan {{.+}} init(%[[ZEROS]]) :
// CHECK:           else
// CHECK-NEXT:        linalg.fill
// CHECK:             scf.for %
// CHECK:             linattn.scan
// REMARK: "becomes a loop over chunks of 64 tokens, filled up with zeros from 32 on, and stays as it is for fewer behind them, and for fewer than 128"
// HINT-FEW-LABEL: func.func @from_zeros(
// HINT-FEW-NOT:    linattn.chunk
// HINT-FEW:        linattn.scan
// HINT-FEW-NOT:    linattn.remainder
// HINT-FEW:        return
// HINT-MANY-LABEL: func.func @from_zeros(
// HINT-MANY-NOT:   scf.if
// HINT-MANY:       scf.for %
// HINT-MANY:       return
func.func @from_zeros(%q: tensor<1x2x?x32xbf16>) -> tensor<1x2x?x32xbf16> {
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2x32x32xf32>
  %s = linalg.fill ins(%c : f32) outs(%e : tensor<1x2x32x32xf32>) -> tensor<1x2x32x32xf32>
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) : (tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x32x32xf32>) -> (tensor<1x2x?x32xbf16>, tensor<1x2x32x32xf32>)
  return %r#0 : tensor<1x2x?x32xbf16>
}

// CHECK-LABEL: func.func @from_zeros_to_state(
// CHECK:         scf.forall {{.+}} shared_outs(%{{.+}}, %{{.+}} = %{{.+}})
// CHECK:           %[[FEW:.+]] = arith.cmpi ult, %{{.+}}, %c64
// CHECK:           scf.if %[[FEW]] -> (tensor<1x1x?x32xbf16>, tensor<1x1x32x32xf32>)
// HINT-MANY-LABEL: func.func @from_zeros_to_state(
func.func @from_zeros_to_state(%q: tensor<1x2x?x32xbf16>) -> (tensor<1x2x?x32xbf16>, tensor<1x2x32x32xf32>) {
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2x32x32xf32>
  %s = linalg.fill ins(%c : f32) outs(%e : tensor<1x2x32x32xf32>) -> tensor<1x2x32x32xf32>
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) : (tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x32x32xf32>) -> (tensor<1x2x?x32xbf16>, tensor<1x2x32x32xf32>)
  return %r#0, %r#1 : tensor<1x2x?x32xbf16>, tensor<1x2x32x32xf32>
}

// Where there are fewer sequences and heads than cores, a task has a part of
// the columns: as many as leave every core a task, and at least 32.

// CORES-LABEL: func.func @columns(
// CORES:         scf.forall (%{{.+}}, %[[HEAD:.+]], %[[PART:.+]]) in (%{{.+}}, 2, 4)
// CORES:           %[[FIRST:.+]] = affine.apply {{.+}}(%[[PART]])
// CORES:           tensor.extract_slice %{{.+}}[%{{.+}}, %[[HEAD]], 0, 0] [1, 1, %{{.+}}, 32]
// CORES:           tensor.extract_slice %{{.+}}[%{{.+}}, %[[HEAD]], 0, %[[FIRST]]] [1, 1, %{{.+}}, 32]
// CORES:           linattn.chunk.update {{.*}}tensor<1x1x32x32xf32>
// CORES:           linattn.scan {{.+}} {linattn.columns = 128 : i64, linattn.remainder}
// CORES:           tensor.parallel_insert_slice {{.+}}[%{{.+}}, %[[HEAD]], 0, %[[FIRST]]] [1, 1, 32, 32]
// CORES-REMARK: "has 32 columns of its values in each task"
// SEQUENCES-LABEL: func.func @columns(
// SEQUENCES:         scf.forall (%{{.+}}, %{{.+}}) in (%{{.+}}, 2)
// CHECK-LABEL: func.func @columns(
// CHECK:         scf.forall (%{{.+}}, %{{.+}}) in (%{{.+}}, 2)
func.func @columns(%q: tensor<?x2x?x32xbf16>, %v: tensor<?x2x?x128xbf16>, %b: tensor<?x2x?x128xf32>, %s: tensor<?x2x32x128xf32>) -> (tensor<?x2x?x128xbf16>, tensor<?x2x32x128xf32>) {
  %r:2 = linattn.scan %q, %q, %v beta(%b) update(delta) into(%v) init(%s) : (tensor<?x2x?x32xbf16>, tensor<?x2x?x32xbf16>, tensor<?x2x?x128xbf16>, tensor<?x2x?x128xf32>, tensor<?x2x?x128xbf16>, tensor<?x2x32x128xf32>) -> (tensor<?x2x?x128xbf16>, tensor<?x2x32x128xf32>)
  return %r#0, %r#1 : tensor<?x2x?x128xbf16>, tensor<?x2x32x128xf32>
}

// A normaliser that is read afterwards is one for all columns.

// CORES-LABEL: func.func @normalizer(
// CORES:         scf.forall (%{{.+}}) in (2)
func.func @normalizer(%q: tensor<1x2x64x64xbf16>, %s: tensor<1x2x64x64xf32>, %z: tensor<1x2x64xf32>) -> (tensor<1x2x64x64xbf16>, tensor<1x2x64xf32>) {
  %r:3 = linattn.scan %q, %q, %q into(%q) init(%s) normalizer(%z) {normalize = #linattn.normalize<eps = 1.0e-6>}
    : (tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16>, tensor<1x2x64x64xf32>, tensor<1x2x64xf32>) -> (tensor<1x2x64x64xbf16>, tensor<1x2x64x64xf32>, tensor<1x2x64xf32>)
  return %r#0, %r#2 : tensor<1x2x64x64xbf16>, tensor<1x2x64xf32>
}

// CHECK-LABEL: func.func @few_channels(
// CHECK:         linattn.scan
// REMARK: "stays a scan: it decays per channel and has fewer than 128 key features, for which vectors are faster"
func.func @few_channels(%q: tensor<1x2x64x32xbf16>, %g: tensor<1x2x64x32xf32>, %s: tensor<1x2x32x32xf32>) -> tensor<1x2x64x32xbf16> {
  %r:2 = linattn.scan %q, %q, %q decay(%g) into(%q) init(%s) : (tensor<1x2x64x32xbf16>, tensor<1x2x64x32xbf16>, tensor<1x2x64x32xbf16>, tensor<1x2x64x32xf32>, tensor<1x2x64x32xbf16>, tensor<1x2x32x32xf32>) -> (tensor<1x2x64x32xbf16>, tensor<1x2x32x32xf32>)
  return %r#0 : tensor<1x2x64x32xbf16>
}

// CHECK-LABEL: func.func @halves(
// CHECK:         linattn.scan
// REMARK: "stays a scan: its tokens need two bf16 summands and have fewer than 128 key features, for which vectors are faster"
func.func @halves(%q: tensor<1x2x64x32xf16>, %s: tensor<1x2x32x32xf32>) -> tensor<1x2x64x32xf16> {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) : (tensor<1x2x64x32xf16>, tensor<1x2x64x32xf16>, tensor<1x2x64x32xf16>, tensor<1x2x64x32xf16>, tensor<1x2x32x32xf32>) -> (tensor<1x2x64x32xf16>, tensor<1x2x32x32xf32>)
  return %r#0 : tensor<1x2x64x32xf16>
}

// The scale multiplies outputs: queries stay tokens.

// CHECK-LABEL: func.func @scaled(
// CHECK:         %[[QUERIES:.+]] = linattn.chunk.pack %{{[^{]*}} : (tensor<1x1x64x32xbf16>
// CHECK:         linattn.chunk.read %[[QUERIES]]
// CHECK:         %[[SCALED:.+]] = linattn.chunk.pack %{{.*}} {scale = 3.000000e-01
// CHECK:         linattn.chunk.unpack %[[SCALED]]
func.func @scaled(%q: tensor<1x2x64x32xbf16>, %s: tensor<1x2x32x32xf32>) -> tensor<1x2x64x32xbf16> {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) {scale = 0.3} : (tensor<1x2x64x32xbf16>, tensor<1x2x64x32xbf16>, tensor<1x2x64x32xbf16>, tensor<1x2x64x32xbf16>, tensor<1x2x32x32xf32>) -> (tensor<1x2x64x32xbf16>, tensor<1x2x32x32xf32>)
  return %r#0 : tensor<1x2x64x32xbf16>
}

// Zeros fill up head sizes to whole tiles. Rows have memory of their own.

// CHECK-LABEL: func.func @filled(
// CHECK:         scf.forall
// CHECK:           linalg.fill {{.*}} : tensor<1x1x64x48xf32>
// CHECK:           tensor.insert_slice {{.*}} : tensor<1x1x60x36xf32> into tensor<1x1x64x48xf32>
// CHECK:           %[[ROWS:.+]] = bufferization.alloc_tensor() : tensor<1x1x64x64xf32>
// CHECK:           %[[OWN:.+]] = tensor.extract_slice %[[ROWS]][0, 0, 0, 0] [1, 1, 64, 60]
// CHECK:           %[[PACKED:.+]] = linattn.chunk.pack {{.*}} into(%[[OWN]])
// CHECK:           %[[INSERTED:.+]] = tensor.insert_slice %[[PACKED]] into %[[ROWS]]
// CHECK:           %[[REST:.+]] = tensor.extract_slice %[[INSERTED]][0, 0, 0, 60] [1, 1, 64, 4]
// CHECK:           linalg.fill {{.*}} outs(%[[REST]]
// CHECK:           linattn.chunk.read {{.*}} -> tensor<1x1x64x48xf32>
// CHECK:           tensor.extract_slice {{.*}} : tensor<1x1x64x48xf32> to tensor<1x1x64x36xf32>
// CHECK:           linattn.chunk.unpack {{.*}} tensor<1x1x64x36xbf16>
// CHECK:           linattn.chunk.update {{.*}} tensor<1x1x64x48xf32>
// CHECK:           tensor.extract_slice {{.*}} : tensor<1x1x64x48xf32> to tensor<1x1x60x36xf32>
func.func @filled(%q: tensor<1x2x64x60xbf16>, %v: tensor<1x2x64x36xbf16>, %s: tensor<1x2x60x36xf32>) -> (tensor<1x2x64x36xbf16>, tensor<1x2x60x36xf32>) {
  %r:2 = linattn.scan %q, %q, %v into(%v) init(%s) : (tensor<1x2x64x60xbf16>, tensor<1x2x64x60xbf16>, tensor<1x2x64x36xbf16>, tensor<1x2x64x36xbf16>, tensor<1x2x60x36xf32>) -> (tensor<1x2x64x36xbf16>, tensor<1x2x60x36xf32>)
  return %r#0, %r#1 : tensor<1x2x64x36xbf16>, tensor<1x2x60x36xf32>
}

// A few features, and features that a map makes of zeros, stay.

// CHECK-LABEL: func.func @few_features(
// CHECK:         linattn.scan
// REMARK: "stays a scan: its head sizes are not static multiples of 16"
func.func @few_features(%q: tensor<1x2x64x24xbf16>, %s: tensor<1x2x24x24xf32>) -> (tensor<1x2x64x24xbf16>, tensor<1x2x24x24xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) : (tensor<1x2x64x24xbf16>, tensor<1x2x64x24xbf16>, tensor<1x2x64x24xbf16>, tensor<1x2x64x24xbf16>, tensor<1x2x24x24xf32>) -> (tensor<1x2x64x24xbf16>, tensor<1x2x24x24xf32>)
  return %r#0, %r#1 : tensor<1x2x64x24xbf16>, tensor<1x2x24x24xf32>
}

// CHECK-LABEL: func.func @ones(
// CHECK:         linattn.scan
// REMARK: "stays a scan: its head sizes are not static multiples of 16"
func.func @ones(%q: tensor<1x2x64x140xbf16>, %s: tensor<1x2x140x140xf32>) -> (tensor<1x2x64x140xbf16>, tensor<1x2x140x140xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) {feature_map = #linattn.feature_map<elu1>} : (tensor<1x2x64x140xbf16>, tensor<1x2x64x140xbf16>, tensor<1x2x64x140xbf16>, tensor<1x2x64x140xbf16>, tensor<1x2x140x140xf32>) -> (tensor<1x2x64x140xbf16>, tensor<1x2x140x140xf32>)
  return %r#0, %r#1 : tensor<1x2x64x140xbf16>, tensor<1x2x140x140xf32>
}

// CHECK-LABEL: func.func @mapped(
// CHECK:         linattn.scan
// REMARK: "stays a scan: its features need two bf16 summands and are fewer than 128, for which vectors are faster"
func.func @mapped(%q: tensor<1x2x64x64xbf16>, %s: tensor<1x2x64x64xf32>) -> (tensor<1x2x64x64xbf16>, tensor<1x2x64x64xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) {feature_map = #linattn.feature_map<elu1>} : (tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16>, tensor<1x2x64x64xf32>) -> (tensor<1x2x64x64xbf16>, tensor<1x2x64x64xf32>)
  return %r#0, %r#1 : tensor<1x2x64x64xbf16>, tensor<1x2x64x64xf32>
}
