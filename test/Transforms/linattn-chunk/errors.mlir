// RUN: linattn-opt %s --linattn-chunk=chunk-size=3 --split-input-file --verify-diagnostics

func.func @reverse(%q: tensor<1x2x8x4xf32>, %o: tensor<1x2x8x4xf32>, %s: tensor<1x2x4x4xf32>) -> tensor<1x2x8x4xf32> {
  // expected-error @+1 {{'linattn.scan' op cannot be cut into chunks: it runs from the last token to the first}}
  %r:2 = linattn.scan %q, %q, %q into(%o) init(%s) {reverse}
    : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x8x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0 : tensor<1x2x8x4xf32>
}

// -----

func.func @packed(%q: tensor<1x2x?x4xf32>, %cu: tensor<3xi32>, %o: tensor<1x2x?x4xf32>, %s: tensor<2x2x4x4xf32>) -> tensor<1x2x?x4xf32> {
  // expected-error @+1 {{'linattn.scan' op cannot be cut into chunks: its sequences start inside the chunks}}
  %r:2 = linattn.scan %q, %q, %q cu_seqlens(%cu) into(%o) init(%s)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<3xi32>, tensor<1x2x?x4xf32>, tensor<2x2x4x4xf32>) -> (tensor<1x2x?x4xf32>, tensor<2x2x4x4xf32>)
  return %r#0 : tensor<1x2x?x4xf32>
}
