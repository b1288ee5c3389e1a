// RUN: linattn-opt %s --linattn-fuse-tokens --split-input-file | FileCheck %s
// RUN: linattn-opt %s --linattn-fuse-tokens --split-input-file --remarks-filter=linattn 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

#rows = affine_map<(b, h, t, d) -> (b, h, t, d)>
#sums = affine_map<(b, h, t, d) -> (b, h, t)>
#gate = affine_map<(b, h, t, d) -> (h, d)>
#one = affine_map<(b, h, t, o, d) -> (b, h, t, d)>
#ones = affine_map<(b, h, t, o, d) -> (b, h, t, o)>

// Vectors of five features have eight lanes; sums leave the others out. Numbers
// of a token are scalars, types of other widths vectors of as many lanes. The
// scan's result is read later on, and keeps its memory.

// CHECK-LABEL: func.func @tail(
// CHECK-SAME: %[[X:[^:]+]]: tensor<1x2x70x5xf16>, %[[U:[^:]+]]: tensor<2x5xf32>
// CHECK: linattn.scan
// CHECK: %[[MADE:.+]] = tensor.empty() : tensor<1x2x70x5xf32>
// CHECK: %[[SUMS:.+]] = tensor.empty() : tensor<1x2x70x1xf64>
// CHECK: scf.forall (%{{.+}}, %{{.+}}, %[[H:.+]]) = {{.+}} shared_outs(%{{.+}} = %[[MADE]], %{{.+}} = %[[SUMS]])
// CHECK: vector.transfer_read %[[X]][{{.+}}], %{{.+}} : tensor<1x2x70x5xf16>, vector<8xf16>
// CHECK: vector.transfer_read %[[U]][%[[H]], %{{.+}} : tensor<2x5xf32>, vector<8xf32>
// CHECK: arith.extf {{.+}} : vector<8xf16> to vector<8xf32>
// CHECK: %[[MASK:.+]] = arith.constant dense<[true, true, true, true, true, false, false, false]>
// CHECK: %[[NONE:.+]] = arith.constant dense<0.{{.+}}> : vector<8xf64>
// CHECK: %[[KEPT:.+]] = arith.select %[[MASK]], %{{.+}}, %[[NONE]]
// CHECK: vector.reduction <add>, %[[KEPT]], %{{.+}} fastmath<reassoc> : vector<8xf64> into f64
// CHECK: vector.transfer_write %{{.+}}] : vector<8xf32>, tensor<1x1x?x5xf32>
// CHECK: tensor.insert %{{.+}} : tensor<1x1x?x1xf64>
func.func @tail(%x: tensor<1x2x70x5xf16>, %u: tensor<2x5xf32>, %s: tensor<1x2x5x5xf32>) -> (tensor<1x2x70x5xf16>, tensor<1x2x70x5xf32>, tensor<1x2x70x1xf64>) attributes {linattn.gradient} {
  %zero = arith.constant 0.0 : f64
  %e16 = tensor.empty() : tensor<1x2x70x5xf16>
  %e = tensor.empty() : tensor<1x2x70x5xf32>
  %e1 = tensor.empty() : tensor<1x2x70x1xf64>
  %fill = linalg.fill ins(%zero : f64) outs(%e1 : tensor<1x2x70x1xf64>) -> tensor<1x2x70x1xf64>
  %o:2 = linattn.scan %x, %x, %x into(%e16) init(%s)
    : (tensor<1x2x70x5xf16>, tensor<1x2x70x5xf16>, tensor<1x2x70x5xf16>, tensor<1x2x70x5xf16>, tensor<1x2x5x5xf32>) -> (tensor<1x2x70x5xf16>, tensor<1x2x5x5xf32>)
  %p = linalg.generic {indexing_maps = [#rows, #gate, #rows, #rows], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %u, %o#0 : tensor<1x2x70x5xf16>, tensor<2x5xf32>, tensor<1x2x70x5xf16>) outs(%e : tensor<1x2x70x5xf32>) {
  ^bb0(%a: f16, %b: f32, %c: f16, %out: f32):
    %0 = arith.extf %a : f16 to f32
    %1 = arith.extf %c : f16 to f32
    %2 = arith.mulf %0, %b : f32
    %3 = arith.mulf %2, %1 : f32
    linalg.yield %3 : f32
  } -> tensor<1x2x70x5xf32>
  %sums = linalg.generic {indexing_maps = [#one, #ones], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%p : tensor<1x2x70x5xf32>) outs(%fill : tensor<1x2x70x1xf64>) {
  ^bb0(%a: f32, %out: f64):
    %0 = arith.extf %a : f32 to f64
    %1 = arith.addf %out, %0 fastmath<reassoc> : f64
    linalg.yield %1 : f64
  } -> tensor<1x2x70x1xf64>
  return %o#0, %p, %sums : tensor<1x2x70x5xf16>, tensor<1x2x70x5xf32>, tensor<1x2x70x1xf64>
}

// -----

#rows = affine_map<(b, h, t, d) -> (b, h, t, d)>
#sums = affine_map<(b, h, t, d) -> (b, h, t)>

// A sum of what is the same for all features counts every one of them.

// CHECK-LABEL: func.func @same(
// CHECK: %[[G:.+]] = tensor.extract %{{.+}} : tensor<1x2x70xf32>
// CHECK: %[[ROW:.+]] = vector.broadcast %[[G]] : f32 to vector<16xf32>
// CHECK: vector.reduction <add>, %[[ROW]]
func.func @same(%x: tensor<1x2x70x16xf32>, %g: tensor<1x2x70xf32>, %s: tensor<1x2x16x16xf32>) -> (tensor<1x2x70xf32>, tensor<1x2x70x16xf32>) attributes {linattn.gradient} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2x70x16xf32>
  %e3 = tensor.empty() : tensor<1x2x70xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%e3 : tensor<1x2x70xf32>) -> tensor<1x2x70xf32>
  %o:2 = linattn.scan %x, %x, %x decay(%g) into(%e) init(%s)
    : (tensor<1x2x70x16xf32>, tensor<1x2x70x16xf32>, tensor<1x2x70x16xf32>, tensor<1x2x70xf32>, tensor<1x2x70x16xf32>, tensor<1x2x16x16xf32>) -> (tensor<1x2x70x16xf32>, tensor<1x2x16x16xf32>)
  %row = linalg.generic {indexing_maps = [#sums, #rows], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%g : tensor<1x2x70xf32>) outs(%e : tensor<1x2x70x16xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<1x2x70x16xf32>
  %sum = linalg.generic {indexing_maps = [#rows, #sums], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%row : tensor<1x2x70x16xf32>) outs(%fill : tensor<1x2x70xf32>) {
  ^bb0(%a: f32, %out: f32):
    %0 = arith.addf %out, %a fastmath<reassoc> : f32
    linalg.yield %0 : f32
  } -> tensor<1x2x70xf32>
  return %sum, %o#0 : tensor<1x2x70xf32>, tensor<1x2x70x16xf32>
}

// -----

#rows = affine_map<(b, h, t, d) -> (b, h, t, d)>

// Rows of an unknown size stay linalg on blocks.

// REMARK: remark: [Missed] fuse-tokens {{.*}}"no vectors between scans: the number of features is not known"
// CHECK-LABEL: func.func @unknown(
// CHECK: linattn.scan
// CHECK: scf.forall
// CHECK: %[[ONE:.+]] = linalg.generic {{.+}} outs(%{{.+}} : tensor<1x1x?x?xf32>)
// CHECK: linalg.generic {{.+}} ins(%[[ONE]]
// CHECK: parallel_insert_slice
func.func @unknown(%x: tensor<1x2x70x?xf32>, %e: tensor<1x2x70x?xf32>, %s: tensor<1x2x?x?xf32>) -> tensor<1x2x70x?xf32> attributes {linattn.gradient} {
  %o:2 = linattn.scan %x, %x, %x into(%e) init(%s)
    : (tensor<1x2x70x?xf32>, tensor<1x2x70x?xf32>, tensor<1x2x70x?xf32>, tensor<1x2x70x?xf32>, tensor<1x2x?x?xf32>) -> (tensor<1x2x70x?xf32>, tensor<1x2x?x?xf32>)
  %one = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%o#0 : tensor<1x2x70x?xf32>) outs(%e : tensor<1x2x70x?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  } -> tensor<1x2x70x?xf32>
  %two = linalg.generic {indexing_maps = [#rows, #rows, #rows], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%one, %x : tensor<1x2x70x?xf32>, tensor<1x2x70x?xf32>) outs(%e : tensor<1x2x70x?xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<1x2x70x?xf32>
  return %two : tensor<1x2x70x?xf32>
}

// -----

#rows = affine_map<(b, h, t, d) -> (b, h, t, d)>
#max = affine_map<(b, h, t, d) -> (b, h, t)>

// So do reductions that are no sums.

// REMARK: remark: [Missed] fuse-tokens {{.*}}"no vectors between scans: a reduction is not a sum"
// CHECK-LABEL: func.func @maximum(
// CHECK: scf.forall
// CHECK: linalg.generic
// CHECK: linalg.generic
func.func @maximum(%x: tensor<1x2x70x4xf32>, %s: tensor<1x2x4x4xf32>) -> tensor<1x2x70xf32> attributes {linattn.gradient} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2x70x4xf32>
  %e3 = tensor.empty() : tensor<1x2x70xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%e3 : tensor<1x2x70xf32>) -> tensor<1x2x70xf32>
  %o:2 = linattn.scan %x, %x, %x into(%e) init(%s)
    : (tensor<1x2x70x4xf32>, tensor<1x2x70x4xf32>, tensor<1x2x70x4xf32>, tensor<1x2x70x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x70x4xf32>, tensor<1x2x4x4xf32>)
  %one = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%o#0 : tensor<1x2x70x4xf32>) outs(%e : tensor<1x2x70x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  } -> tensor<1x2x70x4xf32>
  %most = linalg.generic {indexing_maps = [#rows, #max], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%one : tensor<1x2x70x4xf32>) outs(%fill : tensor<1x2x70xf32>) {
  ^bb0(%a: f32, %out: f32):
    %0 = arith.maximumf %out, %a : f32
    linalg.yield %0 : f32
  } -> tensor<1x2x70xf32>
  return %most : tensor<1x2x70xf32>
}
