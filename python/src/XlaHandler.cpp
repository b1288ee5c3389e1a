//===- XlaHandler.cpp - Programs as foreign functions of XLA --------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One handler serves all programs: the attribute "program" names the one that a
// call runs. It runs in a thread of XLA's, without the interpreter.
//
//===----------------------------------------------------------------------===//

#include "Program.h"
#include "XlaApi.h"
#include "linattn/Support/Interrupted.h"
#include "linattn/Support/OutOfMemory.h"
#include "linattn/Support/Sizes.h"

#include "llvm/ADT/StringRef.h"

using namespace linattn;
using namespace linattn::python;

static xla::Error *fail(const xla::CallFrame &frame, std::string message,
                        xla::ErrorCode code = xla::InvalidArgument) {
  xla::ErrorArguments arguments{
      {sizeof(arguments), nullptr}, message.c_str(), code};
  return frame.api->createError(&arguments);
}

static xla::Error *fail(const xla::CallFrame &frame, llvm::Error error) {
  xla::ErrorCode code = error.isA<OutOfMemoryError>()   ? xla::ResourceExhausted
                        : error.isA<InterruptedError>() ? xla::DeadlineExceeded
                                                        : xla::InvalidArgument;
  return fail(frame, llvm::toString(std::move(error)), code);
}

static std::optional<DType> getDType(xla::ElementType type) {
  switch (type) {
  case xla::Pred:
    return DType::I1;
  case xla::S8:
    return DType::I8;
  case xla::S16:
    return DType::I16;
  case xla::S32:
    return DType::I32;
  case xla::S64:
    return DType::I64;
  case xla::F16:
    return DType::F16;
  case xla::F32:
    return DType::F32;
  case xla::F64:
    return DType::F64;
  case xla::BF16:
    return DType::BF16;
  }
  return std::nullopt;
}

using Memories = llvm::SmallVector<Program::Memory, 8>;

/// The buffers; nothing if one has a type that no kernel takes.
static std::optional<Memories> read(const xla::Buffers &buffers) {
  Memories memories;
  for (int64_t i = 0; i < buffers.count; ++i) {
    if (buffers.kinds[i] != xla::kBuffer)
      return std::nullopt;
    const auto &buffer = *static_cast<const xla::Buffer *>(buffers.items[i]);
    std::optional<DType> dtype = getDType(buffer.type);
    if (!dtype)
      return std::nullopt;
    memories.push_back(
        {buffer.data, *dtype,
         countElements(llvm::ArrayRef(buffer.shape, buffer.rank))});
  }
  return memories;
}

static std::optional<std::string> getName(const xla::Attributes &attributes) {
  for (int64_t i = 0; i < attributes.count; ++i) {
    const xla::String &name = *attributes.names[i];
    if (llvm::StringRef(name.data, name.size) != "program" ||
        attributes.kinds[i] != xla::kString)
      continue;
    const auto &value = *static_cast<const xla::String *>(attributes.items[i]);
    return std::string(value.data, value.size);
  }
  return std::nullopt;
}

/// "[[2,6],[2]]"
static std::string formatShapes(const xla::Buffers &buffers) {
  std::string text;
  for (int64_t i = 0; i < buffers.count; ++i) {
    const auto &buffer = *static_cast<const xla::Buffer *>(buffers.items[i]);
    text += text.empty() ? "[[" : ",[";
    for (int64_t dim = 0; dim < buffer.rank; ++dim)
      text += (dim ? "," : "") + std::to_string(buffer.shape[dim]);
    text += "]";
  }
  return text + "]";
}

/// XLA queries the version of the handler's structures, which all versions so
/// far contain.
static bool answerMetadata(const xla::CallFrame &frame) {
  const xla::Extension *extension = frame.header.extensions;
  if (!extension || extension->type != xla::kMetadataExtension)
    return false;
  xla::Metadata &metadata =
      *reinterpret_cast<const xla::MetadataExtension *>(extension)->metadata;
  metadata.version = {{sizeof(xla::Version), nullptr}, 0, 1};
  if (frame.api && frame.api->version.major == 0)
    metadata.version.minor = frame.api->version.minor;
  metadata.traits = 0;
  return true;
}

static xla::Error *handle(xla::CallFrame *frame) {
  if (answerMetadata(*frame))
    return nullptr;
  std::optional<std::string> name = getName(frame->attributes);
  if (!name)
    return fail(*frame, "program: expected the name of a call, but got none");
  std::optional<Memories> arguments = read(frame->arguments),
                          results = read(frame->results);
  if (!arguments || !results)
    return fail(*frame, *name + ": expected arrays of numbers, but got others");
  // A function that was exported for any size.
  if (!name->empty() && name->back() == '\n')
    *name += formatShapes(frame->arguments);
  try {
    std::shared_ptr<const Program> program = findProgram(*name);
    if (!program)
      return fail(*frame, "program: expected a known one, but got " + *name);
    if (llvm::Error error = program->run(*arguments, *results))
      return fail(*frame, std::move(error));
  } catch (const std::exception &error) {
    return fail(*frame, error.what());
  }
  return nullptr;
}

void *linattn::python::getXlaHandler() {
  return reinterpret_cast<void *>(&handle);
}
