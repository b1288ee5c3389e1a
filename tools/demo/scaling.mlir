// Attention with all N×N weights stored in memory, as a framework without a
// fused kernel computes it. The sums over a row use the weights a second time,
// so that the product cannot be reassociated.

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

!tokens = tensor<?x64xf32>
!weights = tensor<?x?xf32>

func.func private @elu1(%x: !tokens) -> !tokens {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %n = tensor.dim %x, %c0 : !tokens
  %empty = tensor.empty(%n) : !tokens
  %f = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : !tokens) outs(%empty : !tokens) {
  ^bb0(%a: f32, %old: f32):
    %positive = arith.cmpf ogt, %a, %zero : f32
    %linear = arith.addf %a, %one : f32
    %low = arith.minimumf %a, %zero : f32
    %exp = math.exp %low : f32
    %r = arith.select %positive, %linear, %exp : f32
    linalg.yield %r : f32
  } -> !tokens
  return %f : !tokens
}

func.func @stored(%q: !tokens, %k: !tokens, %v: !tokens) -> !tokens {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %eps = arith.constant 1.0e-6 : f32
  %n = tensor.dim %q, %c0 : !tokens
  %fq = func.call @elu1(%q) : (!tokens) -> !tokens
  %fk = func.call @elu1(%k) : (!tokens) -> !tokens
  %kt_empty = tensor.empty(%n) : tensor<64x?xf32>
  %kt = linalg.transpose ins(%fk : !tokens) outs(%kt_empty : tensor<64x?xf32>) permutation = [1, 0]
  %w_empty = tensor.empty(%n, %n) : !weights
  %w_zero = linalg.fill ins(%zero : f32) outs(%w_empty : !weights) -> !weights
  %w = linalg.matmul ins(%fq, %kt : !tokens, tensor<64x?xf32>) outs(%w_zero : !weights) -> !weights
  %sum_empty = tensor.empty(%n) : tensor<?xf32>
  %sum_eps = linalg.fill ins(%eps : f32) outs(%sum_empty : tensor<?xf32>) -> tensor<?xf32>
  %sum = linalg.reduce { arith.addf } ins(%w : !weights) outs(%sum_eps : tensor<?xf32>) dimensions = [1]
  %o_empty = tensor.empty(%n) : !tokens
  %o_zero = linalg.fill ins(%zero : f32) outs(%o_empty : !tokens) -> !tokens
  %wv = linalg.matmul ins(%w, %v : !weights, !tokens) outs(%o_zero : !tokens) -> !tokens
  %o = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%wv, %sum : !tokens, tensor<?xf32>) outs(%o_empty : !tokens) {
  ^bb0(%a: f32, %b: f32, %old: f32):
    %r = arith.divf %a, %b : f32
    linalg.yield %r : f32
  } -> !tokens
  return %o : !tokens
}
