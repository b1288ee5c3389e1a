// RUN: linattn-opt %s --linattn-select-schedule=math=fast | FileCheck %s
// RUN: linattn-opt %s --linattn-select-schedule=math=fast --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: linattn-opt %s --linattn-select-schedule=math=strict | FileCheck %s --check-prefix=STRICT --implicit-check-not=summands
// RUN: linattn-opt %s --linattn-select-schedule | FileCheck %s --check-prefix=STRICT --implicit-check-not=summands
// RUN: linattn-opt %s --linattn-select-schedule --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=LONGER
// RUN: not linattn-opt %s --linattn-select-schedule=math=loose 2>&1 | FileCheck %s --check-prefix=LOOSE
// RUN: linattn-opt %s --linattn-select-schedule='math=fast chip=sm_90' | FileCheck %s --check-prefix=DELTA

// Products of f32 take two summands under fast arithmetic.

// LOOSE: Cannot find option named 'loose'

// REMARK: Remark="quadratic kernel, 4 warps, 16 tokens at a time; math=fast: products take 2 summands of f32, 16 bits"
// STRICT: func.func @softmax(
// CHECK-LABEL: func.func @softmax(
// CHECK: linattn.schedule = #linattn.schedule<form = quadratic, mma = mma_sync, chunk = 16, warps = 4, stages = 2, summands = 2>
func.func @softmax(%q: memref<2x8x?x64xf32>) {
  linattn.quadratic %q, %q, %q weights(softmax) into(%q)
    : (memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x?x64xf32>) -> ()
  return
}

// REMARK: Remark="chunk kernel, 4 warps, 64 tokens at a time; math=fast: products take 2 summands of f32, 16 bits"
// CHECK-LABEL: func.func @state(
// CHECK: linattn.schedule = #linattn.schedule<form = chunk, {{.*}}, summands = 2>
func.func @state(%k: memref<2x8x?x64xf32>, %s: memref<2x8x64x64xf32>) {
  linattn.state %k, %k init(%s)
    : (memref<2x8x?x64xf32>, memref<2x8x?x64xf32>, memref<2x8x64x64xf32>) -> ()
  return
}

// REMARK: Remark="chunk kernel, 4 warps, 64 tokens at a time; math=fast: products take 2 summands of f32, 16 bits"
// CHECK-LABEL: func.func @read(
// CHECK: linattn.schedule = #linattn.schedule<form = chunk, {{.*}}, summands = 2>
func.func @read(%q: memref<2x8x?x64xf32>, %s: memref<2x8x64x64xf32>) {
  linattn.read %q, %s into(%q)
    : (memref<2x8x?x64xf32>, memref<2x8x64x64xf32>, memref<2x8x?x64xf32>) -> ()
  return
}

// Segments keep them.
// REMARK: Remark="chunk kernel, {{.*}} segments: {{.*}}; math=fast: products take 2 summands of f32, 16 bits; predicted
// CHECK-LABEL: func.func @scan(
// CHECK: linattn.schedule = #linattn.schedule<form = chunk, {{.*}}, split = {{[0-9]+}}, summands = 2>
func.func @scan(%q: memref<1x4x16384x64xf32>, %s: memref<1x4x64x64xf32>) {
  linattn.scan %q, %q, %q into(%q) init(%s)
    : (memref<1x4x16384x64xf32>, memref<1x4x16384x64xf32>, memref<1x4x16384x64xf32>, memref<1x4x16384x64xf32>, memref<1x4x64x64xf32>) -> ()
  return
}

// Half the products are predicted to take less.
// REMARK: Remark="chunk kernel, 8 warps, {{.*}} predicted 15
// LONGER: Remark="chunk kernel, 8 warps, {{.*}} predicted 21
func.func @predicted(%q: memref<8x32x4096x128xf32>, %g: memref<8x32x4096x128xf32>, %s: memref<8x32x128x128xf32>) {
  linattn.scan %q, %q, %q decay(%g) into(%q) init(%s)
    : (memref<8x32x4096x128xf32>, memref<8x32x4096x128xf32>, memref<8x32x4096x128xf32>, memref<8x32x4096x128xf32>, memref<8x32x4096x128xf32>, memref<8x32x128x128xf32>) -> ()
  return
}

// Few tokens have fused multiply-adds, exact in f32.
// REMARK: Remark="token kernel
// REMARK-NOT: math=fast
// CHECK-LABEL: func.func @step(
// CHECK-NOT: summands
func.func @step(%q: memref<2x8x1x64xf32>, %s: memref<2x8x64x64xf32>) {
  linattn.scan %q, %q, %q into(%q) init(%s)
    : (memref<2x8x1x64xf32>, memref<2x8x1x64xf32>, memref<2x8x1x64xf32>, memref<2x8x1x64xf32>, memref<2x8x64x64xf32>) -> ()
  return
}

// Of tokens of 16 bits all numbers are one summand.
// REMARK: Remark="chunk kernel, {{.*}}math=fast: products take 1 summand of f32, 8 bits
// REMARK: Remark="quadratic kernel, {{.*}}math=fast: products take 1 summand of f32, 8 bits
// CHECK-LABEL: func.func @bf16(
// CHECK: linattn.schedule = #linattn.schedule<form = chunk, {{.*}}, summands = 1>
// CHECK: linattn.schedule = #linattn.schedule<form = quadratic, {{.*}}, summands = 1>
func.func @bf16(%q: memref<2x8x?x64xbf16>, %g: memref<2x8x?x64xf32>, %s: memref<2x8x64x64xf32>) {
  linattn.scan %q, %q, %q decay(%g) into(%q) init(%s)
    : (memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xf32>, memref<2x8x?x64xbf16>, memref<2x8x64x64xf32>) -> ()
  linattn.quadratic %q, %q, %q weights(softmax) into(%q)
    : (memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>) -> ()
  return
}
// Of a delta rule one stage of 64 tokens comes before two of 32; where two of 64 fit, these.
// CHECK-LABEL: func.func @kda(
// CHECK: chunk = 64, warps = 8, value_slice = 128, summands = 1>
// DELTA-LABEL: func.func @kda(
// DELTA: chunk = 64, warps = 8, stages = 2, value_slice = 128, summands = 1>
func.func @kda(%q: memref<1x8x?x128xbf16>, %g: memref<1x8x?x128xf32>, %b: memref<1x8x?xf32>, %s: memref<1x8x128x128xf32>) {
  linattn.scan %q, %q, %q decay(%g) beta(%b) update(delta) into(%q) init(%s)
    : (memref<1x8x?x128xbf16>, memref<1x8x?x128xbf16>, memref<1x8x?x128xbf16>, memref<1x8x?x128xf32>,
       memref<1x8x?xf32>, memref<1x8x?x128xbf16>, memref<1x8x128x128xf32>) -> ()
  return
}

// DELTA-LABEL: func.func @gated_delta(
// DELTA: chunk = 64, warps = 8, stages = 2, value_slice = 128, summands = 1>
func.func @gated_delta(%q: memref<1x8x?x128xbf16>, %g: memref<1x8x?xf32>, %s: memref<1x8x128x128xf32>) {
  linattn.scan %q, %q, %q decay(%g) beta(%g) update(delta) into(%q) init(%s)
    : (memref<1x8x?x128xbf16>, memref<1x8x?x128xbf16>, memref<1x8x?x128xbf16>, memref<1x8x?xf32>,
       memref<1x8x?xf32>, memref<1x8x?x128xbf16>, memref<1x8x128x128xf32>) -> ()
  return
}
