// RUN: linattn-opt %s --split-input-file --linattn-verify-contract=phase=structured --verify-diagnostics=only-expected
// RUN: not linattn-opt %s --split-input-file --linattn-verify-contract=phase=linalg 2>&1 | FileCheck %s --check-prefix=LINALG
// RUN: not linattn-opt %s --split-input-file --linattn-verify-contract=phase=bufferized 2>&1 | FileCheck %s --check-prefix=BUFFERIZED
// RUN: not linattn-opt %s --split-input-file --linattn-verify-contract=phase=done 2>&1 | FileCheck %s --check-prefix=PHASE

// LINALG:     error: 'linattn.attention' op is not converted to linalg, as phase linalg promises
// BUFFERIZED: error: 'linattn.attention' op still works on tensors, as phase bufferized promises
// PHASE:      error: expected phase to be structured, linalg or bufferized, but got done
func.func @attention(%q: tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32> {
  // expected-error @+1 {{'linattn.attention' op is not in one of its forms, as phase structured promises}}
  %o = linattn.attention %q, %q, %q : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
  return %o : tensor<1x2x4x8xf32>
}

// -----

// LINALG:     error: 'linattn.state' op is not converted to linalg, as phase linalg promises
// BUFFERIZED: error: 'linattn.state' op still works on tensors, as phase bufferized promises
func.func @state(%k: tensor<1x2x4x8xf32>, %s: tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32> {
  %r = linattn.state %k, %k init(%s) : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32>
  return %r : tensor<1x2x8x8xf32>
}
