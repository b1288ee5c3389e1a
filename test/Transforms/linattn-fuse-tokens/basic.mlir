// RUN: linattn-opt %s --linattn-fuse-tokens --split-input-file | FileCheck %s

#rows = affine_map<(b, h, t, d) -> (b, h, t, d)>
#sums = affine_map<(b, h, t, d) -> (b, h, t)>

// A row sum and two ops behind a scan, token by token in blocks of 32; the last
// block is shorter. Their result takes the place of the scan's, which nothing
// else reads.

// CHECK: #[[SIZE:.+]] = affine_map<(d0){{.*}} -> (32, {{.*}}-d0 + 70{{.*}})>
// CHECK-LABEL: func.func @behind(
// CHECK-SAME: %[[X:[^:]+]]: tensor<1x2x70x4xf32>, %[[Y:[^:]+]]: tensor<1x2x70x4xf32>
// CHECK-DAG: %[[ZERO:.+]] = arith.constant 0.0
// CHECK: %[[O:.+]]:2 = linattn.scan
// CHECK: %[[R:.+]] = scf.forall (%[[B:.+]], %[[T:.+]], %[[H:.+]]) = (0, 0, 0) to (1, 70, 2) step (1, 32, 1) shared_outs(%[[ALL:.+]] = %[[O]]#0) -> (tensor<1x2x70x4xf32>)
// CHECK: %[[N:.+]] = affine.min #[[SIZE]](%[[T]])
// CHECK: %[[BLOCK:.+]] = tensor.extract_slice %[[ALL]][%[[B]], %[[H]], %[[T]], 0] [1, 1, %[[N]], 4]
// CHECK: %[[ROWS:.+]] = scf.for %[[I:.+]] = %{{.+}} to %[[N]] step %{{.+}} iter_args(%[[TILE:.+]] = %[[BLOCK]])
// CHECK: %[[TOKEN:.+]] = arith.addi %[[T]], %[[I]]
// CHECK: %[[XROW:.+]] = vector.transfer_read %[[X]][%[[B]], %[[H]], %[[TOKEN]], %{{.+}} : tensor<1x2x70x4xf32>, vector<4xf32>
// CHECK: %[[YROW:.+]] = vector.transfer_read %[[Y]][%[[B]], %[[H]], %[[TOKEN]],
// CHECK: %[[XY:.+]] = arith.mulf %[[XROW]], %[[YROW]]
// CHECK: %[[DOT:.+]] = vector.reduction <add>, %[[XY]], %[[ZERO]] : vector<4xf32> into f32
// CHECK: %[[OROW:.+]] = vector.transfer_read %[[TILE]][%{{.+}}, %{{.+}}, %[[I]], %{{.+}} : tensor<1x1x?x4xf32>, vector<4xf32>
// CHECK: %[[FACTOR:.+]] = vector.broadcast %[[DOT]]
// CHECK: %[[SCALED:.+]] = arith.mulf %[[FACTOR]], %[[OROW]]
// CHECK: %[[LAST:.+]] = arith.addf %[[SCALED]], %[[YROW]]
// CHECK: %[[NEXT:.+]] = vector.transfer_write %[[LAST]], %[[TILE]][%{{.+}}, %{{.+}}, %[[I]],
// CHECK: scf.yield %[[NEXT]]
// CHECK: tensor.parallel_insert_slice %[[ROWS]] into %[[ALL]][%[[B]], %[[H]], %[[T]], 0]
// CHECK-NOT: linalg.generic
// CHECK: return %[[R]] :
func.func @behind(%x: tensor<1x2x70x4xf32>, %y: tensor<1x2x70x4xf32>, %s: tensor<1x2x4x4xf32>) -> tensor<1x2x70x4xf32> attributes {linattn.gradient} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2x70x4xf32>
  %e3 = tensor.empty() : tensor<1x2x70xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%e3 : tensor<1x2x70xf32>) -> tensor<1x2x70xf32>
  %dot = linalg.generic {indexing_maps = [#rows, #rows, #sums], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %y : tensor<1x2x70x4xf32>, tensor<1x2x70x4xf32>) outs(%fill : tensor<1x2x70xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<1x2x70xf32>
  %o:2 = linattn.scan %x, %y, %x into(%e) init(%s)
    : (tensor<1x2x70x4xf32>, tensor<1x2x70x4xf32>, tensor<1x2x70x4xf32>, tensor<1x2x70x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x70x4xf32>, tensor<1x2x4x4xf32>)
  %scaled = linalg.generic {indexing_maps = [#sums, #rows, #rows], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%dot, %o#0 : tensor<1x2x70xf32>, tensor<1x2x70x4xf32>) outs(%e : tensor<1x2x70x4xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<1x2x70x4xf32>
  %last = linalg.generic {indexing_maps = [#rows, #rows, #rows], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%scaled, %y : tensor<1x2x70x4xf32>, tensor<1x2x70x4xf32>) outs(%e : tensor<1x2x70x4xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<1x2x70x4xf32>
  return %last : tensor<1x2x70x4xf32>
}

// -----

#rows = affine_map<(b, h, t, d) -> (b, h, t, d)>

// Ops on either side of a scan are loops of their own: each stays as it is.
// Sizes that are not known are those of an operand. The scan's result stands in
// memory of the caller's, and is not overwritten.

// CHECK-LABEL: func.func @around(
// CHECK: linalg.generic
// CHECK: linattn.scan
// CHECK: %[[ONE:.+]] = tensor.empty
// CHECK: %[[TWO:.+]] = tensor.empty
// CHECK: scf.forall (%{{.+}}, %{{.+}}, %{{.+}}) = (0, 0, 0) to (%{{.+}}, %{{.+}}, 2) step (1, 32, 1) shared_outs(%{{.+}} = %[[ONE]], %{{.+}} = %[[TWO]])
// CHECK: math.exp {{.+}} : vector<4xf32>
// CHECK: arith.addf {{.+}} : vector<4xf32>
// CHECK: vector.transfer_write
// CHECK: vector.transfer_write
// CHECK: parallel_insert_slice
// CHECK: parallel_insert_slice
func.func @around(%x: tensor<?x2x?x4xf32>, %e: tensor<?x2x?x4xf32>, %s: tensor<?x2x4x4xf32>) -> (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) attributes {linattn.gradient} {
  %before = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : tensor<?x2x?x4xf32>) outs(%e : tensor<?x2x?x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  } -> tensor<?x2x?x4xf32>
  %o:2 = linattn.scan %x, %before, %x into(%e) init(%s)
    : (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>, tensor<?x2x4x4xf32>) -> (tensor<?x2x?x4xf32>, tensor<?x2x4x4xf32>)
  %one = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%o#0 : tensor<?x2x?x4xf32>) outs(%e : tensor<?x2x?x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  } -> tensor<?x2x?x4xf32>
  %two = linalg.generic {indexing_maps = [#rows, #rows, #rows], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%one, %x : tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) outs(%e : tensor<?x2x?x4xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<?x2x?x4xf32>
  return %one, %two : tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>
}

// -----

#rows = affine_map<(b, h, t, d) -> (b, h, t, d)>
#others = affine_map<(b, h, t, d) -> (b, t, h, d)>

// Without the attribute nothing changes; neither do ops whose rows come from
// other tokens, nor those that no scan's tokens meet.

// CHECK-LABEL: func.func @unmarked(
// CHECK-NOT: scf.forall
// CHECK-LABEL: func.func @exchanged(
// CHECK-NOT: scf.forall
func.func @unmarked(%x: tensor<1x4x4x4xf32>, %s: tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32> {
  %e = tensor.empty() : tensor<1x4x4x4xf32>
  %o:2 = linattn.scan %x, %x, %x into(%e) init(%s)
    : (tensor<1x4x4x4xf32>, tensor<1x4x4x4xf32>, tensor<1x4x4x4xf32>, tensor<1x4x4x4xf32>, tensor<1x4x4x4xf32>) -> (tensor<1x4x4x4xf32>, tensor<1x4x4x4xf32>)
  %one = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%o#0 : tensor<1x4x4x4xf32>) outs(%e : tensor<1x4x4x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  } -> tensor<1x4x4x4xf32>
  %two = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%one : tensor<1x4x4x4xf32>) outs(%e : tensor<1x4x4x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  } -> tensor<1x4x4x4xf32>
  return %two : tensor<1x4x4x4xf32>
}
func.func @exchanged(%x: tensor<1x4x4x4xf32>, %s: tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32> attributes {linattn.gradient} {
  %e = tensor.empty() : tensor<1x4x4x4xf32>
  %o:2 = linattn.scan %x, %x, %x into(%e) init(%s)
    : (tensor<1x4x4x4xf32>, tensor<1x4x4x4xf32>, tensor<1x4x4x4xf32>, tensor<1x4x4x4xf32>, tensor<1x4x4x4xf32>) -> (tensor<1x4x4x4xf32>, tensor<1x4x4x4xf32>)
  %one = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%o#0 : tensor<1x4x4x4xf32>) outs(%e : tensor<1x4x4x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  } -> tensor<1x4x4x4xf32>
  %two = linalg.generic {indexing_maps = [#others, #rows], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%one : tensor<1x4x4x4xf32>) outs(%e : tensor<1x4x4x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  } -> tensor<1x4x4x4xf32>
  return %two : tensor<1x4x4x4xf32>
}
