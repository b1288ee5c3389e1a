// REQUIRES: plugin
// RUN: mlir-opt %s --load-dialect-plugin=%linattn_plugin --load-pass-plugin=%linattn_plugin --pass-pipeline='builtin.module(func.func(linattn-causal-to-scan))' | FileCheck %s --check-prefix=SCAN
// RUN: mlir-opt %s --load-dialect-plugin=%linattn_plugin --load-pass-plugin=%linattn_plugin --pass-pipeline='builtin.module(linattn-lower-to-cpu-pipeline)' | FileCheck %s --check-prefix=LLVM
// RUN: mlir-opt %s --load-dialect-plugin=%linattn_plugin --load-pass-plugin=%linattn_plugin --pass-pipeline='builtin.module(linattn-lower-through-linalg-pipeline)' | FileCheck %s --check-prefix=LLVM
// RUN: mlir-opt %s --load-dialect-plugin=%linattn_plugin --load-pass-plugin=%linattn_plugin --pass-pipeline='builtin.module(func.func(linattn-causal-to-scan,convert-linattn-to-linalg),one-shot-bufferize{bufferize-function-boundaries allow-return-allocs-from-loops},func.func(convert-linalg-to-loops,expand-strided-metadata),lower-affine,convert-scf-to-cf,convert-to-llvm)' | FileCheck %s --check-prefix=LLVM
// RUN: mlir-opt %s --load-dialect-plugin=%linattn_plugin --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: not mlir-opt %s 2>&1 | FileCheck %s --check-prefix=WITHOUT

// Dialect, passes and pipelines in an mlir-opt that was built without them.

// SCAN: linattn.scan
// LLVM: llvm.func @causal
// LLVM-NOT: {{^ *(%[^ ]+ = )?linattn\.}}
// GENERIC: "linattn.attention"
// WITHOUT: error: Dialect `linattn' not found for custom op 'linattn.attention'

func.func @causal(%q: tensor<1x2x?x16xf32>, %k: tensor<1x2x?x16xf32>, %v: tensor<1x2x?x16xf32>) -> tensor<1x2x?x16xf32> {
  %o = linattn.attention %q, %k, %v {causal} : (tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>) -> tensor<1x2x?x16xf32>
  return %o : tensor<1x2x?x16xf32>
}
