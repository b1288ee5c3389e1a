// RUN: linattn-opt %s --linattn-math-to-intrinsics | FileCheck %s

// CHECK-LABEL: func.func @f32(
func.func @f32(%x: f32, %y: f32, %v: vector<4xf32>) -> (f32, f32, f32, vector<4xf32>) {
  // CHECK: llvm.call_intrinsic "llvm.fma"(%{{.+}}, %{{.+}}, %{{.+}}) : (f32, f32, f32) -> f32
  %0 = math.fma %x, %y, %x : f32
  // CHECK: llvm.call_intrinsic "llvm.floor"(%{{.+}}) : (f32) -> f32
  %1 = math.floor %x : f32
  // CHECK: llvm.call_intrinsic "llvm.copysign"
  %2 = math.copysign %x, %y : f32
  // CHECK: llvm.call_intrinsic "llvm.sqrt"(%{{.+}}) : (vector<4xf32>) -> vector<4xf32>
  %3 = math.sqrt %v : vector<4xf32>
  return %0, %1, %2, %3 : f32, f32, f32, vector<4xf32>
}

// What has no instruction, or not for this type, is left alone.
// CHECK-LABEL: func.func @others(
// CHECK: math.exp
// CHECK: math.sqrt
func.func @others(%x: f32, %y: f64) -> (f32, f64) {
  %0 = math.exp %x : f32
  %1 = math.sqrt %y : f64
  return %0, %1 : f32, f64
}
