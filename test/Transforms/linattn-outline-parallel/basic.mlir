// RUN: linattn-opt %s --linattn-outline-parallel --canonicalize --split-input-file | FileCheck %s

// CHECK:       llvm.func @linattn_parallel_for(i64, !llvm.ptr, !llvm.ptr)

// CHECK-LABEL: func.func @fill(
// CHECK-SAME:    %[[M:[^:]+]]: memref<?xf32>, %[[V:[^:]+]]: f32, %[[N:[^:]+]]: index)
// CHECK-DAG:     %[[TASK:.+]] = constant @fill__task : (!llvm.ptr, i64) -> ()
// CHECK-DAG:     %[[CTX:.+]] = llvm.alloca %{{.+}} x !llvm.struct<(f32, struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>, i64)>
// CHECK:         llvm.store %{{.+}}, %[[CTX]]
// CHECK-NEXT:    %[[FN:.+]] = builtin.unrealized_conversion_cast %[[TASK]]
// CHECK-NEXT:    llvm.call @linattn_parallel_for(%{{.+}}, %[[FN]], %[[CTX]])
// CHECK-NOT:     scf.parallel

// Constants are cloned into the task instead of being captured.
// CHECK-LABEL: func.func private @fill__task(
// CHECK-SAME:    %[[CTX:[^:]+]]: !llvm.ptr, %[[I:[^:]+]]: i64)
// CHECK-DAG:     %[[C3:.+]] = arith.constant 3 : index
// CHECK-DAG:     %[[LOADED:.+]] = llvm.load %[[CTX]]
// CHECK-DAG:     %[[FIELD:.+]] = llvm.extractvalue %[[LOADED]][1]
// CHECK-DAG:     %[[M:.+]] = builtin.unrealized_conversion_cast %[[FIELD]]
// CHECK-DAG:     %[[V:.+]] = llvm.extractvalue %[[LOADED]][0]
// CHECK-DAG:     %[[INDEX:.+]] = arith.index_cast %[[I]] : i64 to index
// CHECK:         %[[SCALED:.+]] = arith.muli %[[INDEX]], %[[C3]]
// CHECK:         memref.store %[[V]], %[[M]][%[[SCALED]]]
func.func @fill(%m: memref<?xf32>, %v: f32, %n: index) {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  scf.parallel (%i) = (%c0) to (%n) step (%c3) {
    memref.store %v, %m[%i] : memref<?xf32>
    scf.reduce
  }
  return
}

// -----

// Two dimensions are flattened, the last one fastest; an inner parallel loop
// stays in its task.

// CHECK-LABEL: func.func @nested(
// CHECK:         llvm.call @linattn_parallel_for
// CHECK-LABEL: func.func private @nested__task(
// CHECK-DAG:     %[[C4:.+]] = arith.constant 4 : index
// CHECK-DAG:     %[[INDEX:.+]] = arith.index_cast
// CHECK:         arith.remui %[[INDEX]], %[[C4]]
// CHECK:         arith.divui %[[INDEX]], %[[C4]]
// CHECK:         scf.parallel
func.func @nested(%m: memref<?x4x8xf32>, %v: f32, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%n, %c4) step (%c1, %c1) {
    scf.parallel (%k) = (%c0) to (%c8) step (%c1) {
      memref.store %v, %m[%i, %j, %k] : memref<?x4x8xf32>
      scf.reduce
    }
    scf.reduce
  }
  return
}

// -----

// Reductions are left alone, and need no runtime.

// CHECK-NOT:   llvm.func
// CHECK-LABEL: func.func @sum(
// CHECK:         scf.parallel
func.func @sum(%m: memref<?xf32>, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %s = scf.parallel (%i) = (%c0) to (%n) step (%c1) init (%zero) -> f32 {
    %x = memref.load %m[%i] : memref<?xf32>
    scf.reduce(%x : f32) {
    ^bb0(%a: f32, %b: f32):
      %0 = arith.addf %a, %b : f32
      scf.reduce.return %0 : f32
    }
  }
  return %s : f32
}

// -----

// The context lives in the entry block even if the loop is inside another.

// CHECK-LABEL: func.func @repeated(
// CHECK:         llvm.alloca
// CHECK:         scf.for
// CHECK-NOT:     llvm.alloca
// CHECK:           llvm.call @linattn_parallel_for
func.func @repeated(%m: memref<?xf32>, %v: f32, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      memref.store %v, %m[%i] : memref<?xf32>
      scf.reduce
    }
  }
  return
}

// -----

// A buffer that the function allocated overlaps nothing else, which the task
// could not see; arguments may overlap one another, and views of one buffer do.

// CHECK-LABEL: func.func private @scalars__task
// CHECK-SAME:    (%[[CTX:.+]]: !llvm.ptr
// CHECK-COUNT-2: memref.distinct_objects
// CHECK-NOT:     memref.distinct_objects
// CHECK:         return
func.func @scalars(%x: memref<64xf32>, %y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %z = memref.alloc() : memref<64xf32>
  scf.parallel (%i) = (%c0) to (%c64) step (%c1) {
    %a = memref.load %x[%i] : memref<64xf32>
    memref.store %a, %z[%i] : memref<64xf32>
    memref.store %a, %y[%i] : memref<64xf32>
  }
  memref.dealloc %z : memref<64xf32>
  return
}

// -----

// CHECK-LABEL: func.func private @views__task
// CHECK-NOT:     memref.distinct_objects
// CHECK:         return
func.func @views(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = memref.alloc() : memref<64xf32>
  %low = memref.subview %z[0] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1]>>
  %high = memref.subview %z[16] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1], offset: 16>>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %a = memref.load %low[%i] : memref<32xf32, strided<[1]>>
    memref.store %a, %high[%i] : memref<32xf32, strided<[1], offset: 16>>
  }
  memref.dealloc %z : memref<64xf32>
  return
}
