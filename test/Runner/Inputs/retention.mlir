// Queries, keys and values of 16 bits, a decay for each head.
func.func @retention(%q: tensor<1x2x?x64xbf16>, %k: tensor<1x2x?x64xbf16>, %v: tensor<1x2x?x64xbf16>,
                     %g: tensor<2xf32>, %s: tensor<1x2x64x64xf32>, %o: tensor<1x2x?x64xbf16>)
    -> (tensor<1x2x?x64xbf16>, tensor<1x2x64x64xf32>) {
  %r:2 = linattn.scan %q, %k, %v decay(%g) into(%o) init(%s)
    : (tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<1x2x?x64xbf16>, tensor<2xf32>,
       tensor<1x2x?x64xbf16>, tensor<1x2x64x64xf32>)
    -> (tensor<1x2x?x64xbf16>, tensor<1x2x64x64xf32>)
  return %r#0, %r#1 : tensor<1x2x?x64xbf16>, tensor<1x2x64x64xf32>
}
