// Whole modules: the kernels of the GPU agree with naive loops, as the code for
// the CPU does, without findings.

// RUN: linattn-run %s --entry=linear --target=nvvm-emulated --open-size=70 --compare=reference --explain | FileCheck %s --check-prefixes=CHECK,CHUNK
// RUN: linattn-run %s --entry=gated --target=nvvm-emulated --open-size=70 --compare=reference --explain | FileCheck %s --check-prefixes=CHECK,CHUNK
// RUN: linattn-run %s --entry=delta --target=nvvm-emulated --open-size=1,20 --compare=reference --explain | FileCheck %s --check-prefixes=CHECK,TOKEN
// RUN: linattn-run %s --all --open-size=1,20,70 --compare=reference
// RUN: linattn-opt %s --linattn-emulated-pipeline | FileCheck %s --check-prefix=HOST

// TOKEN: passed: select-schedule: token kernel
// CHUNK: passed: select-schedule: chunk kernel
// CHECK: kernel {{[a-z]+}}_scan: no findings
// CHECK-NEXT: shared memory: {{[0-9]+}} phases
// CHECK-NEXT: global memory: {{[0-9]+}} bytes read
// CHECK: result 0: agrees with the reference
// CHECK: result 1: agrees with the reference

// HOST: llvm.mlir.global internal constant @{{[a-z]+}}_scan__text("gpu.module
// HOST: llvm.call @linattn_emulate_launch

func.func @linear(%q: tensor<1x2x?x64xf32>, %k: tensor<1x2x?x64xf32>, %v: tensor<1x2x?x64xf32>, %s: tensor<1x2x64x64xf32>)
    -> (tensor<1x2x?x64xf32>, tensor<1x2x64x64xf32>) {
  %c2 = arith.constant 2 : index
  %n = tensor.dim %v, %c2 : tensor<1x2x?x64xf32>
  %e = tensor.empty(%n) : tensor<1x2x?x64xf32>
  %o, %t = linattn.scan %q, %k, %v into(%e) init(%s)
    : (tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x?x64xf32>, tensor<1x2x64x64xf32>)
    -> (tensor<1x2x?x64xf32>, tensor<1x2x64x64xf32>)
  return %o, %t : tensor<1x2x?x64xf32>, tensor<1x2x64x64xf32>
}

// Gates and factors are made of what comes in: by kernels of the plain route.
func.func @gated(%q: tensor<1x2x?x32xbf16>, %k: tensor<1x2x?x32xbf16>, %v: tensor<1x2x?x32xbf16>, %x: tensor<1x2x?xf32>, %s: tensor<1x2x32x32xf32>)
    -> (tensor<1x2x?x32xbf16>, tensor<1x2x32x32xf32>) {
  %c2 = arith.constant 2 : index
  %n = tensor.dim %v, %c2 : tensor<1x2x?x32xbf16>
  %e = tensor.empty(%n) : tensor<1x2x?x32xbf16>
  %eg = tensor.empty(%n) : tensor<1x2x?xf32>
  %g = linalg.map ins(%x : tensor<1x2x?xf32>) outs(%eg : tensor<1x2x?xf32>)
    (%a: f32, %init: f32) {
      %b = math.absf %a : f32
      %c = arith.negf %b : f32
      linalg.yield %c : f32
    }
  %o, %t = linattn.scan %q, %k, %v decay(%g) into(%e) init(%s) {scale = 0.25 : f64}
    : (tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x?xf32>, tensor<1x2x?x32xbf16>, tensor<1x2x32x32xf32>)
    -> (tensor<1x2x?x32xbf16>, tensor<1x2x32x32xf32>)
  return %o, %t : tensor<1x2x?x32xbf16>, tensor<1x2x32x32xf32>
}

// A beta per value column has no chunk kernel.
func.func @delta(%q: tensor<1x2x?x16xf32>, %k: tensor<1x2x?x16xf32>, %v: tensor<1x2x?x16xf32>, %b: tensor<1x2x?x16xf32>, %s: tensor<1x2x16x16xf32>)
    -> (tensor<1x2x?x16xf32>, tensor<1x2x16x16xf32>) {
  %c2 = arith.constant 2 : index
  %n = tensor.dim %v, %c2 : tensor<1x2x?x16xf32>
  %e = tensor.empty(%n) : tensor<1x2x?x16xf32>
  %small = arith.constant 0.2 : f32
  %ek = tensor.empty(%n) : tensor<1x2x?x16xf32>
  %kn = linalg.map ins(%k : tensor<1x2x?x16xf32>) outs(%ek : tensor<1x2x?x16xf32>)
    (%a: f32, %init: f32) {
      %c = arith.mulf %a, %small : f32
      linalg.yield %c : f32
    }
  %o, %t = linattn.scan %q, %kn, %v beta(%b) update(delta) into(%e) init(%s)
    : (tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x16x16xf32>)
    -> (tensor<1x2x?x16xf32>, tensor<1x2x16x16xf32>)
  return %o, %t : tensor<1x2x?x16xf32>, tensor<1x2x16x16xf32>
}
