// RUN: linattn-opt %s --linattn-select-summands | FileCheck %s
// RUN: linattn-opt %s --linattn-select-summands --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// CHECK-NOT: summands

// REMARK: [Missed] select-summands {{.*}}"stays a product of vectors: it is not in f32"
func.func @double(%x: tensor<1x1x32x32xf64>) -> tensor<1x1x32x32xf64> {
  %p = linattn.chunk.scores %x, %x into(%x) : (tensor<1x1x32x32xf64>, tensor<1x1x32x32xf64>, tensor<1x1x32x32xf64>) -> tensor<1x1x32x32xf64>
  return %p : tensor<1x1x32x32xf64>
}

// REMARK: "stays a product of vectors: it has sizes that are not known"
func.func @dynamic(%x: tensor<1x1x?x32xf32>, %e: tensor<1x1x?x?xf32>) -> tensor<1x1x?x?xf32> {
  %p = linattn.chunk.scores %x, %x into(%e) : (tensor<1x1x?x32xf32>, tensor<1x1x?x32xf32>, tensor<1x1x?x?xf32>) -> tensor<1x1x?x?xf32>
  return %p : tensor<1x1x?x?xf32>
}

// REMARK: "stays a product of vectors: its columns decay"
func.func @columns(%x: tensor<1x1x32x32xf32>) -> tensor<1x1x32x32xf32> {
  %o = linattn.chunk.read %x, %x decay(%x) into(%x) : (tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>, tensor<1x1x32x32xf32>) -> tensor<1x1x32x32xf32>
  return %o : tensor<1x1x32x32xf32>
}

// REMARK: "stays a product of vectors: it has several heads"
func.func @heads(%x: tensor<1x2x32x32xf32>) -> tensor<1x2x32x32xf32> {
  %p = linattn.chunk.scores %x, %x into(%x) : (tensor<1x2x32x32xf32>, tensor<1x2x32x32xf32>, tensor<1x2x32x32xf32>) -> tensor<1x2x32x32xf32>
  return %p : tensor<1x2x32x32xf32>
}

// REMARK: "stays a product of vectors: its tokens or features are not whole tiles of 16"
func.func @few(%x: tensor<1x1x5x32xf32>, %e: tensor<1x1x5x5xf32>) -> tensor<1x1x5x5xf32> {
  %p = linattn.chunk.scores %x, %x into(%e) : (tensor<1x1x5x32xf32>, tensor<1x1x5x32xf32>, tensor<1x1x5x5xf32>) -> tensor<1x1x5x5xf32>
  return %p : tensor<1x1x5x5xf32>
}

// REMARK: "stays products of vectors: its tokens are not in bf16"
func.func @half(%x: tensor<1x2x32x32xf16>) -> tensor<1x2x32x32xf16> {
  %o = linattn.quadratic %x, %x, %x into(%x) : (tensor<1x2x32x32xf16>, tensor<1x2x32x32xf16>, tensor<1x2x32x32xf16>, tensor<1x2x32x32xf16>) -> tensor<1x2x32x32xf16>
  return %o : tensor<1x2x32x32xf16>
}

// REMARK: "stays products of vectors: it has a feature map"
func.func @mapped(%x: tensor<1x2x32x32xbf16>) -> tensor<1x2x32x32xbf16> {
  %o = linattn.quadratic %x, %x, %x into(%x) {feature_map = #linattn.feature_map<relu>} : (tensor<1x2x32x32xbf16>, tensor<1x2x32x32xbf16>, tensor<1x2x32x32xbf16>, tensor<1x2x32x32xbf16>) -> tensor<1x2x32x32xbf16>
  return %o : tensor<1x2x32x32xbf16>
}

// REMARK: "stays products of vectors: its head sizes are not known, or fill no tile of 16"
func.func @sizes(%x: tensor<1x2x32x32xbf16>, %v: tensor<1x2x32x?xbf16>) -> tensor<1x2x32x?xbf16> {
  %o = linattn.quadratic %x, %x, %v into(%v) : (tensor<1x2x32x32xbf16>, tensor<1x2x32x32xbf16>, tensor<1x2x32x?xbf16>, tensor<1x2x32x?xbf16>) -> tensor<1x2x32x?xbf16>
  return %o : tensor<1x2x32x?xbf16>
}

// REMARK: "stays products of vectors: it takes one query at a time"
func.func @token(%x: tensor<1x2x?x32xbf16>) -> tensor<1x2x?x32xbf16> {
  %o = linattn.quadratic %x, %x, %x into(%x) {config = #linattn.config<form = token>} : (tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>) -> tensor<1x2x?x32xbf16>
  return %o : tensor<1x2x?x32xbf16>
}

// REMARK: "stays products of vectors: its queries fill no tile of 16"
func.func @few_queries(%q: tensor<1x2x15x32xbf16>, %x: tensor<1x2x?x32xbf16>) -> tensor<1x2x15x32xbf16> {
  %o = linattn.quadratic %q, %x, %x into(%q) : (tensor<1x2x15x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x15x32xbf16>) -> tensor<1x2x15x32xbf16>
  return %o : tensor<1x2x15x32xbf16>
}

// REMARK: "stays products of vectors: it takes as many tokens as are too few for a state"
func.func @below_state(%x: tensor<1x2x?x32xbf16>) -> tensor<1x2x?x32xbf16> {
  %o = linattn.quadratic %x, %x, %x into(%x) : (tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>) -> tensor<1x2x?x32xbf16>
  return %o : tensor<1x2x?x32xbf16>
}
