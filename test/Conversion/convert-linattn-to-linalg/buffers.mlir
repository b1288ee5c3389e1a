// RUN: linattn-opt %s --convert-linattn-to-linalg --verify-diagnostics

func.func @state(%k: memref<1x2x8x4xf32>, %s: memref<1x2x4x4xf32>) {
  // expected-error @+1 {{cannot be converted to linalg on buffers: convert before bufferization}}
  linattn.state %k, %k init(%s) : (memref<1x2x8x4xf32>, memref<1x2x8x4xf32>, memref<1x2x4x4xf32>) -> ()
  return
}
