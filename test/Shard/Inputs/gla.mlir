// A gated recurrence whose tokens lie on PROCESSES processes.

shard.grid @grid(shape = PROCESSES)

func.func @gla(%q: tensor<2x4x192x32xf32>, %k: tensor<2x4x192x32xf32>, %v: tensor<2x4x192x16xf32>,
               %g: tensor<2x4x192x32xf32>, %s: tensor<2x4x32x16xf32>)
    -> (tensor<2x4x192x16xf32>, tensor<2x4x32x16xf32>) {
  %tokens = shard.sharding @grid split_axes = [[], [], [0]] : !shard.sharding
  %q0 = shard.shard %q to %tokens annotate_for_users : tensor<2x4x192x32xf32>
  %e = tensor.empty() : tensor<2x4x192x16xf32>
  %o:2 = linattn.scan %q0, %k, %v decay(%g) into(%e) init(%s) {DIRECTION}
    : (tensor<2x4x192x32xf32>, tensor<2x4x192x32xf32>, tensor<2x4x192x16xf32>, tensor<2x4x192x32xf32>,
       tensor<2x4x192x16xf32>, tensor<2x4x32x16xf32>) -> (tensor<2x4x192x16xf32>, tensor<2x4x32x16xf32>)
  return %o#0, %o#1 : tensor<2x4x192x16xf32>, tensor<2x4x32x16xf32>
}
