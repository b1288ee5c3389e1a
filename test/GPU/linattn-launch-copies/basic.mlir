// RUN: linattn-opt %s --linattn-launch-copies | FileCheck %s

// CHECK: #[[ID:.+]] = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @static(
// CHECK-SAME: %[[X:.+]]: memref<4x8xf32>, %[[Y:.+]]: memref<4x8xf32, strided<[16, 1]>>)
// CHECK-NOT: memref.copy
// A result may have an argument's buffer.
// CHECK: %[[FROM:.+]] = memref.extract_aligned_pointer_as_index %[[X]]
// CHECK: %[[TO:.+]] = memref.extract_aligned_pointer_as_index %[[Y]]
// CHECK: arith.cmpi ne, %[[FROM]], %[[TO]]
// CHECK: scf.if
// CHECK: linalg.generic {indexing_maps = [#[[ID]], #[[ID]]], iterator_types = ["parallel", "parallel"]} ins(%[[X]] : {{.*}}) outs(%[[Y]] :
// CHECK-NEXT: ^bb0(%[[IN:.+]]: f32, %{{.+}}: f32):
// CHECK-NEXT: linalg.yield %[[IN]] : f32
func.func @static(%x: memref<4x8xf32>, %y: memref<4x8xf32, strided<[16, 1]>>) {
  memref.copy %x, %y : memref<4x8xf32> to memref<4x8xf32, strided<[16, 1]>>
  return
}

// In loops of the host, too.
// CHECK-LABEL: func.func @dynamic(
// CHECK: scf.for
// CHECK-NOT: memref.copy
// CHECK-NOT: scf.if
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]
func.func @dynamic(%x: memref<4x?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %y = memref.alloc(%n) : memref<4x?xf32>
  scf.for %i = %c0 to %n step %c1 {
    memref.copy %x, %y : memref<4x?xf32> to memref<4x?xf32>
  }
  return
}

// A function without a parallel loop gets one.
// CHECK-LABEL: func.func @scalars(
// CHECK: scf.parallel
// CHECK: linalg.generic {{.*}}iterator_types = []
// CHECK: scf.parallel
// CHECK: linalg.generic {{.*}}iterator_types = ["reduction"]
func.func @scalars(%x: memref<f32>, %y: memref<f32>, %v: memref<?xf32>) {
  memref.copy %x, %y : memref<f32> to memref<f32>
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%v : memref<?xf32>) outs(%y : memref<f32>) {
  ^bb0(%a: f32, %sum: f32):
    %new = arith.addf %sum, %a : f32
    linalg.yield %new : f32
  }
  return
}

// Left alone: what is within a kernel already, and what has a parallel loop.
// CHECK-LABEL: func.func @kernel(
// CHECK-COUNT-1: scf.parallel
// CHECK: memref.copy
// CHECK: linalg.fill
// CHECK-NOT: scf.parallel
func.func @kernel(%x: memref<4x8xf32>, %y: memref<4x8xf32>, %value: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    memref.copy %x, %y : memref<4x8xf32> to memref<4x8xf32>
  }
  linalg.fill ins(%value : f32) outs(%y : memref<4x8xf32>)
  return
}
