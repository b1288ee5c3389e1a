//===- Run.cpp - One call -------------------------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Run.h"
#include "Arguments.h"
#include "linattn/Support/LargeMemory.h"
#include "linattn/Support/RunnerErrors.h"
#include "linattn/Support/Text.h"

using namespace linattn;

llvm::Expected<Program> linattn::readProgram(llvm::StringRef path) {
  llvm::Expected<std::string> text = readText(path);
  if (!text)
    return text.takeError();
  return Program{std::move(*text), path == "-" ? "<stdin>" : path.str()};
}

/// The bytes from the first element to the last.
static int64_t getByteExtent(const BufferView &view) {
  if (view.getNumElements() == 0)
    return 0;
  int64_t last = 0;
  for (auto [extent, stride] : llvm::zip(view.shape, view.strides))
    last += (extent - 1) * stride;
  return (last + 1) * getByteSize(view.dtype);
}

llvm::Error CallBuffers::moveToDevice(BufferView &view) {
  void *copy = nullptr;
  int64_t bytes = getByteExtent(view);
  if (llvm::Error error = takeError(linattn_device_allocate(bytes, &copy)))
    return error;
  memory.push_back(copy);
  if (llvm::Error error =
          takeError(linattn_device_write(copy, view.data, bytes)))
    return error;
  view.data = copy;
  return llvm::Error::success();
}

llvm::Expected<CallBuffers>
CallBuffers::create(const Kernel &kernel, std::vector<NpyArray> &inputs,
                    std::vector<NpyArray> &outputs) {
  CallBuffers call;
  call.inputs = getViews(inputs);
  call.outputs = getViews(outputs);
  if (!kernel.isForDevice())
    return std::move(call);
  for (auto [info, view] : llvm::zip(kernel.signature().arguments, call.inputs))
    if (info.isTensor)
      if (llvm::Error error = call.moveToDevice(view))
        return std::move(error);
  for (BufferView &view : call.outputs)
    if (llvm::Error error = call.moveToDevice(view))
      return std::move(error);
  return std::move(call);
}

CallBuffers::~CallBuffers() {
  for (void *it : memory)
    linattn_error_free(linattn_device_free(it));
}

llvm::Error CallBuffers::run(const Kernel &kernel, const RunOptions &options) {
  if (llvm::Error error = kernel.run(inputs, outputs, options))
    return error;
  return kernel.isForDevice()
             ? takeError(linattn_stream_synchronize(options.stream))
             : llvm::Error::success();
}

llvm::Error CallBuffers::fetch(std::vector<NpyArray> &arrays) {
  if (memory.empty())
    return llvm::Error::success();
  for (auto [view, array] : llvm::zip(outputs, arrays))
    if (llvm::Error error = takeError(linattn_device_read(
            array.data.data(), view.data, array.data.size())))
      return error;
  return llvm::Error::success();
}

llvm::Expected<std::vector<NpyArray>>
linattn::runOnce(const Kernel &kernel, std::vector<NpyArray> &inputs,
                 const RunOptions &runOptions) {
  llvm::SmallVector<BufferView> inputViews = getViews(inputs);
  auto shapes = kernel.resultShapes(inputViews);
  if (!shapes)
    return shapes.takeError();
  std::vector<NpyArray> outputs;
  for (auto [info, shape] : llvm::zip(kernel.signature().results, *shapes)) {
    NpyArray &output = outputs.emplace_back();
    BufferView view(static_cast<void *>(nullptr), info.dtype, shape);
    output.dtype = info.dtype;
    output.shape = view.shape;
    output.strides = view.strides;
    // `resultShapes` has checked that the bytes can be counted.
    int64_t bytes = view.getNumElements() * getByteSize(info.dtype);
    if (!canAllocate(bytes))
      return llvm::createStringError(
          "expected a result that fits into memory, but got shape " +
          formatShape(shape) + ", " + llvm::Twine(bytes) + " bytes");
    output.data.resize(bytes);
  }
  auto call = CallBuffers::create(kernel, inputs, outputs);
  if (!call)
    return call.takeError();
  if (llvm::Error error = call->run(kernel, runOptions))
    return std::move(error);
  if (llvm::Error error = call->fetch(outputs))
    return std::move(error);
  return outputs;
}
