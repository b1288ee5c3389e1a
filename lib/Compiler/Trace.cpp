//===- Trace.cpp - Print values as they are computed ----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Trace.h"
#include "linattn/CodeGen/Signature.h"
#include "linattn/Compiler/BufferView.h"
#include "linattn/Support/Elements.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace linattn;

/// The fields of a memref descriptor in front of its sizes and strides.
namespace {
struct DescriptorHead {
  void *allocated;
  void *aligned;
  int64_t offset;
};
} // namespace

static llvm::ArrayRef<int64_t> getSizesAndStrides(int64_t rank,
                                                  const void *descriptor) {
  auto *head = static_cast<const DescriptorHead *>(descriptor);
  return {reinterpret_cast<const int64_t *>(head + 1),
          static_cast<size_t>(2 * rank)};
}

/// Prints the rows below the leading indices `outer`, one per line.
static void printRows(DType dtype, const void *data,
                      llvm::ArrayRef<int64_t> sizes,
                      llvm::ArrayRef<int64_t> strides, int64_t offset,
                      llvm::SmallVectorImpl<int64_t> &outer) {
  if (outer.size() + 1 < sizes.size()) {
    size_t dim = outer.size();
    for (int64_t i = 0; i < sizes[dim]; ++i) {
      outer.push_back(i);
      printRows(dtype, data, sizes, strides, offset + i * strides[dim], outer);
      outer.pop_back();
    }
    return;
  }
  llvm::outs() << "  [";
  for (int64_t index : outer)
    llvm::outs() << index << ", ";
  llvm::outs() << ":]";
  int64_t count = sizes.empty() ? 1 : sizes.back();
  for (int64_t i = 0; i < count; ++i) {
    int64_t step = sizes.empty() ? 0 : i * strides.back();
    llvm::outs() << llvm::format(" %10.6g",
                                 loadElement(dtype, data, offset + step));
  }
  llvm::outs() << "\n";
}

template <DType dtype>
static void printValue(int64_t, void *label, int64_t token, int64_t rank,
                       void *descriptor) {
  auto *text = static_cast<const DescriptorHead *>(label);
  llvm::outs() << llvm::StringRef(static_cast<const char *>(text->aligned) +
                                      text->offset,
                                  getSizesAndStrides(1, label).front());
  if (token >= 0)
    llvm::outs() << ", token " << token;
  auto *head = static_cast<const DescriptorHead *>(descriptor);
  llvm::ArrayRef<int64_t> layout = getSizesAndStrides(rank, descriptor);
  llvm::ArrayRef<int64_t> sizes = layout.take_front(rank);
  llvm::outs() << ": " << formatShape(sizes) << " " << getName(dtype) << "\n";
  llvm::SmallVector<int64_t> outer;
  printRows(dtype, head->aligned, sizes, layout.drop_front(rank), head->offset,
            outer);
}

void linattn::detail::forEachTracePrinter(
    llvm::function_ref<void(llvm::StringRef symbol, void *address)> visit) {
  auto address = [](auto *function) {
    return reinterpret_cast<void *>(function);
  };
  visit("linattn_trace_f16", address(&printValue<DType::F16>));
  visit("linattn_trace_bf16", address(&printValue<DType::BF16>));
  visit("linattn_trace_f32", address(&printValue<DType::F32>));
  visit("linattn_trace_f64", address(&printValue<DType::F64>));
}
