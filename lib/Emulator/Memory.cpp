//===- Memory.cpp - Global memory of an emulated launch -------------------===//
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

// Read-only memory has no races, and an empty shadow.
GlobalMemory::Buffer::Buffer(char *data, uint64_t bytes, bool writable,
                             unsigned argument)
    : data(data), bytes(bytes),
      address((uint64_t(argument + 1) << kBufferBits) + kBufferSlack),
      argument(argument), writable(writable),
      shadow(writable ? bytes : 0, true), bytesRead(bytes),
      bytesWritten(writable ? bytes : 0) {}

GlobalMemory::GlobalMemory(llvm::ArrayRef<Argument> arguments) {
  values.resize(arguments.size());
  buffers.resize(arguments.size());
  llvm::SmallVector<unsigned> order;
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    if (argument.kind == Argument::Kind::Buffer)
      order.push_back(i);
    else
      values[i] = argument.bits;
  }
  llvm::sort(order, [&](unsigned a, unsigned b) {
    return std::pair(arguments[a].data, a) < std::pair(arguments[b].data, b);
  });
  // Ranges that overlap are views of one buffer.
  for (size_t first = 0, next; first < order.size(); first = next) {
    char *begin = arguments[order[first]].data, *end = begin;
    bool writable = false;
    for (next = first; next < order.size(); ++next) {
      const Argument &argument = arguments[order[next]];
      if (next > first && argument.data >= end && argument.data != begin)
        break;
      end = std::max(end, argument.data + argument.bytes);
      writable |= argument.writable;
    }
    // Addresses must not depend on the caller's memory.
    unsigned number =
        *std::min_element(order.begin() + first, order.begin() + next);
    buffers[number] =
        std::make_unique<Buffer>(begin, end - begin, writable, number);
    for (size_t i = first; i < next; ++i)
      values[order[i]] =
          buffers[number]->address + (arguments[order[i]].data - begin);
  }
}
