//===- LibFuzzer.cpp - A target for libFuzzer -----------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Targets.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  linattn::fuzz::LINATTN_FUZZ_TARGET(
      llvm::StringRef(reinterpret_cast<const char *>(data), size));
  return 0;
}
