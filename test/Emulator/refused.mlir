// Refusals of a GPU's fast kernels: the reason, and results that agree with naive loops.

// RUN: linattn-run %s --entry=decayed_state --target=nvvm-emulated --open-size=20 --compare=reference --explain | FileCheck %s --check-prefix=STATE
// RUN: linattn-run %s --entry=both_decays --target=nvvm-emulated --open-size=20 --compare=reference --explain | FileCheck %s --check-prefix=VALUES
// RUN: linattn-run %s --entry=softmax --target=nvvm-emulated --open-size=20 --compare=reference --explain | FileCheck %s --check-prefix=SOFTMAX

// STATE: missed: select-schedule: no kernel: a state with decays has no kernel without its scan
// STATE: no findings
// STATE: result 0: agrees with the reference
func.func @decayed_state(%k: tensor<1x2x?x32xbf16>, %v: tensor<1x2x?x32xbf16>, %g: tensor<1x2x?xf32>, %s: tensor<1x2x32x32xf32>)
    -> tensor<1x2x32x32xf32> {
  %t = linattn.state %k, %v decay(%g) init(%s)
    : (tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x?xf32>, tensor<1x2x32x32xf32>) -> (tensor<1x2x32x32xf32>)
  return %t : tensor<1x2x32x32xf32>
}

// Token by token.
// VALUES: missed: select-schedule: not chunk: a decay per value column goes without another decay
// VALUES: passed: select-schedule: token kernel
// VALUES: kernel both_decays_scan: no findings
// VALUES: result 0: agrees with the reference
func.func @both_decays(%q: tensor<1x2x?x32xbf16>, %k: tensor<1x2x?x32xbf16>, %v: tensor<1x2x?x32xbf16>, %g: tensor<1x2x?x32xf32>, %s: tensor<1x2x32x32xf32>)
    -> (tensor<1x2x?x32xbf16>, tensor<1x2x32x32xf32>) {
  %c2 = arith.constant 2 : index
  %n = tensor.dim %v, %c2 : tensor<1x2x?x32xbf16>
  %e = tensor.empty(%n) : tensor<1x2x?x32xbf16>
  %o, %t = linattn.scan %q, %k, %v decay(%g) value_decay(%g) into(%e) init(%s)
    : (tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x?x32xbf16>, tensor<1x2x?x32xf32>, tensor<1x2x?x32xf32>, tensor<1x2x?x32xbf16>, tensor<1x2x32x32xf32>)
    -> (tensor<1x2x?x32xbf16>, tensor<1x2x32x32xf32>)
  return %o, %t : tensor<1x2x?x32xbf16>, tensor<1x2x32x32xf32>
}

// Sums lie on the stack of a thread: kernels have no heap.
// SOFTMAX: missed: select-schedule: no kernel: f64 has no kernel
// SOFTMAX: no findings
// SOFTMAX: result 0: agrees with the reference
func.func @softmax(%q: tensor<1x4x?x16xf64>, %k: tensor<1x2x?x16xf64>, %v: tensor<1x2x?x24xf64>) -> tensor<1x4x?x24xf64> {
  %o = linattn.attention %q, %k, %v weights(softmax) {causal, scale = 0.25}
    : (tensor<1x4x?x16xf64>, tensor<1x2x?x16xf64>, tensor<1x2x?x24xf64>) -> tensor<1x4x?x24xf64>
  return %o : tensor<1x4x?x24xf64>
}
