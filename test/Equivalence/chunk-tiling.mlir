// RUN: sed '/@dynamic/,/^}/d' %S/expand-form.mlir > %t.scans.mlir
// RUN: linattn-opt %t.scans.mlir --linattn-expand-form=chunk-size=3 --transform-preload-library=transform-library-paths=%s --transform-interpreter --canonicalize --cse -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: linattn-run %t.mlir %t.scans.mlir --all --open-size=7 --compare=exact
// RUN: linattn-opt %S/../../examples/delta_rule.mlir --linattn-expand-form --transform-preload-library=transform-library-paths=%S/../../examples/columns.mlir --transform-interpreter -o %t.delta.mlir
// RUN: linattn-run %t.delta.mlir %S/../../examples/delta_rule.mlir --open-size=20 --compare=exact

// Chunks of every clause of a scan whose ops are tiled: in prime fields what the
// scan says, with tiles that the sizes of 3 and 7 leave over. (A dynamic number
// of heads has no tiles.)

// CHECK-DAG: linattn.chunk.update {{.*}} -> tensor<1x2x2x?xf32>
// CHECK-DAG: linattn.chunk.read {{.*}} -> tensor<1x4x?x?xf32>
// CHECK-DAG: linattn.chunk.solve {{.*}} -> tensor<1x2x?x?xf32>
// CHECK-DAG: linattn.chunk.decay {{.*}} -> tensor<1x2x?x2xf32>
// CHECK-DAG: linattn.chunk.unpack {{.*}} -> tensor<1x4x?x?xf32>
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %updates = transform.structured.match ops{["linattn.chunk.update"]} in %root : (!transform.any_op) -> !transform.any_op
    %update, %loops:2 = transform.structured.tile_using_for %updates tile_sizes [0, 0, 2, 2]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %columns = transform.structured.match ops{["linattn.chunk.decay", "linattn.chunk.solve", "linattn.chunk.read", "linattn.chunk.unpack"]} in %root : (!transform.any_op) -> !transform.any_op
    %column, %loop = transform.structured.tile_using_for %columns tile_sizes [0, 0, 2]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %batches = transform.structured.match ops{["linattn.chunk.pack", "linattn.chunk.scores", "linattn.chunk.stabilize"]} in %root : (!transform.any_op) -> !transform.any_op
    %batch, %tasks = transform.structured.tile_using_forall %batches tile_sizes [1]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
