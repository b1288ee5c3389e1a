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
  /// The innermost stride may differ from 1.
  bool isStrided = false;
  /// −1 for any extent.
  std::vector<int64_t> shape;
  int32_t inPlaceOf = -1;
};

/// The shapes of results, and the conditions on the sizes of arguments, as
/// numbers of values.
struct ShapeRules {
  Program program;
  std::vector<std::vector<int32_t>> results;
  /// The value is the number of the message that applies, −1 for none. The
  /// message contains the sizes.
  int32_t check = -1;
  std::vector<int32_t> sizes;
  std::vector<std::string> messages;
};

/// One argument of a GPU kernel.
struct KernelArgument {
  enum class Kind : uint8_t { Pointer, I32, I64, Bits, Scalar };
  Kind kind = Kind::Bits;
  /// Pointer: the number of an operand or, counted after the operands, of a
  /// buffer. Scalar: of an operand.
  int32_t buffer = 0;
  /// The value of an I32 or I64; for a pointer, its offset in elements, −1 for
  /// none.
  int32_t value = -1;
  uint64_t bits = 0;
  /// Bytes that divide the address and these strides, unless the extent of a
  /// stride is 0 or 1.
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

/// Repeated launches: `count` of them from `first` on, and the next `inner`
/// loops, which are nested. Numbers are those of values.
struct Loop {
  int32_t index = 0, lower = 0, upper = 0, step = 0;
  size_t first = 0, count = 0, inner = 0;
  /// The instructions to evaluate again in each iteration.
  std::vector<int32_t> variable;
};

/// Memory besides the operands: a part of the workspace, or constants, which
/// exist once the kernel has been prepared.
struct Buffer {
  int32_t bytes = -1;
  int64_t elementBytes = 1;
  /// The first and the last launch that use it; `last` < `first` for none.
  int64_t first = 0, last = 0;
  /// Earlier buffers that are in use at the same time.
  std::vector<int32_t> conflicts;
  std::string_view contents;

  bool isConstant() const { return bytes < 0; }
};

/// PTX, with a terminating null byte.
struct Module {
  std::string_view ptx, cubin;
};

/// The code for one kind of machine.
struct Variant {
  /// "sm_90a", "x86-64-v3", "aarch64".
  std::string chip;
  /// For nvvm.
  Program program;
  std::vector<Module> modules;
  std::vector<Buffer> buffers;
  std::vector<Launch> launches;
  /// In the order of their first launches, outer loops first.
  std::vector<Loop> loops;
  /// For cpu: a shared library, and its function.
  std::string_view image;
  std::string symbol;
};

struct Bundle {
  /// Checks everything that later reads rely on. Throws a Failure.
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
  /// The best variant first.
  std::vector<Variant> variants;

private:
  Bundle() = default;
};

} // namespace linattn::runner

#endif // LINATTN_RUNTIME_BUNDLE_H
