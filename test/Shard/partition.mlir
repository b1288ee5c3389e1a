// RUN: linattn-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(sharding-propagation,shard-partition,canonicalize,cse))' | FileCheck %s

// Heads and batches are split without messages; states go with their heads.

!t = tensor<4x8x64x16xf32>
!s = tensor<4x8x16x16xf32>
shard.grid @grid(shape = 2x4)
// CHECK-LABEL: func.func @heads(
// CHECK-SAME:    %{{.+}}: tensor<2x2x64x16xf32>, %{{.+}}: tensor<2x2x64x16xf32>, %{{.+}}: tensor<2x2x64x16xf32>, %{{.+}}: tensor<2x2x16x16xf32>)
// CHECK-NOT:     shard.send
// CHECK:         linattn.scan {{.+}} -> (tensor<2x2x64x16xf32>, tensor<2x2x16x16xf32>)
// CHECK-NOT:     shard.broadcast
func.func @heads(%q: !t, %k: !t, %v: !t, %s: !s) -> (!t, !s) {
  %split = shard.sharding @grid split_axes = [[0], [1]] : !shard.sharding
  %q0 = shard.shard %q to %split annotate_for_users : !t
  %e = tensor.empty() : !t
  %r:2 = linattn.scan %q0, %k, %v into(%e) init(%s) : (!t, !t, !t, !t, !s) -> (!t, !s)
  return %r#0, %r#1 : !t, !s
}

// -----

// Grouped heads are split where both counts are; a scan from the last token on starts at the last process. Heads that
// differ in number go in one panel.

shard.grid @grid(shape = 2)
// CHECK-LABEL: func.func @reverse(
// CHECK:         %[[I:.+]] = shard.process_multi_index on @grid axes = [0]
// CHECK:         %[[WAITS:.+]] = arith.cmpi ne, %[[I]], %c1
// CHECK:         %[[S:.+]] = scf.if %[[WAITS]]
// CHECK:           %[[FROM:.+]] = arith.addi %[[I]], %c1
// CHECK:           shard.recv %{{.+}} on @grid grid_axes = [0] source = [%[[FROM]]]
// CHECK:         %[[R:.+]]:2 = linattn.scan {{.+}} init(%[[S]]) {reverse}
// CHECK:         %[[SENDS:.+]] = arith.cmpi ne, %[[I]], %c0
// CHECK:         scf.if %[[SENDS]]
// CHECK:           %[[TO:.+]] = arith.addi %[[I]], %c-1
// CHECK:           shard.send %[[R]]#1 on @grid grid_axes = [0] destination = [%[[TO]]]
// CHECK:         shard.broadcast %[[R]]#1 on @grid grid_axes = [0] root = [0]
func.func @reverse(%q: tensor<1x4x?x16xf32>, %k: tensor<1x2x?x16xf32>, %s: tensor<1x2x16x16xf32>, %e: tensor<1x4x?x16xf32>)
    -> (tensor<1x4x?x16xf32>, tensor<1x2x16x16xf32>) {
  %split = shard.sharding @grid split_axes = [[], [], [0]] : !shard.sharding
  %q0 = shard.shard %q to %split annotate_for_users : tensor<1x4x?x16xf32>
  %r:2 = linattn.scan %q0, %k, %k into(%e) init(%s) {reverse}
    : (tensor<1x4x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x4x?x16xf32>, tensor<1x2x16x16xf32>)
    -> (tensor<1x4x?x16xf32>, tensor<1x2x16x16xf32>)
  return %r#0, %r#1 : tensor<1x4x?x16xf32>, tensor<1x2x16x16xf32>
}

// -----

// Four panels of heads: a process works on one while the next works on the one before it.

!t = tensor<1x4x64x16xf32>
!s = tensor<1x4x16x16xf32>
shard.grid @grid(shape = 2)
// CHECK-LABEL: func.func @panels(
// CHECK-COUNT-4: linattn.scan {{.+}} -> (tensor<1x1x32x16xf32>, tensor<1x1x16x16xf32>)
// CHECK-NOT:     linattn.scan
func.func @panels(%q: !t, %k: !t, %v: !t, %s: !s) -> (!t, !s) {
  %split = shard.sharding @grid split_axes = [[], [], [0]] : !shard.sharding
  %q0 = shard.shard %q to %split annotate_for_users : !t
  %e = tensor.empty() : !t
  %r:2 = linattn.scan %q0, %k, %v into(%e) init(%s) : (!t, !t, !t, !t, !s) -> (!t, !s)
  return %r#0, %r#1 : !t, !s
}

// -----

// Reading a state takes no messages for any split.

!t = tensor<1x4x64x16xf32>
!s = tensor<1x4x16x16xf32>
shard.grid @grid(shape = 2)
// CHECK-LABEL: func.func @read(
// CHECK-NOT:     shard.recv
// CHECK:         linattn.read {{.+}} -> tensor<1x4x32x16xf32>
func.func @read(%q: !t, %s: !s) -> !t {
  %split = shard.sharding @grid split_axes = [[], [], [0]] : !shard.sharding
  %q0 = shard.shard %q to %split annotate_for_users : !t
  %e = tensor.empty() : !t
  %r = linattn.read %q0, %s into(%e) : (!t, !s, !t) -> !t
  return %r : !t
}
