//===- BulkCopy.h - Copies by tensor maps, and their barriers ---*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// The thread that starts a copy does not perform it. The data arrives when a
// thread waits at the copy's barrier, and only threads that waited may use it.
// A copy therefore counts as a thread of its own, which only that barrier
// orders.
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_EMULATOR_BULKCOPY_H
#define LINATTN_LIB_EMULATOR_BULKCOPY_H

#include "Shadow.h"
#include "linattn/PTX/TensorMap.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <array>
#include <string>

namespace linattn::emulator {

struct Thread;

/// The emulator's own layout of the 128 bytes of a tensor map, which is opaque
/// on a GPU. All zeros is a map in which no field is set.
struct TensorMapBits {
  uint64_t address;
  std::array<uint64_t, tensor_map::maxRank - 1> strides;
  std::array<uint32_t, tensor_map::maxRank> sizes, boxes, elementStrides;
  uint8_t rank; ///< Less one.
  uint8_t elementType, interleave, swizzle, fill;
  uint32_t known; ///< Which fields were set.

  void set(const TensorMapReplace &field, uint64_t value);
  /// Why a copy with this number of coordinates cannot use the map, as the end
  /// of a sentence; empty if it can.
  std::string whyNot(unsigned numCoordinates) const;

  unsigned dims() const { return rank + 1; }
  unsigned elementBytes() const;
  uint64_t rowBytes() const { return uint64_t(boxes[0]) * elementBytes(); }
  uint64_t boxBytes() const;
  /// The address of a byte of the box, which begins at address `base`.
  uint64_t place(uint64_t base, uint64_t offset) const;
};
static_assert(sizeof(TensorMapBits) <= tensor_map::bytes);

/// A row of a box: the bytes inside the tensor, with zeros around them.
struct BoxRow {
  uint64_t source = 0; ///< Of the first byte in the tensor.
  unsigned before = 0, bytes = 0;
};

/// The rows of the box at these coordinates.
std::vector<BoxRow> listRows(const TensorMapBits &map,
                             llvm::ArrayRef<int32_t> coordinates);

/// A bulk copy in flight.
struct BulkCopy {
  uint64_t destination = 0; ///< Address in shared memory.
  uint32_t site = 0;
  TensorMapBits map;
  struct Row {
    BoxRow row;
    const char *data; ///< Null if nothing of it is in the tensor.
  };
  std::vector<Row> rows;
  std::vector<uint32_t> seen; ///< By the thread that started it, then.
};

/// The state of an mbarrier.
struct MBarrier {
  unsigned slot = 0; ///< Of its copies in clocks.
  uint32_t expected = 0, pending = 0;
  int64_t transactions = 0; ///< Bytes expected, less those that came.
  uint32_t phase = 0;
  unsigned initThread = 0;
  uint32_t initMoment = 0;
  /// The clocks of the threads that arrived in this phase, and in the last one.
  std::vector<uint32_t> arriving, complete;
  std::vector<BulkCopy> copies;
  struct Waiter {
    Thread *thread;
    uint32_t parity;
  };
  llvm::SmallVector<Waiter> waiting;

  bool isComplete(uint32_t parity) const { return (phase & 1) != parity; }
};

} // namespace linattn::emulator

#endif // LINATTN_LIB_EMULATOR_BULKCOPY_H
