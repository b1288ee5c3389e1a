// RUN: linattn-opt %s --linattn-expand-form --canonicalize --cse | FileCheck %s --implicit-check-not='linattn.scan'
// RUN: linattn-opt %s --linattn-expand-form=chunk-size=8 --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// Linear attention: pack, scores, read, update.

// CHECK-LABEL: func.func @linear(
// CHECK-SAME:    %[[Q:[^:]+]]: tensor<1x2x64x8xbf16>, %[[O:[^:]+]]: tensor<1x2x64x8xbf16>, %[[S:[^:]+]]: tensor<1x2x8x8xf32>
// CHECK:         %[[R:.+]]:2 = scf.for %[[T:.+]] = %c0 to %c64 step %c16 iter_args(%[[OT:.+]] = %[[O]], %[[ST:.+]] = %[[S]])
// CHECK:           %[[X:.+]] = tensor.extract_slice %[[Q]][0, 0, %[[T]], 0] [1, 2, 16, 8]
// CHECK:           %[[INTO:.+]] = tensor.extract_slice %[[OT]][0, 0, %[[T]], 0] [1, 2, 16, 8]
// CHECK:           %[[K:.+]] = linattn.chunk.pack %[[X]] into(%{{.+}}) : (tensor<1x2x16x8xbf16>, tensor<1x2x16x8xf32>)
// CHECK:           %[[QC:.+]] = linattn.chunk.pack %[[X]] into(%{{.+}}) {scale = 5.000000e-01 : f64}
// CHECK:           %[[P:.+]] = linattn.chunk.scores %[[QC]], %[[K]] into(%{{.+}}) :
// CHECK:           %[[OC:.+]] = linattn.chunk.read %[[QC]], %[[ST]] scores(%[[P]]) values(%[[K]]) into(%{{.+}}) :
// CHECK:           %[[ON:.+]] = linattn.chunk.unpack %[[OC]] into(%[[INTO]])
// CHECK:           %[[SN:.+]] = linattn.chunk.update keys(%[[K]]) values(%[[K]]) into(%[[ST]])
// CHECK:           %[[OS:.+]] = tensor.insert_slice %[[ON]] into %[[OT]][0, 0, %[[T]], 0]
// CHECK:           scf.yield %[[OS]], %[[SN]]
// REMARK:      remark: [Passed] expand-form {{.*}}"becomes a loop over chunks of 8 tokens"
func.func @linear(%q: tensor<1x2x64x8xbf16>, %o: tensor<1x2x64x8xbf16>, %s: tensor<1x2x8x8xf32>) -> (tensor<1x2x64x8xbf16>, tensor<1x2x8x8xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%o) init(%s) {scale = 0.5}
    : (tensor<1x2x64x8xbf16>, tensor<1x2x64x8xbf16>, tensor<1x2x64x8xbf16>, tensor<1x2x64x8xbf16>, tensor<1x2x8x8xf32>) -> (tensor<1x2x64x8xbf16>, tensor<1x2x8x8xf32>)
  return %r#0, %r#1 : tensor<1x2x64x8xbf16>, tensor<1x2x8x8xf32>
}

// A decay per token: read from the start of the chunk, keys to its end. The
// schedule says how many tokens a chunk has.

// CHECK-LABEL: func.func @decay(
// CHECK:         step %c32
// CHECK:           %[[G:.+]] = linattn.chunk.pack %{{.+}} into(%{{.+}}) : (tensor<1x2x32xf32>
// CHECK:           linattn.chunk.scores %[[Q:.+]], %[[K:.+]] decay(%[[G]])
// CHECK:           %[[QD:.+]] = linattn.chunk.decay %[[Q]] by(%[[G]]) into(%{{.+}}) :
// CHECK:           linattn.chunk.read %[[QD]],
// CHECK:           %[[KD:.+]] = linattn.chunk.decay %[[K]] by(%[[G]]) into(%{{.+}}) {to_end}
// CHECK:           linattn.chunk.update keys(%[[KD]]) values(%{{.+}}) decay(%[[G]])
func.func @decay(%q: tensor<1x2x64x8xf32>, %v: tensor<1x2x64x4xf32>, %g: tensor<1x2x64xf32>, %s: tensor<1x2x8x4xf32>) -> tensor<1x2x64x4xf32> {
  %r:2 = linattn.scan %q, %q, %v decay(%g) into(%v) init(%s) {config = #linattn.config<form = chunk, chunk = 32>}
    : (tensor<1x2x64x8xf32>, tensor<1x2x64x8xf32>, tensor<1x2x64x4xf32>, tensor<1x2x64xf32>, tensor<1x2x64x4xf32>, tensor<1x2x8x4xf32>) -> (tensor<1x2x64x4xf32>, tensor<1x2x8x4xf32>)
  return %r#0 : tensor<1x2x64x4xf32>
}

// The delta rule: δ = (I − β A)⁻¹ β (V + A S) takes the place of the values.

// CHECK-LABEL: func.func @delta(
// CHECK:           %[[BETA:.+]] = linattn.chunk.pack %{{.+}} into(%{{.+}}) : (tensor<1x2x16xf32>
// CHECK:           %[[A:.+]] = linattn.chunk.pack %{{.+}} into(%{{.+}}) {scale = -1.000000e+00 : f64}
// CHECK:           %[[AK:.+]] = linattn.chunk.scores %[[A]], %[[K:.+]] into(%{{.+}}) {strict}
// CHECK:           %[[ERROR:.+]] = linattn.chunk.read %[[A]], %[[S:.+]] into(%[[V:.+]]) :
// CHECK:           %[[DELTA:.+]] = linattn.chunk.solve %[[AK]] gate(%[[BETA]]) into(%[[ERROR]])
// CHECK:           linattn.chunk.read %{{.+}}, %[[S]] scores(%{{.+}}) values(%[[DELTA]])
// CHECK:           linattn.chunk.update keys(%[[K]]) values(%[[DELTA]]) into(%[[S]])
func.func @delta(%q: tensor<1x2x64x8xf32>, %v: tensor<1x2x64x4xf32>, %b: tensor<1x2x64xf32>, %s: tensor<1x2x8x4xf32>) -> tensor<1x2x64x4xf32> {
  %r:2 = linattn.scan %q, %q, %v beta(%b) update(delta) into(%v) init(%s)
    : (tensor<1x2x64x8xf32>, tensor<1x2x64x8xf32>, tensor<1x2x64x4xf32>, tensor<1x2x64xf32>, tensor<1x2x64x4xf32>, tensor<1x2x8x4xf32>) -> (tensor<1x2x64x4xf32>, tensor<1x2x8x4xf32>)
  return %r#0 : tensor<1x2x64x4xf32>
}

// A normaliser is a state of one column that is written with ones; φ is an op
// between two packs.

// CHECK-LABEL: func.func @normalized(
// CHECK:         %[[Z:.+]] = tensor.expand_shape %{{.+}} : tensor<1x2x8xf32> into tensor<1x2x8x1xf32>
// CHECK:         scf.for {{.*}}%[[ZT:.+]] = %[[Z]])
// CHECK:           linattn.feature_map %{{.+}} into(%{{.+}}) {feature_map = #linattn.feature_map<elu1>}
// CHECK:           %[[DEN:.+]] = linattn.chunk.read %{{.+}}, %[[ZT]] scores(%{{.+}}) values(%[[ONES:.+]]) into(%{{.+}})
// CHECK:           linattn.chunk.unpack %{{.+}} denominator(%[[DEN]]) into(%{{.+}}) {normalize = #linattn.normalize<eps = {{.*}}>}
// CHECK:           linattn.chunk.update keys(%{{.+}}) values(%[[ONES]]) into(%[[ZT]])
// CHECK:         tensor.collapse_shape
func.func @normalized(%q: tensor<1x2x64x8xf32>, %s: tensor<1x2x8x8xf32>, %z: tensor<1x2x8xf32>) -> (tensor<1x2x64x8xf32>, tensor<1x2x8xf32>) {
  %r:3 = linattn.scan %q, %q, %q into(%q) init(%s) normalizer(%z) {feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.0e-6>}
    : (tensor<1x2x64x8xf32>, tensor<1x2x64x8xf32>, tensor<1x2x64x8xf32>, tensor<1x2x64x8xf32>, tensor<1x2x8x8xf32>, tensor<1x2x8xf32>) -> (tensor<1x2x64x8xf32>, tensor<1x2x8x8xf32>, tensor<1x2x8xf32>)
  return %r#0, %r#2 : tensor<1x2x64x8xf32>, tensor<1x2x8xf32>
}

// An input gate: the running maximum of a chunk, then as any decay.

// CHECK-LABEL: func.func @input_gate(
// CHECK:           %[[M:.+]]:3 = linattn.chunk.stabilize %[[I:.+]] into(%{{.+}}, %{{.+}}) init(%{{.+}})
// CHECK:           linattn.chunk.pack %[[I]] shift(%[[M]]#1)
// CHECK:           math.exp
// CHECK:           linattn.chunk.scores {{.*}} decay(%[[M]]#0)
// CHECK:           linattn.chunk.unpack {{.*}} running_max(%[[M]]#1)
func.func @input_gate(%q: tensor<1x2x64x8xf32>, %i: tensor<1x2x64xf32>, %s: tensor<1x2x8x8xf32>, %z: tensor<1x2x8xf32>, %m: tensor<1x2xf32>) -> tensor<1x2x64x8xf32> {
  %r:4 = linattn.scan %q, %q, %q input_gate(%i) into(%q) init(%s) normalizer(%z) running_max(%m) {normalize = #linattn.normalize<abs_floor = 1.0>}
    : (tensor<1x2x64x8xf32>, tensor<1x2x64x8xf32>, tensor<1x2x64x8xf32>, tensor<1x2x64xf32>, tensor<1x2x64x8xf32>, tensor<1x2x8x8xf32>, tensor<1x2x8xf32>, tensor<1x2xf32>) -> (tensor<1x2x64x8xf32>, tensor<1x2x8x8xf32>, tensor<1x2x8xf32>, tensor<1x2xf32>)
  return %r#0 : tensor<1x2x64x8xf32>
}

// The halves of a scan. A read has no loop.

// CHECK-LABEL: func.func @halves(
// CHECK:         %[[S1:.+]] = scf.for
// CHECK-NOT:       linattn.chunk.read
// CHECK:           linattn.chunk.update
// CHECK-NOT:     scf.for
// CHECK:         linattn.chunk.read %{{.+}}, %[[S1]] into
func.func @halves(%q: tensor<1x2x64x8xf32>, %s: tensor<1x2x8x8xf32>) -> tensor<1x2x64x8xf32> {
  %s1 = linattn.state %q, %q init(%s) : (tensor<1x2x64x8xf32>, tensor<1x2x64x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32>
  %o = linattn.read %q, %s1 into(%q) : (tensor<1x2x64x8xf32>, tensor<1x2x8x8xf32>, tensor<1x2x64x8xf32>) -> tensor<1x2x64x8xf32>
  return %o : tensor<1x2x64x8xf32>
}
