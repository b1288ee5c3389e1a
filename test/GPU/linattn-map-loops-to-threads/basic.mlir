// RUN: linattn-opt %s --linattn-map-loops-to-threads --canonicalize | FileCheck %s

// An iteration for a thread: the dimensions are numbered along x.
// CHECK-LABEL: func.func @elements(
// CHECK: gpu.launch blocks({{.+}}) in (%{{.+}} = %[[BLOCKS:.+]], %{{.+}} = %[[ONE:.+]], %{{.+}} = %[[ONE]]) threads({{.+}}) in (%{{.+}} = %[[THREADS:.+]], %{{.+}} = %[[ONE]], %{{.+}} = %[[ONE]])
// CHECK: %[[NUMBER:.+]] = arith.addi
// CHECK: %[[INSIDE:.+]] = arith.cmpi slt, %[[NUMBER]]
// CHECK: scf.if %[[INSIDE]]
// CHECK: %[[J:.+]] = arith.remui %[[NUMBER]]
// CHECK: %[[I:.+]] = arith.divui %[[NUMBER]]
// CHECK: memref.load %{{.+}}[%[[I]], %[[J]]]
func.func @elements(%x: memref<400x1000xf32>, %y: memref<400x1000xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = arith.constant 400 : index
  %n = arith.constant 1000 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%m, %n) step (%c1, %c1) {
    %e = memref.load %x[%i, %j] : memref<400x1000xf32>
    memref.store %e, %y[%i, %j] : memref<400x1000xf32>
  }
  return
}

// A warp for a row: its lanes divide the elements, and shuffle the sum.
// CHECK-LABEL: func.func @rows(
// CHECK-DAG: %[[WARP:.+]] = arith.constant 32 : index
// CHECK: gpu.launch blocks({{.+}}) in ({{.+}}) threads(%[[LANE:.+]], %{{.+}}, %{{.+}}) in (%[[SIZE:[^ ]+]] = %[[WARP]],
// CHECK: %[[SUM:.+]] = scf.for %{{.+}} = %[[LANE]] to %{{.+}} step %[[SIZE]] iter_args
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK: scf.for %{{.+}} = %[[LANE]] to %{{.+}} step %[[SIZE]] {
// CHECK-NOT: gpu.barrier
// CHECK: return
func.func @rows(%x: memref<400x64xf32>, %y: memref<400x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = arith.constant 400 : index
  %n = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%m) step (%c1) {
    %sum = scf.parallel (%j) = (%c0) to (%n) step (%c1) init (%zero) -> f32 {
      %e = memref.load %x[%i, %j] : memref<400x64xf32>
      scf.reduce(%e : f32) {
      ^bb0(%a: f32, %b: f32):
        %s = arith.addf %a, %b : f32
        scf.reduce.return %s : f32
      }
    }
    scf.parallel (%j) = (%c0) to (%n) step (%c1) {
      memref.store %sum, %y[%i, %j] : memref<400x64xf32>
    }
  }
  return
}

// Two of 32 bits go for one of 64.
// CHECK-LABEL: func.func @double(
// CHECK-COUNT-10: gpu.shuffle xor
// CHECK-NOT: gpu.shuffle
func.func @double(%x: memref<400x64xf64>, %y: memref<400xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = arith.constant 400 : index
  %n = arith.constant 64 : index
  %zero = arith.constant 0.0 : f64
  scf.parallel (%i) = (%c0) to (%m) step (%c1) {
    %sum = scf.parallel (%j) = (%c0) to (%n) step (%c1) init (%zero) -> f64 {
      %e = memref.load %x[%i, %j] : memref<400x64xf64>
      scf.reduce(%e : f64) {
      ^bb0(%a: f64, %b: f64):
        %s = arith.maximumf %a, %b : f64
        scf.reduce.return %s : f64
      }
    }
    memref.store %sum, %y[%i] : memref<400xf64>
  }
  return
}

// One loop reads what another has written: a block, with barriers around both.
// One thread stores the values that all compute.
// CHECK-LABEL: func.func @exchange(
// CHECK: gpu.launch blocks(%[[BLOCK:.+]], %{{.+}}, %{{.+}}) in ({{.+}}) threads(%[[THREAD:.+]], %{{.+}}, %{{.+}}) in (%[[SIZE:[^ ]+]] = %{{.+}},
// CHECK: gpu.barrier
// CHECK: scf.for %{{.+}} = %[[THREAD]] to %{{.+}} step %[[SIZE]]
// CHECK: gpu.barrier
// CHECK: scf.for %{{.+}} = %[[THREAD]] to %{{.+}} step %[[SIZE]]
// CHECK: gpu.barrier
// CHECK: %[[FIRST:.+]] = arith.cmpi eq, %[[THREAD]]
// CHECK: scf.if %[[FIRST]]
// CHECK-NEXT: memref.store
// CHECK: gpu.barrier
func.func @exchange(%x: memref<400x64xf32>, %y: memref<400xf32>, %z: memref<400x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %m = arith.constant 400 : index
  %n = arith.constant 64 : index
  %one = arith.constant 1.0 : f32
  scf.parallel (%i) = (%c0) to (%m) step (%c1) {
    scf.parallel (%j) = (%c0) to (%n) step (%c1) {
      memref.store %one, %x[%i, %j] : memref<400x64xf32>
    }
    scf.parallel (%j) = (%c0) to (%n) step (%c1) {
      %k = arith.subi %c63, %j : index
      %e = memref.load %x[%i, %k] : memref<400x64xf32>
      memref.store %e, %z[%i, %j] : memref<400x64xf32>
    }
    memref.store %one, %y[%i] : memref<400xf32>
  }
  return
}
