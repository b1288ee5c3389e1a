// RUN: linattn-opt %s --linattn-select-form='vector-bits=512 registers=32' --remarks-filter=linattn 2>&1 | FileCheck %s
// RUN: linattn-opt %s --linattn-select-form='vector-bits=256 registers=16 l1=32768 cores=8' | FileCheck %s --check-prefix=AVX2
// RUN: linattn-opt %s --linattn-select-form='vector-bits=512 registers=32 cores=64' -o %t.64
// RUN: linattn-opt %s --linattn-select-form='vector-bits=512 registers=32 cores=1' -o %t.1
// RUN: diff %t.64 %t.1

// The choice and the other candidates, with costs; the number of cores does not
// matter.

// A delta rule of many tokens and wide states: chunks. Of two tokens: token.

// CHECK:      [Missed] select-form {{.*}}"not state_tile: a rank-1 transition couples the rows of a state column"
// CHECK:      [Passed] select-form {{.*}}"chunks of 16 tokens: cost [[#CHUNK:]] per token and head, [[#]] % of the peak of multiply-adds; token [[#]]"
// CHECK:      [Passed] select-form {{.*}}"token, tile 8x32 over {{[0-9]+}} tokens: few tokens: {{[0-9]+}} or fewer of a sequence go one by one, more in chunks"
// A decay per value column: no chunks, nor in what is considered.
// CHECK:      [Missed] select-form {{.*}}"not chunk: a decay per value column does not factor into products of chunks"
// CHECK:      [Passed] select-form {{.*}}"state_tile, {{[^"]*}}multiply-adds; token [[#]]"
// A form that was requested and is slower.
// CHECK:      [Missed] select-form {{.*}}"token was requested and is predicted to cost [[#]], chunk:16 only [[#]]"
// CHECK:      [Passed] select-form {{.*}}"segments: as requested; predicted to take {{[0-9.]+}} of the time of one pass on 1 cores, for 6 tasks"
// CHECK:      [Missed] select-form {{.*}}"32 random features for heads of 64: fewer than the head size estimate the weights badly"
// CHECK:      [Missed] select-form {{.*}}"512 random features for heads of 64: the cost grows with them, and more than 4 times the head size gain little accuracy"
// CHECK-NOT:  [Missed] select-form {{.*}} random features

// CHECK-LABEL: func.func @wide_delta(
// CHECK:         linattn.scan {{.*}} {config = #linattn.config<form = chunk, chunk = 16, rows = 8, cols = 32,
// AVX2-LABEL:  func.func @wide_delta(
// AVX2:          linattn.scan {{.*}} {config = #linattn.config<form = chunk, chunk = 16, rows = 4, cols = 16,
func.func @wide_delta(%q: tensor<2x3x?x256xf32>, %b: tensor<2x3x?xf32>, %o: tensor<2x3x?x256xf32>, %s: tensor<2x3x256x256xf32>) -> tensor<2x3x?x256xf32> {
  %r:2 = linattn.scan %q, %q, %q beta(%b) update(delta) into(%o) init(%s)
    : (tensor<2x3x?x256xf32>, tensor<2x3x?x256xf32>, tensor<2x3x?x256xf32>, tensor<2x3x?xf32>, tensor<2x3x?x256xf32>, tensor<2x3x256x256xf32>) -> (tensor<2x3x?x256xf32>, tensor<2x3x256x256xf32>)
  return %r#0 : tensor<2x3x?x256xf32>
}

// CHECK-LABEL: func.func @two_deltas(
// CHECK:         linattn.scan {{.*}} {config = #linattn.config<form = token,
func.func @two_deltas(%q: tensor<2x3x2x256xf32>, %b: tensor<2x3x2xf32>, %o: tensor<2x3x2x256xf32>, %s: tensor<2x3x256x256xf32>) -> (tensor<2x3x2x256xf32>, tensor<2x3x256x256xf32>) {
  %r:2 = linattn.scan %q, %q, %q beta(%b) update(delta) into(%o) init(%s)
    : (tensor<2x3x2x256xf32>, tensor<2x3x2x256xf32>, tensor<2x3x2x256xf32>, tensor<2x3x2xf32>, tensor<2x3x2x256xf32>, tensor<2x3x256x256xf32>) -> (tensor<2x3x2x256xf32>, tensor<2x3x256x256xf32>)
  return %r#0, %r#1 : tensor<2x3x2x256xf32>, tensor<2x3x256x256xf32>
}

// CHECK-LABEL: func.func @value_decay(
// CHECK:         linattn.scan {{.*}} {config = #linattn.config<form = state_tile,
func.func @value_decay(%q: tensor<2x3x?x128xf32>, %o: tensor<2x3x?x128xf32>, %s: tensor<2x3x128x128xf32>) -> tensor<2x3x?x128xf32> {
  %r:2 = linattn.scan %q, %q, %q value_decay(%q) into(%o) init(%s)
    : (tensor<2x3x?x128xf32>, tensor<2x3x?x128xf32>, tensor<2x3x?x128xf32>, tensor<2x3x?x128xf32>, tensor<2x3x?x128xf32>, tensor<2x3x128x128xf32>) -> (tensor<2x3x?x128xf32>, tensor<2x3x128x128xf32>)
  return %r#0 : tensor<2x3x?x128xf32>
}

// CHECK-LABEL: func.func @asked(
// CHECK:         linattn.scan {{.*}} {config = #linattn.config<form = token,
func.func @asked(%q: tensor<2x3x?x256xf32>, %b: tensor<2x3x?xf32>, %o: tensor<2x3x?x256xf32>, %s: tensor<2x3x256x256xf32>) -> tensor<2x3x?x256xf32> {
  %r:2 = linattn.scan %q, %q, %q beta(%b) update(delta) into(%o) init(%s) {config = #linattn.config<form = token>}
    : (tensor<2x3x?x256xf32>, tensor<2x3x?x256xf32>, tensor<2x3x?x256xf32>, tensor<2x3x?xf32>, tensor<2x3x?x256xf32>, tensor<2x3x256x256xf32>) -> (tensor<2x3x?x256xf32>, tensor<2x3x256x256xf32>)
  return %r#0 : tensor<2x3x?x256xf32>
}

// CHECK-LABEL: func.func @segments(
// CHECK:         linattn.scan {{.*}} {config = #linattn.config<form = segments>}
func.func @segments(%q: tensor<2x3x?x64xf32>, %o: tensor<2x3x?x64xf32>, %s: tensor<2x3x64x64xf32>) -> tensor<2x3x?x64xf32> {
  %r:2 = linattn.scan %q, %q, %q into(%o) init(%s) {config = #linattn.config<form = segments>}
    : (tensor<2x3x?x64xf32>, tensor<2x3x?x64xf32>, tensor<2x3x?x64xf32>, tensor<2x3x?x64xf32>, tensor<2x3x64x64xf32>) -> (tensor<2x3x?x64xf32>, tensor<2x3x64x64xf32>)
  return %r#0 : tensor<2x3x?x64xf32>
}

func.func @features(%x: tensor<2x8x?x64xf32>, %few: tensor<32x64xf32>, %many: tensor<8x512x64xf32>, %some: tensor<256x64xf32>,
                    %d0: tensor<2x8x?x32xf32>, %d1: tensor<2x8x?x512xf32>, %d2: tensor<2x8x?x256xf32>)
    -> (tensor<2x8x?x32xf32>, tensor<2x8x?x512xf32>, tensor<2x8x?x256xf32>) {
  %0 = linattn.feature_map %x params(%few) into(%d0) {feature_map = #linattn.feature_map<favor>}
    : (tensor<2x8x?x64xf32>, tensor<32x64xf32>, tensor<2x8x?x32xf32>) -> tensor<2x8x?x32xf32>
  %1 = linattn.feature_map %x params(%many) into(%d1) {feature_map = #linattn.feature_map<favor>}
    : (tensor<2x8x?x64xf32>, tensor<8x512x64xf32>, tensor<2x8x?x512xf32>) -> tensor<2x8x?x512xf32>
  %2 = linattn.feature_map %x params(%some) into(%d2) {feature_map = #linattn.feature_map<favor>}
    : (tensor<2x8x?x64xf32>, tensor<256x64xf32>, tensor<2x8x?x256xf32>) -> tensor<2x8x?x256xf32>
  return %0, %1, %2 : tensor<2x8x?x32xf32>, tensor<2x8x?x512xf32>, tensor<2x8x?x256xf32>
}
