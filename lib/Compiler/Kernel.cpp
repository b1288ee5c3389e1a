//===- Kernel.cpp - Compiled functions ------------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Compiler/Kernel.h"
#include "KernelImpl.h"
#include "ViewChecks.h"
#include "linattn-c/Runtime.h"
#include "linattn/Emulator/LaunchLog.h"
#include "linattn/Support/Interrupted.h"
#include "linattn/Support/OutOfMemory.h"
#include "llvm/Support/FormatVariadic.h"

#include <cstring>
#include <memory>
#include <new>
#include <optional>

using namespace linattn;
using namespace linattn::detail;

static llvm::Error makeMemoryError(const Signature &signature,
                                   const llvm::Twine &message) {
  return llvm::make_error<OutOfMemoryError>("'" + signature.entry +
                                            "': " + message);
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

namespace {

/// The memref descriptors of a call, and pointers to them and to scalars, in
/// the order of the packed wrappers.
class ArgumentArray {
public:
  explicit ArgumentArray(size_t numMemRefFields) {
    // Pointers into `fields` are taken while it grows.
    fields.reserve(numMemRefFields);
  }

  static size_t countFields(llvm::ArrayRef<BufferView> views) {
    size_t count = 0;
    for (const BufferView &view : views)
      count += 3 + 2 * view.shape.size();
    return count;
  }

  void addMemRef(const BufferView &view) {
    pointers.push_back(fields.end());
    auto address = static_cast<int64_t>(reinterpret_cast<intptr_t>(view.data));
    // Field by field: a memcpy of a few numbers takes longer.
    for (int64_t field : {address, address, /*offset=*/int64_t(0)})
      fields.push_back(field);
    for (int64_t extent : view.shape)
      fields.push_back(extent);
    for (int64_t stride : view.strides)
      fields.push_back(stride);
    // Code may assume a unit stride for extents of 0 and 1, too.
    if (!view.shape.empty() && view.hasUnitInnermostStride())
      fields.back() = 1;
  }

  void addScalar(const BufferView &view) { pointers.push_back(view.data); }

  void addInputs(const Signature &signature,
                 llvm::ArrayRef<BufferView> inputs) {
    for (auto [info, view] : llvm::zip(signature.arguments, inputs)) {
      if (info.isTensor)
        addMemRef(view);
      else
        addScalar(view);
    }
  }

  void **data() { return pointers.data(); }

private:
  llvm::SmallVector<int64_t, 64> fields;
  llvm::SmallVector<void *, 16> pointers;
};

/// The arguments of a call as the vectorised code reads them: with adjacent
/// elements in the innermost dimension, or transposed. An argument that is
/// neither, and small beside the largest input, is copied, because a single one
/// would cost all others their vectors. Gates [B, T, H] seen as [B, H, T], and
/// their gradients, are such arguments.
class PackedViews {
public:
  PackedViews(const KernelImpl &impl, llvm::ArrayRef<BufferView> inputs,
              llvm::ArrayRef<BufferView> outputs)
      : inputs(inputs), outputs(outputs), given(outputs) {
    auto isUnit = [&](const BufferView &view) {
      return impl.hasKnownStride(view);
    };
    auto all = llvm::concat<const BufferView>(inputs, outputs);
    if (llvm::all_of(all, isUnit))
      return;
    int64_t largest = 0;
    for (const BufferView &view : inputs)
      largest = std::max(largest, view.getNumElements());
    auto isSmall = [&](const BufferView &view) {
      // Outputs have not been checked at this point, so that their sizes may
      // overflow.
      return isUnit(view) ||
             (getByteCount(getByteSize(view.dtype), view.shape) &&
              view.getNumElements() <= largest / smallShare);
    };
    auto isServed = [&](const BufferView &view) {
      return isSmall(view) || impl.canBeTransposed(view);
    };
    if (!llvm::all_of(all, isServed))
      return;
    auto pack = [&](llvm::ArrayRef<BufferView> &views,
                    std::vector<BufferView> &packed, bool isRead) {
      packed.assign(views.begin(), views.end());
      for (BufferView &view : packed)
        if (!isUnit(view) && isSmall(view))
          view = allocateFor(view, isRead);
      views = packed;
    };
    pack(this->inputs, packedInputs, /*isRead=*/true);
    pack(this->outputs, packedOutputs, /*isRead=*/false);
  }
  PackedViews(const PackedViews &) = delete;

  llvm::ArrayRef<BufferView> getInputs() const { return inputs; }
  llvm::ArrayRef<BufferView> getOutputs() const { return outputs; }

  /// Fails if a copy could not be allocated, in which case the views are not
  /// usable.
  llvm::Error check(const Signature &signature) const {
    if (!missingBytes)
      return llvm::Error::success();
    return makeMemoryError(signature, describeMissingMemory(*missingBytes));
  }

  /// Copies results into the buffers of the call, after the code has run.
  void unpackOutputs() const {
    for (auto [view, packed] : llvm::zip_equal(given, outputs))
      if (view.data != packed.data)
        copyRows(view, static_cast<char *>(const_cast<void *>(packed.data)),
                 /*toPacked=*/false);
  }

private:
  static constexpr int64_t smallShare = 16;

  /// Copies elements at these strides. A constant size makes each copy one
  /// move.
  template <size_t bytes>
  static void copyRow(char *to, int64_t toStride, const char *from,
                      int64_t fromStride, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(to + i * toStride * int64_t(bytes),
                  from + i * fromStride * int64_t(bytes), bytes);
  }
  static auto rowCopyOf(int64_t bytes) {
    switch (bytes) {
    case 1:
      return copyRow<1>;
    case 2:
      return copyRow<2>;
    case 4:
      return copyRow<4>;
    default:
      assert(bytes == 8 && "expected an element of at most eight bytes");
      return copyRow<8>;
    }
  }

  /// Copies the elements of `view` to contiguous memory, or from there.
  static void copyRows(const BufferView &view, char *packed, bool toPacked) {
    int64_t bytes = getByteSize(view.dtype), count = view.getNumElements();
    auto *data = static_cast<char *>(const_cast<void *>(view.data));
    auto copyRow = rowCopyOf(bytes);
    size_t last = view.shape.size() - 1;
    int64_t row = view.shape[last], stride = view.strides[last];
    llvm::SmallVector<int64_t, 4> at(last, 0);
    int64_t offset = 0;
    for (int64_t done = 0; done < count; done += row) {
      if (toPacked)
        copyRow(packed + done * bytes, 1, data + offset * bytes, stride, row);
      else
        copyRow(data + offset * bytes, stride, packed + done * bytes, 1, row);
      for (size_t d = last; d-- > 0;) {
        offset += view.strides[d];
        if (++at[d] < view.shape[d])
          break;
        offset -= at[d] * view.strides[d];
        at[d] = 0;
      }
    }
  }

  BufferView allocateFor(const BufferView &view, bool isRead) {
    int64_t bytes = getByteSize(view.dtype) * view.getNumElements();
    copies.emplace_back(new (std::nothrow) char[bytes]);
    char *to = copies.back().get();
    if (!to) {
      missingBytes = bytes;
      return view;
    }
    if (isRead)
      copyRows(view, to, /*toPacked=*/true);
    return BufferView(static_cast<void *>(to), view.dtype, view.shape);
  }

  llvm::ArrayRef<BufferView> inputs, outputs, given;
  std::vector<BufferView> packedInputs, packedOutputs;
  std::vector<std::unique_ptr<char[]>> copies;
  std::optional<uint64_t> missingBytes;
};

/// Applies the options of a call to its thread.
class OptionScope {
public:
  explicit OptionScope(const RunOptions &options) : options(options) {
    if (options.numThreads > 0)
      threads = linattn_set_thread_local_num_threads(options.numThreads);
    if (options.deadline)
      deadline = linattn_set_thread_local_deadline(
          std::chrono::nanoseconds(options.deadline->time_since_epoch())
              .count());
  }
  ~OptionScope() {
    if (options.numThreads > 0)
      linattn_set_thread_local_num_threads(threads);
    if (options.deadline)
      linattn_set_thread_local_deadline(deadline);
  }
  OptionScope(const OptionScope &) = delete;

private:
  const RunOptions &options;
  int32_t threads = 0;
  int64_t deadline = 0;
};

/// The error for compiled code that ended early.
llvm::Error makeCallError(const Signature &signature,
                          const linattn_call_result &result) {
  switch (result.status) {
  case LINATTN_CALL_TIMED_OUT:
    return llvm::make_error<InterruptedError>(
        InterruptedError::Deadline,
        "'" + signature.entry + "': ended by its deadline before it was done");
  case LINATTN_CALL_INTERRUPTED:
    return llvm::make_error<InterruptedError>(
        InterruptedError::Interrupt,
        "'" + signature.entry + "': interrupted before it was done");
  default:
    return makeMemoryError(signature, describeMissingMemory(result.bytes));
  }
}

} // namespace

/// The message of a check, with its sizes filled in.
static std::string formatCheck(llvm::StringRef message,
                               llvm::ArrayRef<int64_t> sizes) {
  std::string text;
  while (!message.empty()) {
    auto [before, after] = message.split('{');
    text += before;
    auto [number, rest] = after.split('}');
    size_t index;
    if (!number.getAsInteger(10, index) && index < sizes.size())
      text += std::to_string(sizes[index]);
    message = rest;
  }
  return text;
}

/// Checks that a result of this shape can be counted in bytes. Buffers of a
/// call are checked for this as views.
static llvm::Error checkByteCount(const Signature &signature, size_t index,
                                  llvm::ArrayRef<int64_t> shape) {
  int64_t elementBytes = getByteSize(signature.results[index].dtype);
  if (getByteCount(elementBytes, shape))
    return llvm::Error::success();
  return llvm::createStringError(
      signature.describeResult(index) + ": " +
      describeTooLarge(elementBytes, formatShape(shape)));
}

/// The results' shapes for inputs that passed their checks. This is where sizes
/// of different inputs are compared.
static llvm::Expected<llvm::SmallVector<Kernel::Shape, 2>>
computeShapes(const KernelImpl &impl, const LoadedCode &code,
              llvm::ArrayRef<BufferView> inputs) {
  const Signature &signature = impl.getSignature();
  const std::vector<std::string> &checks = impl.getChecks();
  llvm::SmallVector<Kernel::Shape, 2> shapes;
  int64_t numDims = 0;
  bool allStatic = true;
  for (const ValueInfo &result : signature.results) {
    shapes.push_back(result.shape);
    numDims += result.getRank();
    allStatic &= result.hasStaticShape();
  }
  if (allStatic && checks.empty())
    return shapes;

  constexpr int64_t numSizes = mlir::linattn::kMaxCheckedSizes;
  int64_t numSlots = numDims + (checks.empty() ? 0 : 1 + numSizes);
  llvm::SmallVector<int64_t, 24> slots(numSlots);
  BufferView out(slots.data(), DType::I64, {numSlots});
  ArgumentArray arguments(ArgumentArray::countFields(inputs) +
                          ArgumentArray::countFields(out));
  arguments.addInputs(signature, inputs);
  arguments.addMemRef(out);
  code.shapes(arguments.data());
  if (!checks.empty() && slots[numDims] >= 0)
    return llvm::createStringError(
        "'" + signature.entry + "': " +
        formatCheck(checks[slots[numDims]],
                    llvm::ArrayRef(slots).take_back(numSizes)));
  const int64_t *next = slots.data();
  for (auto [i, shape] : llvm::enumerate(shapes)) {
    for (int64_t &extent : shape)
      extent = *next++;
    if (llvm::any_of(shape, [](int64_t extent) { return extent < 0; }))
      return llvm::createStringError(
          signature.describeResult(i) +
          ": expected sizes that are not negative, but got " +
          formatShape(shape));
  }
  return shapes;
}

const Signature &Kernel::signature() const { return impl->getSignature(); }

llvm::Expected<llvm::SmallVector<Kernel::Shape, 2>>
Kernel::resultShapes(llvm::ArrayRef<BufferView> inputs) const {
  if (llvm::Error error = checkInputs(signature(), inputs))
    return std::move(error);
  if (const DeviceCode *device = impl->getDeviceCode())
    return device->computeShapes(signature(), inputs);
  PackedViews packed(*impl, inputs, {});
  if (llvm::Error error = packed.check(signature()))
    return std::move(error);
  llvm::Expected<const LoadedCode *> code =
      impl->getCodeFor(packed.getInputs(), {});
  if (!code)
    return code.takeError();
  auto shapes = computeShapes(*impl, **code, packed.getInputs());
  if (!shapes)
    return shapes;
  for (auto [i, shape] : llvm::enumerate(*shapes))
    if (llvm::Error error = checkByteCount(signature(), i, shape))
      return std::move(error);
  return shapes;
}

bool Kernel::isForDevice() const { return impl->getDeviceCode(); }

llvm::Expected<size_t>
Kernel::workspaceSize(llvm::ArrayRef<BufferView> inputs,
                      llvm::ArrayRef<BufferView> outputs) const {
  if (DeviceCode *device = impl->getDeviceCode())
    return device->getWorkspaceSize(inputs, outputs);
  return 0;
}

llvm::Error Kernel::run(llvm::ArrayRef<BufferView> inputs,
                        llvm::ArrayRef<BufferView> outputs,
                        const RunOptions &options) const {
  const Signature &signature = impl->getSignature();
  if (options.numThreads < 0)
    return llvm::createStringError(
        "expected a number of threads that is not negative, but "
        "got " +
        llvm::Twine(options.numThreads));
  if (llvm::Error error = checkInputs(signature, inputs))
    return error;
  if (outputs.size() != signature.results.size())
    return llvm::createStringError("'" + signature.entry + "': expected " +
                                   llvm::Twine(signature.results.size()) +
                                   " outputs, but got " +
                                   llvm::Twine(outputs.size()));
  if (DeviceCode *device = impl->getDeviceCode())
    return device->run(inputs, outputs, options);
  PackedViews packed(*impl, inputs, outputs);
  if (llvm::Error error = packed.check(signature))
    return error;
  llvm::Expected<const LoadedCode *> code =
      impl->getCodeFor(packed.getInputs(), packed.getOutputs());
  if (!code)
    return code.takeError();
  auto shapes = computeShapes(*impl, **code, packed.getInputs());
  if (!shapes)
    return shapes.takeError();
  if (llvm::Error error = checkOutputs(signature, inputs, outputs, *shapes))
    return error;

  ArgumentArray arguments(ArgumentArray::countFields(packed.getInputs()) +
                          ArgumentArray::countFields(outputs));
  arguments.addInputs(signature, packed.getInputs());
  for (const BufferView &output : packed.getOutputs())
    arguments.addMemRef(output);
  OptionScope scope(options);
  if (const char *problem = linattn_get_num_threads_problem())
    return llvm::createStringError(problem);
  emulator::LaunchLog log; // Stays empty unless the target is emulated.
  linattn_call_result result = linattn_call((*code)->run, arguments.data());
  llvm::Error error = log.takeError();
  if (result.status == LINATTN_CALL_DONE) {
    packed.unpackOutputs();
    return error;
  }
  llvm::consumeError(std::move(error));
  return makeCallError(signature, result);
}

//===----------------------------------------------------------------------===//
// Remarks
//===----------------------------------------------------------------------===//

const std::vector<std::string> &Kernel::explain() const {
  return impl->getRemarks();
}

llvm::Expected<std::vector<std::string>>
Kernel::explain(llvm::ArrayRef<BufferView> inputs) const {
  if (llvm::Error error = checkInputs(signature(), inputs))
    return std::move(error);
  std::vector<std::string> lines = explain();
  if (isForDevice())
    return lines;
  PackedViews packed(*impl, inputs, {});
  if (llvm::Error error = packed.check(signature()))
    return std::move(error);
  EntryLayout layout = impl->getLayout(packed.getInputs(), {});
  for (auto [index, view] : llvm::enumerate(inputs))
    if (!view.hasUnitInnermostStride()) {
      bool isTransposed =
          layout.innermost == InnermostStride::Unit &&
          llvm::is_contained(layout.transposed, static_cast<int64_t>(index));
      llvm::StringRef what = "the call runs in code for any strides, which "
                             "loads elements one by one";
      if (packed.getInputs()[index].hasUnitInnermostStride())
        what = "it is small, and every call copies it";
      else if (isTransposed)
        what = "the kernel transposes it tile by tile";
      lines.push_back(
          llvm::formatv("{0}: layout: {1} has the innermost stride {2}: {3}",
                        isTransposed ? "analysis" : "missed",
                        signature().describeArgument(index),
                        view.strides.back(), what)
              .str());
    }
  return lines;
}
