// RUN: linattn-opt %s --linattn-lower-shard-to-mpi --split-input-file --verify-diagnostics

shard.grid @grid(shape = ?)
func.func @open(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected a grid of known sizes, but got @grid}}
  %0 = shard.send %x on @grid grid_axes = [0] destination = [1] : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

shard.grid @grid(shape = 2)
func.func @anyone(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{expected a source, but got none}}
  %0 = shard.recv %x on @grid grid_axes = [0] : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

shard.grid @grid(shape = 2x2)
func.func @plane(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{expected one axis of the grid, but got 2}}
  %0 = shard.broadcast %x on @grid grid_axes = [0, 1] root = [1, 1] : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
