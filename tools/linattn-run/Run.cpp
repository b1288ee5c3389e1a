//===- Run.cpp - One call -------------------------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Run.h"
#include "Arguments.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace linattn;

llvm::Expected<Program> linattn::readProgram(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(path, /*IsText=*/true);
  if (!buffer)
    return llvm::createStringError(
        buffer.getError(),
        path + ": error: cannot be read: " + buffer.getError().message());
  return Program{(*buffer)->getBuffer().str(),
                 path == "-" ? "<stdin>" : path.str()};
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
    output.data.resize(view.getNumElements() * getByteSize(info.dtype));
  }
  if (llvm::Error error = kernel.run(inputViews, getViews(outputs), runOptions))
    return std::move(error);
  return outputs;
}
