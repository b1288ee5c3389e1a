// RUN: linattn-opt %s --linattn-lower-to-nvvm-pipeline=chip=sm_80 | linattn-translate --gpu-binary-to-assembly | FileCheck %s --implicit-check-not=__nv_ --implicit-check-not=.local

// CHECK-LABEL: .visible .entry layer_scan(
// CHECK: .maxntid 256
// CHECK: cp.async.cg.shared.global [%{{.+}}], [%{{.+}}], 16, %{{.+}};
// CHECK: cp.async.commit_group;
// CHECK: ld.global.b32
// The update of the state turns keys around.
// CHECK: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// CHECK: cp.async.wait_group 0;
// CHECK: bar.sync 0;
// Levels of scores.
// CHECK: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK: ex2.approx.ftz.f32
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// CHECK: bar.sync 0;
// The inverse.
// CHECK: shfl.sync.idx.b32
// CHECK: bar.sync 0;
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// Outputs leave 16 bytes at a time, the state by eight lanes 32 bytes.
// CHECK: st.global.v{{2.b64|4.b32}}
// CHECK: st.global.b32
// CHECK: ret;
func.func @layer(%q: tensor<2x8x?x128xbf16>, %k: tensor<2x8x?x128xbf16>, %v: tensor<2x8x?x128xbf16>,
                 %g: tensor<2x8x?x128xf32>, %b: tensor<2x8x?xf32>, %s: tensor<2x8x128x128xf32>)
    -> (tensor<2x8x?x128xbf16>, tensor<2x8x128x128xf32>) {
  %c2 = arith.constant 2 : index
  %t = tensor.dim %q, %c2 : tensor<2x8x?x128xbf16>
  %e = tensor.empty(%t) : tensor<2x8x?x128xbf16>
  %o:2 = linattn.scan %q, %k, %v decay(%g) beta(%b) update(delta) into(%e) init(%s)
    : (tensor<2x8x?x128xbf16>, tensor<2x8x?x128xbf16>, tensor<2x8x?x128xbf16>, tensor<2x8x?x128xf32>,
       tensor<2x8x?xf32>, tensor<2x8x?x128xbf16>, tensor<2x8x128x128xf32>)
    -> (tensor<2x8x?x128xbf16>, tensor<2x8x128x128xf32>)
  return %o#0, %o#1 : tensor<2x8x?x128xbf16>, tensor<2x8x128x128xf32>
}
