// RUN: linattn-opt %s --linattn-update-in-place | FileCheck %s

// CHECK-NOT: scf.if
// CHECK-NOT: linattn.in_place

// Somebody else reads the initial state, maybe after it was overwritten.
func.func @read_again(%s0: memref<4x4xf32>, %s1: memref<4x4xf32>, %s2: memref<4x4xf32>) {
  memref.copy %s0, %s1 : memref<4x4xf32> to memref<4x4xf32>
  memref.copy %s0, %s2 : memref<4x4xf32> to memref<4x4xf32>
  return
}

// The destination is written before the initial state is read.
func.func @written_before(%s0: memref<4x4xf32>, %s1: memref<4x4xf32>, %x: f32) {
  %c0 = arith.constant 0 : index
  memref.store %x, %s1[%c0, %c0] : memref<4x4xf32>
  memref.copy %s0, %s1 : memref<4x4xf32> to memref<4x4xf32>
  return
}

// The same through a view.
func.func @view_before(%s0: memref<4x4xf32>, %s1: memref<4x4xf32>, %x: f32) {
  %c0 = arith.constant 0 : index
  %view = memref.subview %s1[0, 0] [2, 2] [1, 1] : memref<4x4xf32> to memref<2x2xf32, strided<[4, 1]>>
  memref.store %x, %view[%c0, %c0] : memref<2x2xf32, strided<[4, 1]>>
  memref.copy %s0, %s1 : memref<4x4xf32> to memref<4x4xf32>
  return
}

// A temporary is not the caller's.
func.func @temporary(%s0: memref<4x4xf32>) {
  %s1 = memref.alloc() : memref<4x4xf32>
  memref.copy %s0, %s1 : memref<4x4xf32> to memref<4x4xf32>
  memref.dealloc %s1 : memref<4x4xf32>
  return
}

// Other strides: the same memory would not be the same elements.
func.func @strides(%s0: memref<4x4xf32>, %s1: memref<4x4xf32, strided<[8, 1]>>) {
  memref.copy %s0, %s1 : memref<4x4xf32> to memref<4x4xf32, strided<[8, 1]>>
  return
}

// Only the caller of an entry knows its buffers.
func.func private @helper(%s0: memref<4x4xf32>, %s1: memref<4x4xf32>) {
  memref.copy %s0, %s1 : memref<4x4xf32> to memref<4x4xf32>
  return
}
