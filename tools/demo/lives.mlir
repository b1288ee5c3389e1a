// The same non-causal layer in its two orders of multiplication, each written as
// the op that computes it, so that nothing is left for the compiler to choose.

!tokens = tensor<1x?x?x64xf32>
!state = tensor<1x?x64x64xf32>
!sums = tensor<1x?x64xf32>

// (φ(Q)φ(K)ᵀ)V
func.func @quadratic(%q: !tokens, %k: !tokens, %v: !tokens) -> !tokens {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %h = tensor.dim %q, %c1 : !tokens
  %n = tensor.dim %q, %c2 : !tokens
  %dest = tensor.empty(%h, %n) : !tokens
  %o = linattn.quadratic %q, %k, %v into(%dest) {
      feature_map = #linattn.feature_map<elu1>,
      normalize = #linattn.normalize<eps = 1.0e-6>}
    : (!tokens, !tokens, !tokens, !tokens) -> !tokens
  return %o : !tokens
}

// φ(Q)(φ(K)ᵀV)
func.func @reassociated(%q: !tokens, %k: !tokens, %v: !tokens) -> !tokens {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %h = tensor.dim %q, %c1 : !tokens
  %n = tensor.dim %q, %c2 : !tokens
  %s_empty = tensor.empty(%h) : !state
  %s0 = linalg.fill ins(%zero : f32) outs(%s_empty : !state) -> !state
  %z_empty = tensor.empty(%h) : !sums
  %z0 = linalg.fill ins(%zero : f32) outs(%z_empty : !sums) -> !sums
  %s, %z = linattn.state %k, %v init(%s0) normalizer(%z0) {
      feature_map = #linattn.feature_map<elu1>}
    : (!tokens, !tokens, !state, !sums) -> (!state, !sums)
  %dest = tensor.empty(%h, %n) : !tokens
  %o = linattn.read %q, %s normalizer(%z) into(%dest) {
      feature_map = #linattn.feature_map<elu1>,
      normalize = #linattn.normalize<eps = 1.0e-6>}
    : (!tokens, !state, !sums, !tokens) -> !tokens
  return %o : !tokens
}
