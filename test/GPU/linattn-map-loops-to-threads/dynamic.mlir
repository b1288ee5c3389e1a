// RUN: linattn-opt %s --linattn-map-loops-to-threads --canonicalize | FileCheck %s

// Few iterations go into blocks of a warp, as the call says; a range that is
// empty or reversed has none.
// CHECK-LABEL: func.func @elements(
// CHECK-SAME: %{{.+}}: memref<?xf32>, %[[FROM:.+]]: index, %[[TO:.+]]: index, %[[STEP:.+]]: index)
// CHECK-DAG: %[[C0:.+]] = arith.constant 0 : index
// CHECK-DAG: %[[FEW:.+]] = arith.constant 32768 : index
// CHECK-DAG: %[[C32:.+]] = arith.constant 32 : index
// CHECK-DAG: %[[C128:.+]] = arith.constant 128 : index
// CHECK: %[[SPAN:.+]] = arith.subi %[[TO]], %[[FROM]]
// CHECK: %[[NONE:.+]] = arith.maxsi %[[SPAN]], %[[C0]]
// CHECK: %[[COUNT:.+]] = arith.ceildivsi %[[NONE]], %[[STEP]]
// CHECK: %[[IS_FEW:.+]] = arith.cmpi slt, %[[COUNT]], %[[FEW]]
// CHECK: %[[THREADS:.+]] = arith.select %[[IS_FEW]], %[[C32]], %[[C128]]
// CHECK: %[[BLOCKS:.+]] = arith.ceildivsi %[[COUNT]], %[[THREADS]]
// CHECK: gpu.launch blocks({{.+}}) in (%{{.+}} = %[[BLOCKS]],
// CHECK-SAME: threads({{.+}}) in (%{{.+}} = %[[THREADS]],
func.func @elements(%x: memref<?xf32>, %from: index, %to: index, %step: index) {
  %zero = arith.constant 0.0 : f32
  scf.parallel (%i) = (%from) to (%to) step (%step) {
    memref.store %zero, %x[%i] : memref<?xf32>
  }
  return
}
