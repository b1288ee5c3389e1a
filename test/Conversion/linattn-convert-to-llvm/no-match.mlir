// RUN: linattn-opt %s --linattn-convert-to-llvm | FileCheck %s

// Ops of other dialects stay, between casts.
// CHECK-LABEL: llvm.func @loop(
// CHECK:         scf.for
// CHECK:           llvm.store
// CHECK:         math.exp
func.func @loop(%m: memref<8xf32>, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    memref.store %x, %m[%i] : memref<8xf32>
  }
  %y = math.exp %x : f32
  return %y : f32
}
