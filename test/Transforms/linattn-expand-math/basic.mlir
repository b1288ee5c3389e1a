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

// CHECK-LABEL: func.func @double(
// CHECK:         math.exp %{{.+}} : f64
func.func @double(%x: f64) -> f64 {
  %0 = math.exp %x : f64
  return %0 : f64
}
