//===- BundleFormat.h - The header of a bundle ------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A bundle is this header, a manifest in JSON, and blobs: docs/Runtime.md. The
// compiler writes it and the runner, which has no LLVM, reads it. Plain C++.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_SUPPORT_BUNDLEFORMAT_H
#define LINATTN_SUPPORT_BUNDLEFORMAT_H

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace linattn {

/// All numbers are little-endian.
struct BundleHeader {
  char magic[8];
  uint32_t version;
  uint32_t reserved;
  /// Bytes of the whole file, header included.
  uint64_t fileSize;
  /// The manifest follows the header, the blobs the manifest.
  uint64_t manifestSize;
  /// The checksum of all other bytes of the file.
  uint64_t checksum;
};
static_assert(sizeof(BundleHeader) == 40, "a header without padding");

/// The last byte catches transfers that change line ends.
inline constexpr char kBundleMagic[8] = {'l', 'i', 'n', 'a',
                                         't', 't', 'n', '\n'};
inline constexpr uint32_t kBundleVersion = 3;
/// Blobs start at multiples of this, counted from the start of the file.
inline constexpr uint64_t kBundleAlignment = 64;

inline uint64_t alignBlob(uint64_t offset) {
  return (offset + kBundleAlignment - 1) / kBundleAlignment * kBundleAlignment;
}

/// The offset of the first blob, from which the blobs' offsets count.
inline uint64_t getBlobStart(uint64_t manifestSize) {
  return alignBlob(sizeof(BundleHeader) + manifestSize);
}

/// FNV-1a of a file without the checksum itself. Every step is a bijection of
/// the sum so far, so that a single changed byte is always detected.
inline uint64_t getBundleChecksum(const char *file, size_t size) {
  uint64_t sum = 0xcbf29ce484222325ull;
  for (size_t i = 0; i < size; ++i) {
    if (i == offsetof(BundleHeader, checksum))
      i = sizeof(BundleHeader);
    if (i >= size)
      break;
    sum = (sum ^ static_cast<unsigned char>(file[i])) * 0x100000001b3ull;
  }
  return sum;
}

} // namespace linattn

#endif // LINATTN_SUPPORT_BUNDLEFORMAT_H
