//===- PipelineSelection.h - Options to passes ------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_SESSION_PIPELINESELECTION_H
#define LINATTN_LIB_SESSION_PIPELINESELECTION_H

#include "linattn/Gradient/Gradient.h"
#include "linattn/Session/Session.h"

namespace mlir {
class DialectRegistry;
class OpPassManager;
} // namespace mlir

namespace linattn::detail {

/// Every dialect and extension that compilation needs.
const mlir::DialectRegistry &getDialectRegistry();

/// The loops over chunks that gradients of recurrences may use.
mlir::linattn::ChunkLoops getGradientChunks(const CompilerOptions &options);

/// Adds the pipeline from tensors to the LLVM dialect.
void buildPipeline(mlir::OpPassManager &pm, const CompilerOptions &options,
                   const EntryLayout &layout);

} // namespace linattn::detail

#endif // LINATTN_LIB_SESSION_PIPELINESELECTION_H
