// RUN: linattn-opt %s --linattn-to-kernel --split-input-file | FileCheck %s

// A copy into the state is the kernel's: it reads one buffer, writes another.
// CHECK-LABEL: func.func @copied(
// CHECK-SAME: %[[Q:.+]]: memref<1x2x1x64xf32>, %[[S:.+]]: memref<1x2x64x64xf32>, %[[T:.+]]: memref
// CHECK-NOT: memref.copy
// CHECK: linattn.launch @copied_scan::@copied_scan(%[[Q]], %[[S]], %[[T]])
func.func @copied(%q: memref<1x2x1x64xf32>, %s: memref<1x2x64x64xf32>, %t: memref<1x2x64x64xf32>) {
  memref.copy %s, %t : memref<1x2x64x64xf32> to memref<1x2x64x64xf32>
  linattn.scan %q, %q, %q into(%q) init(%t)
      {linattn.schedule = #linattn.schedule<form = token, mma = fma, chunk = 1, warps = 4, value_slice = 64>}
    : (memref<1x2x1x64xf32>, memref<1x2x1x64xf32>, memref<1x2x1x64xf32>,
       memref<1x2x1x64xf32>, memref<1x2x64x64xf32>) -> ()
  return
}

// -----

// The scan must not read what is written between the copy and the scan.
// CHECK-LABEL: func.func @written_between(
// CHECK-SAME: %[[Q:.+]]: memref<1x2x1x64xf32>, %[[S:.+]]: memref<1x2x64x64xf32>, %[[T:.+]]: memref
// CHECK: memref.copy %[[S]], %[[T]]
// CHECK: memref.store
// CHECK: linattn.launch @written_between_scan::@written_between_scan(%[[Q]], %[[T]])
func.func @written_between(%q: memref<1x2x1x64xf32>, %s: memref<1x2x64x64xf32>, %t: memref<1x2x64x64xf32>) {
  %c0 = arith.constant 0 : index
  %x = arith.constant 1.0 : f32
  memref.copy %s, %t : memref<1x2x64x64xf32> to memref<1x2x64x64xf32>
  memref.store %x, %s[%c0, %c0, %c0, %c0] : memref<1x2x64x64xf32>
  linattn.scan %q, %q, %q into(%q) init(%t)
      {linattn.schedule = #linattn.schedule<form = token, mma = fma, chunk = 1, warps = 4, value_slice = 64>}
    : (memref<1x2x1x64xf32>, memref<1x2x1x64xf32>, memref<1x2x1x64xf32>,
       memref<1x2x1x64xf32>, memref<1x2x64x64xf32>) -> ()
  return
}

// -----

// CHECK-LABEL: func.func @zero(
// CHECK-NOT: linalg.fill
// CHECK: linattn.launch
// CHECK-LABEL: llvm.func @zero_scan(
// CHECK-NOT: llvm.load {{.*}} -> vector<4xf32>
// CHECK: nvvm.barrier0
func.func @zero(%q: memref<1x2x1x64xf32>, %t: memref<1x2x64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%t : memref<1x2x64x64xf32>)
  linattn.scan %q, %q, %q into(%q) init(%t)
      {linattn.schedule = #linattn.schedule<form = token, mma = fma, chunk = 1, warps = 4, value_slice = 64>}
    : (memref<1x2x1x64xf32>, memref<1x2x1x64xf32>, memref<1x2x1x64xf32>,
       memref<1x2x1x64xf32>, memref<1x2x64x64xf32>) -> ()
  return
}

// -----

// Any other number is not.
// CHECK-LABEL: func.func @one(
// CHECK: linalg.fill
// CHECK: linattn.launch
func.func @one(%q: memref<1x2x1x64xf32>, %t: memref<1x2x64x64xf32>) {
  %one = arith.constant 1.0 : f32
  linalg.fill ins(%one : f32) outs(%t : memref<1x2x64x64xf32>)
  linattn.scan %q, %q, %q into(%q) init(%t)
      {linattn.schedule = #linattn.schedule<form = token, mma = fma, chunk = 1, warps = 4, value_slice = 64>}
    : (memref<1x2x1x64xf32>, memref<1x2x1x64xf32>, memref<1x2x1x64xf32>,
       memref<1x2x1x64xf32>, memref<1x2x64x64xf32>) -> ()
  return
}
