// RUN: linattn-opt %s --linattn-select-schedule=chip=sm_90 --remarks-filter=linattn 2>&1 | FileCheck %s
// RUN: linattn-opt %s --linattn-select-schedule='chip=sm_90 sms=1' | FileCheck %s --check-prefix=ONE

// One head and many tokens: what is chosen, what it is predicted to take, and what else there was.
// CHECK: [Passed] select-schedule {{.*}}Remark="chunk kernel, {{.*}} columns of the state, [[N:[0-9]+]] segments: products of matrices, chunk by chunk; predicted {{.*}} us: {{.*}} MB, [[N]] blocks on 132 multiprocessors; considered [4 warps, 64 columns: {{.*}} us] {{.*}} [4 warps, 64 columns in [[N]] segments: {{.*}} us] [token, 4 warps, 64 columns: {{.*}} us]"
// Enough heads fill the machine.
// CHECK: [Passed] select-schedule {{.*}}Remark="chunk kernel, 4 warps, 64 columns of the state: products of matrices, chunk by chunk; predicted {{.*}} us: {{.*}} MB, 512 blocks on 132 multiprocessors; considered [4 warps, 64 columns: {{.*}} us]
// The number of tokens is not known: segments of few would be slower than none.
// CHECK: [Passed] select-schedule {{.*}}Remark="chunk kernel, 4 warps, 64 columns of the state: products of matrices, chunk by chunk; one segment: the number of tokens or sequences is not known"
// A delta rule takes more columns, those of a matrix, and gains from more heads' worth of segments.
// CHECK: [Passed] select-schedule {{.*}} columns of the state, [[D:[0-9]+]] segments: {{.*}} in [[D]] segments: {{.*}} us]
// CHECK: [Passed] select-schedule {{.*}} columns of the state: {{.*}}; one segment: beside an erase gate of f32 tokens the registers hold 96 channels of a segment"
// Packed sequences are predicted as if all were equally long, states of a pool as those of so many sequences as there are rows.
// CHECK: [Passed] select-schedule {{.*}} columns of the state, [[P:[0-9]+]] segments: {{.*}} in [[P]] segments: {{.*}} us]
// CHECK: [Passed] select-schedule {{.*}} columns of the state, [[N]] segments: {{.*}} in [[N]] segments: {{.*}} us]
// CHECK: [Passed] select-schedule {{.*}}products of matrices, chunk by chunk; one segment: the number of tokens or sequences is not known"
// CHECK: [Passed] select-schedule {{.*}} segments: {{.*}} in {{[0-9]+}} segments: {{.*}} us]

// CHECK-LABEL: func.func @one_head(
// CHECK: value_slice = 64, split = {{[0-9]+}}>
// Two blocks fit one multiprocessor, and each waits for its own data.
// ONE-LABEL: func.func @one_head(
// ONE: value_slice = 64, split = 2>
func.func @one_head(%q: memref<1x1x65536x64xbf16>, %k: memref<1x1x65536x64xbf16>, %o: memref<1x1x65536x64xbf16>,
                    %s: memref<1x1x64x64xf32>) {
  linattn.scan %q, %k, %k into(%o) init(%s)
    : (memref<1x1x65536x64xbf16>, memref<1x1x65536x64xbf16>, memref<1x1x65536x64xbf16>,
       memref<1x1x65536x64xbf16>, memref<1x1x64x64xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @many_heads(
// CHECK: value_slice = 64>
func.func @many_heads(%q: memref<8x64x4096x64xbf16>, %k: memref<8x64x4096x64xbf16>, %o: memref<8x64x4096x64xbf16>,
                      %s: memref<8x64x64x64xf32>) {
  linattn.scan %q, %k, %k into(%o) init(%s)
    : (memref<8x64x4096x64xbf16>, memref<8x64x4096x64xbf16>, memref<8x64x4096x64xbf16>,
       memref<8x64x4096x64xbf16>, memref<8x64x64x64xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @dynamic(
// CHECK: value_slice = 64>
func.func @dynamic(%q: memref<1x1x?x64xbf16>, %k: memref<1x1x?x64xbf16>, %o: memref<1x1x?x64xbf16>,
                   %s: memref<1x1x64x64xf32>) {
  linattn.scan %q, %k, %k into(%o) init(%s)
    : (memref<1x1x?x64xbf16>, memref<1x1x?x64xbf16>, memref<1x1x?x64xbf16>,
       memref<1x1x?x64xbf16>, memref<1x1x64x64xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @delta(
// CHECK: value_slice = 64, split = {{[0-9]+}}>
func.func @delta(%q: memref<1x1x65536x64xbf16>, %k: memref<1x1x65536x64xbf16>, %b: memref<1x1x65536xf32>,
                 %o: memref<1x1x65536x64xbf16>, %s: memref<1x1x64x64xf32>) {
  linattn.scan %q, %k, %k beta(%b) update(delta) into(%o) init(%s)
    : (memref<1x1x65536x64xbf16>, memref<1x1x65536x64xbf16>, memref<1x1x65536x64xbf16>, memref<1x1x65536xf32>,
       memref<1x1x65536x64xbf16>, memref<1x1x64x64xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @erase(
// CHECK: form = chunk, {{.*}}value_slice = 64>
func.func @erase(%q: memref<1x1x65536x128xf32>, %k: memref<1x1x65536x128xf32>, %o: memref<1x1x65536x128xf32>,
                 %s: memref<1x1x128x128xf32>) {
  linattn.scan %q, %k, %k erase(%k) update(delta) into(%o) init(%s)
    : (memref<1x1x65536x128xf32>, memref<1x1x65536x128xf32>, memref<1x1x65536x128xf32>, memref<1x1x65536x128xf32>,
       memref<1x1x65536x128xf32>, memref<1x1x128x128xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @packed(
// CHECK: value_slice = 64, split = {{[0-9]+}}>
func.func @packed(%q: memref<1x1x65536x64xbf16>, %k: memref<1x1x65536x64xbf16>, %c: memref<5xi32>,
                  %o: memref<1x1x65536x64xbf16>, %s: memref<4x1x64x64xf32>) {
  linattn.scan %q, %k, %k cu_seqlens(%c) into(%o) init(%s)
    : (memref<1x1x65536x64xbf16>, memref<1x1x65536x64xbf16>, memref<1x1x65536x64xbf16>, memref<5xi32>,
       memref<1x1x65536x64xbf16>, memref<4x1x64x64xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @pool(
// CHECK: form = chunk, {{.*}}value_slice = 64, split = {{[0-9]+}}>
func.func @pool(%q: memref<1x1x65536x64xbf16>, %k: memref<1x1x65536x64xbf16>, %i: memref<1xi32>,
                %o: memref<1x1x65536x64xbf16>, %s: memref<8x1x64x64xf32>) {
  linattn.scan %q, %k, %k state_indices(%i) into(%o) init(%s)
    : (memref<1x1x65536x64xbf16>, memref<1x1x65536x64xbf16>, memref<1x1x65536x64xbf16>, memref<1xi32>,
       memref<1x1x65536x64xbf16>, memref<8x1x64x64xf32>) -> ()
  return
}

// How many sequences there are is not known, and nothing is predicted of them.
// CHECK-LABEL: func.func @pool_of_any_batch(
// CHECK: form = chunk, {{.*}}value_slice = 64>
func.func @pool_of_any_batch(%q: memref<?x2x4096x64xbf16>, %k: memref<?x2x4096x64xbf16>, %i: memref<?xi32>,
                             %o: memref<?x2x4096x64xbf16>, %s: memref<8x2x64x64xf32>) {
  linattn.scan %q, %k, %k state_indices(%i) into(%o) init(%s)
    : (memref<?x2x4096x64xbf16>, memref<?x2x4096x64xbf16>, memref<?x2x4096x64xbf16>, memref<?xi32>,
       memref<?x2x4096x64xbf16>, memref<8x2x64x64xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @normalized(
// CHECK: form = chunk, {{.*}}value_slice = 64, split = {{[0-9]+}}>
func.func @normalized(%q: memref<1x1x65536x64xbf16>, %k: memref<1x1x65536x64xbf16>, %o: memref<1x1x65536x64xbf16>,
                      %s: memref<1x1x64x64xf32>, %z: memref<1x1x64xf32>) {
  linattn.scan %q, %k, %k into(%o) init(%s) normalizer(%z) {normalize = #linattn.normalize<eps = 1.0e-6>}
    : (memref<1x1x65536x64xbf16>, memref<1x1x65536x64xbf16>, memref<1x1x65536x64xbf16>,
       memref<1x1x65536x64xbf16>, memref<1x1x64x64xf32>, memref<1x1x64xf32>) -> ()
  return
}
