// RUN: linattn-opt %s --linattn-expand-form='tasks matrix-unit where-measured' | FileCheck %s
// RUN: linattn-opt %s --linattn-expand-form='tasks matrix-unit where-measured' --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: linattn-opt %s --linattn-expand-form='tasks matrix-unit' | FileCheck %s --check-prefix=NAMED

// A unit that is named takes all of these, a unit that is not what was measured.

// NAMED-NOT: linattn.{{scan|state|read}}
// NAMED-LABEL: func.func @wide(

// CHECK-LABEL: func.func @additive(
// CHECK-NOT:     linattn.scan
// CHECK:         linattn.chunk.update
func.func @additive(%q: tensor<1x2x64x128xbf16>, %s: tensor<1x2x128x128xf32>) -> (tensor<1x2x64x128xbf16>, tensor<1x2x128x128xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) : (tensor<1x2x64x128xbf16>, tensor<1x2x64x128xbf16>, tensor<1x2x64x128xbf16>, tensor<1x2x64x128xbf16>, tensor<1x2x128x128xf32>) -> (tensor<1x2x64x128xbf16>, tensor<1x2x128x128xf32>)
  return %r#0, %r#1 : tensor<1x2x64x128xbf16>, tensor<1x2x128x128xf32>
}

// CHECK-LABEL: func.func @gated_delta(
// CHECK-NOT:     linattn.scan
// CHECK:         linattn.chunk.update
func.func @gated_delta(%q: tensor<1x2x64x128xbf16>, %g: tensor<1x2x64xf32>, %b: tensor<1x2x64xf32>, %s: tensor<1x2x128x128xf32>) -> (tensor<1x2x64x128xbf16>, tensor<1x2x128x128xf32>) {
  %r:2 = linattn.scan %q, %q, %q decay(%g) beta(%b) update(delta) into(%q) init(%s) : (tensor<1x2x64x128xbf16>, tensor<1x2x64x128xbf16>, tensor<1x2x64x128xbf16>, tensor<1x2x64xf32>, tensor<1x2x64xf32>, tensor<1x2x64x128xbf16>, tensor<1x2x128x128xf32>) -> (tensor<1x2x64x128xbf16>, tensor<1x2x128x128xf32>)
  return %r#0, %r#1 : tensor<1x2x64x128xbf16>, tensor<1x2x128x128xf32>
}

// CHECK-LABEL: func.func @channels(
// CHECK:         linattn.scan
// REMARK: "stays a scan: decays per channel were not measured in a matrix unit"
func.func @channels(%q: tensor<1x2x64x128xbf16>, %g: tensor<1x2x64x128xf32>, %s: tensor<1x2x128x128xf32>) -> (tensor<1x2x64x128xbf16>, tensor<1x2x128x128xf32>) {
  %r:2 = linattn.scan %q, %q, %q decay(%g) into(%q) init(%s) : (tensor<1x2x64x128xbf16>, tensor<1x2x64x128xbf16>, tensor<1x2x64x128xbf16>, tensor<1x2x64x128xf32>, tensor<1x2x64x128xbf16>, tensor<1x2x128x128xf32>) -> (tensor<1x2x64x128xbf16>, tensor<1x2x128x128xf32>)
  return %r#0, %r#1 : tensor<1x2x64x128xbf16>, tensor<1x2x128x128xf32>
}

// CHECK-LABEL: func.func @normalized(
// CHECK:         linattn.scan
// REMARK: "stays a scan: normalisers were not measured in a matrix unit"
func.func @normalized(%q: tensor<1x2x64x128xbf16>, %z: tensor<1x2x128xf32>, %s: tensor<1x2x128x128xf32>) -> (tensor<1x2x64x128xbf16>, tensor<1x2x128x128xf32>, tensor<1x2x128xf32>) {
  %r:3 = linattn.scan %q, %q, %q into(%q) init(%s) normalizer(%z) {normalize = #linattn.normalize<eps = 1.0e-6>} : (tensor<1x2x64x128xbf16>, tensor<1x2x64x128xbf16>, tensor<1x2x64x128xbf16>, tensor<1x2x64x128xbf16>, tensor<1x2x128x128xf32>, tensor<1x2x128xf32>) -> (tensor<1x2x64x128xbf16>, tensor<1x2x128x128xf32>, tensor<1x2x128xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x64x128xbf16>, tensor<1x2x128x128xf32>, tensor<1x2x128xf32>
}

// CHECK-LABEL: func.func @mapped(
// CHECK:         linattn.scan
// REMARK: "stays a scan: feature maps were not measured in a matrix unit"
func.func @mapped(%q: tensor<1x2x64x128xbf16>, %s: tensor<1x2x128x128xf32>) -> (tensor<1x2x64x128xbf16>, tensor<1x2x128x128xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) {feature_map = #linattn.feature_map<relu>} : (tensor<1x2x64x128xbf16>, tensor<1x2x64x128xbf16>, tensor<1x2x64x128xbf16>, tensor<1x2x64x128xbf16>, tensor<1x2x128x128xf32>) -> (tensor<1x2x64x128xbf16>, tensor<1x2x128x128xf32>)
  return %r#0, %r#1 : tensor<1x2x64x128xbf16>, tensor<1x2x128x128xf32>
}

// CHECK-LABEL: func.func @dplr(
// CHECK:         linattn.scan
// REMARK: "stays a scan: transitions and gates of their own were not measured in a matrix unit"
func.func @dplr(%q: tensor<1x2x64x128xbf16>, %s: tensor<1x2x128x128xf32>) -> (tensor<1x2x64x128xbf16>, tensor<1x2x128x128xf32>) {
  %r:2 = linattn.scan %q, %q, %q a(%q) b(%q) update(dplr) into(%q) init(%s) : (tensor<1x2x64x128xbf16>, tensor<1x2x64x128xbf16>, tensor<1x2x64x128xbf16>, tensor<1x2x64x128xbf16>, tensor<1x2x64x128xbf16>, tensor<1x2x64x128xbf16>, tensor<1x2x128x128xf32>) -> (tensor<1x2x64x128xbf16>, tensor<1x2x128x128xf32>)
  return %r#0, %r#1 : tensor<1x2x64x128xbf16>, tensor<1x2x128x128xf32>
}

// CHECK-LABEL: func.func @filled(
// CHECK:         linattn.scan
// REMARK: "stays a scan: head sizes that zeros fill up were not measured in a matrix unit"
func.func @filled(%q: tensor<1x2x64x60xbf16>, %s: tensor<1x2x60x60xf32>) -> (tensor<1x2x64x60xbf16>, tensor<1x2x60x60xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) : (tensor<1x2x64x60xbf16>, tensor<1x2x64x60xbf16>, tensor<1x2x64x60xbf16>, tensor<1x2x64x60xbf16>, tensor<1x2x60x60xf32>) -> (tensor<1x2x64x60xbf16>, tensor<1x2x60x60xf32>)
  return %r#0, %r#1 : tensor<1x2x64x60xbf16>, tensor<1x2x60x60xf32>
}

// CHECK-LABEL: func.func @single(
// CHECK:         linattn.scan
// REMARK: "stays a scan: one head of one sequence was not measured in a matrix unit"
func.func @single(%q: tensor<1x1x64x64xbf16>, %s: tensor<1x1x64x64xf32>) -> (tensor<1x1x64x64xbf16>, tensor<1x1x64x64xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) : (tensor<1x1x64x64xbf16>, tensor<1x1x64x64xbf16>, tensor<1x1x64x64xbf16>, tensor<1x1x64x64xbf16>, tensor<1x1x64x64xf32>) -> (tensor<1x1x64x64xbf16>, tensor<1x1x64x64xf32>)
  return %r#0, %r#1 : tensor<1x1x64x64xbf16>, tensor<1x1x64x64xf32>
}

// CHECK-LABEL: func.func @halves(
// CHECK:         linattn.state
// CHECK:         linattn.read
// REMARK: "stays a state: attention over all keys was not measured in a matrix unit"
// REMARK: "stays a read: attention over all keys was not measured in a matrix unit"
func.func @halves(%q: tensor<1x2x64x128xbf16>, %k: tensor<1x2x64x128xbf16>, %s: tensor<1x2x128x128xf32>) -> tensor<1x2x64x128xbf16> {
  %S = linattn.state %k, %k init(%s) : (tensor<1x2x64x128xbf16>, tensor<1x2x64x128xbf16>, tensor<1x2x128x128xf32>) -> tensor<1x2x128x128xf32>
  %o = linattn.read %q, %S into(%q) : (tensor<1x2x64x128xbf16>, tensor<1x2x128x128xf32>, tensor<1x2x64x128xbf16>) -> tensor<1x2x64x128xbf16>
  return %o : tensor<1x2x64x128xbf16>
}

// Of tokens of f32 there is nothing to say.

// CHECK-LABEL: func.func @wide(
// CHECK:         linattn.scan
// REMARK-NOT: expand-form
func.func @wide(%q: tensor<1x2x64x128xf32>, %s: tensor<1x2x128x128xf32>) -> (tensor<1x2x64x128xf32>, tensor<1x2x128x128xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) : (tensor<1x2x64x128xf32>, tensor<1x2x64x128xf32>, tensor<1x2x64x128xf32>, tensor<1x2x64x128xf32>, tensor<1x2x128x128xf32>) -> (tensor<1x2x64x128xf32>, tensor<1x2x128x128xf32>)
  return %r#0, %r#1 : tensor<1x2x64x128xf32>, tensor<1x2x128x128xf32>
}
