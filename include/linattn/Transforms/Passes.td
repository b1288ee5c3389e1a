//===- Passes.td - Transformations of linattn IR -----------*- tablegen -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TRANSFORMS_PASSES_TD
#define LINATTN_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def LinAttnCausalToScanPass
    : Pass<"linattn-causal-to-scan", "::mlir::func::FuncOp"> {
  let summary = "Turn causal linear attention into a scan over a state";
  let description = [{
    Causal attention with linear weights is a recurrence: each query reads the
    sum of what the keys before it wrote.

    Before:

    ```mlir
    %o = linattn.attention %q, %k, %v {causal} : …
    ```

    After:

    ```mlir
    %o, %s = linattn.scan %q, %k, %v into(%empty) init(%zero) : …
    ```

    Non-causal attention and softmax weights are left alone; for causal softmax
    a missed remark says why.
  }];
  let dependentDialects = [
    "::mlir::linattn::LinAttnDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numScans", "scans", "Number of attentions turned into scans">
  ];
}

#endif // LINATTN_TRANSFORMS_PASSES_TD
