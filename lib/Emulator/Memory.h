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
#include <deque>

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

/// The buffers that a launch was given, at addresses of their own: far apart,
/// so that no index however wrong reaches another one, and the same in every
/// run.
class GlobalMemory {
public:
  struct Buffer {
    Buffer(const Argument &argument, unsigned number);

    char *data;
    uint64_t bytes;
    uint64_t address;
    unsigned argument;
    bool writable;
    Shadow shadow;
    ByteSet bytesRead, bytesWritten;
  };

  /// The values that the kernel gets for the arguments.
  static llvm::Expected<GlobalMemory>
  create(llvm::ArrayRef<Argument> arguments);

  llvm::ArrayRef<uint64_t> getValues() const { return values; }
  std::deque<Buffer> &getBuffers() { return buffers; }

  /// The buffer whose addresses these would be, however far beyond its end.
  Buffer *find(uint64_t address) {
    uint64_t index = (address >> kBufferBits) - 1;
    return index < buffers.size() ? &buffers[index] : nullptr;
  }

private:
  std::deque<Buffer> buffers;
  llvm::SmallVector<uint64_t> values;
};

} // namespace linattn::emulator

#endif // LINATTN_LIB_EMULATOR_MEMORY_H
