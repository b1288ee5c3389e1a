// REQUIRES: llc
// RUN: linattn-opt %s --linattn-lower-to-cpu-pipeline='matrix-unit=dot fast-products avx512 avx512-bf16' \
// RUN:   | mlir-translate --mlir-to-llvmir \
// RUN:   | opt -O3 -mtriple=x86_64-linux-gnu -mcpu=znver4 -mattr=-prefer-256-bit \
// RUN:   | llc -O3 -mtriple=x86_64-linux-gnu -mcpu=znver4 -mattr=-prefer-256-bit -o %t.s
// RUN: FileCheck %s < %t.s

// The loop over pairs: a row of the right tile from memory, and for each of 16
// sums in registers a pair of the left one, in all lanes.

!rows = tensor<1x8x4096x128xbf16>
!state = tensor<1x8x128x128xf32>

// CHECK-LABEL: linear__task:
// CHECK:         vdpbf16ps {{.*}}{1to16}, %[[RIGHT:zmm[0-9]+]], %zmm
// CHECK-NEXT:    vdpbf16ps {{.*}}{1to16}, %[[RIGHT]], %zmm
// CHECK-NEXT:    vdpbf16ps {{.*}}{1to16}, %[[RIGHT]], %zmm
// CHECK-NEXT:    vdpbf16ps {{.*}}{1to16}, %[[RIGHT]], %zmm
// CHECK-NEXT:    vdpbf16ps {{.*}}{1to16}, %[[RIGHT]], %zmm
// CHECK-NEXT:    vdpbf16ps {{.*}}{1to16}, %[[RIGHT]], %zmm
// CHECK-NEXT:    vdpbf16ps {{.*}}{1to16}, %[[RIGHT]], %zmm
// CHECK-NEXT:    vdpbf16ps {{.*}}{1to16}, %[[RIGHT]], %zmm
// CHECK-NEXT:    vdpbf16ps {{.*}}{1to16}, %[[RIGHT]], %zmm
// CHECK-NEXT:    vdpbf16ps {{.*}}{1to16}, %[[RIGHT]], %zmm
// CHECK-NEXT:    vdpbf16ps {{.*}}{1to16}, %[[RIGHT]], %zmm
// CHECK-NEXT:    vdpbf16ps {{.*}}{1to16}, %[[RIGHT]], %zmm
// CHECK-NEXT:    vdpbf16ps {{.*}}{1to16}, %[[RIGHT]], %zmm
// CHECK-NEXT:    vdpbf16ps {{.*}}{1to16}, %[[RIGHT]], %zmm
// CHECK-NEXT:    vdpbf16ps {{.*}}{1to16}, %[[RIGHT]], %zmm
// CHECK-NEXT:    vdpbf16ps {{.*}}{1to16}, %[[RIGHT]], %zmm
// CHECK-NEXT:    addq
// CHECK-NEXT:    jne
func.func @linear(%q: !rows, %k: !rows, %v: !rows, %o: !rows, %s: !state) -> (!rows, !state) {
  %r:2 = linattn.scan %q, %k, %v into(%o) init(%s) : (!rows, !rows, !rows, !rows, !state) -> (!rows, !state)
  return %r#0, %r#1 : !rows, !state
}
