//===- Kernel.h - A loaded bundle -------------------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_RUNTIME_KERNEL_H
#define LINATTN_RUNTIME_KERNEL_H

#include "Operands.h"

/// The kernel behind the C API's handle.
struct linattn_kernel {
  static std::unique_ptr<linattn_kernel> create(std::string file);

  virtual ~linattn_kernel() = default;

  virtual void prepare() = 0;
  virtual size_t getWorkspaceSize(linattn::runner::CallViews &views) const = 0;
  virtual void launch(linattn::runner::CallViews &views, void *workspace,
                      size_t workspaceBytes, void *stream) const = 0;

  const linattn::runner::Bundle bundle;
  std::vector<linattn_operand> operands;

protected:
  explicit linattn_kernel(linattn::runner::Bundle bundle);
};

namespace linattn::runner {

std::unique_ptr<linattn_kernel> createCudaKernel(Bundle bundle);
std::unique_ptr<linattn_kernel> createCpuKernel(Bundle bundle);

} // namespace linattn::runner

#endif // LINATTN_RUNTIME_KERNEL_H
