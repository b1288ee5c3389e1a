//===- Bundle.h - Contents of a bundle --------------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_RUNTIME_BUNDLE_H
#define LINATTN_RUNTIME_BUNDLE_H

#include "Program.h"
#include <memory>
#include <string>
#include <string_view>

namespace linattn::runner {

/// An argument or a result.
struct Operand {
  std::string name;
  int32_t dtype = 0;
  bool isScalar = false;
  /// The innermost stride need not be 1.
  bool isStrided = false;
  /// −1 where any extent is accepted.
  std::vector<int64_t> shape;
  int32_t inPlaceOf = -1;
};

/// The shapes of results, and what the sizes of arguments must fulfil. Numbers
/// are those of values.
struct ShapeRules {
  Program program;
  std::vector<std::vector<int32_t>> results;
  /// The value tells which of the messages applies, −1 for none; it shows the
  /// sizes.
  int32_t check = -1;
  std::vector<int32_t> sizes;
  std::vector<std::string> messages;
};

/// One argument of a GPU kernel.
struct KernelArgument {
  enum class Kind : uint8_t { Pointer, I32, I64, Bits, Scalar };
  Kind kind = Kind::Bits;
  /// Pointer: an operand, or behind those another buffer. Scalar: an operand.
  int32_t buffer = 0;
  /// Of I32 and I64; of a pointer, its offset in elements, −1 for none.
  int32_t value = -1;
  uint64_t bits = 0;
  /// Bytes that divide the address and these strides, unless the extent that
  /// goes with one is 0 or 1.
  int64_t align = 1;
  struct Dimension {
    int32_t extent, stride;
  };
  std::vector<Dimension> dimensions;
};

struct Launch {
  int32_t module = 0;
  std::string kernel;
  int32_t grid[3] = {0, 0, 0}, block[3] = {0, 0, 0};
  int64_t sharedBytes = 0;
  std::vector<KernelArgument> arguments;
};

/// Launches that are repeated: `count` of them from `first` on, and the loops
/// within, the `inner` next ones. Numbers are those of values.
struct Loop {
  int32_t index = 0, lower = 0, upper = 0, step = 0;
  size_t first = 0, count = 0, inner = 0;
  /// The instructions that an iteration computes anew.
  std::vector<int32_t> variable;
};

/// Memory besides the operands: a part of the workspace of so many bytes, or
/// constants, which are there once the kernel has been prepared.
struct Buffer {
  int32_t bytes = -1;
  int64_t elementBytes = 1;
  /// The launches that use it; `last` < `first` for none.
  int64_t first = 0, last = 0;
  /// The buffers before it that are in use together with it.
  std::vector<int32_t> conflicts;
  std::string_view contents;

  bool isConstant() const { return bytes < 0; }
};

/// PTX ends with a null byte.
struct Module {
  std::string_view ptx, cubin;
};

/// The code for one kind of machine.
struct Variant {
  /// "sm_90a", "x86-64-v3", "aarch64".
  std::string chip;
  /// nvvm
  Program program;
  std::vector<Module> modules;
  std::vector<Buffer> buffers;
  std::vector<Launch> launches;
  /// In the order of their first launches, the outer before the inner.
  std::vector<Loop> loops;
  /// cpu: a shared library, and the function in it.
  std::string_view image;
  std::string symbol;
};

struct Bundle {
  /// Checks everything that using it relies on; throws a Failure.
  static Bundle parse(std::string file);

  Bundle(Bundle &&) = default;

  /// On the heap, so that views of it survive a move.
  std::unique_ptr<const std::string> file;
  std::string manifest;
  std::string entry;
  bool isCpu = false;
  size_t numArguments = 0;
  std::vector<Operand> operands;
  ShapeRules shapes;
  /// In the order of preference.
  std::vector<Variant> variants;

private:
  Bundle() = default;
};

} // namespace linattn::runner

#endif // LINATTN_RUNTIME_BUNDLE_H
