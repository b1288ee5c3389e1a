// RUN: linattn-opt %s --linattn-prepare-entry='transposed=0,2' | FileCheck %s
// RUN: linattn-opt %s --linattn-bufferize-pipeline -o /dev/null
// RUN: linattn-opt %s --linattn-prepare-entry='transposed=0,2' --linattn-bufferize-module | FileCheck %s --check-prefix=BUFFERS
// RUN: not linattn-opt %s --linattn-prepare-entry='transposed=1' 2>&1 | FileCheck %s --check-prefix=RANK
// RUN: not linattn-opt %s --linattn-prepare-entry='transposed=3' 2>&1 | FileCheck %s --check-prefix=NUMBER

// Arguments and results, by number, of which the dimension before the last one
// has stride 1.

// CHECK-LABEL: func.func @twice(
// CHECK-SAME:    %{{.+}}: tensor<2x?xf32> {bufferization.buffer_layout = strided<[1, ?], offset: ?>, bufferization.writable = false},
// CHECK-SAME:    %{{.+}}: tensor<?xf32> {bufferization.writable = false},
// CHECK-SAME:    %{{.+}}: memref<2x?xf32, strided<[1, ?], offset: ?>>)
// CHECK-LABEL: func.func @twice__shapes(
// CHECK-SAME:    bufferization.buffer_layout = strided<[1, ?], offset: ?>

// BUFFERS-LABEL: func.func @twice(
// BUFFERS-SAME:    %{{.+}}: memref<2x?xf32, strided<[1, ?], offset: ?>>,
// BUFFERS-SAME:    %{{.+}}: memref<?xf32, strided<[1], offset: ?>>,
// BUFFERS-SAME:    %{{.+}}: memref<2x?xf32, strided<[1, ?], offset: ?>>)

// RANK: expected option transposed to name tensors of two dimensions or more, but got 1, which is 'tensor<?xf32>'
// NUMBER: expected option transposed to name one of 3 arguments and results, but got 3
func.func @twice(%x: tensor<2x?xf32>, %y: tensor<?xf32>) -> tensor<2x?xf32> {
  %0 = linalg.add ins(%x, %x : tensor<2x?xf32>, tensor<2x?xf32>) outs(%x : tensor<2x?xf32>) -> tensor<2x?xf32>
  return %0 : tensor<2x?xf32>
}
