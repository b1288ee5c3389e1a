//===- FakeDriver.h - A CUDA driver that watches ----------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// libcuda without a GPU: it records every call, checks its arguments as the
// real one would or should, and fails where it is told to. Memory is the
// host's. Kernels do not run. Tests open the library twice: the runner by
// LINATTN_CUDA_DRIVER, and they themselves for these functions.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TEST_FAKEDRIVER_H
#define LINATTN_TEST_FAKEDRIVER_H

extern "C" {

/// Forgets calls, failures and settings; keeps contexts, modules and memory.
void fakeCudaReset(void);

/// The calls so far, one per line, in order; "cuLaunchKernel layer_scan grid
/// 16 1 1 block 128 1 1 shared 65536 stream 0 args 7f00 2a". Queries of the
/// context are left out. Valid until the next call from this thread.
const char *fakeCudaCalls(void);

/// Errors of the caller, one per line: memory or modules without a
/// context, kernels with other arguments than their PTX declares, more shared
/// memory than requested, grids beyond the limits.
const char *fakeCudaComplaints(void);

/// The call after `skip` more of `function` returns `result`.
void fakeCudaFail(const char *function, int result, int skip);

/// The device's attributes; 9.0 with 227 KB after a reset.
void fakeCudaSetDevice(int major, int minor, int sharedBytes);

/// Makes a new context current for this thread; 0 leaves it without one.
void fakeCudaSetContext(int number);

/// Whether calls are recorded; not while they are timed.
void fakeCudaRecord(int on);
}

#endif // LINATTN_TEST_FAKEDRIVER_H
