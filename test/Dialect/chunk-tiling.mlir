// RUN: linattn-opt %s --transform-interpreter --canonicalize --cse --split-input-file | FileCheck %s

// Columns of the values and rows of the state are tiles of an update.

// CHECK-LABEL: func.func @update(
// CHECK-SAME:      %[[K:[a-z0-9]+]]: tensor<2x4x?x64xf32>, %[[V:[a-z0-9]+]]: tensor<2x4x?x48xf32>, %[[G:[a-z0-9]+]]: tensor<2x4x?x64xf32>, %[[H:[a-z0-9]+]]: tensor<2x4x?x48xf32>
// CHECK:         scf.for %[[ROW:.+]] = %c0 to %c64 step %c16
// CHECK:           scf.for %[[COLUMN:.+]] = %c0 to %c48 step %c32 iter_args(%[[S:.+]] =
// CHECK:             %[[SIZE:.+]] = affine.min #{{.+}}(%[[COLUMN]])
// CHECK-DAG:         %[[KT:.+]] = tensor.extract_slice %[[K]][0, 0, 0, %[[ROW]]] [2, 4, %{{.+}}, 16]
// CHECK-DAG:         %[[VT:.+]] = tensor.extract_slice %[[V]][0, 0, 0, %[[COLUMN]]] [2, 4, %{{.+}}, %[[SIZE]]]
// CHECK-DAG:         %[[GT:.+]] = tensor.extract_slice %[[G]][0, 0, 0, %[[ROW]]] [2, 4, %{{.+}}, 16]
// CHECK-DAG:         %[[HT:.+]] = tensor.extract_slice %[[H]][0, 0, 0, %[[COLUMN]]] [2, 4, %{{.+}}, %[[SIZE]]]
// CHECK-DAG:         %[[ST:.+]] = tensor.extract_slice %[[S]][0, 0, %[[ROW]], %[[COLUMN]]] [2, 4, 16, %[[SIZE]]]
// CHECK:             linattn.chunk.update keys(%[[KT]]) values(%[[VT]]) decay(%[[GT]]) value_decay(%[[HT]]) into(%[[ST]])
func.func @update(%k: tensor<2x4x?x64xf32>, %v: tensor<2x4x?x48xf32>, %g: tensor<2x4x?x64xf32>, %h: tensor<2x4x?x48xf32>, %s: tensor<2x4x64x48xf32>) -> tensor<2x4x64x48xf32> {
  %r = linattn.chunk.update keys(%k) values(%v) decay(%g) value_decay(%h) into(%s)
    : (tensor<2x4x?x64xf32>, tensor<2x4x?x48xf32>, tensor<2x4x?x64xf32>, tensor<2x4x?x48xf32>, tensor<2x4x64x48xf32>) -> tensor<2x4x64x48xf32>
  return %r : tensor<2x4x64x48xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %op = transform.structured.match ops{["linattn.chunk.update"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops:2 = transform.structured.tile_using_for %op tile_sizes [0, 0, 16, 32]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Heads and columns of a read are tasks. A tile of columns needs all of the rows
// and scores, and its columns of the state, or with `transpose` its rows.

// CHECK-LABEL: func.func @read(
// CHECK-SAME:      %[[X:[a-z0-9]+]]: tensor<2x4x8x64xf32>, %[[S:[a-z0-9]+]]: tensor<2x4x64x64xf32>, %[[P:[a-z0-9]+]]: tensor<2x4x8x8xf32>
// CHECK:         scf.forall (%[[H:.+]], %[[N:.+]]) in (4, 2)
// CHECK-DAG:       %[[COLUMN:.+]] = affine.apply #{{.+}}(%[[N]])
// CHECK-DAG:       tensor.extract_slice %[[X]][0, %[[H]], 0, 0] [2, 1, 8, 64]
// CHECK-DAG:       tensor.extract_slice %[[S]][0, %[[H]], 0, %[[COLUMN]]] [2, 1, 64, 32]
// CHECK-DAG:       tensor.extract_slice %[[P]][0, %[[H]], 0, 0] [2, 1, 8, 8]
// CHECK-DAG:       tensor.extract_slice %[[X]][0, %[[H]], 0, %[[COLUMN]]] [2, 1, 8, 32]
// CHECK:           linattn.chunk.read
// CHECK-SAME:        (tensor<2x1x8x64xf32>, tensor<2x1x64x32xf32>, tensor<2x1x8x8xf32>, tensor<2x1x8x32xf32>, tensor<2x1x8x32xf32>, tensor<2x1x8x32xf32>) -> tensor<2x1x8x32xf32>
// CHECK:         scf.forall (%[[H:.+]], %[[N:.+]]) in (4, 2)
// CHECK-DAG:       %[[ROW:.+]] = affine.apply #{{.+}}(%[[N]])
// CHECK-DAG:       tensor.extract_slice %[[S]][0, %[[H]], %[[ROW]], 0] [2, 1, 32, 64]
// CHECK:           linattn.chunk.read {{.+}} {transpose}
func.func @read(%x: tensor<2x4x8x64xf32>, %s: tensor<2x4x64x64xf32>, %p: tensor<2x4x8x8xf32>) -> (tensor<2x4x8x64xf32>, tensor<2x4x8x64xf32>) {
  %r = linattn.chunk.read %x, %s scores(%p) values(%x) decay(%x) into(%x)
    : (tensor<2x4x8x64xf32>, tensor<2x4x64x64xf32>, tensor<2x4x8x8xf32>, tensor<2x4x8x64xf32>, tensor<2x4x8x64xf32>, tensor<2x4x8x64xf32>) -> tensor<2x4x8x64xf32>
  %t = linattn.chunk.read %x, %s into(%x) {transpose}
    : (tensor<2x4x8x64xf32>, tensor<2x4x64x64xf32>, tensor<2x4x8x64xf32>) -> tensor<2x4x8x64xf32>
  return %r, %t : tensor<2x4x8x64xf32>, tensor<2x4x8x64xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %op = transform.structured.match ops{["linattn.chunk.read"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops = transform.structured.tile_using_forall %op tile_sizes [0, 1, 32]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Heads that share a state run whole; columns do not.

// CHECK-LABEL: func.func @grouped(
// CHECK:         scf.for %[[N:.+]] = %c0 to %c64 step %c32
// CHECK:           tensor.extract_slice %{{.+}}[0, 0, 0, %[[N]]] [2, 2, 64, 32]
// CHECK:           linattn.chunk.read {{.+}} (tensor<2x4x8x64xf32>, tensor<2x2x64x32xf32>, tensor<2x4x8x32xf32>) -> tensor<2x4x8x32xf32>
func.func @grouped(%x: tensor<2x4x8x64xf32>, %s: tensor<2x2x64x64xf32>) -> tensor<2x4x8x64xf32> {
  %r = linattn.chunk.read %x, %s into(%x)
    : (tensor<2x4x8x64xf32>, tensor<2x2x64x64xf32>, tensor<2x4x8x64xf32>) -> tensor<2x4x8x64xf32>
  return %r : tensor<2x4x8x64xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %op = transform.structured.match ops{["linattn.chunk.read"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %op tile_sizes [0, 0, 32]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Tokens are tiles where each is a row of its own, of any number.

// CHECK-LABEL: func.func @pack(
// CHECK-SAME:      %[[X:[a-z0-9]+]]: tensor<2x4x?x64xbf16>, %[[I:[a-z0-9]+]]: tensor<2x4x?xf32>, %[[G:[a-z0-9]+]]: tensor<2x4x?x64xf32>, %[[M:[a-z0-9]+]]: tensor<2x?xi1>
// CHECK:         scf.for %[[T:.+]] = %c0 to %{{.+}} step %c4
// CHECK:           %[[SIZE:.+]] = affine.min #{{.+}}(%[[T]])
// CHECK-DAG:       %[[XT:.+]] = tensor.extract_slice %[[X]][0, 0, %[[T]], 0] [2, 4, %[[SIZE]], 64]
// CHECK-DAG:       %[[IT:.+]] = tensor.extract_slice %[[I]][0, 0, %[[T]]] [2, 4, %[[SIZE]]]
// CHECK-DAG:       %[[GT:.+]] = tensor.extract_slice %[[G]][0, 0, %[[T]], 0] [2, 4, %[[SIZE]], 64]
// CHECK-DAG:       %[[MT:.+]] = tensor.extract_slice %[[M]][0, %[[T]]] [2, %[[SIZE]]]
// CHECK:           %[[Y:.+]] = linattn.chunk.pack %[[XT]] shift(%[[IT]]) gate(%[[GT]]) mask(%[[MT]]) scale(%{{.+}})
// CHECK:           tensor.insert_slice %[[Y]] into %{{.+}}[0, 0, %[[T]], 0] [2, 4, %[[SIZE]], 64]
func.func @pack(%x: tensor<2x4x?x64xbf16>, %i: tensor<2x4x?xf32>, %g: tensor<2x4x?x64xf32>, %m: tensor<2x?xi1>, %scale: f64, %y: tensor<2x4x?x64xf32>) -> tensor<2x4x?x64xf32> {
  %r = linattn.chunk.pack %x shift(%i) gate(%g) mask(%m) scale(%scale) into(%y)
    : (tensor<2x4x?x64xbf16>, tensor<2x4x?xf32>, tensor<2x4x?x64xf32>, tensor<2x?xi1>, f64, tensor<2x4x?x64xf32>) -> tensor<2x4x?x64xf32>
  return %r : tensor<2x4x?x64xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %op = transform.structured.match ops{["linattn.chunk.pack"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %op tile_sizes [0, 0, 4]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Tokens in the other order are one tile: the third loop is that of columns.

// CHECK-LABEL: func.func @reversed(
// CHECK:         scf.for %[[N:.+]] = %c0 to %c64 step %c32
// CHECK:           linattn.chunk.pack {{.+}} {reverse} : (tensor<2x4x8x32xf32>, tensor<2x4x8x32xf32>) -> tensor<2x4x8x32xf32>
// CHECK:         scf.for %[[N:.+]] = %c0 to %c64 step %c32
// CHECK:           linattn.chunk.unpack {{.+}} {reverse} : (tensor<2x4x8x32xf32>, tensor<2x4x8x32xf32>) -> tensor<2x4x8x32xf32>
func.func @reversed(%x: tensor<2x4x8x64xf32>) -> tensor<2x4x8x64xf32> {
  %r = linattn.chunk.pack %x into(%x) {reverse} : (tensor<2x4x8x64xf32>, tensor<2x4x8x64xf32>) -> tensor<2x4x8x64xf32>
  %o = linattn.chunk.unpack %r into(%x) {reverse} : (tensor<2x4x8x64xf32>, tensor<2x4x8x64xf32>) -> tensor<2x4x8x64xf32>
  return %o : tensor<2x4x8x64xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %ops = transform.structured.match ops{["linattn.chunk.pack", "linattn.chunk.unpack"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops = transform.structured.tile_using_for %ops tile_sizes [0, 0, 32]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// A quotient by the denominators of the same tokens.

// CHECK-LABEL: func.func @unpack(
// CHECK-SAME:      %[[Y:[a-z0-9]+]]: tensor<2x4x8x64xf32>, %[[D:[a-z0-9]+]]: tensor<2x4x8x1xf32>, %[[M:[a-z0-9]+]]: tensor<2x4x8xf32>
// CHECK:         scf.for %[[T:.+]] = %c0 to %c8 step %c2
// CHECK:           scf.for %[[N:.+]] = %c0 to %c64 step %c32
// CHECK-DAG:         tensor.extract_slice %[[Y]][0, 0, %[[T]], %[[N]]] [2, 4, 2, 32]
// CHECK-DAG:         tensor.extract_slice %[[D]][0, 0, %[[T]], 0] [2, 4, 2, 1]
// CHECK-DAG:         tensor.extract_slice %[[M]][0, 0, %[[T]]] [2, 4, 2]
func.func @unpack(%y: tensor<2x4x8x64xf32>, %d: tensor<2x4x8x1xf32>, %m: tensor<2x4x8xf32>) -> tensor<2x4x8x64xf32> {
  %o = linattn.chunk.unpack %y denominator(%d) running_max(%m) into(%y) {normalize = #linattn.normalize<abs_floor = 1.0>}
    : (tensor<2x4x8x64xf32>, tensor<2x4x8x1xf32>, tensor<2x4x8xf32>, tensor<2x4x8x64xf32>) -> tensor<2x4x8x64xf32>
  return %o : tensor<2x4x8x64xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %op = transform.structured.match ops{["linattn.chunk.unpack"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops:2 = transform.structured.tile_using_for %op tile_sizes [0, 0, 2, 32]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Columns are independent in a decay and in forward substitution, tokens are not.

// CHECK-LABEL: func.func @columns(
// CHECK-SAME:      %[[X:[a-z0-9]+]]: tensor<2x4x8x64xf32>, %[[G:[a-z0-9]+]]: tensor<2x4x8xf32>, %[[A:[a-z0-9]+]]: tensor<2x4x8x8xf32>
// CHECK:         scf.for %[[N:.+]] = %c0 to %c64 step %c32
// CHECK:           linattn.chunk.decay {{.+}} by(%[[G]]) {{.+}} (tensor<2x4x8x32xf32>, tensor<2x4x8xf32>, tensor<2x4x8x32xf32>)
// CHECK:         scf.for %[[N:.+]] = %c0 to %c64 step %c32
// CHECK:           linattn.chunk.decay {{.+}} {to_end} : (tensor<2x4x8x32xf32>, tensor<2x4x8x32xf32>, tensor<2x4x8x32xf32>)
// CHECK:         scf.for %[[N:.+]] = %c0 to %c64 step %c32
// CHECK:           linattn.chunk.solve %[[A]] gate(%{{.+}}) {{.+}} (tensor<2x4x8x8xf32>, tensor<2x4x8x32xf32>, tensor<2x4x8x32xf32>)
func.func @columns(%x: tensor<2x4x8x64xf32>, %g: tensor<2x4x8xf32>, %a: tensor<2x4x8x8xf32>) -> (tensor<2x4x8x64xf32>, tensor<2x4x8x64xf32>, tensor<2x4x8x64xf32>) {
  %d = linattn.chunk.decay %x by(%g) into(%x) : (tensor<2x4x8x64xf32>, tensor<2x4x8xf32>, tensor<2x4x8x64xf32>) -> tensor<2x4x8x64xf32>
  %e = linattn.chunk.decay %x by(%x) into(%x) {to_end} : (tensor<2x4x8x64xf32>, tensor<2x4x8x64xf32>, tensor<2x4x8x64xf32>) -> tensor<2x4x8x64xf32>
  %s = linattn.chunk.solve %a gate(%x) into(%x) : (tensor<2x4x8x8xf32>, tensor<2x4x8x64xf32>, tensor<2x4x8x64xf32>) -> tensor<2x4x8x64xf32>
  return %d, %e, %s : tensor<2x4x8x64xf32>, tensor<2x4x8x64xf32>, tensor<2x4x8x64xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %ops = transform.structured.match ops{["linattn.chunk.decay", "linattn.chunk.solve"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops = transform.structured.tile_using_for %ops tile_sizes [0, 0, 32]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Scores and maxima are tiled over batch elements and heads alone.

// CHECK-LABEL: func.func @heads(
// CHECK:         scf.forall (%[[B:.+]], %[[H:.+]]) in (2, 4)
// CHECK-DAG:       tensor.extract_slice %{{.+}}[%[[H]], 0] [1, 64]
// CHECK:           linattn.chunk.scores {{.+}} {before, strict} : (tensor<1x1x8x64xf32>, tensor<1x1x8x64xf32>, tensor<1x1x8xf32>, tensor<1x64xf32>, tensor<1x1x8x8xf32>)
// CHECK:         %{{.+}}:3 = scf.forall (%[[B:.+]], %[[H:.+]]) in (2, 4)
// CHECK-DAG:       tensor.extract_slice %{{.+}}[%[[B]], %[[H]]] [1, 1]
// CHECK:           linattn.chunk.stabilize {{.+}} (tensor<1x1x8xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>, tensor<1x1xf32>)
func.func @heads(%x: tensor<2x4x8x64xf32>, %g: tensor<2x4x8xf32>, %u: tensor<4x64xf32>, %p: tensor<2x4x8x8xf32>, %m: tensor<2x4xf32>) -> (tensor<2x4x8x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>) {
  %r = linattn.chunk.scores %x, %x decay(%g) bonus(%u) into(%p) {strict, before}
    : (tensor<2x4x8x64xf32>, tensor<2x4x8x64xf32>, tensor<2x4x8xf32>, tensor<4x64xf32>, tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %s:3 = linattn.chunk.stabilize %g decay(%g) into(%g, %g) init(%m)
    : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>)
  return %r, %s#0, %s#1, %s#2 : tensor<2x4x8x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %ops = transform.structured.match ops{["linattn.chunk.scores", "linattn.chunk.stabilize"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loops = transform.structured.tile_using_forall %ops tile_sizes [1, 1]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Tiles become linalg.

// CHECK-LABEL: func.func @decomposed(
// CHECK:         scf.for
// CHECK-NOT:       linattn.chunk
// CHECK:           linalg.generic
// CHECK-NOT:       linattn.chunk
// CHECK:         return
func.func @decomposed(%x: tensor<2x4x8x64xf32>, %g: tensor<2x4x8xf32>) -> tensor<2x4x8x64xf32> {
  %d = linattn.chunk.decay %x by(%g) into(%x) : (tensor<2x4x8x64xf32>, tensor<2x4x8xf32>, tensor<2x4x8x64xf32>) -> tensor<2x4x8x64xf32>
  return %d : tensor<2x4x8x64xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %op = transform.structured.match ops{["linattn.chunk.decay"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %op tile_sizes [0, 0, 32]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %linalg = transform.structured.decompose_interface %tiled : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
