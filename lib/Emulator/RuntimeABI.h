//===- RuntimeABI.h - Between compiled kernels and the emulator -*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// `linattn-nvvm-to-host` turns a kernel into
//
//   void kernel(Thread *thread, const uint64_t *arguments)
//
// which calls the functions below. Pointers of the kernel are addresses of the
// emulated GPU: compiled code translates and checks each one before it
// dereferences it.
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_EMULATOR_RUNTIMEABI_H
#define LINATTN_LIB_EMULATOR_RUNTIMEABI_H

#include <cstdint>

namespace linattn::emulator {

/// Special registers, 32 bits each, at the start of Thread.
enum Register : unsigned {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneId,
  kWarpId,
  kNumWarps,
  kDynamicShared,
  kTotalShared,
  kNumRegisters
};

/// Shared memory starts at this address. The n-th buffer starts in the middle
/// of its own 2^kBufferBits bytes, so an address below its start can be
/// attributed to it. Shared addresses fit into 32 bits, as on the device.
inline constexpr uint64_t kSharedBase = 1 << 24;
inline constexpr uint64_t kSharedSpan = 1 << 28;
inline constexpr unsigned kBufferBits = 40;
inline constexpr uint64_t kBufferSlack = uint64_t(1) << (kBufferBits - 1);

/// Words in a function's frame for the operands and results of collective
/// operations.
inline constexpr unsigned kFragmentWords = 132;

/// Kinds of mma: A and B are 16 x K and K x 8, C and D are 16 x 8.
enum class MmaKind : uint32_t {
  BF16K8,
  BF16K16,
  F16K8,
  F16K16,
  TF32K4,
  TF32K8,
};

enum class ShuffleKind : uint32_t { Bfly, Up, Down, Idx };
enum class VoteKind : uint32_t { Any, All, Ballot, Uniform };
enum class ReduxKind : uint32_t { Add, And, Or, Xor, Max, Min, UMax, UMin };

/// The attributes of `linattn-nvvm-to-host` on the module: where each numbered
/// operation is, and how much static shared memory there is.
inline constexpr const char *kSitesAttr = "linattn.emulator_sites";
inline constexpr const char *kStaticSharedAttr = "linattn.static_shared";
/// On kernels: the types of their arguments, in an array of their own if they
/// are only read.
inline constexpr const char *kArgumentsAttr = "linattn.kernel_arguments";

} // namespace linattn::emulator

#endif // LINATTN_LIB_EMULATOR_RUNTIMEABI_H
