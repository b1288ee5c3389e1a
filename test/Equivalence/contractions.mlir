// RUN: linattn-run %s --all --open-size=1,13,40 --compare=reference
// RUN: linattn-run %s --all --open-size=13 --compare=exact
// RUN: linattn-run %s --entry=from_zeros --open-size=0 --compare=reference

// Products of matrices in register tiles against loops: projections before and
// behind a recurrence, weights as [out, in], sums over heads and their features.

#x = affine_map<(b, t, h, d, c) -> (b, t, c)>
#w = affine_map<(b, t, h, d, c) -> (h, d, c)>
#q = affine_map<(b, t, h, d, c) -> (b, h, t, d)>
#o = affine_map<(b, t, c, h, d) -> (b, h, t, d)>
#u = affine_map<(b, t, c, h, d) -> (h, d, c)>
#y = affine_map<(b, t, c, h, d) -> (b, t, c)>
func.func @layer(%x: tensor<2x?x24xf32>, %wq: tensor<2x20x24xf32>, %wk: tensor<2x20x24xf32>, %wv: tensor<2x20x24xf32>, %wo: tensor<2x20x24xf32>, %s: tensor<2x2x20x20xf32>) -> tensor<2x?x24xf32> {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %T = tensor.dim %x, %c1 : tensor<2x?x24xf32>
  %e = tensor.empty(%T) : tensor<2x2x?x20xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x2x?x20xf32>) -> tensor<2x2x?x20xf32>
  %q = linalg.contract indexing_maps = [#x, #w, #q] ins(%x, %wq : tensor<2x?x24xf32>, tensor<2x20x24xf32>) outs(%z : tensor<2x2x?x20xf32>) -> tensor<2x2x?x20xf32>
  %k = linalg.contract indexing_maps = [#x, #w, #q] ins(%x, %wk : tensor<2x?x24xf32>, tensor<2x20x24xf32>) outs(%z : tensor<2x2x?x20xf32>) -> tensor<2x2x?x20xf32>
  %v = linalg.contract indexing_maps = [#x, #w, #q] ins(%x, %wv : tensor<2x?x24xf32>, tensor<2x20x24xf32>) outs(%z : tensor<2x2x?x20xf32>) -> tensor<2x2x?x20xf32>
  %o:2 = linattn.scan %q, %k, %v into(%e) init(%s) : (tensor<2x2x?x20xf32>, tensor<2x2x?x20xf32>, tensor<2x2x?x20xf32>, tensor<2x2x?x20xf32>, tensor<2x2x20x20xf32>) -> (tensor<2x2x?x20xf32>, tensor<2x2x20x20xf32>)
  %f = tensor.empty(%T) : tensor<2x?x24xf32>
  %g = linalg.fill ins(%zero : f32) outs(%f : tensor<2x?x24xf32>) -> tensor<2x?x24xf32>
  %y = linalg.contract indexing_maps = [#o, #u, #y] ins(%o#0, %wo : tensor<2x2x?x20xf32>, tensor<2x20x24xf32>) outs(%g : tensor<2x?x24xf32>) -> tensor<2x?x24xf32>
  return %y : tensor<2x?x24xf32>
}
func.func @batch(%a: tensor<3x37x?xf32>, %b: tensor<3x?x45xf32>, %c: tensor<3x37x45xf32>) -> tensor<3x37x45xf32> {
  %y = linalg.batch_matmul ins(%a, %b : tensor<3x37x?xf32>, tensor<3x?x45xf32>) outs(%c : tensor<3x37x45xf32>) -> tensor<3x37x45xf32>
  return %y : tensor<3x37x45xf32>
}

// A sum of several blocks, the last one in part.

func.func @long(%a: tensor<13x?xf32>, %b: tensor<?x70xf32>, %c: tensor<13x70xf32>, %d: tensor<20x600xf32>, %e: tensor<64x600xf32>, %f: tensor<20x64xf32>) -> (tensor<13x70xf32>, tensor<20x64xf32>) {
  %y = linalg.matmul ins(%a, %b : tensor<13x?xf32>, tensor<?x70xf32>) outs(%c : tensor<13x70xf32>) -> tensor<13x70xf32>
  %z = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] ins(%d, %e : tensor<20x600xf32>, tensor<64x600xf32>) outs(%f : tensor<20x64xf32>) -> tensor<20x64xf32>
  return %y, %z : tensor<13x70xf32>, tensor<20x64xf32>
}

// A sum that starts from zeros, of no summand too.

func.func @from_zeros(%a: tensor<13x?xf32>, %b: tensor<?x70xf32>) -> tensor<13x70xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<13x70xf32>
  %c = linalg.fill ins(%zero : f32) outs(%e : tensor<13x70xf32>) -> tensor<13x70xf32>
  %y = linalg.matmul ins(%a, %b : tensor<13x?xf32>, tensor<?x70xf32>) outs(%c : tensor<13x70xf32>) -> tensor<13x70xf32>
  return %y : tensor<13x70xf32>
}

// Packed rows, in two blocks at least, some of them left over: neighbours in memory, and
// of 16 bits.

#km = affine_map<(m, n, k) -> (k, m)>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @packed(%a: tensor<400x29xf32>, %b: tensor<400x1056xf32>, %c: tensor<29x1056xf32>) -> tensor<29x1056xf32> {
  %y = linalg.contract indexing_maps = [#km, #kn, #mn] ins(%a, %b : tensor<400x29xf32>, tensor<400x1056xf32>) outs(%c : tensor<29x1056xf32>) -> tensor<29x1056xf32>
  return %y : tensor<29x1056xf32>
}
func.func @converted(%a: tensor<?x390xbf16>, %b: tensor<390x1056xbf16>, %c: tensor<?x1056xf32>) -> tensor<?x1056xf32> {
  %y = linalg.contract indexing_maps = [#mk, #kn, #mn] ins(%a, %b : tensor<?x390xbf16>, tensor<390x1056xbf16>) outs(%c : tensor<?x1056xf32>) -> tensor<?x1056xf32>
  return %y : tensor<?x1056xf32>
}

// Of 16 bits and any size.

func.func @converted_dynamic(%a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>, %c: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %y = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%a, %b : tensor<?x?xbf16>, tensor<?x?xbf16>) outs(%c : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
