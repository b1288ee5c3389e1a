// RUN: linattn-opt %s --linattn-convert-to-llvm --reconcile-unrealized-casts | FileCheck %s

// The size is an element of the descriptor: no array in memory is indexed.
// CHECK-LABEL: llvm.func @size(
// CHECK:         %[[N:.+]] = llvm.extractvalue %{{.+}}[3, 1]
// CHECK-NOT:     llvm.alloca
// CHECK:         llvm.return %[[N]] : i64
func.func @size(%m: memref<?x?xf32>) -> index {
  %c1 = arith.constant 1 : index
  %n = memref.dim %m, %c1 : memref<?x?xf32>
  return %n : index
}

// A dimension that is not known is looked up in memory.
// CHECK-LABEL: llvm.func @any_size(
// CHECK:         llvm.alloca
// CHECK:         llvm.load
func.func @any_size(%m: memref<?x?xf32>, %i: index) -> index {
  %n = memref.dim %m, %i : memref<?x?xf32>
  return %n : index
}

// CHECK-LABEL: llvm.func @element(
// CHECK:         %[[ROW:.+]] = llvm.mul %{{.+}}, %{{.+}} overflow<nsw, nuw> : i64
// CHECK:         %[[AT:.+]] = llvm.add %[[ROW]], %{{.+}} overflow<nsw, nuw> : i64
// CHECK:         llvm.getelementptr inbounds|nuw %{{.+}}[%[[AT]]]
func.func @element(%m: memref<?x?xf32>, %i: index, %j: index) -> f32 {
  %x = memref.load %m[%i, %j] : memref<?x?xf32>
  return %x : f32
}
