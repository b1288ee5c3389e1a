//===- Kernels.cpp - The bundles inside the library -----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"
#include "Failure.h"

#include <map>
#include <mutex>
#include <string_view>

using namespace linattn;

// One file is a library that a program can be given.
#define LINATTN_KERNEL(name)                                                   \
  asm(".pushsection .rodata\n"                                                 \
      ".balign 64\n"                                                           \
      "linattn_bundle_" #name ":\n"                                            \
      ".incbin \"" LINATTN_KERNELS "/" #name ".lab\"\n"                        \
      "linattn_bundle_end_" #name ":\n"                                        \
      ".popsection\n");                                                        \
  extern "C" const char linattn_bundle_##name[], linattn_bundle_end_##name[];
#include "Kernels.inc"
#undef LINATTN_KERNEL

namespace {

struct Bundle {
  std::string_view name;
  const char *begin, *end;
};

const Bundle bundles[] = {
#define LINATTN_KERNEL(name)                                                   \
  {#name, linattn_bundle_##name, linattn_bundle_end_##name},
#include "Kernels.inc"
#undef LINATTN_KERNEL
};

} // namespace

void ort::check(linattn_error *error) {
  if (!error)
    return;
  std::string message = linattn_error_message(error);
  linattn_error_free(error);
  runner::fail(message);
}

const linattn_kernel *ort::findKernel(const std::string &name) {
  static std::mutex mutex;
  static std::map<std::string, linattn_kernel *> loaded;
  std::lock_guard<std::mutex> lock(mutex);
  if (auto at = loaded.find(name); at != loaded.end())
    return at->second;
  for (const Bundle &bundle : bundles) {
    if (bundle.name != name)
      continue;
    linattn_kernel *kernel = nullptr;
    check(linattn_kernel_load(
        bundle.begin, static_cast<size_t>(bundle.end - bundle.begin), &kernel));
    loaded.emplace(name, kernel);
    return kernel;
  }
  return nullptr;
}
