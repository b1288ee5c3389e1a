// RUN: linattn-opt %s --linattn-lower-contractions | FileCheck %s
// RUN: linattn-opt %s --linattn-lower-contractions --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// CHECK-NOT: scf.parallel (

// CHECK-LABEL: func.func @small(
// CHECK:         linalg.matmul
// REMARK: [Missed] lower-contractions {{.*}}"runs as loops: a few rows, columns or summands"
func.func @small(%a: memref<4x64xf32>, %b: memref<64x96xf32>, %c: memref<4x96xf32>) {
  linalg.matmul ins(%a, %b : memref<4x64xf32>, memref<64x96xf32>) outs(%c : memref<4x96xf32>)
  return
}

// CHECK-LABEL: func.func @integers(
// CHECK:         linalg.matmul
func.func @integers(%a: memref<64x64xi32>, %b: memref<64x64xi32>, %c: memref<64x64xi32>) {
  linalg.matmul ins(%a, %b : memref<64x64xi32>, memref<64x64xi32>) outs(%c : memref<64x64xi32>)
  return
}

// CHECK-LABEL: func.func @vector(
// CHECK:         linalg.matvec
func.func @vector(%a: memref<64x64xf32>, %b: memref<64xf32>, %c: memref<64xf32>) {
  linalg.matvec ins(%a, %b : memref<64x64xf32>, memref<64xf32>) outs(%c : memref<64xf32>)
  return
}

// CHECK-LABEL: func.func @task(
// CHECK:         scf.forall
// CHECK:           linalg.matmul
// REMARK: "runs as loops: within a task"
func.func @task(%a: memref<64x64xf32>, %b: memref<64x64xf32>, %c: memref<2x64x64xf32>) {
  scf.forall (%i) in (2) {
    %d = memref.subview %c[%i, 0, 0] [1, 64, 64] [1, 1, 1] : memref<2x64x64xf32> to memref<64x64xf32, strided<[64, 1], offset: ?>>
    linalg.matmul ins(%a, %b : memref<64x64xf32>, memref<64x64xf32>) outs(%d : memref<64x64xf32, strided<[64, 1], offset: ?>>)
  }
  return
}
