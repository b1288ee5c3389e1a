//===- Sharding.h - Ops on several processes --------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TRANSFORMS_SHARDING_H
#define LINATTN_TRANSFORMS_SHARDING_H

namespace mlir {
class DialectRegistry;

namespace linattn {

/// Gives the structured ops MLIR's ShardingInterface. Batches and heads are
/// split freely. Tokens of a scan are split, too: each process starts from the
/// state that the process before it sends, panel of heads after panel, as in
/// Sun et al., "Linear Attention Sequence Parallelism", 2024.
void registerShardingInterfaceExternalModels(DialectRegistry &registry);

} // namespace linattn
} // namespace mlir

#endif // LINATTN_TRANSFORMS_SHARDING_H
