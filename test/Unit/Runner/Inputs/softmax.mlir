// Tiles are copied by tensor maps, which have workspace.
func.func @softmax(%q: tensor<2x8x?x64xbf16>, %k: tensor<2x8x?x64xbf16>,
                   %v: tensor<2x8x?x64xbf16>) -> tensor<2x8x?x64xbf16> {
  %o = linattn.attention %q, %k, %v weights(softmax) {causal}
    : (tensor<2x8x?x64xbf16>, tensor<2x8x?x64xbf16>, tensor<2x8x?x64xbf16>)
    -> tensor<2x8x?x64xbf16>
  return %o : tensor<2x8x?x64xbf16>
}
