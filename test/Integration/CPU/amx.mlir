// REQUIRES: llc
// RUN: linattn-opt %s --linattn-lower-to-cpu-pipeline='matrix-unit=amx avx512 avx512-bf16' \
// RUN:   | mlir-translate --mlir-to-llvmir \
// RUN:   | opt -O3 -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids -mattr=-prefer-256-bit \
// RUN:   | llc -O3 -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids -mattr=-prefer-256-bit -o %t.s
// RUN: FileCheck %s < %t.s
// RUN: FileCheck %s --check-prefix=SPILL < %t.s

// Tiles of a chunk in tile registers: configured and released in the task, and
// never spilled. A copy of a tile would be a spill, too.

// SPILL-NOT: {{tilestored.*Spill}}
// SPILL-NOT: {{tileloadd.*Reload}}

!rows = tensor<1x8x4096x128xbf16>
!gates = tensor<1x8x4096xf32>
!channels = tensor<1x8x4096x128xf32>
!state = tensor<1x8x128x128xf32>

// CHECK-LABEL: linear__task:
// CHECK:         ldtilecfg
// CHECK:         tilezero
// CHECK:         tileloadd
// CHECK:         tdpbf16ps
// CHECK:         tilestored
// CHECK:         tilerelease
func.func @linear(%q: !rows, %k: !rows, %v: !rows, %o: !rows, %s: !state) -> (!rows, !state) {
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s) : (!rows, !rows, !rows, !rows, !state) -> (!rows, !state)
  return %r#0, %r#1 : !rows, !state
}

// CHECK-LABEL: gated_delta__task:
// CHECK:         tdpbf16ps
// CHECK:         tilerelease
func.func @gated_delta(%q: !rows, %k: !rows, %v: !rows, %g: !gates, %b: !gates, %o: !rows, %s: !state) -> (!rows, !state) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) beta(%b) update(delta) into(%o) init(%s)
    : (!rows, !rows, !rows, !gates, !gates, !rows, !state) -> (!rows, !state)
  return %r#0, %r#1 : !rows, !state
}

// Decays per channel: chunks of two blocks of 16 tokens, and of four.

// CHECK-LABEL: kda__task:
// CHECK:         tdpbf16ps
// CHECK:         tilerelease
func.func @kda(%q: !rows, %k: !rows, %v: !rows, %g: !channels, %b: !gates, %o: !rows, %s: !state) -> (!rows, !state) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) beta(%b) update(delta) into(%o) init(%s)
    : (!rows, !rows, !rows, !channels, !gates, !rows, !state) -> (!rows, !state)
  return %r#0, %r#1 : !rows, !state
}

// CHECK-LABEL: gate__task:
// CHECK:         tdpbf16ps
// CHECK:         tilerelease
func.func @gate(%q: !rows, %k: !rows, %v: !rows, %g: !channels, %o: !rows, %s: !state) -> (!rows, !state) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) into(%o) init(%s)
    : (!rows, !rows, !rows, !channels, !rows, !state) -> (!rows, !state)
  return %r#0, %r#1 : !rows, !state
}

// CHECK-LABEL: softmax__task:
// CHECK:         tdpbf16ps
// CHECK:         tilerelease
func.func @softmax(%q: !rows, %k: !rows, %v: !rows) -> !rows {
  %r = linattn.attention %q, %k, %v weights(softmax) {causal, scale = 0.0883883} : (!rows, !rows, !rows) -> !rows
  return %r : !rows
}
