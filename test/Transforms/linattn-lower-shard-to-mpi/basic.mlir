// RUN: linattn-opt %s --linattn-lower-shard-to-mpi --split-input-file | FileCheck %s

// A send along one axis of a grid of two: the rank is the linear index.

shard.grid @grid(shape = 2x3)
// CHECK-LABEL: func.func @send(
// CHECK-SAME:    %[[X:.+]]: tensor<4x8xf32>, %[[TO:.+]]: index)
// CHECK-DAG:     %[[WORLD:.+]] = mpi.comm_world
// CHECK-DAG:     %[[I:.+]]:2 = shard.process_multi_index on @grid
// CHECK:         arith.addi %{{.+}}, %[[I]]#0
// CHECK:         %[[R:.+]] = arith.addi %{{.+}}, %[[TO]]
// CHECK:         %[[RANK:.+]] = arith.index_cast %[[R]] : index to i32
// CHECK:         %[[B:.+]] = bufferization.to_buffer %[[X]] read_only
// CHECK:         %[[ALL:.+]] = memref.collapse_shape %[[B]] {{\[\[}}0, 1]] : memref<4x8xf32> into memref<32xf32>
// CHECK:         mpi.send(%[[ALL]], %{{.+}}, %[[RANK]], %[[WORLD]]) : memref<32xf32>, i32, i32
func.func @send(%x: tensor<4x8xf32>, %to: index) {
  %0 = shard.send %x on @grid grid_axes = [1] destination = [%to] : (tensor<4x8xf32>, index) -> tensor<4x8xf32>
  return
}

// -----

// A size that is not known.

shard.grid @grid(shape = 2)
// CHECK-LABEL: func.func @receive(
// CHECK-SAME:    %[[X:.+]]: tensor<?xf32>)
// CHECK:         %[[N:.+]] = tensor.dim %[[X]]
// CHECK:         %[[B:.+]] = memref.alloc(%[[N]]) : memref<?xf32>
// CHECK:         mpi.recv(%[[B]],
// CHECK:         %[[T:.+]] = bufferization.to_tensor %[[B]] restrict writable
// CHECK:         return %[[T]]
func.func @receive(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = shard.recv %x on @grid grid_axes = [0] source = [1] : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

shard.grid @grid(shape = 3)
// CHECK-LABEL: func.func @broadcast(
// CHECK:         scf.if
// CHECK-COUNT-2:   mpi.send
// CHECK-NOT:       mpi.send
// CHECK:         else
// CHECK:           mpi.recv
func.func @broadcast(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = shard.broadcast %x on @grid grid_axes = [0] root = [2] : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Operations that convert-shard-to-mpi lowers are left to it.

shard.grid @grid(shape = 2)
// CHECK-LABEL: func.func @others(
// CHECK-NEXT:    shard.all_reduce
func.func @others(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = shard.all_reduce %x on @grid grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
