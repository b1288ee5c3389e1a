//===- BFloatMemory.h - bf16 in memory as integers --------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_CODEGEN_BFLOATMEMORY_H
#define LINATTN_LIB_CODEGEN_BFLOATMEMORY_H

namespace llvm {
class Module;
} // namespace llvm

namespace linattn::detail {

/// Makes loads and stores of bf16, masked ones included, elements of vectors
/// and choices into ones of i16. The pipeline has expanded the conversions of
/// bf16 into integer arithmetic; with integers in memory too, no bf16 value is
/// left that a CPU without bf16 would handle element by element, through
/// functions libgcc may not have.
void accessBFloatAsInteger(llvm::Module &module);

} // namespace linattn::detail

#endif // LINATTN_LIB_CODEGEN_BFLOATMEMORY_H
