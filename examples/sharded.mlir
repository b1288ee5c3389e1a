// Gated linear attention whose tokens lie on two processes: linattn-opt
// --linattn-partition-pipeline makes what each of them runs.

!tokens = tensor<1x8x4096x64xf32>
!state = tensor<1x8x64x64xf32>

shard.grid @grid(shape = 2)

func.func @layer(%q: !tokens, %k: !tokens, %v: !tokens, %g: !tokens, %s: !state) -> (!tokens, !state) {
  %tokens = shard.sharding @grid split_axes = [[], [], [0]] : !shard.sharding
  %q0 = shard.shard %q to %tokens annotate_for_users : !tokens
  %e = tensor.empty() : !tokens
  %o:2 = linattn.scan %q0, %k, %v decay(%g) into(%e) init(%s)
    : (!tokens, !tokens, !tokens, !tokens, !tokens, !state) -> (!tokens, !state)
  return %o#0, %o#1 : !tokens, !state
}
