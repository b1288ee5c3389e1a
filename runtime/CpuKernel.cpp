//===- CpuKernel.cpp - Kernels on the CPU
//----------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Failure.h"
#include "Kernel.h"

using namespace linattn::runner;

std::unique_ptr<linattn_kernel>
linattn::runner::createCpuKernel(Bundle bundle) {
  fail("'" + bundle.entry + "': this runner has no code for CPUs");
}
