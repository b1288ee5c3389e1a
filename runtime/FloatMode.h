//===- FloatMode.h - The floating-point mode of a thread --------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled code sets the mode that it computes in and restores its caller's
// (lib/Compiler/FloatMode.cpp). Every thread has a mode of its own: a pool's
// threads take the one of the loop that they help with.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_RUNTIME_FLOATMODE_H
#define LINATTN_RUNTIME_FLOATMODE_H

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace linattn {

/// MXCSR or FPCR: rounding, traps, and whether subnormal numbers are zeros.
/// Machines without such a register have one mode, 0.
using FloatMode = uint64_t;

inline FloatMode getFloatMode() {
#if defined(__x86_64__)
  return _mm_getcsr();
#elif defined(__aarch64__)
  FloatMode mode;
  asm volatile("mrs %0, fpcr" : "=r"(mode)::"memory");
  return mode;
#else
  return 0;
#endif
}

inline void setFloatMode([[maybe_unused]] FloatMode mode) {
#if defined(__x86_64__)
  _mm_setcsr(static_cast<uint32_t>(mode));
#elif defined(__aarch64__)
  asm volatile("msr fpcr, %0" ::"r"(mode) : "memory");
#endif
}

/// Sets the mode for a scope.
class FloatModeScope {
public:
  explicit FloatModeScope(FloatMode mode) : former(getFloatMode()) {
    // Writing the register waits for all earlier arithmetic, so that it is
    // skipped where possible.
    differs = mode != former;
    if (differs)
      setFloatMode(mode);
  }
  ~FloatModeScope() {
    if (differs)
      setFloatMode(former);
  }
  FloatModeScope(const FloatModeScope &) = delete;
  FloatModeScope &operator=(const FloatModeScope &) = delete;

private:
  FloatMode former;
  bool differs;
};

} // namespace linattn

#endif // LINATTN_RUNTIME_FLOATMODE_H
