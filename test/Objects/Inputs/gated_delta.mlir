// Tokens of 20 and values of 36 numbers leave remainders behind every vector.
func.func @gated_delta(%q: tensor<?x4x?x20xf32>, %k: tensor<?x2x?x20xf32>, %v: tensor<?x2x?x36xf32>, %g: tensor<?x2x?xf32>, %beta: tensor<?x2x?xf32>, %s: tensor<?x2x20x36xf32>) -> (tensor<?x4x?x36xf32>, tensor<?x2x20x36xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %n = tensor.dim %q, %c0 : tensor<?x4x?x20xf32>
  %t = tensor.dim %q, %c2 : tensor<?x4x?x20xf32>
  %into = tensor.empty(%n, %t) : tensor<?x4x?x36xf32>
  %o, %s1 = linattn.scan %q, %k, %v decay(%g) beta(%beta) update(delta) into(%into) init(%s) {scale = 0.25 : f64}
    : (tensor<?x4x?x20xf32>, tensor<?x2x?x20xf32>, tensor<?x2x?x36xf32>, tensor<?x2x?xf32>, tensor<?x2x?xf32>, tensor<?x4x?x36xf32>, tensor<?x2x20x36xf32>) -> (tensor<?x4x?x36xf32>, tensor<?x2x20x36xf32>)
  return %o, %s1 : tensor<?x4x?x36xf32>, tensor<?x2x20x36xf32>
}
