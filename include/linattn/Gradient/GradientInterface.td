//===- GradientInterface.td - Ops with a gradient ----------*- tablegen -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_GRADIENT_GRADIENTINTERFACE_TD
#define LINATTN_GRADIENT_GRADIENTINTERFACE_TD

include "mlir/IR/OpBase.td"

def LinAttn_GradientOpInterface : OpInterface<"GradientOpInterface"> {
  let cppNamespace = "::mlir::linattn";
  let description = [{
    An op that builds its vector-Jacobian product: given the cotangents of its
    results, those of its operands. Ops of other dialects implement it by
    external models (`registerGradientExternalModels`).
  }];
  let methods = [
    InterfaceMethod<[{
        Adds the cotangents of the active operands. At least one result has a
        cotangent, and at least one operand is active. Ops are built at the
        insertion point of the builder, where the operands and results of this
        op are visible. Fails after an error on the op that names the operand.
      }],
      "::mlir::LogicalResult", "buildGradient",
      (ins "::mlir::OpBuilder &":$builder,
           "::mlir::linattn::Cotangents &":$cotangents)>
  ];
}

#endif // LINATTN_GRADIENT_GRADIENTINTERFACE_TD
