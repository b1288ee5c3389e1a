//===- PoolLoader.cpp - The thread pool where there is one ----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// The shared runner links only the system's libraries. It opens pthreadpool at
// the first loop with threads; without that library, loops run on their
// callers.
//===----------------------------------------------------------------------===//

#include <dlfcn.h>
#include <pthreadpool.h>

static void *findInPool(const char *name) {
  static void *library = dlopen("libpthreadpool.so.0", RTLD_NOW | RTLD_LOCAL);
  return library ? dlsym(library, name) : nullptr;
}

using Create = pthreadpool_t(size_t);
using Run = void(pthreadpool_t, pthreadpool_task_1d_t, void *, size_t,
                 uint32_t);

static Create *getCreate() {
  static auto *create =
      reinterpret_cast<Create *>(findInPool("pthreadpool_create"));
  return create;
}

static Run *getRun() {
  static auto *run =
      reinterpret_cast<Run *>(findInPool("pthreadpool_parallelize_1d"));
  return run;
}

pthreadpool_t pthreadpool_create(size_t threads) {
  return getCreate() && getRun() ? getCreate()(threads) : nullptr;
}

void pthreadpool_parallelize_1d(pthreadpool_t pool,
                                pthreadpool_task_1d_t function, void *argument,
                                size_t range, uint32_t flags) {
  getRun()(pool, function, argument, range, flags);
}
