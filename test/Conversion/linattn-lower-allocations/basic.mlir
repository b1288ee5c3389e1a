// RUN: linattn-opt %s --linattn-lower-allocations | FileCheck %s

// CHECK-DAG: llvm.func @linattn_allocate(i64, i64) -> (!llvm.ptr {llvm.noalias, llvm.nonnull, llvm.noundef})
// CHECK-DAG: llvm.func @linattn_free(!llvm.ptr)

// CHECK-LABEL: func.func @sizes(
// CHECK-DAG:     %[[ALIGN:.+]] = llvm.mlir.constant(32 : i64)
// CHECK-DAG:     %[[BYTES:.+]] = llvm.mlir.constant(512 : i64)
// CHECK-NOT:     umul
// CHECK:         %[[M:.+]] = llvm.call @linattn_allocate(%[[BYTES]], %[[ALIGN]])
// CHECK:         builtin.unrealized_conversion_cast %{{.+}} : !llvm.struct<{{.+}}> to memref<2x64xf32>
// CHECK-NOT:     memref.alloc
// CHECK:         llvm.extractvalue %{{.+}}[0]
// CHECK:         llvm.call @linattn_free
// CHECK-NOT:     memref.dealloc
func.func @sizes(%x: f32, %i: index) {
  %m = memref.alloc() {alignment = 32 : i64} : memref<2x64xf32>
  memref.store %x, %m[%i, %i] : memref<2x64xf32>
  memref.dealloc %m : memref<2x64xf32>
  return
}

// Elements of all widths; a cache line where no alignment is given.
// CHECK-LABEL: func.func @elements(
// CHECK:         llvm.mlir.constant(64 : i64)
// CHECK:         llvm.mlir.constant(3 : i64)
// CHECK:         llvm.call @linattn_allocate
// CHECK:         llvm.mlir.constant(24 : i64)
// CHECK:         llvm.call @linattn_allocate
// CHECK:         llvm.mlir.constant(6 : i64)
// CHECK:         llvm.call @linattn_allocate
// CHECK:         llvm.mlir.constant(8 : i64)
// CHECK:         llvm.call @linattn_allocate
func.func @elements() -> (memref<3xi1>, memref<3xindex>, memref<3xbf16>, memref<f64>) {
  %a = memref.alloc() : memref<3xi1>
  %b = memref.alloc() : memref<3xindex>
  %c = memref.alloc() : memref<3xbf16>
  %d = memref.alloc() : memref<f64>
  return %a, %b, %c, %d : memref<3xi1>, memref<3xindex>, memref<3xbf16>, memref<f64>
}

// 2^64 bytes: all ones, which no allocator has.
// CHECK-LABEL: func.func @too_large(
// CHECK:         %[[ALL:.+]] = llvm.mlir.constant(-1 : i64)
// CHECK:         llvm.call @linattn_allocate(%[[ALL]],
func.func @too_large() -> memref<2147483648x2147483648xf32> {
  %m = memref.alloc() : memref<2147483648x2147483648xf32>
  return %m : memref<2147483648x2147483648xf32>
}
