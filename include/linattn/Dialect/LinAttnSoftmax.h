//===- LinAttnSoftmax.h - Softmax attention for training --------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_DIALECT_LINATTNSOFTMAX_H
#define LINATTN_DIALECT_LINATTNSOFTMAX_H

#include "linattn/Dialect/LinAttn.h"

#define GET_OP_CLASSES
#include "linattn/Dialect/LinAttnSoftmax.h.inc"

#endif // LINATTN_DIALECT_LINATTNSOFTMAX_H
