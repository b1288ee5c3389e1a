// RUN: linattn-opt %s --linattn-verify-contract=phase=structured --linattn-verify-contract=phase=bufferized | FileCheck %s
// RUN: linattn-opt %s --linattn-lower-to-loops --linattn-verify-contract=phase=linalg | FileCheck %s

// CHECK-LABEL: func.func @state
func.func @state(%k: memref<1x2x4x8xf32>, %s: memref<1x2x8x8xf32>) {
  linattn.state %k, %k init(%s) : (memref<1x2x4x8xf32>, memref<1x2x4x8xf32>, memref<1x2x8x8xf32>) -> ()
  return
}
