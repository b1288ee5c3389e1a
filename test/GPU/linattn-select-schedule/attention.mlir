// RUN: linattn-opt %s --linattn-select-schedule | FileCheck %s
// RUN: linattn-opt %s --linattn-select-schedule --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: linattn-opt %s --linattn-select-schedule=shared=10000 --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=TINY

// TINY: "no kernel: its tiles do not fit 10000 bytes of shared memory"

// REMARK: [Passed] select-schedule {{.*}}Remark="quadratic kernel, 4 warps, 64 tokens at a time"
// CHECK-LABEL: func.func @softmax(
// CHECK: linattn.schedule = #linattn.schedule<form = quadratic, mma = mma_sync, chunk = 64, warps = 4, stages = 2>
func.func @softmax(%q: memref<2x8x?x64xbf16>, %k: memref<2x2x?x64xbf16>) {
  linattn.quadratic %q, %k, %k weights(softmax) into(%q) {causal, scale = 0.125}
    : (memref<2x8x?x64xbf16>, memref<2x2x?x64xbf16>, memref<2x2x?x64xbf16>, memref<2x8x?x64xbf16>) -> ()
  return
}

// Outputs of many columns leave registers for the scores of fewer keys.
// CHECK-LABEL: func.func @wide(
// CHECK: linattn.schedule = #linattn.schedule<form = quadratic, mma = mma_sync, chunk = 32, warps = 4, stages = 2>
func.func @wide(%q: memref<?x8x?x128xf16>) {
  linattn.quadratic %q, %q, %q weights(softmax) into(%q)
    : (memref<?x8x?x128xf16>, memref<?x8x?x128xf16>, memref<?x8x?x128xf16>, memref<?x8x?x128xf16>) -> ()
  return
}

// Linear weights go by the same tiles.
// CHECK-LABEL: func.func @linear(
// CHECK: linattn.schedule = #linattn.schedule<form = quadratic
func.func @linear(%q: memref<2x8x100x64xf16>) {
  linattn.quadratic %q, %q, %q into(%q)
    : (memref<2x8x100x64xf16>, memref<2x8x100x64xf16>, memref<2x8x100x64xf16>, memref<2x8x100x64xf16>) -> ()
  return
}

// Summands of f32 leave registers for fewer keys.
// REMARK: [Passed] select-schedule {{.*}}Remark="quadratic kernel, 4 warps, 16 tokens at a time"
// CHECK-LABEL: func.func @softmax_f32(
// CHECK: linattn.schedule = #linattn.schedule<form = quadratic, mma = mma_sync, chunk = 16, warps = 4, stages = 2>
func.func @softmax_f32(%q: memref<2x8x?x64xf32>) {
  linattn.quadratic %q, %q, %q weights(softmax) into(%q)
    : (memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>) -> ()
  return
}

// REMARK: [Missed] select-schedule {{.*}}Remark="no kernel: f64 has no kernel"
// CHECK-LABEL: func.func @softmax_f64(
// CHECK-NOT: linattn.schedule
func.func @softmax_f64(%q: memref<2x8x?x64xf64>) {
  linattn.quadratic %q, %q, %q weights(softmax) into(%q)
    : (memref<2x8x?x64xf64>, memref<2x8x?x64xf64>, memref<2x8x?x64xf64>, memref<2x8x?x64xf64>) -> ()
  return
}

// REMARK: [Missed] select-schedule {{.*}}Remark="no kernel: a feature map has no kernel by tiles of keys"
// CHECK-LABEL: func.func @mapped(
// CHECK-NOT: linattn.schedule
func.func @mapped(%q: memref<2x8x?x64xbf16>) {
  linattn.quadratic %q, %q, %q into(%q) {feature_map = #linattn.feature_map<relu>}
    : (memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>) -> ()
  return
}

// REMARK: [Missed] select-schedule {{.*}}Remark="no kernel: head sizes must be even and 256 at most"
// CHECK-LABEL: func.func @odd(
// CHECK-NOT: linattn.schedule
func.func @odd(%q: memref<2x8x?x33xbf16>) {
  linattn.quadratic %q, %q, %q weights(softmax) into(%q)
    : (memref<2x8x?x33xbf16>, memref<2x8x?x33xbf16>, memref<2x8x?x33xbf16>, memref<2x8x?x33xbf16>) -> ()
  return
}

// REMARK: [Missed] select-schedule {{.*}}Remark="no kernel: head counts and head sizes must be static"
// CHECK-LABEL: func.func @dynamic(
// CHECK-NOT: linattn.schedule
func.func @dynamic(%q: memref<2x8x?x?xbf16>) {
  linattn.quadratic %q, %q, %q weights(softmax) into(%q)
    : (memref<2x8x?x?xbf16>, memref<2x8x?x?xbf16>, memref<2x8x?x?xbf16>, memref<2x8x?x?xbf16>) -> ()
  return
}

// REMARK: [Passed] select-schedule {{.*}}Remark="chunk kernel, 8 warps, 64 tokens at a time"
// CHECK-LABEL: func.func @state(
// CHECK: linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 8, stages = 2, value_slice = 128>
func.func @state(%k: memref<2x8x?x128xbf16>, %s: memref<2x8x128x128xf32>) {
  linattn.state %k, %k init(%s)
    : (memref<2x8x?x128xbf16>, memref<2x8x?x128xbf16>, memref<2x8x128x128xf32>) -> ()
  return
}

// REMARK: [Missed] select-schedule {{.*}}Remark="no kernel: a state with decays has no kernel without its scan"
// CHECK-LABEL: func.func @decayed_state(
// CHECK-NOT: linattn.schedule
func.func @decayed_state(%k: memref<2x8x?x128xbf16>, %g: memref<2x8x?xf32>, %s: memref<2x8x128x128xf32>) {
  linattn.state %k, %k decay(%g) init(%s)
    : (memref<2x8x?x128xbf16>, memref<2x8x?x128xbf16>, memref<2x8x?xf32>, memref<2x8x128x128xf32>) -> ()
  return
}

// REMARK: [Passed] select-schedule {{.*}}Remark="chunk kernel, 4 warps, 64 tokens at a time"
// CHECK-LABEL: func.func @read(
// CHECK: linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 4, stages = 2, value_slice = 64>
func.func @read(%q: memref<2x8x?x64xf32>, %s: memref<2x8x64x64xf32>) {
  linattn.read %q, %s into(%q)
    : (memref<2x8x?x64xf32>, memref<2x8x64x64xf32>, memref<2x8x?x64xf32>) -> ()
  return
}

// REMARK: [Missed] select-schedule {{.*}}Remark="no kernel: a map of whole tokens, exponentials and a region have no kernel"
// CHECK-LABEL: func.func @exponential_read(
// CHECK-NOT: linattn.schedule
func.func @exponential_read(%q: memref<2x8x?x64xf32>, %s: memref<2x8x64x64xf32>) {
  linattn.read %q, %s into(%q) {feature_map = #linattn.feature_map<softmax_kernel>}
    : (memref<2x8x?x64xf32>, memref<2x8x64x64xf32>, memref<2x8x?x64xf32>) -> ()
  return
}
