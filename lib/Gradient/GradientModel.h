//===- GradientModel.h - Gradients of ops of other dialects -----*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GRADIENT_GRADIENTMODEL_H
#define LINATTN_LIB_GRADIENT_GRADIENTMODEL_H

#include "linattn/Gradient/Gradient.h"

namespace mlir::scf {
class IfOp;
} // namespace mlir::scf

namespace mlir::linattn {

template <typename OpTy>
using GradientRule = LogicalResult (*)(OpTy, OpBuilder &, Cotangents &);

/// The interface by one function.
template <typename OpTy, GradientRule<OpTy> rule>
struct GradientModel
    : GradientOpInterface::ExternalModel<GradientModel<OpTy, rule>, OpTy> {
  LogicalResult buildGradient(Operation *op, OpBuilder &b,
                              Cotangents &cotangents) const {
    return rule(cast<OpTy>(op), b, cotangents);
  }
};

template <typename OpTy, GradientRule<OpTy> rule>
void attachGradient(MLIRContext *context) {
  OpTy::template attachInterface<GradientModel<OpTy, rule>>(*context);
}

/// "linattn-differentiate: " and what has no gradient yet.
InFlightDiagnostic emitNoGradient(Operation *op);

LogicalResult buildBranchGradient(scf::IfOp op, OpBuilder &b, Cotangents &c);

void registerArithGradients(DialectRegistry &registry);
void registerTensorGradients(DialectRegistry &registry);
void registerLinalgGradients(DialectRegistry &registry);
void registerLoopGradients(DialectRegistry &registry);
void registerLinAttnGradients(DialectRegistry &registry);

} // namespace mlir::linattn

#endif // LINATTN_LIB_GRADIENT_GRADIENTMODEL_H
