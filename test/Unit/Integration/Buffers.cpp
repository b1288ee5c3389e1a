//===- Buffers.cpp - Typed, strided buffers of the tests ------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Buffers.h"
#include "../Sample.h"
#include "linattn/Support/Elements.h"
#include "llvm/ADT/STLExtras.h"
#include <cstdlib>
#include <cstring>

using namespace linattn;
using namespace linattn::test;

const char *linattn::test::getName(Layout layout) {
  switch (layout) {
  case Layout::Contiguous:
    return "contiguous";
  case Layout::TokensFirst:
    return "tokens first";
  case Layout::Packed:
    return "packed";
  case Layout::Backwards:
    return "backwards";
  case Layout::AllBackwards:
    return "all backwards";
  case Layout::EveryOther:
    return "every other";
  }
  return "unknown";
}

/// The dimensions from the outermost to the innermost in memory.
static llvm::SmallVector<size_t, 4> getOrder(Layout layout, size_t rank) {
  llvm::SmallVector<size_t, 4> order;
  for (size_t i = 0; i < rank; ++i)
    order.push_back(i);
  if (layout == Layout::TokensFirst && rank >= 3)
    std::swap(order[1], order[2]);
  return order;
}

Buffer::Buffer(DType dtype, llvm::ArrayRef<int64_t> shape, Layout layout)
    : dtype(dtype), shape(shape), strides(shape.size()) {
  int64_t step = layout == Layout::EveryOther ? 2 : 1;
  llvm::SmallVector<size_t, 4> order = getOrder(layout, shape.size());
  for (size_t dim : llvm::reverse(order)) {
    strides[dim] = step;
    step *= std::max<int64_t>(shape[dim], 1);
    // Room for two neighbours beside every row.
    if (layout == Layout::Packed && dim == order.back())
      step += 2 * shape[dim] + 3;
  }
  origin = layout == Layout::Packed ? 5 : 0;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    bool innermost = dim + 1 == shape.size();
    if (layout != Layout::AllBackwards &&
        (layout != Layout::Backwards || innermost))
      continue;
    origin += strides[dim] * std::max<int64_t>(shape[dim] - 1, 0);
    strides[dim] = -strides[dim];
  }
  bytes.assign((step + 5) * getByteSize(dtype), 0xff);
}

Buffer::Buffer(DType dtype, const Array &array, Layout layout)
    : Buffer(dtype, llvm::ArrayRef<int64_t>(array.shape), layout) {
  forEach([&](int64_t position, int64_t index) {
    storeElement(dtype, bytes.data(), index, array.data[position]);
  });
}

template <typename Fn>
void Buffer::forEach(Fn visit) const {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  llvm::SmallVector<int64_t, 4> indices(shape.size(), 0);
  int64_t index = origin;
  for (int64_t position = 0; position < count; ++position) {
    visit(position, index);
    for (size_t dim = shape.size(); dim-- > 0;) {
      index += strides[dim];
      if (++indices[dim] < shape[dim])
        break;
      index -= strides[dim] * shape[dim];
      indices[dim] = 0;
    }
  }
}

BufferView Buffer::getView() {
  return BufferView(bytes.data() + origin * getByteSize(dtype), dtype, shape,
                    strides);
}

Array Buffer::toArray() const {
  Array array(std::vector<int64_t>(shape.begin(), shape.end()));
  forEach([&](int64_t position, int64_t index) {
    array.data[position] = loadElement(dtype, bytes.data(), index);
  });
  return array;
}

std::vector<uint64_t> Buffer::getBits() const {
  std::vector<uint64_t> bits;
  int64_t size = getByteSize(dtype);
  forEach([&](int64_t, int64_t index) {
    uint64_t element = 0;
    std::memcpy(&element, bytes.data() + index * size, size);
    bits.push_back(element);
  });
  return bits;
}

bool Buffer::hasCleanGaps() const {
  int64_t size = getByteSize(dtype);
  std::vector<unsigned char> rest = bytes;
  forEach([&](int64_t, int64_t index) {
    std::memset(rest.data() + index * size, 0xff, size);
  });
  return llvm::all_of(rest, [](unsigned char byte) { return byte == 0xff; });
}

Array linattn::test::randomArray(std::vector<int64_t> shape, uint64_t seed,
                                 double low, double high) {
  Array result(std::move(shape));
  uint64_t bits = seed * 0x9e3779b97f4a7c15ull + 1;
  for (double &x : result.data) {
    bits = bits * 6364136223846793005ull + 1442695040888963407ull;
    x = low + (high - low) * static_cast<double>(bits >> 11) * 0x1p-53;
  }
  return result;
}

Array linattn::test::randomMask(std::vector<int64_t> shape, uint64_t seed,
                                double share) {
  Array result = randomArray(std::move(shape), seed, 0, 1);
  for (double &x : result.data)
    x = x < share;
  return result;
}

std::optional<Kernel> linattn::test::compile(const std::string &text,
                                             CompilerOptions options) {
  options.diskCache = false;
  // The seed draws the programs that are optimized; the others compile in half
  // the time.
  if (!options.optimization && !std::getenv("LINATTN_OPTIMIZATION") &&
      !isDrawn(text))
    options.optimization = Optimization::Quick;
  llvm::Expected<Kernel> kernel = Compiler(options).compile(text, "", "test");
  if (kernel)
    return *kernel;
  ADD_FAILURE() << llvm::toString(kernel.takeError()) << "\n" << text;
  return std::nullopt;
}

std::vector<Buffer> linattn::test::run(const Kernel &kernel,
                                       std::vector<Buffer> &inputs,
                                       Layout layout, int32_t numThreads) {
  std::vector<Buffer> results;
  llvm::SmallVector<BufferView> inputViews, resultViews;
  const std::vector<Buffer> before = inputs;
  for (Buffer &input : inputs)
    inputViews.push_back(input.getView());
  auto shapes = kernel.resultShapes(inputViews);
  if (!shapes) {
    ADD_FAILURE() << llvm::toString(shapes.takeError());
    return {};
  }
  for (auto [info, shape] : llvm::zip(kernel.signature().results, *shapes))
    results.emplace_back(info.dtype, shape, layout);
  for (Buffer &result : results)
    resultViews.push_back(result.getView());
  RunOptions options;
  options.numThreads = numThreads;
  if (llvm::Error error = kernel.run(inputViews, resultViews, options)) {
    ADD_FAILURE() << llvm::toString(std::move(error));
    return {};
  }
  for (Buffer &result : results)
    EXPECT_TRUE(result.hasCleanGaps()) << "wrote between the elements";
  for (size_t i = 0; i < inputs.size(); ++i)
    EXPECT_TRUE(inputs[i].isSame(before[i])) << "wrote into input " << i;
  return results;
}

std::vector<Buffer> linattn::test::run(const Kernel &kernel,
                                       std::vector<Buffer> &&inputs,
                                       Layout layout, int32_t numThreads) {
  return run(kernel, inputs, layout, numThreads);
}

void linattn::test::expectClose(const Buffer &out, const Array &ref,
                                const char *what, double tolerance) {
  expectClose(out.toArray(), out.getDType(), ref, what, tolerance);
}

void linattn::test::expectClose(const Array &out, DType dtype, const Array &ref,
                                const char *what, double tolerance) {
  if (tolerance < 0)
    tolerance = getTolerance(dtype);
  EXPECT_LE(reference::compare(out, ref), tolerance) << what;
}
