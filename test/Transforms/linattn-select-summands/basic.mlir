// RUN: linattn-opt %s --linattn-select-summands | FileCheck %s
// RUN: linattn-opt %s --linattn-select-summands --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: linattn-opt %s --linattn-select-summands=fast-products | FileCheck %s --check-prefix=FAST
// RUN: linattn-opt %s --linattn-select-summands=where-measured --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=MEASURED

// Tokens of bf16 are one summand, also times a power of two; scores and states
// are two.

// CHECK-LABEL: func.func @tokens(
// CHECK:         linattn.chunk.scores {{.*}} {summands = array<i64: 1, 1>}
// CHECK:         linattn.chunk.read {{.*}} {summands = array<i64: 1, 2, 2, 1>}
// CHECK:         linattn.chunk.update {{.*}} {summands = array<i64: 1, 1>}
// FAST-LABEL: func.func @tokens(
// FAST:          linattn.chunk.scores {{.*}} {summands = array<i64: 1, 1>}
// FAST:          linattn.chunk.read {{.*}} {summands = array<i64: 1, 1, 1, 1>}
// FAST:          linattn.chunk.update {{.*}} {summands = array<i64: 1, 1>}
func.func @tokens(%x: tensor<1x1x32x32xbf16>, %e: tensor<1x1x32x32xf32>, %s: tensor<1x1x32x32xf32>) -> (tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>) {
  %q = linattn.chunk.pack %x into(%e) {scale = 0.125} : (tensor<1x1x32x32xbf16>, tensor<1x1x32x32xf32>) -> tensor<1x1x32x32xf32>
  %k = linattn.chunk.pack %x into(%e) : (tensor<1x1x32x32xbf16>, tensor<1x1x32x32xf32>) -> tensor<1x1x32x32xf32>
  %p = linattn.chunk.scores %q, %k into(%e) : (tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>) -> tensor<1x1x32x32xf32>
  %o = linattn.chunk.read %q, %s scores(%p) values(%k) into(%e) : (tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>) -> tensor<1x1x32x32xf32>
  %n = linattn.chunk.update keys(%k) values(%k) into(%s) : (tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>) -> tensor<1x1x32x32xf32>
  return %o, %n : tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>
}

// A factor other than a power of two, a gate, a decay and f16 leave more bits.

// CHECK-LABEL: func.func @factors(
// CHECK:         linattn.chunk.scores {{.*}} {summands = array<i64: 2, 2>}
// CHECK:         linattn.chunk.scores {{.*}} {summands = array<i64: 2, 2>}
// CHECK:         linattn.chunk.scores {{.*}} {summands = array<i64: 1, 1>}
// FAST-LABEL: func.func @factors(
// FAST:          linattn.chunk.scores {{.*}} {summands = array<i64: 1, 1>}
func.func @factors(%x: tensor<1x1x32x32xbf16>, %h: tensor<1x1x32x32xf16>, %g: tensor<1x1x32xf32>, %e: tensor<1x1x32x32xf32>) -> (tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>) {
  %scaled = linattn.chunk.pack %x into(%e) {scale = 0.3} : (tensor<1x1x32x32xbf16>, tensor<1x1x32x32xf32>) -> tensor<1x1x32x32xf32>
  %gated = linattn.chunk.pack %x gate(%g) into(%e) : (tensor<1x1x32x32xbf16>, tensor<1x1x32xf32>, tensor<1x1x32x32xf32>) -> tensor<1x1x32x32xf32>
  %half = linattn.chunk.pack %h into(%e) : (tensor<1x1x32x32xf16>, tensor<1x1x32x32xf32>) -> tensor<1x1x32x32xf32>
  %plain = linattn.chunk.pack %x into(%e) : (tensor<1x1x32x32xbf16>, tensor<1x1x32x32xf32>) -> tensor<1x1x32x32xf32>
  %minus = linattn.chunk.pack %plain into(%e) {scale = -1.0} : (tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>) -> tensor<1x1x32x32xf32>
  %decayed = linattn.chunk.decay %plain by(%g) into(%e) : (tensor<1x1x32x32xf32>, tensor<1x1x32xf32>, tensor<1x1x32x32xf32>) -> tensor<1x1x32x32xf32>
  %a = linattn.chunk.scores %scaled, %gated into(%e) : (tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>) -> tensor<1x1x32x32xf32>
  %b = linattn.chunk.scores %half, %decayed into(%e) : (tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>) -> tensor<1x1x32x32xf32>
  %c = linattn.chunk.scores %minus, %plain into(%e) : (tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>) -> tensor<1x1x32x32xf32>
  return %a, %b, %c : tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>
}

// Of bf16 tokens, with zeros filled up and under relu: exact. Another map: two.

// CHECK-LABEL: func.func @mapped(
// CHECK:         linattn.chunk.scores {{.*}} {summands = array<i64: 1, 2>}
func.func @mapped(%x: tensor<1x1x32x20xbf16>, %y: tensor<1x1x32x32xbf16>, %e: tensor<1x1x32x32xf32>) -> tensor<1x1x32x32xf32> {
  %zero = arith.constant 0.0 : f32
  %own = tensor.extract_slice %e[0, 0, 0, 0] [1, 1, 32, 20] [1, 1, 1, 1] : tensor<1x1x32x32xf32> to tensor<1x1x32x20xf32>
  %p = linattn.chunk.pack %x into(%own) : (tensor<1x1x32x20xbf16>, tensor<1x1x32x20xf32>) -> tensor<1x1x32x20xf32>
  %wide = tensor.insert_slice %p into %e[0, 0, 0, 0] [1, 1, 32, 20] [1, 1, 1, 1] : tensor<1x1x32x20xf32> into tensor<1x1x32x32xf32>
  %rest = tensor.extract_slice %wide[0, 0, 0, 20] [1, 1, 32, 12] [1, 1, 1, 1] : tensor<1x1x32x32xf32> to tensor<1x1x32x12xf32>
  %none = linalg.fill ins(%zero : f32) outs(%rest : tensor<1x1x32x12xf32>) -> tensor<1x1x32x12xf32>
  %rows = tensor.insert_slice %none into %wide[0, 0, 0, 20] [1, 1, 32, 12] [1, 1, 1, 1] : tensor<1x1x32x12xf32> into tensor<1x1x32x32xf32>
  %q = linattn.feature_map %rows into(%e) {feature_map = #linattn.feature_map<relu>} : (tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>) -> tensor<1x1x32x32xf32>
  %tokens = linattn.chunk.pack %y into(%e) : (tensor<1x1x32x32xbf16>, tensor<1x1x32x32xf32>) -> tensor<1x1x32x32xf32>
  %k = linattn.feature_map %tokens into(%e) {feature_map = #linattn.feature_map<elu1>} : (tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>) -> tensor<1x1x32x32xf32>
  %s = linattn.chunk.scores %q, %k into(%e) : (tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>) -> tensor<1x1x32x32xf32>
  return %s : tensor<1x1x32x32xf32>
}

// Tokens that decay per channel are two summands in scores.

// CHECK-LABEL: func.func @channels(
// CHECK:         linattn.chunk.scores {{.*}} {summands = array<i64: 2, 2>}
// FAST-LABEL: func.func @channels(
// FAST:          linattn.chunk.scores {{.*}} {summands = array<i64: 1, 1>}
func.func @channels(%x: tensor<1x1x32x32xbf16>, %g: tensor<1x1x32x32xf32>, %e: tensor<1x1x32x32xf32>) -> tensor<1x1x32x32xf32> {
  %q = linattn.chunk.pack %x into(%e) : (tensor<1x1x32x32xbf16>, tensor<1x1x32x32xf32>) -> tensor<1x1x32x32xf32>
  %p = linattn.chunk.scores %q, %q decay(%g) into(%e) : (tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>) -> tensor<1x1x32x32xf32>
  return %p : tensor<1x1x32x32xf32>
}

// One matrix of f32 tokens keeps the others of its chunk from being rounded: two
// summands would lose their accuracy, too, which only fast products may.

// CHECK-LABEL: func.func @wide(
// CHECK-NOT:     summands
// REMARK: [Missed] select-summands {{.*}}"stays a product of vectors: tokens of its chunk have more than 16 bits"
// FAST-LABEL: func.func @wide(
// FAST:          linattn.chunk.scores {{.*}} {summands = array<i64: 2, 1>}
func.func @wide(%x: tensor<1x1x32x32xbf16>, %y: tensor<1x1x32x32xf32>, %e: tensor<1x1x32x32xf32>) -> tensor<1x1x32x32xf32> {
  %q = linattn.chunk.pack %y into(%e) : (tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>) -> tensor<1x1x32x32xf32>
  %k = linattn.chunk.pack %x into(%e) : (tensor<1x1x32x32xbf16>, tensor<1x1x32x32xf32>) -> tensor<1x1x32x32xf32>
  %p = linattn.chunk.scores %q, %k into(%e) : (tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>) -> tensor<1x1x32x32xf32>
  return %p : tensor<1x1x32x32xf32>
}

// Attention over keys: tokens are exact, weights are not. It is for a unit that
// is named.
// MEASURED: "stays products of vectors: they were not measured in a matrix unit"

// CHECK-LABEL: func.func @quadratic(
// CHECK:         linattn.quadratic {{.*}}summands = array<i64: 1, 1, 2, 1>
// FAST-LABEL: func.func @quadratic(
// FAST:          linattn.quadratic {{.*}}summands = array<i64: 1, 1, 1, 1>
func.func @quadratic(%x: tensor<1x2x?x48xbf16>) -> tensor<1x2x?x48xbf16> {
  %o = linattn.quadratic %x, %x, %x weights(softmax) into(%x) : (tensor<1x2x?x48xbf16>, tensor<1x2x?x48xbf16>, tensor<1x2x?x48xbf16>, tensor<1x2x?x48xbf16>) -> tensor<1x2x?x48xbf16>
  return %o : tensor<1x2x?x48xbf16>
}
