// REQUIRES: avx2
// RUN: env LINATTN_CPU=haswell linattn-run %s --entry bf16 --compare=reference | FileCheck %s
// RUN: env LINATTN_CPU=x86-64 linattn-run %s --entry bf16 --compare=reference | FileCheck %s
// RUN: env LINATTN_CPU=haswell linattn-run %s --entry f16 --compare=reference | FileCheck %s
// RUN: env LINATTN_CPU=x86-64 linattn-run %s --entry f16 --compare=reference | FileCheck %s
// RUN: env LINATTN_CPU=haswell linattn-run %s --entry conv --compare=reference | FileCheck %s
// RUN: env LINATTN_CPU=x86-64 linattn-run %s --entry conv --compare=reference | FileCheck %s

// Half precision on CPUs without instructions for it: 20 and 24 leave remainders
// behind every vector.

// CHECK: result 0: agrees with the reference

func.func @bf16(%q: tensor<1x2x37x20xbf16>, %k: tensor<1x2x37x20xbf16>, %v: tensor<1x2x37x24xbf16>) -> tensor<1x2x37x24xbf16> {
  %o = linattn.attention %q, %k, %v {causal, feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<>}
    : (tensor<1x2x37x20xbf16>, tensor<1x2x37x20xbf16>, tensor<1x2x37x24xbf16>) -> tensor<1x2x37x24xbf16>
  return %o : tensor<1x2x37x24xbf16>
}

func.func @f16(%q: tensor<1x2x37x20xf16>, %k: tensor<1x2x37x20xf16>, %v: tensor<1x2x37x24xf16>) -> tensor<1x2x37x24xf16> {
  %o = linattn.attention %q, %k, %v weights(softmax) {scale = 0.25 : f64}
    : (tensor<1x2x37x20xf16>, tensor<1x2x37x20xf16>, tensor<1x2x37x24xf16>) -> tensor<1x2x37x24xf16>
  return %o : tensor<1x2x37x24xf16>
}

// Channels first: a number goes from block to block.
func.func @conv(%x: tensor<2x5x9xbf16>, %w: tensor<5x4xbf16>, %b: tensor<5xbf16>, %s: tensor<2x5x3xbf16>) -> (tensor<2x9x5xbf16>, tensor<2x5x3xbf16>) {
  %xt = linattn.permute %x [0, 2, 1] : tensor<2x5x9xbf16> to tensor<2x9x5xbf16>
  %into = tensor.empty() : tensor<2x9x5xbf16>
  %o, %s1 = linattn.causal_conv %xt, %w bias(%b) activation(silu) into(%into) init(%s)
    : (tensor<2x9x5xbf16>, tensor<5x4xbf16>, tensor<5xbf16>, tensor<2x9x5xbf16>, tensor<2x5x3xbf16>) -> (tensor<2x9x5xbf16>, tensor<2x5x3xbf16>)
  return %o, %s1 : tensor<2x9x5xbf16>, tensor<2x5x3xbf16>
}
