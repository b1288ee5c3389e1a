// RUN: linattn-opt %s --linattn-fold-views | FileCheck %s

// A view that a function takes stays, and nothing else is folded.
// CHECK-LABEL: func.func @call(
// CHECK:         %[[VIEW:.+]] = memref.subview
// CHECK:         call @callee(%[[VIEW]])
// CHECK:         %[[SUM:.+]] = arith.addi %arg1, %{{.+}} : index
// CHECK:         return %[[SUM]]
func.func private @callee(memref<64xf32, strided<[1], offset: ?>>)
func.func @call(%m: memref<8x64xf32>, %i: index) -> index {
  %c0 = arith.constant 0 : index
  %row = memref.subview %m[%i, 0] [1, 64] [1, 1]
    : memref<8x64xf32> to memref<64xf32, strided<[1], offset: ?>>
  call @callee(%row) : (memref<64xf32, strided<[1], offset: ?>>) -> ()
  %sum = arith.addi %i, %c0 : index
  return %sum : index
}
