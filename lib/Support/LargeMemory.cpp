//===- LargeMemory.cpp - Memory for states and results --------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Support/LargeMemory.h"

#include <algorithm>
#include <cstdlib>
#if defined(__linux__)
#include <sys/mman.h>
#endif

using namespace linattn;

void *linattn::allocateLarge(size_t bytes) {
  constexpr size_t line = 64, hugePage = size_t(2) << 20;
  bool isHuge = bytes >= hugePage;
  void *memory = nullptr;
  if (posix_memalign(&memory, isHuge ? hugePage : line, std::max(bytes, line)))
    return nullptr;
#if defined(__linux__)
  // Only a wish: without huge pages it is ordinary memory.
  if (isHuge)
    (void)madvise(memory, bytes, MADV_HUGEPAGE);
#endif
  return memory;
}
