// RUN: linattn-run %s --entry=f --matrix-unit=emulated --explain | FileCheck %s
// RUN: linattn-run %s --entry=f --matrix-unit=amx --explain | FileCheck %s --check-prefix=AMX
// RUN: linattn-run %s --entry=f --matrix-unit=dot --explain | FileCheck %s --check-prefix=STRICT
// RUN: linattn-run %s --entry=f --matrix-unit=none --explain | FileCheck %s --check-prefix=NONE
// RUN: linattn-run %s --entry=f --explain | FileCheck %s --check-prefix=AUTO
// RUN: linattn-run %s --entry=f --matrix-unit=auto --explain | FileCheck %s --check-prefix=AUTO
// RUN: env LINATTN_MATRIX_UNIT=auto linattn-run %s --entry=f --explain | FileCheck %s --check-prefix=AUTO
// RUN: linattn-run %s --matrix-unit=emulated --entry=few_tokens --explain | FileCheck %s --check-prefix=FEW
// RUN: linattn-run %s --matrix-unit=emulated --entry=channels --explain | FileCheck %s --check-prefix=CHANNELS
// RUN: linattn-run %s --matrix-unit=emulated --entry=halves --explain | FileCheck %s --check-prefix=HALVES
// RUN: env LINATTN_MATRIX_UNIT=emulated linattn-run %s --entry=f --explain | FileCheck %s
// RUN: env LINATTN_MATRIX_UNIT=tiles not linattn-run %s --entry=f 2>&1 | FileCheck %s --check-prefix=NAME

// A unit is used where it is named. By default, and under "auto", that is AMX where the machine has it.
// A kernel says where a unit is missing, and where it would lose.

// CHECK: passed: expand-form: becomes a loop over chunks of 64 tokens, filled up with zeros from 32 on, and stays as it is for fewer behind them
// AMX: {{becomes a loop over chunks of 64 tokens|missed: matrix-unit: products run in vectors: the (CPU has no AMX|operating system)}}
// STRICT: missed: matrix-unit: products run in vectors: {{the CPU has no AVX-512 BF16|dot products gain only by a single bf16 number}}
// NONE-NOT: expand-form
// NONE-NOT: matrix-unit
// AUTO-NOT: missed: matrix-unit
// FEW: stays a scan: it has fewer than 32 tokens
// CHANNELS: stays a scan: it decays per channel and has fewer than 128 key features, for which vectors are faster
// HALVES: stays a scan: its tokens need two bf16 summands and have fewer than 128 key features, for which vectors are faster
// NAME: expected LINATTN_MATRIX_UNIT to be auto, none, amx, dot or emulated, but got tiles

func.func @f(%q: tensor<1x2x64x16xbf16>, %s: tensor<1x2x16x16xf32>) -> (tensor<1x2x64x16xbf16>, tensor<1x2x16x16xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) : (tensor<1x2x64x16xbf16>, tensor<1x2x64x16xbf16>, tensor<1x2x64x16xbf16>, tensor<1x2x64x16xbf16>, tensor<1x2x16x16xf32>) -> (tensor<1x2x64x16xbf16>, tensor<1x2x16x16xf32>)
  return %r#0, %r#1 : tensor<1x2x64x16xbf16>, tensor<1x2x16x16xf32>
}

func.func @few_tokens(%q: tensor<1x2x16x16xbf16>, %s: tensor<1x2x16x16xf32>) -> tensor<1x2x16x16xbf16> {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) : (tensor<1x2x16x16xbf16>, tensor<1x2x16x16xbf16>, tensor<1x2x16x16xbf16>, tensor<1x2x16x16xbf16>, tensor<1x2x16x16xf32>) -> (tensor<1x2x16x16xbf16>, tensor<1x2x16x16xf32>)
  return %r#0 : tensor<1x2x16x16xbf16>
}

func.func @channels(%q: tensor<1x2x64x16xbf16>, %g: tensor<1x2x64x16xf32>, %s: tensor<1x2x16x16xf32>) -> tensor<1x2x64x16xbf16> {
  %r:2 = linattn.scan %q, %q, %q decay(%g) into(%q) init(%s) : (tensor<1x2x64x16xbf16>, tensor<1x2x64x16xbf16>, tensor<1x2x64x16xbf16>, tensor<1x2x64x16xf32>, tensor<1x2x64x16xbf16>, tensor<1x2x16x16xf32>) -> (tensor<1x2x64x16xbf16>, tensor<1x2x16x16xf32>)
  return %r#0 : tensor<1x2x64x16xbf16>
}

func.func @halves(%q: tensor<1x2x64x16xf16>, %s: tensor<1x2x16x16xf32>) -> tensor<1x2x64x16xf16> {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) : (tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x16x16xf32>) -> (tensor<1x2x64x16xf16>, tensor<1x2x16x16xf32>)
  return %r#0 : tensor<1x2x64x16xf16>
}
