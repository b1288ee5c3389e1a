// How the chunk of a delta rule is divided: columns of the state and of the
// values are tasks, which solve for the errors of their own columns.

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %update = transform.structured.match ops{["linattn.chunk.update"]} in %root : (!transform.any_op) -> !transform.any_op
    %part, %tasks = transform.structured.tile_using_forall %update tile_sizes [1, 1, 0, 32]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %solve = transform.structured.match ops{["linattn.chunk.solve"]} in %root : (!transform.any_op) -> !transform.any_op
    %solved, %tasks_1 = transform.structured.fuse_into_containing_op %solve into %tasks
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
