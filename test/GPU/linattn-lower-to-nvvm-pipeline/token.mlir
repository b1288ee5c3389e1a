// RUN: linattn-opt %s --linattn-lower-to-nvvm-pipeline=chip=sm_80 | linattn-translate --gpu-binary-to-assembly | FileCheck %s --implicit-check-not=__nv_ --implicit-check-not=.local

// A step reads the state once and writes it once, 16 bytes at a time.
// CHECK-LABEL: .visible .entry step_scan(
// CHECK: .maxntid 256
// CHECK-COUNT-16: ld.global.v4.b32
// CHECK: bar.sync 0;
// CHECK: ld.shared.v4.b32
// CHECK: shfl.sync.bfly.b32
// CHECK-COUNT-16: st.global.v4.b32
// CHECK-NOT: st.global.v4
// CHECK: ret;
func.func @step(%q: tensor<2x8x1x128xbf16>, %k: tensor<2x8x1x128xbf16>,
                %v: tensor<2x8x1x128xbf16>, %g: tensor<2x8x1x128xf32>,
                %s: tensor<2x8x128x128xf32>)
    -> (tensor<2x8x1x128xbf16>, tensor<2x8x128x128xf32>) {
  %e = tensor.empty() : tensor<2x8x1x128xbf16>
  %o:2 = linattn.scan %q, %k, %v decay(%g) into(%e) init(%s)
    : (tensor<2x8x1x128xbf16>, tensor<2x8x1x128xbf16>, tensor<2x8x1x128xbf16>,
       tensor<2x8x1x128xf32>, tensor<2x8x1x128xbf16>, tensor<2x8x128x128xf32>)
    -> (tensor<2x8x1x128xbf16>, tensor<2x8x128x128xf32>)
  return %o#0, %o#1 : tensor<2x8x1x128xbf16>, tensor<2x8x128x128xf32>
}
