//===- ScanProgram.h - A scan as a function with operands -------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TEST_UNIT_GPU_SCANPROGRAM_H
#define LINATTN_TEST_UNIT_GPU_SCANPROGRAM_H

#include "ScanCase.h"
#include "linattn/Dialect/LinAttn.h"
#include "linattn/Support/Elements.h"

namespace linattn::test {

/// An operand or result of the function.
struct NamedBuffer {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape, strides;
  std::vector<char> data;

  int64_t count() const {
    int64_t n = 1;
    for (int64_t size : shape)
      n *= size;
    return n;
  }
  uint64_t bytes() const { return count() * getByteSize(dtype); }

  /// Where the element of row-major number `index` is.
  int64_t place(int64_t index) const {
    int64_t at = 0;
    for (size_t dim = shape.size(); dim-- > 0;) {
      at += index % shape[dim] * strides[dim];
      index /= shape[dim];
    }
    return at;
  }
  reference::Array toArray() const {
    reference::Array array(shape);
    for (int64_t i = 0; i < count(); ++i)
      array.data[i] = loadElement(dtype, data.data(), place(i));
    return array;
  }
  void set(const reference::Array &array) {
    for (int64_t i = 0; i < count(); ++i)
      storeElement(dtype, data.data(), place(i), array.data[i]);
  }
  std::string type(bool dynamicTokens) const {
    std::string text = "tensor<";
    for (size_t dim = 0; dim < shape.size(); ++dim)
      text +=
          dynamicTokens && dim == 2 ? "?x" : std::to_string(shape[dim]) + "x";
    return text + std::string(getName(dtype)) + ">";
  }
};

/// The operands of a case and its function (`ScanProgram.cpp`), and what the
/// emulator computes of it (`ScanCase.cpp`).
class ScanProgram {
public:
  explicit ScanProgram(const ScanCase &scan);

  ScanOutcome run();
  std::string text() const;

private:
  NamedBuffer &add(std::string name, DType dtype, std::vector<int64_t> shape,
                   bool tokens);
  void fill(NamedBuffer &buffer, double scale, bool negative);
  void addGates();
  void addMask();
  /// Few tokens are static, as in decoding.
  bool isDynamic(const NamedBuffer &buffer) const {
    return scan.tokens > 8 && buffer.shape.size() >= 3 &&
           buffer.shape[2] == scan.tokens && buffer.name != "state" &&
           buffer.name != "z";
  }
  NamedBuffer *find(llvm::StringRef name) {
    for (NamedBuffer &buffer : buffers)
      if (buffer.name == name)
        return &buffer;
    return nullptr;
  }
  std::optional<reference::Array> arrayOf(llvm::StringRef name) {
    NamedBuffer *buffer = find(name);
    return buffer ? std::optional(buffer->toArray()) : std::nullopt;
  }
  reference::Result<reference::ScanResult> computeReference();
  NamedBuffer &bufferOf(mlir::Value value);
  llvm::Error launch(mlir::ModuleOp module, mlir::linattn::LaunchOp launch,
                     ScanOutcome &outcome);
  void compare(const reference::ScanResult &reference, ScanOutcome &outcome);

  const ScanCase &scan;
  int64_t heads, outputHeads, states;
  /// In the order of the function: operands, then results.
  std::vector<NamedBuffer> buffers;
  std::vector<int64_t> rows; ///< Of the pool.
  /// Memory that the function allocates.
  llvm::DenseMap<mlir::Value, NamedBuffer> allocated;
  reference::Array initialState, initialZ;
};

} // namespace linattn::test

#endif // LINATTN_TEST_UNIT_GPU_SCANPROGRAM_H
