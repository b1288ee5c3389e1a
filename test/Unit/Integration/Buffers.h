//===- Buffers.h - Typed, strided buffers of the tests ----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Buffers of a compiled function, in any element type and memory layout, and
// their comparison with the oracle.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TEST_UNIT_INTEGRATION_BUFFERS_H
#define LINATTN_TEST_UNIT_INTEGRATION_BUFFERS_H

#include "linattn/Compiler/Compiler.h"
#include "linattn/Reference/Reference.h"
#include "gtest/gtest.h"
#include <optional>

namespace linattn::test {

using reference::Array;

/// How a logical array lies in memory.
enum class Layout {
  Contiguous,
  /// [B, T, H, D] in memory: tokens before heads.
  TokensFirst,
  /// Rows of a wider array, as queries, keys and values packed in one.
  Packed,
  /// All dimensions but the innermost run backwards.
  Backwards,
  /// The innermost dimension runs backwards as well.
  AllBackwards,
  /// Every other element.
  EveryOther,
};
const char *getName(Layout layout);

/// An array in memory. Every byte that holds no element is 0xff, which makes a
/// NaN of any float that touches it.
class Buffer {
public:
  Buffer(DType dtype, llvm::ArrayRef<int64_t> shape,
         Layout layout = Layout::Contiguous);
  /// The numbers of `array`, rounded to `dtype`.
  Buffer(DType dtype, const Array &array, Layout layout = Layout::Contiguous);

  BufferView getView();
  llvm::ArrayRef<int64_t> getShape() const { return shape; }
  DType getDType() const { return dtype; }
  /// The elements as the oracle takes them.
  Array toArray() const;
  /// The bits of all elements in logical order.
  std::vector<uint64_t> getBits() const;
  /// Whether the bytes between the elements are as they were made.
  bool hasCleanGaps() const;
  /// Whether every byte is the same, those between the elements included.
  bool isSame(const Buffer &other) const { return bytes == other.bytes; }

private:
  /// Calls `visit(logical position, index in memory)` for every element.
  template <typename Fn>
  void forEach(Fn visit) const;
  int64_t origin = 0;

  DType dtype;
  llvm::SmallVector<int64_t, 4> shape, strides;
  std::vector<unsigned char> bytes;
};

/// Uniform numbers in [low, high), the same on every machine.
Array randomArray(std::vector<int64_t> shape, uint64_t seed, double low = -1.0,
                  double high = 1.0);

/// 0 and 1, the latter with the given probability.
Array randomMask(std::vector<int64_t> shape, uint64_t seed, double share = 0.7);

/// Compiles one function; the code is kept in memory only. Adds a failure and
/// returns nothing when that fails.
std::optional<Kernel> compile(const std::string &text,
                              CompilerOptions options = {});

/// Allocates the results, laid out as said, and runs the kernel. Adds a failure
/// and returns nothing when it refuses; adds one when it wrote between elements
/// or into an input.
std::vector<Buffer> run(const Kernel &kernel, std::vector<Buffer> &inputs,
                        Layout layout = Layout::Contiguous,
                        int32_t numThreads = 0);

/// The same for inputs that are not kept.
std::vector<Buffer> run(const Kernel &kernel, std::vector<Buffer> &&inputs,
                        Layout layout = Layout::Contiguous,
                        int32_t numThreads = 0);

/// The compiler's bound for results of a type: the largest
/// max|out - ref| / max|ref|.
void expectClose(const Buffer &out, const Array &ref, const char *what,
                 double tolerance = -1);
/// The same for a result of `dtype` as it is to be compared.
void expectClose(const Array &out, DType dtype, const Array &ref,
                 const char *what, double tolerance = -1);

/// The value of an oracle's result that must not have failed.
template <typename T>
T take(reference::Result<T> result) {
  EXPECT_TRUE(static_cast<bool>(result)) << result.error();
  return result ? *result : T();
}

/// The tokens [begin, end) of a [B, H, T, D], [B, H, T] or, by `axis`, other
/// array.
inline Array sliceTokens(const Array &array, int64_t begin, int64_t end,
                         int64_t axis = 2) {
  return take(reference::slice(array, axis, begin, end));
}

} // namespace linattn::test

#endif // LINATTN_TEST_UNIT_INTEGRATION_BUFFERS_H
