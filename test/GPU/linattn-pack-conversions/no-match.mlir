// RUN: linattn-opt %s --linattn-pack-conversions | FileCheck %s

// Of f64, to f32, of another rounding, of vectors without pairs.
// CHECK-LABEL: func.func @others(
// CHECK-COUNT-4: arith.truncf
// CHECK-NOT: nvvm.convert
func.func @others(%x: f64, %y: f32, %z: vector<3xf32>) -> (bf16, f32, bf16, vector<3xf16>) {
  %0 = arith.truncf %x : f64 to bf16
  %1 = arith.truncf %x : f64 to f32
  %2 = arith.truncf %y toward_zero : f32 to bf16
  %3 = arith.truncf %z : vector<3xf32> to vector<3xf16>
  return %0, %1, %2, %3 : bf16, f32, bf16, vector<3xf16>
}
