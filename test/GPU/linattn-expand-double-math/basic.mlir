// RUN: linattn-opt %s --linattn-expand-double-math | FileCheck %s
// Values: test/Python/test_math_accuracy.py.

// CHECK-LABEL: func.func @doubles(
// CHECK-NOT: math.{{exp|log|sin|cos|tanh}}
// CHECK: math.roundeven
// CHECK: math.fma
// CHECK: return
func.func @doubles(%x: f64) -> (f64, f64, f64, f64, f64, f64) {
  %0 = math.exp %x : f64
  %1 = math.log %x : f64
  %2 = math.log1p %x : f64
  %3 = math.tanh %x : f64
  %4 = math.sin %x : f64
  %5 = math.cos %x : f64
  return %0, %1, %2, %3, %4, %5 : f64, f64, f64, f64, f64, f64
}

// Left alone: other types, and what has no expansion.
// CHECK-LABEL: func.func @others(
// CHECK: math.exp {{.*}} : f32
// CHECK: math.exp {{.*}} : vector<4xf64>
// CHECK: math.erf {{.*}} : f64
func.func @others(%x: f32, %v: vector<4xf64>, %y: f64) -> (f32, vector<4xf64>, f64) {
  %0 = math.exp %x : f32
  %1 = math.exp %v : vector<4xf64>
  %2 = math.erf %y : f64
  return %0, %1, %2 : f32, vector<4xf64>, f64
}
