//===- BufferizableOpInterfaceImpl.h - Bufferization models -----*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H
#define LINATTN_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace mlir::linattn {

/// Lets one-shot bufferization place every structured op in its destinations.
void registerBufferizableOpInterfaceExternalModels(DialectRegistry &registry);

} // namespace mlir::linattn

#endif // LINATTN_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H
