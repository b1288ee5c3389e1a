// RUN: linattn-opt %s --linattn-reassociate --linattn-causal-to-scan | FileCheck %s --implicit-check-not=96x96
// RUN: linattn-opt %s --linattn-optimization-pipeline | FileCheck %s --check-prefix=OPT --implicit-check-not=96x96
// RUN: linattn-opt %s --linattn-optimization-pipeline --linattn-bufferize-pipeline | FileCheck %s --check-prefix=BUFFERS --implicit-check-not=96x96
// RUN: linattn-opt %s --linattn-lower-to-cpu-pipeline --mlir-print-ir-after=linattn-lower-to-vector --mlir-disable-threading 2>&1 | FileCheck %s --check-prefix=LOOPS --implicit-check-not=96x96

// No N×N value lives between Q, K, V and the output. No other size is 96.

// CHECK-LABEL: func.func @linear
// CHECK: linattn.state
// CHECK: linattn.read
// OPT-LABEL: func.func @linear
// BUFFERS-LABEL: func.func @linear
// LOOPS: llvm.func @linear
func.func @linear(%q: tensor<2x4x96x16xf32>, %k: tensor<2x4x96x16xf32>, %v: tensor<2x4x96x32xf32>) -> tensor<2x4x96x32xf32> {
  %o = linattn.attention %q, %k, %v {feature_map = #linattn.feature_map<elu1>, normalize = #linattn.normalize<eps = 1.0e-6>}
    : (tensor<2x4x96x16xf32>, tensor<2x4x96x16xf32>, tensor<2x4x96x32xf32>) -> tensor<2x4x96x32xf32>
  return %o : tensor<2x4x96x32xf32>
}

// CHECK-LABEL: func.func @causal
// CHECK: linattn.scan
// OPT-LABEL: func.func @causal
// BUFFERS-LABEL: func.func @causal
func.func @causal(%q: tensor<2x4x96x16xf32>, %k: tensor<2x4x96x16xf32>, %v: tensor<2x4x96x32xf32>) -> tensor<2x4x96x32xf32> {
  %o = linattn.attention %q, %k, %v {causal}
    : (tensor<2x4x96x16xf32>, tensor<2x4x96x16xf32>, tensor<2x4x96x32xf32>) -> tensor<2x4x96x32xf32>
  return %o : tensor<2x4x96x32xf32>
}

// Softmax stays quadratic in time, not in memory.

// CHECK-LABEL: func.func @softmax
// OPT-LABEL: func.func @softmax
// BUFFERS-LABEL: func.func @softmax
func.func @softmax(%q: tensor<2x4x96x16xf32>, %k: tensor<2x4x96x16xf32>, %v: tensor<2x4x96x32xf32>) -> tensor<2x4x96x32xf32> {
  %o = linattn.attention %q, %k, %v weights(softmax) {causal}
    : (tensor<2x4x96x16xf32>, tensor<2x4x96x16xf32>, tensor<2x4x96x32xf32>) -> tensor<2x4x96x32xf32>
  return %o : tensor<2x4x96x32xf32>
}
