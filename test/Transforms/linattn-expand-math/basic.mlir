// RUN: linattn-opt %s --linattn-expand-math | FileCheck %s

// CHECK-LABEL: func.func @vectors(
// CHECK-NOT:     math.exp
// CHECK:         math.fma {{.*}} : vector<16xf32>
// CHECK-NOT:     math.log
func.func @vectors(%x: vector<16xf32>) -> vector<16xf32> {
  %0 = math.exp %x : vector<16xf32>
  %1 = math.log %0 : vector<16xf32>
  return %1 : vector<16xf32>
}

// A remainder loop computes the same bits as the vectors before it.
// CHECK-LABEL: func.func @scalars(
// CHECK-NOT:     math.tanh
// CHECK:         math.fma {{.*}} : f32
func.func @scalars(%x: f32) -> f32 {
  %0 = math.tanh %x : f32
  return %0 : f32
}

// 14 operations: two bounds, the sum that rounds, 8 more multiply-adds.
// CHECK-LABEL: func.func @exponential(
// CHECK-COUNT-1: math.fma
// CHECK:         arith.subf
// CHECK-COUNT-8: math.fma
// CHECK-NEXT:    arith.bitcast {{.*}} : vector<16xf32> to vector<16xi32>
// CHECK-NEXT:    arith.shli
// CHECK-NEXT:    arith.bitcast
// CHECK-NEXT:    arith.mulf
// CHECK-NEXT:    return
func.func @exponential(%x: vector<16xf32>) -> vector<16xf32> {
  %0 = math.exp %x : vector<16xf32>
  return %0 : vector<16xf32>
}

// The logarithm of a softplus, whose argument is at most 1, is a polynomial.
// CHECK-LABEL: func.func @softplus(
// CHECK:         math.absf
// CHECK:         %[[POWER:.+]] = arith.mulf
// CHECK-COUNT-9: math.fma {{.*}}, %[[POWER]], {{.*}} : vector<16xf32>
// CHECK-NEXT:    arith.mulf {{.*}}, %[[POWER]]
// CHECK-NEXT:    return
func.func @softplus(%x: vector<16xf32>) -> vector<16xf32> {
  %0 = math.absf %x : vector<16xf32>
  %1 = arith.negf %0 : vector<16xf32>
  %2 = math.exp %1 : vector<16xf32>
  %3 = math.log1p %2 : vector<16xf32>
  return %3 : vector<16xf32>
}

// Of any power it is not.
// CHECK-LABEL: func.func @log1p(
// CHECK:         arith.divf
func.func @log1p(%x: vector<16xf32>) -> vector<16xf32> {
  %0 = arith.negf %x : vector<16xf32>
  %1 = math.exp %0 : vector<16xf32>
  %2 = math.log1p %1 : vector<16xf32>
  return %2 : vector<16xf32>
}

// CHECK-LABEL: func.func @double(
// CHECK:         math.exp %{{.+}} : f64
func.func @double(%x: f64) -> f64 {
  %0 = math.exp %x : f64
  return %0 : f64
}

// Rough, for results of 16 bits: the sign goes into the multiply-adds, behind
// the bounds, and 2^n into the exponent by an addition.

// CHECK-LABEL: func.func @rough(
// CHECK-COUNT-2: arith.cmpf
// CHECK:         arith.negf
// CHECK-COUNT-6: math.fma
// CHECK-NOT:     math.fma
// CHECK:         arith.addi
// CHECK-NEXT:    arith.bitcast
// CHECK-NEXT:    return
func.func @rough(%x: vector<16xf32>) -> vector<16xf32> {
  %0 = arith.negf %x : vector<16xf32>
  %1 = math.exp %0 fastmath<afn> : vector<16xf32>
  return %1 : vector<16xf32>
}

// A quick quotient: a guess of the inverse and two steps, or one and a half.

// CHECK-LABEL: func.func @quotients(
// CHECK-NOT:     arith.divf
// CHECK:         arith.subi
// CHECK-COUNT-5: math.fma
// CHECK:         arith.mulf
// CHECK:         arith.subi
// CHECK-COUNT-3: math.fma
// CHECK:         arith.mulf
// CHECK:         arith.divf {{.*}} fastmath<arcp>
func.func @quotients(%x: vector<16xf32>, %y: vector<16xf32>) -> vector<16xf32> {
  %0 = arith.divf %x, %y fastmath<arcp,ninf> : vector<16xf32>
  %1 = arith.divf %0, %y fastmath<arcp,ninf,afn> : vector<16xf32>
  %2 = arith.divf %1, %y fastmath<arcp> : vector<16xf32>
  return %2 : vector<16xf32>
}

// Pairs of bf16 are the halves of words.

// CHECK-LABEL: func.func @pairs(
// CHECK-NOT:     vector.deinterleave
// CHECK:         vector.bitcast %{{.+}} : vector<8xbf16> to vector<4xi32>
// CHECK:         arith.shli
// CHECK:         arith.andi
// CHECK-NOT:     vector.interleave
// CHECK:         vector.bitcast %{{.+}} : vector<4xi32> to vector<8xbf16>
func.func @pairs(%x: vector<8xbf16>) -> vector<8xbf16> {
  %a, %b = vector.deinterleave %x : vector<8xbf16> -> vector<4xbf16>
  %0 = arith.extf %a : vector<4xbf16> to vector<4xf32>
  %1 = arith.extf %b : vector<4xbf16> to vector<4xf32>
  %2 = arith.addf %0, %1 : vector<4xf32>
  %3 = arith.truncf %2 : vector<4xf32> to vector<4xbf16>
  %4 = arith.truncf %1 : vector<4xf32> to vector<4xbf16>
  %5 = vector.interleave %3, %4 : vector<4xbf16> -> vector<8xbf16>
  return %5 : vector<8xbf16>
}

// Not pairs of f16.

// CHECK-LABEL: func.func @halves(
// CHECK:         vector.deinterleave
func.func @halves(%x: vector<8xf16>) -> vector<4xf32> {
  %a, %b = vector.deinterleave %x : vector<8xf16> -> vector<4xf16>
  %0 = arith.extf %a : vector<4xf16> to vector<4xf32>
  return %0 : vector<4xf32>
}
