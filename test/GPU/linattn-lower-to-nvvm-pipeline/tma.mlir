// RUN: linattn-opt %s "--linattn-lower-to-nvvm-pipeline=chip=sm_90a copy=tma" | linattn-translate --gpu-binary-to-assembly | FileCheck %s --implicit-check-not=__nv_ --implicit-check-not=.local --implicit-check-not=cp.async.cg --implicit-check-not=cp.async.ca
// RUN: linattn-opt %s "--linattn-lower-to-nvvm-pipeline=chip=sm_90 copy=tma" | linattn-translate --gpu-binary-to-assembly | FileCheck %s --check-prefix=OLDER --implicit-check-not=cp.async.bulk --implicit-check-not=mbarrier

// OLDER: .version 8.0
// OLDER: mma.sync.aligned

// Assemblers of older versions take strides of maps for units of 16 bytes.
// CHECK: .version 8.6
// CHECK: .target sm_90a
// CHECK-LABEL: .visible .entry softmax_quadratic(
// CHECK: .maxntid 256
// A warp makes maps of queries, keys and values.
// CHECK-COUNT-3: st.shared.b32 {{.*}}, 0;
// CHECK-NEXT: bar.warp.sync
// CHECK: tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r[[MAP:[0-9]+]]], %rd{{[0-9]+}};
// CHECK: tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r[[MAP]]], 1;
// CHECK: tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r[[MAP]]], 0,
// CHECK: tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r[[MAP]]], 1,
// CHECK: tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r[[MAP]]], 0,
// CHECK: tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r[[MAP]]], 1,
// CHECK: tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r[[MAP]]], 0,
// CHECK: tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r[[MAP]]], 3;
// CHECK-COUNT-2: tensormap.replace.tile.fill_mode
// CHECK-COUNT-3: mbarrier.init.shared.b64
// CHECK-NEXT: fence.proxy.async.shared::cta;
// CHECK: bar.warp.sync
// CHECK: tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd[[GLOBAL:[0-9]+]]], [%r{{[0-9]+}}], 128;
// CHECK: fence.proxy.tensormap::generic.acquire.gpu [%rd{{[0-9]+}}], 128;
// CHECK: bar.sync 0;
// Queries, then the first tile of keys and of values.
// CHECK: mbarrier.arrive.expect_tx.shared.b64
// CHECK-COUNT-1: cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes
// CHECK: mbarrier.arrive.expect_tx.shared.b64
// CHECK-COUNT-2: cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes
// CHECK: mbarrier.try_wait.parity.shared.b64
// The loop begins in its middle.
// CHECK: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16
// CHECK: bar.sync 0;
// CHECK: mbarrier.arrive.expect_tx.shared.b64
// CHECK-COUNT-2: cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes
// CHECK: mbarrier.try_wait.parity.shared.b64
// CHECK: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16
// CHECK: ret;
func.func @softmax(%q: tensor<2x8x?x64xbf16>, %k: tensor<2x8x?x64xbf16>, %v: tensor<2x8x?x64xbf16>)
    -> tensor<2x8x?x64xbf16> {
  %o = linattn.attention %q, %k, %v weights(softmax) {causal, scale = 0.125}
    : (tensor<2x8x?x64xbf16>, tensor<2x8x?x64xbf16>, tensor<2x8x?x64xbf16>) -> tensor<2x8x?x64xbf16>
  return %o : tensor<2x8x?x64xbf16>
}
