// RUN: linattn-opt %s --linattn-expand-math='avx512 avx512-bf16' | FileCheck %s
// RUN: linattn-opt %s --linattn-expand-math='avx512' | FileCheck %s --check-prefix=PLAIN
// RUN: linattn-opt %s --linattn-expand-math | FileCheck %s --check-prefix=NONE

// The whole number comes off in one instruction and 2^n in by another; two
// bounds less. The sign goes into the product with 1 / ln 2.

// CHECK-LABEL: func.func @rough(
// CHECK-NOT:     arith.negf
// CHECK:         arith.mulf
// CHECK:         llvm.call_intrinsic "llvm.x86.avx512.mask.reduce.ps.512"
// CHECK-COUNT-4: math.fma
// CHECK-NOT:     math.fma
// CHECK:         llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"
// CHECK-NEXT:    return
// NONE-LABEL: func.func @rough(
// NONE-NOT:     call_intrinsic
func.func @rough(%x: vector<16xf32>) -> vector<16xf32> {
  %0 = arith.negf %x : vector<16xf32>
  %1 = math.exp %0 fastmath<afn> : vector<16xf32>
  return %1 : vector<16xf32>
}

// An estimate of 14 bits, and one of Newton's steps where that is not enough.

// CHECK-LABEL: func.func @quotients(
// CHECK-NOT:     arith.divf
// CHECK:         llvm.call_intrinsic "llvm.x86.avx512.rcp14.ps.512"
// CHECK-COUNT-2: math.fma
// CHECK:         arith.mulf
// CHECK:         llvm.call_intrinsic "llvm.x86.avx512.rcp14.ps.512"
// CHECK-NOT:     math.fma
// CHECK:         arith.mulf
// CHECK:         arith.divf {{.*}} fastmath<arcp>
func.func @quotients(%x: vector<16xf32>, %y: vector<16xf32>) -> vector<16xf32> {
  %0 = arith.divf %x, %y fastmath<arcp,ninf> : vector<16xf32>
  %1 = arith.divf %0, %y fastmath<arcp,ninf,afn> : vector<16xf32>
  %2 = arith.divf %1, %y fastmath<arcp> : vector<16xf32>
  return %2 : vector<16xf32>
}

// Several registers side by side.

// CHECK-LABEL: func.func @wide(
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.x86.avx512.rcp14.ps.512"
// CHECK-NOT:     call_intrinsic
// CHECK:         arith.mulf {{.*}} : vector<64xf32>
func.func @wide(%x: vector<64xf32>, %y: vector<64xf32>) -> vector<64xf32> {
  %0 = arith.divf %x, %y fastmath<arcp,ninf,afn> : vector<64xf32>
  return %0 : vector<64xf32>
}

// Two registers become one of pairs.

// CHECK-LABEL: func.func @pairs(
// CHECK-SAME:    %[[LOW:.+]]: vector<16xf32>, %[[HIGH:.+]]: vector<16xf32>
// CHECK:         llvm.call_intrinsic "llvm.x86.avx512bf16.cvtne2ps2bf16.512"(%[[HIGH]], %[[LOW]])
// CHECK:         vector.shuffle {{.*}} [0, 16, 1, 17,
// PLAIN-LABEL: func.func @pairs(
// PLAIN-NOT:     call_intrinsic
// PLAIN:         vector.bitcast %{{.+}} : vector<16xi32> to vector<32xbf16>
func.func @pairs(%x: vector<16xf32>, %y: vector<16xf32>) -> vector<32xbf16> {
  %0 = arith.truncf %x : vector<16xf32> to vector<16xbf16>
  %1 = arith.truncf %y : vector<16xf32> to vector<16xbf16>
  %2 = vector.interleave %0, %1 : vector<16xbf16> -> vector<32xbf16>
  return %2 : vector<32xbf16>
}

// Scalars, vectors that fill no register, f64, and exponentials that are not
// rough: as without.

// CHECK-LABEL: func.func @others(
// CHECK-NOT:     call_intrinsic
// CHECK:         return
func.func @others(%a: f32, %b: vector<8xf32>, %c: vector<16xf64>, %d: vector<16xf32>, %e: vector<8xf32>) -> (f32, vector<8xf32>, vector<16xf64>, vector<16xf32>, vector<16xbf16>) {
  %0 = math.exp %a fastmath<afn> : f32
  %1 = arith.divf %b, %b fastmath<arcp,ninf,afn> : vector<8xf32>
  %2 = arith.divf %c, %c fastmath<arcp,ninf,afn> : vector<16xf64>
  %3 = math.exp %d : vector<16xf32>
  %4 = arith.truncf %b : vector<8xf32> to vector<8xbf16>
  %5 = arith.truncf %e : vector<8xf32> to vector<8xbf16>
  %6 = vector.interleave %4, %5 : vector<8xbf16> -> vector<16xbf16>
  return %0, %1, %2, %3, %6 : f32, vector<8xf32>, vector<16xf64>, vector<16xf32>, vector<16xbf16>
}
