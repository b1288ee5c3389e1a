// RUN: linattn-opt %s --split-input-file --verify-diagnostics

// The declared result keeps every size that the operands' types give.

func.func @less_static(%q: tensor<2x8x16x64xf32>) -> tensor<2x8x?x64xf32> {
  // expected-error @+2 {{inferred type(s) 'tensor<2x8x16x64xf32>' are incompatible with return type(s) of operation 'tensor<2x8x?x64xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %o = linattn.attention %q, %q, %q : (tensor<2x8x16x64xf32>, tensor<2x8x16x64xf32>, tensor<2x8x16x64xf32>) -> tensor<2x8x?x64xf32>
  return %o : tensor<2x8x?x64xf32>
}

// -----

func.func @buffer_result(%q: tensor<2x8x16x64xf32>) {
  // expected-error @+2 {{are incompatible with return type(s)}}
  // expected-error @+1 {{failed to infer returned types}}
  %o = linattn.attention %q, %q, %q : (tensor<2x8x16x64xf32>, tensor<2x8x16x64xf32>, tensor<2x8x16x64xf32>) -> memref<2x8x16x64xf32>
  return
}
