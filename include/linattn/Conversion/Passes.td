//===- Passes.td - Conversions out of linattn --------------*- tablegen -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_PASSES_TD
#define LINATTN_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def LinAttnLowerToLoopsPass
    : Pass<"linattn-lower-to-loops", "::mlir::func::FuncOp"> {
  let summary = "Lower every linattn op on buffers to plain scalar loops";
  let description = [{
    The naive form of each op, element by element, in the accumulation type:
    the oracle in IR. Ops must work on buffers; batch and head become one
    `scf.parallel` loop.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"
  ];
}

#endif // LINATTN_CONVERSION_PASSES_TD
