//===- OutOfMemory.cpp - The error of a system without memory -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Support/OutOfMemory.h"

char linattn::OutOfMemoryError::ID = 0;
