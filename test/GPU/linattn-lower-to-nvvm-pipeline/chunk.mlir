// RUN: linattn-opt %s --linattn-lower-to-nvvm-pipeline=chip=sm_80 | linattn-translate --gpu-binary-to-assembly | FileCheck %s --check-prefixes=CHECK,SM80 --implicit-check-not=__nv_ --implicit-check-not=.local
// RUN: linattn-opt %s --linattn-lower-to-nvvm-pipeline=chip=sm_90a | linattn-translate --gpu-binary-to-assembly | FileCheck %s --check-prefixes=CHECK,SM90 --implicit-check-not=__nv_ --implicit-check-not=.local
// RUN: linattn-opt %s --linattn-lower-to-nvvm-pipeline=chip=sm_100 | linattn-translate --gpu-binary-to-assembly | FileCheck %s --check-prefixes=CHECK,SM100 --implicit-check-not=__nv_ --implicit-check-not=.local

// The oldest PTX that knows the chip.
// SM80: .version 8.0
// SM80-NEXT: .target sm_80
// SM90: .version 8.0
// SM90-NEXT: .target sm_90a
// SM100: .version 8.6
// SM100-NEXT: .target sm_100

// CHECK: .extern .shared .align 1024 .b8 linattn_shared[];
// CHECK-LABEL: .visible .entry layer_scan(
// CHECK: .maxntid 128
// Chunks arrive 16 bytes at a time, with zeros behind the last token.
// CHECK: cp.async.cg.shared.global [%{{.+}}], [%{{.+}}], 16, %{{.+}};
// CHECK: cp.async.commit_group;
// CHECK: ld.global.v2.b32
// The loop: the next chunk is on its way while this one is multiplied.
// CHECK: cp.async.wait_group 0;
// CHECK: bar.sync 0;
// CHECK: cp.async.cg.shared.global
// CHECK: cp.async.commit_group;
// CHECK: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// CHECK: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// Outputs leave 16 bytes at a time.
// CHECK: bar.warp.sync -1;
// CHECK: ld.shared.v{{2.b64|4.b32}}
// CHECK: st.global.v{{2.b64|4.b32}}
// The state, after the loop.
// CHECK: st.global.v2.b32
// CHECK: ret;
func.func @layer(%q: tensor<2x8x?x64xbf16>, %k: tensor<2x8x?x64xbf16>,
                 %v: tensor<2x8x?x64xbf16>, %s: tensor<2x8x64x64xf32>)
    -> (tensor<2x8x?x64xbf16>, tensor<2x8x64x64xf32>) {
  %c2 = arith.constant 2 : index
  %t = tensor.dim %q, %c2 : tensor<2x8x?x64xbf16>
  %e = tensor.empty(%t) : tensor<2x8x?x64xbf16>
  %o:2 = linattn.scan %q, %k, %v into(%e) init(%s)
    : (tensor<2x8x?x64xbf16>, tensor<2x8x?x64xbf16>, tensor<2x8x?x64xbf16>,
       tensor<2x8x?x64xbf16>, tensor<2x8x64x64xf32>)
    -> (tensor<2x8x?x64xbf16>, tensor<2x8x64x64xf32>)
  return %o#0, %o#1 : tensor<2x8x?x64xbf16>, tensor<2x8x64x64xf32>
}
