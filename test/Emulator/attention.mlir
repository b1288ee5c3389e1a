// Attention without a scan: its kernels agree with naive loops, without findings.

// RUN: linattn-run %s --entry=softmax --target=nvvm-emulated --open-size=70 --compare=reference --explain | FileCheck %s --check-prefix=SOFTMAX
// RUN: linattn-run %s --entry=linear --target=nvvm-emulated --open-size=70 --compare=reference --explain | FileCheck %s --check-prefix=LINEAR
// RUN: linattn-run %s --all --open-size=1,20 --compare=reference

// SOFTMAX: passed: select-schedule: quadratic kernel
// SOFTMAX-NOT: {{^}}kernel
// SOFTMAX: kernel softmax_quadratic: no findings
// SOFTMAX-NOT: {{^}}kernel
// SOFTMAX: result 0: agrees with the reference
func.func @softmax(%q: tensor<1x4x?x32xbf16>, %k: tensor<1x2x?x32xbf16>, %v: tensor<1x2x?x32xbf16>) -> tensor<1x4x?x32xbf16> {
  %o = linattn.attention %q, %k, %v weights(softmax) {causal, scale = 0.25}
    : (tensor<1x4x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>) -> tensor<1x4x?x32xbf16>
  return %o : tensor<1x4x?x32xbf16>
}

// A state and a read of it, whatever the length.
// LINEAR: passed: select-schedule: chunk kernel
// LINEAR-NOT: {{^}}kernel
// LINEAR: kernel linear_state: no findings
// LINEAR: kernel linear_read: no findings
// LINEAR-NOT: {{^}}kernel
// LINEAR: result 0: agrees with the reference
func.func @linear(%q: tensor<1x2x?x32xbf16>, %k: tensor<1x2x?x32xbf16>, %v: tensor<1x2x?x32xbf16>) -> tensor<1x2x?x32xbf16> {
  %o = linattn.attention %q, %k, %v
      {feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.0e-4>}
    : (tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>) -> tensor<1x2x?x32xbf16>
  return %o : tensor<1x2x?x32xbf16>
}
