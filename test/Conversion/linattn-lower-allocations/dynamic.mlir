// RUN: linattn-opt %s --linattn-lower-allocations | FileCheck %s

// The known sizes are multiplied before, the others with a check each.
// CHECK-LABEL: func.func @sizes(
// CHECK-DAG:     %[[KNOWN:.+]] = llvm.mlir.constant(256 : i64)
// CHECK-DAG:     %[[N:.+]] = builtin.unrealized_conversion_cast %arg0 : index to i64
// CHECK-DAG:     %[[M:.+]] = builtin.unrealized_conversion_cast %arg1 : index to i64
// CHECK:         %[[P:.+]] = "llvm.intr.umul.with.overflow"(%[[KNOWN]], %[[N]])
// CHECK:         %[[P0:.+]] = llvm.extractvalue %[[P]][0]
// CHECK:         %[[P1:.+]] = llvm.extractvalue %[[P]][1]
// CHECK:         %[[Q:.+]] = "llvm.intr.umul.with.overflow"(%[[P0]], %[[M]])
// CHECK:         %[[Q0:.+]] = llvm.extractvalue %[[Q]][0]
// CHECK:         %[[Q1:.+]] = llvm.extractvalue %[[Q]][1]
// CHECK:         %[[OVER:.+]] = llvm.or %[[P1]], %[[Q1]]
// CHECK:         %[[ALL:.+]] = llvm.mlir.constant(-1 : i64)
// CHECK:         %[[BYTES:.+]] = llvm.select %[[OVER]], %[[ALL]], %[[Q0]]
// CHECK:         llvm.call @linattn_allocate(%[[BYTES]],
func.func @sizes(%n: index, %m: index) -> memref<?x64x?xf32> {
  %0 = memref.alloc(%n, %m) : memref<?x64x?xf32>
  return %0 : memref<?x64x?xf32>
}
