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

// CHECK-LABEL: func.func @f64(
// CHECK: llvm.call_intrinsic "llvm.sqrt"(%{{.+}}) : (f64) -> f64
func.func @f64(%x: f64) -> f64 {
  %0 = math.sqrt %x : f64
  return %0 : f64
}

// CHECK-LABEL: func.func @zeros(
// CHECK-SAME: %[[I:.+]]: index, %[[N:.+]]: i32)
// CHECK: %[[WIDE:.+]] = arith.index_cast %[[I]] : index to i64
// CHECK: %[[COUNT:.+]] = llvm.call_intrinsic "llvm.cttz"(%[[WIDE]], %{{.+}}) : (i64, i1) -> i64
// CHECK: arith.index_cast %[[COUNT]] : i64 to index
// CHECK: llvm.call_intrinsic "llvm.ctlz"(%[[N]], %{{.+}}) : (i32, i1) -> i32
func.func @zeros(%i: index, %n: i32) -> (index, i32) {
  %0 = math.cttz %i : index
  %1 = math.ctlz %n : i32
  return %0, %1 : index, i32
}

// Functions without an instruction for their type stay.
// CHECK-LABEL: func.func @others(
// CHECK: math.exp
// CHECK: math.sqrt
// CHECK: math.cttz
func.func @others(%x: f32, %y: f16, %v: vector<4xi32>) -> (f32, f16, vector<4xi32>) {
  %0 = math.exp %x : f32
  %1 = math.sqrt %y : f16
  %2 = math.cttz %v : vector<4xi32>
  return %0, %1, %2 : f32, f16, vector<4xi32>
}
