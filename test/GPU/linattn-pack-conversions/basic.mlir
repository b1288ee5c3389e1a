// RUN: linattn-opt %s --linattn-pack-conversions | FileCheck %s

// CHECK-LABEL: func.func @pair(
// CHECK-SAME: %[[X:.+]]: vector<2xf32>)
// CHECK-DAG: %[[LOW:.+]] = llvm.extractelement %[[X]][%{{.+}} : i32]
// CHECK-DAG: %[[HIGH:.+]] = llvm.extractelement %[[X]][%{{.+}} : i32]
// CHECK: %[[PAIR:.+]] = nvvm.convert.f32x2.to.bf16x2 %[[HIGH]], %[[LOW]] {rnd = #nvvm.fp_rnd_mode<rn>} : vector<2xbf16>
// CHECK: return %[[PAIR]]
func.func @pair(%x: vector<2xf32>) -> vector<2xbf16> {
  %0 = arith.truncf %x : vector<2xf32> to vector<2xbf16>
  return %0 : vector<2xbf16>
}

// CHECK-LABEL: func.func @four(
// CHECK-COUNT-2: nvvm.convert.f32x2.to.f16x2
// CHECK-NOT: arith.truncf
func.func @four(%x: vector<4xf32>) -> vector<4xf16> {
  %0 = arith.truncf %x : vector<4xf32> to vector<4xf16>
  return %0 : vector<4xf16>
}

// One beside a 0.
// CHECK-LABEL: func.func @one(
// CHECK-SAME: %[[X:.+]]: f32)
// CHECK: %[[ZERO:.+]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[PAIR:.+]] = nvvm.convert.f32x2.to.bf16x2 %[[ZERO]], %[[X]]
// CHECK: llvm.extractelement %[[PAIR]]
func.func @one(%x: f32) -> bf16 {
  %0 = arith.truncf %x : f32 to bf16
  return %0 : bf16
}
