//===- Arguments.h - Inputs from the command line ---------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TOOLS_LINATTN_RUN_ARGUMENTS_H
#define LINATTN_TOOLS_LINATTN_RUN_ARGUMENTS_H

#include "linattn/CodeGen/Signature.h"
#include "linattn/Compiler/BufferView.h"
#include "linattn/Field/PrimeField.h"
#include "linattn/Support/Npy.h"

namespace linattn {

/// Parses "2x128x4x64xf32", or "f32" for a scalar, into an array of zeros.
llvm::Expected<NpyArray> parseArrayType(llvm::StringRef text);

/// Makes the inputs of a call. A specification is the path of an .npy file,
/// "random:TYPE[:SEED]", "zeros:TYPE" or "ones:TYPE". Inputs without one are
/// random if their shape is static, or with `openSize` for every open dimension
/// (none if negative). With a `field`, arguments of elements take
/// specifications of floats: random elements, or the elements of the numbers.
llvm::Expected<std::vector<NpyArray>>
makeInputs(const Signature &signature,
           llvm::ArrayRef<std::string> specifications, int64_t openSize,
           const PrimeField *field = nullptr);

llvm::SmallVector<BufferView> getViews(std::vector<NpyArray> &arrays);

} // namespace linattn

#endif // LINATTN_TOOLS_LINATTN_RUN_ARGUMENTS_H
