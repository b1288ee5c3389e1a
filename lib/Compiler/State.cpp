//===- State.cpp - What a recurrence carries between calls ----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Compiler/State.h"

#include <limits>

using namespace linattn;

llvm::Expected<State> State::zeros(int64_t batch, int64_t heads,
                                   int64_t keySize, int64_t valueSize,
                                   Options options) {
  auto fail = [](const llvm::Twine &message) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
  };
  for (auto [size, name] :
       {std::pair(batch, "batch"), std::pair(heads, "heads"),
        std::pair(keySize, "keySize"), std::pair(valueSize, "valueSize")})
    if (size < 0)
      return fail(llvm::Twine("expected ") + name +
                  " not to be negative, but got " + llvm::Twine(size));
  if (options.dtype != DType::F32 && options.dtype != DType::F64)
    return fail("expected dtype of a state to be f32 or f64, but got " +
                std::string(getName(options.dtype)));
  if (options.runningMax && !options.normalize)
    return fail("expected a running maximum only with a normalizer");
  return State(batch, heads, keySize, valueSize, options);
}

template <typename T, typename Memory>
static void fill(Memory &memory, int64_t count, T value) {
  memory.resize(count * sizeof(T));
  std::fill_n(reinterpret_cast<T *>(memory.data()), count, value);
}

State::State(int64_t batch, int64_t heads, int64_t keySize, int64_t valueSize,
             Options options)
    : batch(batch), heads(heads), keySize(keySize), valueSize(valueSize),
      options(options) {
  auto allocate = [&](Memory &memory, int64_t count, bool lowest) {
    if (options.dtype == DType::F64)
      fill<double>(memory, count,
                   lowest ? std::numeric_limits<double>::lowest() : 0.0);
    else
      fill<float>(memory, count,
                  lowest ? std::numeric_limits<float>::lowest() : 0.0f);
  };
  allocate(s, batch * heads * keySize * valueSize, /*lowest=*/false);
  if (options.normalize)
    allocate(normalizer, batch * heads * keySize, /*lowest=*/false);
  if (options.runningMax)
    allocate(maximum, batch * heads, /*lowest=*/true);
}

llvm::SmallVector<BufferView, 3> State::views() {
  llvm::SmallVector<BufferView, 3> views{S()};
  if (options.normalize)
    views.push_back(z());
  if (options.runningMax)
    views.push_back(m());
  return views;
}
