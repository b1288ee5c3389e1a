// RUN: linattn-opt %s --linattn-to-gpu-pipeline | FileCheck %s
// RUN: linattn-opt %s --linattn-lower-to-nvvm-pipeline=chip=sm_80 | linattn-translate --gpu-binary-to-assembly | FileCheck %s --check-prefix=PTX --implicit-check-not=__nv_

// Ops without a kernel become loops over threads.
// CHECK-LABEL: func.func @read(
// CHECK: gpu.launch_func
// CHECK: gpu.module
// CHECK: gpu.func
// CHECK-SAME: kernel
// CHECK: math.exp

// PTX: .version 8.0
// PTX: .entry
// The exponential is a polynomial.
// PTX: fma.rn.f32
func.func @read(%q: tensor<2x8x16x64xf32>, %s: tensor<2x8x64x64xf32>) -> tensor<2x8x16x64xf32> {
  %e = tensor.empty() : tensor<2x8x16x64xf32>
  %o = linattn.read %q, %s into(%e) {feature_map = #linattn.feature_map<softmax_kernel>}
    : (tensor<2x8x16x64xf32>, tensor<2x8x64x64xf32>, tensor<2x8x16x64xf32>) -> tensor<2x8x16x64xf32>
  return %o : tensor<2x8x16x64xf32>
}
