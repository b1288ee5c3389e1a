/*===- linattn-c/Runtime.h - Threads for compiled kernels ----------*- C
-*-===*\
|*                                                                            *|
|* Part of the linattn project, under the Apache License v2.0 with LLVM       *|
|* Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception        *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* What compiled kernels call at run time. No LLVM here: ahead-of-time users  *|
|* link only this library.                                                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef LINATTN_C_RUNTIME_H
#define LINATTN_C_RUNTIME_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Calls `task(ctx, i)` once for every i in [0, n), on several threads if that
 *  is allowed, and returns when all calls have. Tasks must be independent. Runs
 *  on the calling thread alone if n is 1, if one thread is asked for, if the
 *  caller is a task itself, or if another thread is using the pool. */
void linattn_parallel_for(int64_t n, void (*task)(void *ctx, int64_t i),
                          void *ctx);

/** Sets the number of threads for the whole process; 0 means the default, which
 *  is LINATTN_NUM_THREADS or the number of CPUs this process may use. */
void linattn_set_num_threads(int32_t count);

/** The number of threads that a call from this thread would use. Never 0. */
int32_t linattn_get_num_threads(void);

/** Sets the number of threads for calls from this thread and returns the former
 *  setting; 0 means that the process's setting holds. */
int32_t linattn_set_thread_local_num_threads(int32_t count);

/** Null, or why the number of threads that a call would use cannot be told:
 *  nothing else sets it and LINATTN_NUM_THREADS is no positive number. Whoever
 *  calls kernels makes that an error. */
const char *linattn_get_num_threads_problem(void);

#ifdef __cplusplus
}
#endif

#endif /* LINATTN_C_RUNTIME_H */
