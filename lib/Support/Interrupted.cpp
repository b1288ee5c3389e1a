//===- Interrupted.cpp - Errors of calls that were ended ------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Support/Interrupted.h"

char linattn::InterruptedError::ID = 0;
