//===- Memory.cpp - Global memory of an emulated launch ------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory.h"

#include "llvm/ADT/bit.h"

using namespace linattn::emulator;

void ByteSet::insert(uint64_t offset, uint64_t bytes) {
  while (bytes > 0) {
    uint64_t bit = offset % 64, count = std::min(bytes, 64 - bit);
    uint64_t mask = count == 64 ? ~uint64_t(0) : (uint64_t(1) << count) - 1;
    words[offset / 64] |= mask << bit;
    offset += count;
    bytes -= count;
  }
}

uint64_t ByteSet::size() const {
  uint64_t sum = 0;
  for (uint64_t word : words)
    sum += llvm::popcount(word);
  return sum;
}

// Nothing that is only read has races: its shadow stays empty.
GlobalMemory::Buffer::Buffer(const Argument &argument, unsigned number)
    : data(argument.data), bytes(argument.bytes),
      address((uint64_t(number + 1) << kBufferBits) + kBufferSlack),
      argument(number), writable(argument.writable),
      shadow(writable ? bytes : 0, true), bytesRead(bytes),
      bytesWritten(writable ? bytes : 0) {}

llvm::Expected<GlobalMemory>
GlobalMemory::create(llvm::ArrayRef<Argument> arguments) {
  GlobalMemory memory;
  memory.values.resize(arguments.size());
  // Large buffers first: views into them are found inside.
  llvm::SmallVector<unsigned> order;
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    if (argument.kind == Argument::Kind::Buffer)
      order.push_back(i);
    else
      memory.values[i] = argument.bits;
  }
  llvm::sort(order, [&](unsigned a, unsigned b) {
    return std::pair(arguments[b].bytes, a) < std::pair(arguments[a].bytes, b);
  });
  for (unsigned i : order) {
    Argument argument = arguments[i];
    char *end = argument.data + argument.bytes;
    auto overlaps = [&](const Buffer &buffer) {
      return argument.data < buffer.data + buffer.bytes && buffer.data < end;
    };
    auto found = llvm::find_if(memory.buffers, overlaps);
    if (found == memory.buffers.end()) {
      // The whole buffer is writable if one of its views is.
      for (const Argument &other : arguments)
        if (other.writable && other.data >= argument.data && other.data < end)
          argument.writable = true;
      memory.buffers.emplace_back(argument, memory.buffers.size());
      memory.buffers.back().argument = i;
      memory.values[i] = memory.buffers.back().address;
      continue;
    }
    if (argument.data < found->data || end > found->data + found->bytes)
      return llvm::createStringError(
          "expected the buffers of arguments %u and %u to be apart or one "
          "within the other, but they overlap",
          found->argument, i);
    memory.values[i] = found->address + (argument.data - found->data);
  }
  return memory;
}
