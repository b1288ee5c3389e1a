// One kernel with more than 48 KB of shared memory; the state may be in place.
func.func @layer(%q: tensor<2x8x?x64xbf16>, %k: tensor<2x8x?x64xbf16>,
                 %v: tensor<2x8x?x64xbf16>, %s: tensor<2x8x64x64xf32>)
    -> (tensor<2x8x?x64xbf16>, tensor<2x8x64x64xf32>) {
  %c2 = arith.constant 2 : index
  %t = tensor.dim %q, %c2 : tensor<2x8x?x64xbf16>
  %e = tensor.empty(%t) : tensor<2x8x?x64xbf16>
  %o:2 = linattn.scan %q, %k, %v into(%e) init(%s)
    : (tensor<2x8x?x64xbf16>, tensor<2x8x?x64xbf16>, tensor<2x8x?x64xbf16>,
       tensor<2x8x?x64xbf16>, tensor<2x8x64x64xf32>)
    -> (tensor<2x8x?x64xbf16>, tensor<2x8x64x64xf32>)
  return %o#0, %o#1 : tensor<2x8x?x64xbf16>, tensor<2x8x64x64xf32>
}
