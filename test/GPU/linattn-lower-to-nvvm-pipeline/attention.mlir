// RUN: linattn-opt %s --linattn-lower-to-nvvm-pipeline=chip=sm_80 | linattn-translate --gpu-binary-to-assembly | FileCheck %s --implicit-check-not=__nv_ --implicit-check-not=.local

// CHECK-LABEL: .visible .entry softmax_quadratic(
// CHECK: .maxntid 128
// CHECK: cp.async.cg.shared.global [%{{.+}}], [%{{.+}}], 16, %{{.+}};
// CHECK: cp.async.commit_group;
// CHECK: cp.async.wait_group 1;
// CHECK: bar.sync 0;
// CHECK: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// The loop: the next tile is on its way while this one is multiplied.
// CHECK-DAG: cp.async.wait_group 0;
// CHECK-DAG: cp.async.cg.shared.global
// CHECK-DAG: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// CHECK-DAG: shfl.sync.bfly.b32
// CHECK-DAG: ex2.approx.ftz.f32
// CHECK-DAG: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// Outputs leave 16 bytes at a time.
// CHECK: bar.warp.sync -1;
// CHECK: ld.shared.v{{2.b64|4.b32}}
// CHECK: st.global.v{{2.b64|4.b32}}
// CHECK: ret;
func.func @softmax(%q: tensor<2x8x?x64xbf16>, %k: tensor<2x8x?x64xbf16>, %v: tensor<2x8x?x64xbf16>)
    -> tensor<2x8x?x64xbf16> {
  %o = linattn.attention %q, %k, %v weights(softmax) {causal, scale = 0.125}
    : (tensor<2x8x?x64xbf16>, tensor<2x8x?x64xbf16>, tensor<2x8x?x64xbf16>) -> tensor<2x8x?x64xbf16>
  return %o : tensor<2x8x?x64xbf16>
}

// Linear attention that is not causal: a state, and reads of it.
// CHECK-LABEL: .visible .entry linear_state(
// CHECK: cp.async.cg.shared.global [%{{.+}}], [%{{.+}}], 16, %{{.+}};
// CHECK: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// CHECK: st.global.v2.b32
// CHECK: ret;
// CHECK-LABEL: .visible .entry linear_read(
// CHECK: ld.global.{{(nc.)?}}v2.{{[bf]}}32
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// CHECK: st.global.v{{2.b64|4.b32}}
// CHECK: ret;
func.func @linear(%q: tensor<2x8x?x64xbf16>, %k: tensor<2x8x?x64xbf16>, %v: tensor<2x8x?x64xbf16>)
    -> tensor<2x8x?x64xbf16> {
  %o = linattn.attention %q, %k, %v
      {feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.0e-6>}
    : (tensor<2x8x?x64xbf16>, tensor<2x8x?x64xbf16>, tensor<2x8x?x64xbf16>) -> tensor<2x8x?x64xbf16>
  return %o : tensor<2x8x?x64xbf16>
}
