// RUN: linattn-opt %s --linattn-bufferize-module | FileCheck %s
// RUN: linattn-opt %s --linattn-bufferize-module='innermost=dynamic' | FileCheck %s --check-prefix=DYNAMIC

// Only public functions are promised a unit stride.
// CHECK-LABEL: func.func private @helper(%{{.+}}: memref<4xf32, strided<[?], offset: ?>>)
func.func private @helper(%x: tensor<4xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %0 = tensor.extract %x[%c0] : tensor<4xf32>
  return %0 : f32
}

// CHECK-LABEL: func.func @entry(
// CHECK-SAME:    %[[X:.+]]: memref<2x?xf32, strided<[?, 1], offset: ?>>, %[[Y:.+]]: memref<4xf32, strided<[1], offset: ?>>,
// CHECK:         %[[CAST:.+]] = memref.cast %[[Y]]
// CHECK:         call @helper(%[[CAST]])
// The caller's buffer is copied, not updated.
// CHECK:         %[[COPY:.+]] = memref.alloc
// CHECK:         memref.copy %[[X]], %[[COPY]]
// CHECK:         memref.store %{{.+}}, %[[COPY]]

// DYNAMIC-LABEL: func.func @entry(
// DYNAMIC-SAME:    %{{.+}}: memref<2x?xf32, strided<[?, ?], offset: ?>>, %{{.+}}: memref<4xf32, strided<[?], offset: ?>>,
func.func @entry(%x: tensor<2x?xf32> {bufferization.writable = false},
                 %y: tensor<4xf32> {bufferization.writable = false},
                 %r: memref<2x?xf32, strided<[?, ?], offset: ?>>) {
  %c0 = arith.constant 0 : index
  %0 = call @helper(%y) : (tensor<4xf32>) -> f32
  %1 = tensor.insert %0 into %x[%c0, %c0] : tensor<2x?xf32>
  bufferization.materialize_in_destination %1 in restrict writable %r
      : (tensor<2x?xf32>, memref<2x?xf32, strided<[?, ?], offset: ?>>) -> ()
  return
}
