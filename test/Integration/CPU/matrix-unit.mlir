// RUN: linattn-run %s --matrix-unit=emulated --explain | FileCheck %s
// RUN: linattn-run %s --matrix-unit=amx --explain | FileCheck %s --check-prefix=AMX
// RUN: linattn-run %s --matrix-unit=dot --explain | FileCheck %s --check-prefix=STRICT
// RUN: linattn-run %s --explain | FileCheck %s --check-prefix=NONE
// RUN: env LINATTN_MATRIX_UNIT=emulated linattn-run %s --explain | FileCheck %s
// RUN: env LINATTN_MATRIX_UNIT=tiles not linattn-run %s 2>&1 | FileCheck %s --check-prefix=NAME

// A unit is used where it is named, and a kernel says where it is missing.

// CHECK: passed: expand-form: becomes a loop over chunks of 64 tokens
// AMX: {{becomes a loop over chunks of 64 tokens|missed: matrix-unit: products run in vectors: the (CPU has no AMX|operating system)}}
// STRICT: missed: matrix-unit: products run in vectors: {{the CPU has no AVX-512 BF16|dot products gain only by a single bf16 number}}
// NONE-NOT: expand-form
// NONE-NOT: matrix-unit
// NAME: expected LINATTN_MATRIX_UNIT to be none, amx, dot or emulated, but got tiles

func.func @f(%q: tensor<1x2x64x16xbf16>, %s: tensor<1x2x16x16xf32>) -> (tensor<1x2x64x16xbf16>, tensor<1x2x16x16xf32>) {
  %r:2 = linattn.scan %q, %q, %q into(%q) init(%s) : (tensor<1x2x64x16xbf16>, tensor<1x2x64x16xbf16>, tensor<1x2x64x16xbf16>, tensor<1x2x64x16xbf16>, tensor<1x2x16x16xf32>) -> (tensor<1x2x64x16xbf16>, tensor<1x2x16x16xf32>)
  return %r#0, %r#1 : tensor<1x2x64x16xbf16>, tensor<1x2x16x16xf32>
}
