/*===- linattn-c/Runtime.h - Threads and memory for kernels
----------------===*\
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

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How a call of compiled code ended. */
typedef enum {
  LINATTN_CALL_DONE = 0,
  LINATTN_CALL_OUT_OF_MEMORY,
  /** The deadline has passed. */
  LINATTN_CALL_TIMED_OUT,
  /** The thread's check ended the call. */
  LINATTN_CALL_INTERRUPTED
} linattn_call_status;

typedef struct {
  /** A linattn_call_status. */
  int32_t status;
  /** The bytes that could not be allocated, or 0; UINT64_MAX where their number
   *  does not fit in 64 bits. */
  uint64_t bytes;
} linattn_call_result;

/** Calls `code(arguments)`. Where an allocation fails, where the thread's
 *  deadline passes and where an interrupt is to end the call, the compiled code
 *  is left as by longjmp: the results, and a state that is updated in place,
 *  then have unspecified contents, all memory that the call allocated is free
 *  again, and the inputs are as they were. `code` must hold nothing that needs
 * to be destroyed. */
linattn_call_result linattn_call(void (*code)(void **arguments),
                                 void **arguments);

/** Memory for compiled code, at a multiple of `alignment`, a power of 2.
 *  Returns to the innermost linattn_call or task instead where there is none;
 *  outside of both ends the process. */
void *linattn_allocate(uint64_t bytes, uint64_t alignment);
void linattn_free(void *memory);

/** A thread keeps at most 64 MiB of the memory that its calls have freed, in
 *  blocks of 64 KiB and more, for its next calls; it gives all of it back when
 *  it ends. This call gives back at once what its thread keeps, and what
 *  another thread keeps when that thread next allocates or frees such a
 *  block. */
void linattn_release_memory(void);

/** Asks the operating system for the tiles of AMX, the first time in a process
 *  that it is called: 1 if all threads may use them, else 0. Code with tiles
 *  ends a process that may not. */
int32_t linattn_request_amx(void);

/** Ends the compiled code that calls it where its call is to end. Code calls it
 *  between chunks of tokens, and only where the flag, `linattn_poll_flag` in
 *  code, is not 0. */
void linattn_poll(void);
const int32_t *linattn_get_poll_flag(void);

/** Sets when calls from this thread end, in nanoseconds of CLOCK_MONOTONIC, and
 *  returns the former setting; 0 is none. A call that begins later does not
 *  run. A thread of the runtime waits for deadlines from the first one on. */
int64_t linattn_set_thread_local_deadline(int64_t nanoseconds);

/** Has calls from this thread, and from no other, call `check` within
 *  milliseconds of an interrupt: they end where it returns another number than
 *  0. It runs on this thread, between chunks, and may call kernels. NULL, the
 *  default: no call is concerned. The thread must not end before there is
 *  another one, or NULL. */
void linattn_set_interrupt_check(int32_t (*check)(void));

/** Interrupts the call in progress of the thread with the check, or else its
 *  next one. May be called by a signal handler. */
void linattn_interrupt(void);

/** For tests: allocates with these functions instead of malloc and free, in the
 *  whole process; NULL for the latter. No call may be in progress. */
void linattn_set_allocator(void *(*allocate)(size_t bytes),
                           void (*release)(void *memory));

/** Calls `task(ctx, i)` once for every i in [0, n), on several threads if that
 *  is allowed, and returns when all calls have. Tasks must be independent. Runs
 *  on the calling thread alone if n is 1, if the call has one thread, if the
 *  caller is a task itself, or if another thread is using the pool. Where a
 *  task is left, tasks that have not begun are skipped, and the caller is left
 *  in the same way once the others have returned. */
void linattn_parallel_for(int64_t n, void (*task)(void *ctx, int64_t i),
                          void *ctx);

/** Threads of the caller: `run(pool, n, task, ctx)` does what
 * linattn_parallel_for is to do. NULL stands for the threads of this library.
 */
typedef struct {
  void (*run)(void *pool, int64_t n, void (*task)(void *ctx, int64_t i),
              void *ctx);
  void *pool;
} linattn_pool;

/** Sets the threads for calls from this thread and returns the former ones. How
 *  many there are is then the pool's to choose, unless the number of threads is
 *  set to 1. */
linattn_pool linattn_set_thread_local_pool(linattn_pool pool);

/** Sets the number of threads for the whole process; 0 means the default, which
 *  is LINATTN_NUM_THREADS or the number of CPUs this process may use. */
void linattn_set_num_threads(int32_t count);

/** The number of threads that a call from this thread would use. Never 0. */
int32_t linattn_get_num_threads(void);

/** Sets the number of threads for calls from this thread and returns the former
 *  setting; 0 means that the process's setting holds. */
int32_t linattn_set_thread_local_num_threads(int32_t count);

/** Null, or why the number of threads that a call would use is unknown:
 *  nothing else sets it and LINATTN_NUM_THREADS is not a positive number. The
 *  callers of kernels report it as an error. */
const char *linattn_get_num_threads_problem(void);

#ifdef __cplusplus
}
#endif

#endif /* LINATTN_C_RUNTIME_H */
