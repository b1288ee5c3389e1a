// RUN: linattn-opt %s --linattn-lower-to-nvvm-pipeline=chip=sm_90a | linattn-translate --gpu-binary-to-assembly | FileCheck %s --implicit-check-not=__nv_ --implicit-check-not=.local --implicit-check-not=ldmatrix --implicit-check-not={{[^w]}}mma.sync
// RUN: linattn-opt %s --linattn-lower-to-nvvm-pipeline=chip=sm_90 | linattn-translate --gpu-binary-to-assembly | FileCheck %s --check-prefix=OLDER --implicit-check-not=wgmma

// OLDER: mma.sync.aligned

// CHECK: .target sm_90a
// CHECK-LABEL: .visible .entry softmax_quadratic(
// CHECK: .maxntid 256
// CHECK: cp.async.cg.shared.global [%{{.+}}], [%{{.+}}], 16, %{{.+}};
// The loop begins in its middle. Weights, from registers, by values, by rows.
// CHECK: wgmma.fence.sync.aligned;
// CHECK-COUNT-4: setp.ne.b32 accumulates, 1, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{{.*}}}, {%r{{[0-9]+}}, %r{{[0-9]+}}, %r{{[0-9]+}}, %r{{[0-9]+}}}, %rd{{[0-9]+}}, accumulates, 1, 1, 1;
// CHECK: wgmma.commit_group.sync.aligned;
// CHECK: wgmma.wait_group.sync.aligned 0;
// A fence before the barrier shows copied data to the warpgroups.
// CHECK: cp.async.wait_group 0;
// CHECK-NEXT: fence.proxy.async.shared::cta;
// CHECK-NEXT: bar.sync 0;
// Queries by keys, both in shared memory.
// CHECK: wgmma.fence.sync.aligned;
// CHECK: setp.ne.b32 accumulates, 0, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{{.*}}}, %rd{{[0-9]+}}, %rd{{[0-9]+}}, accumulates, 1, 1, 0, 0;
// CHECK-COUNT-3: setp.ne.b32 accumulates, 1, 0; wgmma.mma_async
// CHECK: wgmma.commit_group.sync.aligned;
// CHECK: wgmma.wait_group.sync.aligned 0;
// CHECK: st.global.v{{2.b64|4.b32}}
// CHECK: ret;
func.func @softmax(%q: tensor<2x8x?x64xbf16>, %k: tensor<2x8x?x64xbf16>, %v: tensor<2x8x?x64xbf16>)
    -> tensor<2x8x?x64xbf16> {
  %o = linattn.attention %q, %k, %v weights(softmax) {causal, scale = 0.125}
    : (tensor<2x8x?x64xbf16>, tensor<2x8x?x64xbf16>, tensor<2x8x?x64xbf16>) -> tensor<2x8x?x64xbf16>
  return %o : tensor<2x8x?x64xbf16>
}
