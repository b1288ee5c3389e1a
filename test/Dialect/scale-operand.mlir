// RUN: linattn-opt %s | linattn-opt | FileCheck %s
// RUN: linattn-opt %s --mlir-print-op-generic | linattn-opt | FileCheck %s

// The scale as an f64 operand.

// CHECK-LABEL: func.func @attention
// CHECK: linattn.attention %arg0, %arg0, %arg0 prefix(%arg1) scale(%arg2) weights(softmax) {causal}
// CHECK-SAME: (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2xi64>, f64) -> tensor<2x4x?x8xf32>
func.func @attention(%q: tensor<2x4x?x8xf32>, %n: tensor<2xi64>, %scale: f64) -> tensor<2x4x?x8xf32> {
  %r = linattn.attention %q, %q, %q prefix(%n) scale(%scale) weights(softmax) {causal}
    : (tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2x4x?x8xf32>, tensor<2xi64>, f64) -> tensor<2x4x?x8xf32>
  return %r : tensor<2x4x?x8xf32>
}

// CHECK-LABEL: func.func @quadratic
// CHECK: linattn.quadratic %arg0, %arg0, %arg0 mask(%arg1) scale(%arg2) into(%arg0) :
func.func @quadratic(%q: tensor<2x4x?x8xf16>, %m: tensor<2x?xi1>, %scale: f64) -> tensor<2x4x?x8xf16> {
  %r = linattn.quadratic %q, %q, %q mask(%m) scale(%scale) into(%q)
    : (tensor<2x4x?x8xf16>, tensor<2x4x?x8xf16>, tensor<2x4x?x8xf16>, tensor<2x?xi1>, f64, tensor<2x4x?x8xf16>) -> tensor<2x4x?x8xf16>
  return %r : tensor<2x4x?x8xf16>
}

// CHECK-LABEL: func.func @scan
// CHECK: linattn.scan %arg0, %arg0, %arg0 cu_seqlens(%arg1) state_indices(%arg2) scale(%arg3) readout(exclusive) into(%arg0) init(%arg4)
func.func @scan(%q: tensor<1x4x?x8xf32>, %cu: tensor<3xi32>, %rows: tensor<2xi32>, %scale: f64, %s: tensor<7x4x8x8xf32>) -> tensor<1x4x?x8xf32> {
  %r:2 = linattn.scan %q, %q, %q cu_seqlens(%cu) state_indices(%rows) scale(%scale) readout(exclusive) into(%q) init(%s)
    : (tensor<1x4x?x8xf32>, tensor<1x4x?x8xf32>, tensor<1x4x?x8xf32>, tensor<3xi32>, tensor<2xi32>, f64, tensor<1x4x?x8xf32>, tensor<7x4x8x8xf32>)
    -> (tensor<1x4x?x8xf32>, tensor<7x4x8x8xf32>)
  return %r#0 : tensor<1x4x?x8xf32>
}

// CHECK-LABEL: func.func @scan_buffers
// CHECK: linattn.scan %arg0, %arg0, %arg0 scale(%arg1) into(%arg0) init(%arg2) :
func.func @scan_buffers(%q: memref<1x4x?x8xf64>, %scale: f64, %s: memref<1x4x8x8xf64>) {
  linattn.scan %q, %q, %q scale(%scale) into(%q) init(%s)
    : (memref<1x4x?x8xf64>, memref<1x4x?x8xf64>, memref<1x4x?x8xf64>, f64, memref<1x4x?x8xf64>, memref<1x4x8x8xf64>) -> ()
  return
}

// CHECK-LABEL: func.func @read
// CHECK: linattn.read %arg0, %arg1 scale(%arg2) into(%arg0) :
func.func @read(%q: tensor<2x4x?x8xf32>, %s: tensor<2x4x8x8xf32>, %scale: f64) -> tensor<2x4x?x8xf32> {
  %r = linattn.read %q, %s scale(%scale) into(%q)
    : (tensor<2x4x?x8xf32>, tensor<2x4x8x8xf32>, f64, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %r : tensor<2x4x?x8xf32>
}

// CHECK-LABEL: func.func @pack
// CHECK: linattn.chunk.pack %arg0 mask(%arg1) scale(%arg2) into(%arg0) {reverse} :
func.func @pack(%x: tensor<2x4x?x8xf32>, %m: tensor<2x?xi1>, %scale: f64) -> tensor<2x4x?x8xf32> {
  %r = linattn.chunk.pack %x mask(%m) scale(%scale) into(%x) {reverse}
    : (tensor<2x4x?x8xf32>, tensor<2x?xi1>, f64, tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32>
  return %r : tensor<2x4x?x8xf32>
}
