//===- State.cpp - The state of a recurrence between calls ----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Compiler/State.h"
#include "linattn/CodeGen/Signature.h"
#include "linattn/Support/OutOfMemory.h"
#include "linattn/Support/Sizes.h"

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
  llvm::SmallVector<int64_t, 4> shape{batch, heads, keySize, valueSize};
  int64_t elementBytes = getByteSize(options.dtype);
  std::optional<int64_t> bytes = getByteCount(elementBytes, shape);
  if (!bytes)
    return fail("S: " + describeTooLarge(elementBytes, formatShape(shape)));
  State state(batch, heads, keySize, valueSize, options);
  if (!state.allocate())
    return llvm::make_error<OutOfMemoryError>(
        "expected memory for a state of shape " + formatShape(shape) + ", " +
        std::to_string(*bytes) + " bytes, but the system gave none");
  return state;
}

/// Allocates `count` numbers and sets each to `value`.
template <typename T>
static std::optional<LargeBytes> makeFilled(int64_t count, T value) {
  std::optional<LargeBytes> memory =
      LargeBytes::allocate(static_cast<size_t>(count) * sizeof(T));
  if (memory)
    std::fill_n(static_cast<T *>(memory->data()), count, value);
  return memory;
}

State::State(int64_t batch, int64_t heads, int64_t keySize, int64_t valueSize,
             Options options)
    : batch(batch), heads(heads), keySize(keySize), valueSize(valueSize),
      options(options) {}

bool State::allocate() {
  auto fill = [&](LargeBytes &memory, int64_t count, bool lowest) {
    std::optional<LargeBytes> filled =
        options.dtype == DType::F64
            ? makeFilled(count,
                         lowest ? std::numeric_limits<double>::lowest() : 0.0)
            : makeFilled(count,
                         lowest ? std::numeric_limits<float>::lowest() : 0.0f);
    if (filled)
      memory = std::move(*filled);
    return filled.has_value();
  };
  // All products divide that of S, which has been checked.
  return fill(s, batch * heads * keySize * valueSize, /*lowest=*/false) &&
         (!options.normalize ||
          fill(normalizer, batch * heads * keySize, /*lowest=*/false)) &&
         (!options.runningMax || fill(maximum, batch * heads, /*lowest=*/true));
}

llvm::SmallVector<BufferView, 3> State::views() {
  llvm::SmallVector<BufferView, 3> views{S()};
  if (options.normalize)
    views.push_back(z());
  if (options.runningMax)
    views.push_back(m());
  return views;
}
