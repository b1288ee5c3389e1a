// RUN: linattn-opt %s --linattn-lower-vectors | FileCheck %s

// Vectors of one dimension stay, and nothing else is folded.
// CHECK-LABEL: func.func @line(
// CHECK-NOT:     scf.if
// CHECK:         %[[SUM:.+]] = arith.addi %arg1, %{{.+}} : index
// CHECK:         %[[X:.+]] = vector.transfer_read %arg0[%[[SUM]]]
// CHECK:         %[[S:.+]] = vector.reduction <add>, %[[X]]
// CHECK:         return %[[S]]
func.func @line(%m: memref<?xf32>, %i: index) -> f32 {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %sum = arith.addi %i, %c0 : index
  %x = vector.transfer_read %m[%sum], %pad : memref<?xf32>, vector<8xf32>
  %s = vector.reduction <add>, %x : vector<8xf32> into f32
  return %s : f32
}
