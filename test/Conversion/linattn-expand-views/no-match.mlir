// RUN: linattn-opt %s --linattn-expand-views | FileCheck %s

// Address arithmetic is for views alone; other ops keep their operands.
// CHECK-LABEL: func.func @plain(
// CHECK-NOT:     memref.extract_strided_metadata
// CHECK:         %[[SUM:.+]] = arith.addi %arg1, %{{.+}} : index
// CHECK:         memref.load %arg0[%[[SUM]]]
func.func @plain(%m: memref<?xf32>, %i: index) -> f32 {
  %c0 = arith.constant 0 : index
  %sum = arith.addi %i, %c0 : index
  %x = memref.load %m[%sum] : memref<?xf32>
  return %x : f32
}
