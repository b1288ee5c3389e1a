//===- Fiber.h - Threads of a GPU on stacks of their own --------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_EMULATOR_FIBER_H
#define LINATTN_LIB_EMULATOR_FIBER_H

#include <cstddef>
#include <ucontext.h>

#if defined(__x86_64__) && defined(__linux__)
#define LINATTN_ASSEMBLY_FIBERS 1
#else
#define LINATTN_ASSEMBLY_FIBERS 0
#endif

namespace linattn::emulator {

/// Memory of a stack, with a page below it that faults.
class FiberStack {
public:
  explicit FiberStack(size_t bytes);
  ~FiberStack();
  FiberStack(const FiberStack &) = delete;
  FiberStack &operator=(const FiberStack &) = delete;

  char *begin() const { return usable; }
  char *end() const { return usable + bytes; }
  size_t size() const { return bytes; }
  bool contains(const void *address) const {
    return address >= usable && address < usable + bytes;
  }

private:
  char *mapping, *usable;
  size_t bytes, mapped;
};

/// Announces the current stack to the thread sanitizer, which keeps a stack of
/// calls for each fiber. Empty in other builds.
class SanitizerFiber {
public:
#if defined(__SANITIZE_THREAD__)
  SanitizerFiber() = default;
  SanitizerFiber(const SanitizerFiber &) = delete;
  SanitizerFiber &operator=(const SanitizerFiber &) = delete;
  ~SanitizerFiber();
  /// The context starts with an empty stack.
  void restart();
  static void announceSwitch(SanitizerFiber &from, SanitizerFiber &to);

private:
  void *fiber = nullptr;
  bool owned = false;
#else
  void restart() {}
  static void announceSwitch(SanitizerFiber &, SanitizerFiber &) {}
#endif
};

/// The point at which a fiber, or the thread that runs fibers, continues. This
/// implementation is portable, and makes a system call per switch.
class PortableContext {
public:
  /// The first switch here calls `entry(argument)`, which must not return.
  void prepare(const FiberStack &stack, void (*entry)(void *), void *argument);
  static void switchContext(PortableContext &from, PortableContext &to);

private:
  ucontext_t context;
  SanitizerFiber sanitizer;
};

#if LINATTN_ASSEMBLY_FIBERS
/// The same in a few instructions, which save the callee-saved registers.
class AssemblyContext {
public:
  void prepare(const FiberStack &stack, void (*entry)(void *), void *argument);
  static void switchContext(AssemblyContext &from, AssemblyContext &to);

private:
  void *stackPointer = nullptr;
  SanitizerFiber sanitizer;
};
using FiberContext = AssemblyContext;
#else
using FiberContext = PortableContext;
#endif

} // namespace linattn::emulator

#endif // LINATTN_LIB_EMULATOR_FIBER_H
