// RUN: linattn-opt %s --linattn-to-kernel | FileCheck %s

// Three kernels and memory for what segments add, hold and decay by.
// CHECK-LABEL: func.func @layer(
// CHECK-SAME: %[[Q:[^:]+]]: memref<{{[^>]+}}>, %[[K:[^:]+]]: memref<{{[^>]+}}>, %[[V:[^:]+]]: memref<{{[^>]+}}>, %[[G:[^:]+]]: memref<{{[^>]+}}>, %[[O:[^:]+]]: memref<{{[^>]+}}>, %[[S:[^:]+]]: memref
// CHECK: %[[STATES:.+]] = memref.alloc() : memref<6x1x2x64x64xf32>
// CHECK: %[[FACTORS:.+]] = memref.alloc() : memref<5x1x2xf32>
// Neither queries nor outputs; of the result's state the sizes alone.
// CHECK: linattn.launch @layer_scan_increments::@layer_scan_increments(%[[K]], %[[V]], %[[G]], %[[STATES]], %[[FACTORS]], %[[S]])
// CHECK-SAME: ()[s0] -> (s0 * 2, 5, 1)
// CHECK: linattn.launch @layer_scan_states::@layer_scan_states(%[[S]], %[[STATES]], %[[FACTORS]])
// CHECK-SAME: ()[s0] -> (s0 * 64, 1, 1)
// CHECK: linattn.launch @layer_scan::@layer_scan(%[[Q]], %[[K]], %[[V]], %[[O]], %[[G]], %[[STATES]], %[[S]])
// CHECK-SAME: ()[s0] -> (s0 * 2, 6, 1)
// CHECK: memref.dealloc %[[STATES]]
// CHECK: memref.dealloc %[[FACTORS]]

func.func @layer(%q: memref<1x2x4096x64xbf16>, %k: memref<1x2x4096x64xbf16>, %v: memref<1x2x4096x64xbf16>,
                 %g: memref<1x2x4096xf32>, %o: memref<1x2x4096x64xbf16>, %s: memref<1x2x64x64xf32>) {
  linattn.scan %q, %k, %v decay(%g) into(%o) init(%s)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 4, stages = 2, value_slice = 64, split = 6>}
    : (memref<1x2x4096x64xbf16>, memref<1x2x4096x64xbf16>, memref<1x2x4096x64xbf16>, memref<1x2x4096xf32>,
       memref<1x2x4096x64xbf16>, memref<1x2x64x64xf32>) -> ()
  return
}

// The lengths of segments follow from the tokens, the memory from the batch.
// CHECK-LABEL: func.func @dynamic(
// CHECK: %[[BATCH:.+]] = memref.dim %{{.+}}, %{{.+}}
// CHECK: memref.alloc(%[[BATCH]]) : memref<6x?x2x64x64xf32>
// CHECK: memref.alloc({{.*}}) : memref<5x?x2x64xf32>
// CHECK: linattn.launch @dynamic_scan_increments::@dynamic_scan_increments(
// CHECK: linattn.launch @dynamic_scan_states::
// CHECK: linattn.launch @dynamic_scan::
func.func @dynamic(%q: memref<?x2x?x64xbf16>, %g: memref<?x2x?x64xf32>, %o: memref<?x2x?x64xbf16>, %s: memref<?x2x64x64xf32>) {
  linattn.scan %q, %q, %q decay(%g) into(%o) init(%s)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 32, warps = 4, stages = 2, value_slice = 64, split = 6>}
    : (memref<?x2x?x64xbf16>, memref<?x2x?x64xbf16>, memref<?x2x?x64xbf16>, memref<?x2x?x64xf32>,
       memref<?x2x?x64xbf16>, memref<?x2x64x64xf32>) -> ()
  return
}

// A delta rule has a matrix for each segment in place of factors: two more slices of 64 columns, which keys alone are read for.
// CHECK-LABEL: func.func @delta(
// CHECK-SAME: %[[Q:[^:]+]]: memref<{{[^>]+}}>, %[[K:[^:]+]]: memref<{{[^>]+}}>, %[[V:[^:]+]]: memref<{{[^>]+}}>, %[[G:[^:]+]]: memref<{{[^>]+}}>, %[[O:[^:]+]]: memref<{{[^>]+}}>, %[[S:[^:]+]]: memref
// CHECK: %[[STATES:.+]] = memref.alloc() : memref<6x1x2x128x64xf32>
// CHECK: %[[MATRICES:.+]] = memref.alloc() : memref<5x1x2x128x128xf32>
// CHECK: linattn.launch @delta_scan_increments::@delta_scan_increments(%[[K]], %[[V]], %[[G]], %[[STATES]], %[[MATRICES]], %[[S]])
// CHECK-SAME: ()[s0] -> (s0 * 6, 5, 1)
// CHECK: linattn.launch @delta_scan_states::@delta_scan_states(%[[S]], %[[STATES]], %[[MATRICES]])
// CHECK-SAME: ()[s0] -> (s0 * 8, 1, 1)
// CHECK: linattn.launch @delta_scan::@delta_scan(%[[Q]], %[[K]], %[[V]], %[[O]], %[[G]], %[[STATES]], %[[S]])
// CHECK-SAME: ()[s0] -> (s0 * 2, 6, 1)
// CHECK: memref.dealloc %[[STATES]]
// CHECK: memref.dealloc %[[MATRICES]]
func.func @delta(%q: memref<1x2x4096x128xbf16>, %k: memref<1x2x4096x128xbf16>, %v: memref<1x2x4096x64xbf16>,
                 %g: memref<1x2x4096xf32>, %o: memref<1x2x4096x64xbf16>, %s: memref<1x2x128x64xf32>) {
  linattn.scan %q, %k, %v decay(%g) beta(%g) update(delta) into(%o) init(%s)
      {linattn.schedule = #linattn.schedule<form = chunk, mma = mma_sync, chunk = 64, warps = 4, stages = 2, value_slice = 64, split = 6>}
    : (memref<1x2x4096x128xbf16>, memref<1x2x4096x128xbf16>, memref<1x2x4096x64xbf16>, memref<1x2x4096xf32>,
       memref<1x2x4096xf32>, memref<1x2x4096x64xbf16>, memref<1x2x128x64xf32>) -> ()
  return
}

// The kernels come behind all functions.
// CHECK-LABEL: gpu.module @layer_scan_increments
// CHECK: nvvm.read.ptx.sreg.ctaid.y
// CHECK: nvvm.mma.sync
// CHECK: llvm.store {{.*}} : f32, !llvm.ptr<1>
// CHECK-LABEL: gpu.module @layer_scan_states
// CHECK-NOT: nvvm.mma.sync
// CHECK-COUNT-5: llvm.intr.fma
// CHECK-LABEL: gpu.module @layer_scan {
// CHECK: nvvm.read.ptx.sreg.ctaid.y
