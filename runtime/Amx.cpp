//===- Amx.cpp - Permission for the tiles of AMX --------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn-c/Runtime.h"

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>

/// The kernel enlarges the state that it saves for each thread. It refuses on a
/// machine without tiles, and where a thread's signal stack is too small.
static int32_t requestTiles() {
  constexpr int requestPermission = 0x1023, tileData = 18;
  return syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
}
#else
static int32_t requestTiles() { return 0; }
#endif

int32_t linattn_request_amx(void) {
  static const int32_t granted = requestTiles();
  return granted;
}
