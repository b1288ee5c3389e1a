// REQUIRES: llc
// RUN: linattn-opt %s --linattn-lower-to-cpu-pipeline='vector-bits=512 registers=32' \
// RUN:   | mlir-translate --mlir-to-llvmir \
// RUN:   | opt -O3 -mtriple=x86_64-linux-gnu -mcpu=x86-64-v4 -mattr=-prefer-256-bit \
// RUN:   | llc -O3 -mtriple=x86_64-linux-gnu -mcpu=x86-64-v4 -mattr=-prefer-256-bit \
// RUN:   | %python %S/Inputs/hot-loops.py | FileCheck %s --check-prefix=AVX512
// RUN: linattn-opt %s --linattn-lower-to-cpu-pipeline='vector-bits=256 registers=16' \
// RUN:   | mlir-translate --mlir-to-llvmir \
// RUN:   | opt -O3 -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3 \
// RUN:   | llc -O3 -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3 \
// RUN:   | %python %S/Inputs/hot-loops.py | FileCheck %s --check-prefix=AVX2
// RUN: linattn-opt %s --linattn-lower-to-cpu-pipeline='vector-bits=128 registers=32' \
// RUN:   | mlir-translate --mlir-to-llvmir \
// RUN:   | opt -O3 -mtriple=aarch64-linux-gnu -mattr=+neon \
// RUN:   | llc -O3 -mtriple=aarch64-linux-gnu -mattr=+neon \
// RUN:   | %python %S/Inputs/hot-loops.py | FileCheck %s --check-prefix=NEON

// A tile of the state while tokens stream past it: it stays in
// registers, every element costs the two multiply-adds of a write and a read,
// and a product where there is a decay. Three loops: the first tile of a panel
// starts the sums, the last one writes them out. Panels of 8 columns are half
// of a cache line, and only every other one prefetches the next: LLVM makes two
// loops of each.

!rows = tensor<1x8x4096x64xf32>
!state = tensor<1x8x64x64xf32>

// 8 × 32 floats, two vectors each row.
// AVX512-COUNT-3: linear__task: 32 fused, 0 apart, 0 calls, 0 spills
// AVX512-NOT:     linear__task
// 4 × 16.
// AVX2-COUNT-3:   linear__task: 16 fused, 0 apart, 0 calls, 0 spills
// AVX2-NOT:       linear__task
// 8 × 8.
// NEON-COUNT-6:   linear__task: 32 fused, 0 apart, 0 calls, 0 spills
// NEON-NOT:       linear__task
func.func @linear(%q: !rows, %k: !rows, %v: !rows, %o: !rows, %s: !state) -> (!rows, !state) {
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s) {config = #linattn.config<form = state_tile>}
    : (!rows, !rows, !rows, !rows, !state) -> (!rows, !state)
  return %r#0, %r#1 : !rows, !state
}

// AVX512-COUNT-3: scalar__task: 32 fused, 16 apart, 0 calls, 0 spills
// AVX512-NOT:     scalar__task
// AVX2-COUNT-3:   scalar__task: 16 fused, 8 apart, 0 calls, 0 spills
// AVX2-NOT:       scalar__task
// NEON-COUNT-6:   scalar__task: 32 fused, 16 apart, 0 calls, 0 spills
// NEON-NOT:       scalar__task
func.func @scalar(%q: !rows, %k: !rows, %v: !rows, %g: tensor<1x8x4096xf32>, %o: !rows, %s: !state) -> (!rows, !state) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) into(%o) init(%s) {config = #linattn.config<form = state_tile>}
    : (!rows, !rows, !rows, tensor<1x8x4096xf32>, !rows, !state) -> (!rows, !state)
  return %r#0, %r#1 : !rows, !state
}

// Before the tiles, the exponentials of the gates: vectors, and no calls.
// AVX512:         gate__task: {{[0-9]+}} fused, {{[0-9]+}} apart, 0 calls,
// AVX512-COUNT-3: gate__task: 32 fused, 16 apart, 0 calls, 0 spills
// AVX512-NOT:     gate__task
// AVX2:           gate__task: {{[0-9]+}} fused, {{[0-9]+}} apart, 0 calls,
// AVX2-COUNT-3:   gate__task: 16 fused, 8 apart, 0 calls, 0 spills
// AVX2-NOT:       gate__task
// NEON:           gate__task: {{[0-9]+}} fused, {{[0-9]+}} apart, 0 calls,
// NEON-COUNT-6:   gate__task: 32 fused, 16 apart, 0 calls, 0 spills
// NEON-NOT:       gate__task
func.func @gate(%q: !rows, %k: !rows, %v: !rows, %g: !rows, %o: !rows, %s: !state) -> (!rows, !state) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) into(%o) init(%s) {config = #linattn.config<form = state_tile>}
    : (!rows, !rows, !rows, !rows, !rows, !state) -> (!rows, !state)
  return %r#0, %r#1 : !rows, !state
}

// In chunks, which is what auto takes: scores, 16 rows of one vector; keys, once
// the scores have been made of them, decayed; then queries with the state,
// scores with values and keys with values, four or eight rows of sums. All of
// the products four steps at a time. Before them, decays.

// AVX512:         chunks__task: 64 fused, 0 apart, 0 calls, 0 spills
// AVX512-NEXT:    chunks__task: 0 fused, 8 apart, 0 calls, 0 spills
// AVX512-COUNT-3: chunks__task: 64 fused, 0 apart, 0 calls, 0 spills
// AVX512-NOT:     chunks__task
// AVX2:           chunks__task: 32 fused, 0 apart, 0 calls, 0 spills
// AVX2-NEXT:      chunks__task: 0 fused, 8 apart, 0 calls, 0 spills
// AVX2-COUNT-3:   chunks__task: 32 fused, 0 apart, 0 calls, 0 spills
// AVX2-NOT:       chunks__task
// NEON:           chunks__task: 64 fused, 0 apart, 0 calls, 0 spills
// NEON-NEXT:      chunks__task: 0 fused, 16 apart, 0 calls, 0 spills
// NEON-NEXT:      chunks__task: 128 fused, 0 apart, 0 calls, 0 spills
// NEON-COUNT-2:   chunks__task: 64 fused, 0 apart, 0 calls, 0 spills
// NEON-NOT:       chunks__task
func.func @chunks(%q: !rows, %k: !rows, %v: !rows, %g: tensor<1x8x4096xf32>, %o: !rows, %s: !state) -> (!rows, !state) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) into(%o) init(%s)
    : (!rows, !rows, !rows, tensor<1x8x4096xf32>, !rows, !state) -> (!rows, !state)
  return %r#0, %r#1 : !rows, !state
}
