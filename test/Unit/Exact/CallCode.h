//===- CallCode.h - Calls of code made from changed IR ----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TEST_UNIT_EXACT_CALLCODE_H
#define LINATTN_TEST_UNIT_EXACT_CALLCODE_H

#include "Loader.h"
#include <vector>

namespace linattn::test {

using Arrays = std::vector<std::vector<char>>;

/// Runs code of static shapes on contiguous arrays.
inline void callCode(const detail::LoadedCode &code, const Signature &signature,
                     Arrays &inputs, Arrays &results) {
  std::vector<std::vector<int64_t>> descriptors;
  std::vector<void *> pointers;
  auto addMemRef = [&](const ValueInfo &info, std::vector<char> &bytes) {
    auto address = reinterpret_cast<intptr_t>(bytes.data());
    std::vector<int64_t> &fields = descriptors.emplace_back();
    fields = {address, address, 0};
    fields.insert(fields.end(), info.shape.begin(), info.shape.end());
    std::vector<int64_t> strides(info.shape.size(), 1);
    for (size_t i = strides.size(); i-- > 1;)
      strides[i - 1] = strides[i] * info.shape[i];
    fields.insert(fields.end(), strides.begin(), strides.end());
    pointers.push_back(fields.data());
  };
  for (auto [info, bytes] : llvm::zip(signature.arguments, inputs))
    addMemRef(info, bytes);
  for (auto [info, bytes] : llvm::zip(signature.results, results))
    addMemRef(info, bytes);
  code.run(pointers.data());
}

} // namespace linattn::test

#endif // LINATTN_TEST_UNIT_EXACT_CALLCODE_H
