//===- Memory.h - Global memory of an emulated launch -----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_EMULATOR_MEMORY_H
#define LINATTN_LIB_EMULATOR_MEMORY_H

#include "RuntimeABI.h"
#include "Shadow.h"
#include "linattn/Emulator/Emulator.h"
#include "llvm/ADT/SmallVector.h"
#include <memory>
#include <vector>

namespace linattn::emulator {

/// A set of bytes of a buffer.
class ByteSet {
public:
  explicit ByteSet(uint64_t bytes) : words(bytes / 64 + 1) {}
  void insert(uint64_t offset, uint64_t bytes);
  uint64_t size() const;

private:
  std::vector<uint64_t> words;
};

/// The buffers of a launch, at addresses that are the same in every run and so
/// far apart that no wrong index reaches another buffer.
class GlobalMemory {
public:
  struct Buffer {
    Buffer(char *data, uint64_t bytes, bool writable, unsigned argument);

    char *data;
    uint64_t bytes;
    uint64_t address;
    unsigned argument;
    bool writable;
    Shadow shadow;
    ByteSet bytesRead, bytesWritten;
  };

  explicit GlobalMemory(llvm::ArrayRef<Argument> arguments);

  /// The argument values that the kernel receives.
  llvm::ArrayRef<uint64_t> getValues() const { return values; }

  template <typename Visit>
  void forEachBuffer(Visit visit) const {
    for (const std::unique_ptr<Buffer> &buffer : buffers)
      if (buffer)
        visit(*buffer);
  }

  /// The buffer in whose address range this lies, even beyond its end.
  Buffer *find(uint64_t address) {
    uint64_t index = (address >> kBufferBits) - 1;
    if (index >= buffers.size())
      return nullptr;
    return buffers[index].get();
  }

private:
  /// By the number of their first argument; null for other arguments.
  std::vector<std::unique_ptr<Buffer>> buffers;
  llvm::SmallVector<uint64_t> values;
};

} // namespace linattn::emulator

#endif // LINATTN_LIB_EMULATOR_MEMORY_H
