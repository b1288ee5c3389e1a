// RUN: linattn-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(func.func(sharding-propagation,shard-partition))'

// Operations that cannot be split over processes.

!t = tensor<1x6x64x16xf32>
!s = tensor<1x6x16x16xf32>
shard.grid @grid(shape = 4)
func.func @sizes(%q: !t, %s: !s) -> (!t, !s) {
  %split = shard.sharding @grid split_axes = [[], [0]] : !shard.sharding
  %q0 = shard.shard %q to %split annotate_for_users : !t
  %e = tensor.empty() : !t
  // expected-error @+1 {{expected dimension 1 of operand 0 to be a multiple of the 4 processes it is split over, but got 6}}
  %r:2 = linattn.scan %q0, %q, %q into(%e) init(%s) : (!t, !t, !t, !t, !s) -> (!t, !s)
  return %r#0, %r#1 : !t, !s
}

// -----

!t = tensor<1x4x64x16xf32>
!s = tensor<1x4x16x16xf32>
shard.grid @grid(shape = 2)
func.func @keys(%q: !t, %s: !s) -> (!t, !s) {
  %split = shard.sharding @grid split_axes = [[], [], [], [0]] : !shard.sharding
  %q0 = shard.shard %q to %split annotate_for_users : !t
  %e = tensor.empty() : !t
  // expected-error @+1 {{expected batches, heads or tokens to be split, but got another dimension}}
  %r:2 = linattn.scan %q0, %q, %q into(%e) init(%s) : (!t, !t, !t, !t, !s) -> (!t, !s)
  return %r#0, %r#1 : !t, !s
}

// -----

!t = tensor<1x4x64x16xf32>
!s = tensor<3x4x16x16xf32>
shard.grid @grid(shape = 2)
func.func @packed(%q: !t, %s: !s, %cu: tensor<4xi32>) -> (!t, !s) {
  %split = shard.sharding @grid split_axes = [[], [], [0]] : !shard.sharding
  %q0 = shard.shard %q to %split annotate_for_users : !t
  %e = tensor.empty() : !t
  // expected-error @+1 {{cannot be split over tokens: its sequences start inside the parts}}
  %r:2 = linattn.scan %q0, %q, %q cu_seqlens(%cu) into(%e) init(%s) : (!t, !t, !t, tensor<4xi32>, !t, !s) -> (!t, !s)
  return %r#0, %r#1 : !t, !s
}

// -----

!t = tensor<1x4x64x16xf32>
shard.grid @grid(shape = 2)
func.func @causal(%q: !t) -> !t {
  %split = shard.sharding @grid split_axes = [[], [], [0]] : !shard.sharding
  %q0 = shard.shard %q to %split annotate_for_users : !t
  %e = tensor.empty() : !t
  // expected-error @+1 {{cannot be split over tokens: its queries see keys by their numbers; linattn-causal-to-scan makes a scan of it}}
  %r = linattn.quadratic %q0, %q, %q into(%e) {causal} : (!t, !t, !t, !t) -> !t
  return %r : !t
}
