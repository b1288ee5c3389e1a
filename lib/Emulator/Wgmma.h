//===- Wgmma.h - Products of a warpgroup ------------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// The four warps of a group share only the instruction: each has 16 rows of A
// and of the sums. A product of a group is therefore four products, one per
// warp, executed when the warp waits for it: as late as allowed. Until then its
// sums are NaNs that name the product. Only a later product and the wait
// recognise them.
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_EMULATOR_WGMMA_H
#define LINATTN_LIB_EMULATOR_WGMMA_H

#include "AccessLog.h"
#include "linattn/PTX/Wgmma.h"
#include <map>

namespace linattn::emulator {

/// A form in 32 bits.
inline uint32_t encode(const WgmmaForm &form) {
  return form.columns | form.isBF16 << 16 | form.registersA << 17 |
         form.transposedB << 18 | form.accumulates << 19;
}
inline WgmmaForm decodeForm(uint32_t bits) {
  WgmmaForm form;
  form.columns = bits & 0xffff;
  form.isBF16 = bits >> 16 & 1;
  form.registersA = bits >> 17 & 1;
  form.transposedB = bits >> 18 & 1;
  form.accumulates = bits >> 19 & 1;
  return form;
}

/// A product of one warp in flight.
struct AsyncProduct {
  WgmmaForm form;
  uint32_t site = 0;
  uint64_t descriptorA = 0, descriptorB = 0;
  uint32_t token = 0;
  uint32_t continues = 0; ///< The product whose sums it adds to; 0: none.
  /// Elements at the time of issue: A by rows, B by columns.
  std::vector<uint16_t> a, b;
  /// 16 rows of C; empty if there is none yet.
  std::vector<float> sums;
};

/// The products of a warp that are in flight.
struct AsyncProducts {
  bool registersFenced = false;
  uint32_t numIssued = 0;
  std::vector<AsyncProduct> products;
  std::vector<size_t> groupEnds;
  /// Sums that no wait has returned yet, by token.
  std::map<uint32_t, std::vector<float>> sums;
};

} // namespace linattn::emulator

#endif // LINATTN_LIB_EMULATOR_WGMMA_H
