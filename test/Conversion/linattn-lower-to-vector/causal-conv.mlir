// RUN: linattn-opt %s --linattn-lower-to-vector --canonicalize | FileCheck %s
// RUN: linattn-opt %s --linattn-lower-to-vector='vector-bits=256 registers=16' --canonicalize | FileCheck %s --check-prefix=AVX2

// Channels are neighbours: weights of f32, pairs of bf16, and the activation of
// several vectors side by side.

// CHECK-LABEL: func.func @channels(
// CHECK-NOT: memref.transpose
// CHECK: scf.parallel
// CHECK: vector.deinterleave %{{.+}} : vector<32xbf16> -> vector<16xbf16>
// CHECK: math.exp %{{.+}} fastmath<afn> : vector<64xf32>
// CHECK: vector.interleave %{{.+}}, %{{.+}} : vector<16xbf16> -> vector<32xbf16>
// AVX2-LABEL: func.func @channels(
// AVX2: math.exp %{{.+}} fastmath<afn> : vector<32xf32>
// AVX2: vector.interleave %{{.+}}, %{{.+}} : vector<8xbf16> -> vector<16xbf16>
func.func @channels(%x: memref<2x?x64xbf16>, %w: memref<64x4xbf16>, %o: memref<2x?x64xbf16>, %s: memref<2x64x3xbf16>) {
  linattn.causal_conv %x, %w activation(silu) into(%o) init(%s) : (memref<2x?x64xbf16>, memref<64x4xbf16>, memref<2x?x64xbf16>, memref<2x64x3xbf16>) -> ()
  return
}

// Any strides: code for each pair of axes, chosen at run time; views of tokens
// side by side have a last stride of 1.

// CHECK-LABEL: func.func @strided(
// CHECK: memref.extract_strided_metadata
// CHECK: scf.if
// CHECK: scf.parallel
// CHECK: } else {
// CHECK: scf.if
// CHECK: memref.reinterpret_cast {{.*}} to memref<2x64x?xf32, strided<[?, ?, 1], offset: ?>>
// CHECK-COUNT-4: scf.parallel
// CHECK-NOT: scf.parallel
// CHECK: return
func.func @strided(%x: memref<2x?x64xf32, strided<[?, ?, ?], offset: ?>>, %w: memref<64x4xf32>, %o: memref<2x?x64xf32, strided<[?, ?, ?], offset: ?>>, %s: memref<2x64x3xf32>) {
  linattn.causal_conv %x, %w into(%o) init(%s) : (memref<2x?x64xf32, strided<[?, ?, ?], offset: ?>>, memref<64x4xf32>, memref<2x?x64xf32, strided<[?, ?, ?], offset: ?>>, memref<2x64x3xf32>) -> ()
  return
}

// Tokens are known to be neighbours: code for them, and for a single token,
// whose channels are neighbours as well.

// CHECK-LABEL: func.func @tokens(
// CHECK: scf.if
// CHECK: scf.parallel
// CHECK: } else {
// CHECK: scf.parallel
// CHECK-NOT: scf.parallel
// CHECK: return
func.func @tokens(%x: memref<2x?x64xf32, strided<[?, 1, ?], offset: ?>>, %w: memref<64x4xf32>, %o: memref<2x?x64xf32, strided<[?, 1, ?], offset: ?>>, %s: memref<2x64x3xf32>) {
  linattn.causal_conv %x, %w into(%o) init(%s) : (memref<2x?x64xf32, strided<[?, 1, ?], offset: ?>>, memref<64x4xf32>, memref<2x?x64xf32, strided<[?, 1, ?], offset: ?>>, memref<2x64x3xf32>) -> ()
  return
}
