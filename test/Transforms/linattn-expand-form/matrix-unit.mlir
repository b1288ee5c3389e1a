// RUN: linattn-opt %s --linattn-expand-form='tasks matrix-unit' --canonicalize --cse | FileCheck %s
// RUN: linattn-opt %s --linattn-expand-form='tasks matrix-unit fast-products' | FileCheck %s --check-prefix=FAST
// RUN: linattn-opt %s --linattn-expand-form='tasks matrix-unit' --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// Chunks of 64 tokens, of 32 under a delta rule, of the schedule's size.

// CHECK-LABEL: func.func @additive(
// CHECK:         linattn.chunk.update {{.*}}tensor<1x1x64x32xf32>
// CHECK:         linattn.chunk.update {{.*}}tensor<1x1x36x32xf32>
func.func @additive(%q: tensor<1x2x100x32xbf16>, %s: tensor<1x2x32x32xf32>) -> (tensor<1x2x100x32xbf16>, tensor<1x2x32x32xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) : (tensor<1x2x100x32xbf16>, tensor<1x2x100x32xbf16>, tensor<1x2x100x32xbf16>, tensor<1x2x100x32xbf16>, tensor<1x2x32x32xf32>) -> (tensor<1x2x100x32xbf16>, tensor<1x2x32x32xf32>)
  return %r#0, %r#1 : tensor<1x2x100x32xbf16>, tensor<1x2x32x32xf32>
}

// Of a dynamic number of tokens what is left over comes in small chunks, and
// then one by one.

// CHECK-LABEL: func.func @delta(
// CHECK:         linattn.chunk.update {{.*}}tensor<1x1x32x32xf32>
// CHECK:         linattn.chunk.update {{.*}}tensor<1x1x16x32xf32>
// CHECK:         linattn.chunk.update {{.*}}tensor<1x1x1x32xf32>
func.func @delta(%q: tensor<1x2x?x32xbf16>, %b: tensor<1x2x?xf32>, %s: tensor<1x2x32x32xf32>) -> (tensor<1x2x?x32xbf16>, tensor<1x2x32x32xf32>) {
  %r:2 = linattn.scan %q, %q, %q beta(%b) update(delta) into(%q) init(%s) : (tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x?xf32>, tensor<1x2x?x32xbf16>, tensor<1x2x32x32xf32>) -> (tensor<1x2x?x32xbf16>, tensor<1x2x32x32xf32>)
  return %r#0, %r#1 : tensor<1x2x?x32xbf16>, tensor<1x2x32x32xf32>
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

// CHECK-LABEL: func.func @few_tokens(
// CHECK:         linattn.scan
// REMARK: "stays a scan: it has fewer than 32 tokens, for which vectors are faster"
func.func @few_tokens(%q: tensor<1x2x16x32xbf16>, %s: tensor<1x2x32x32xf32>) -> tensor<1x2x16x32xbf16> {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) : (tensor<1x2x16x32xbf16>, tensor<1x2x16x32xbf16>, tensor<1x2x16x32xbf16>, tensor<1x2x16x32xbf16>, tensor<1x2x32x32xf32>) -> (tensor<1x2x16x32xbf16>, tensor<1x2x32x32xf32>)
  return %r#0 : tensor<1x2x16x32xbf16>
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
