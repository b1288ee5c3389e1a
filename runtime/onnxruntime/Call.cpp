//===- Call.cpp - A call of an operator -----------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Call.h"
#include "Failure.h"
#include "Kernels.h"
#include "linattn-c/Runtime.h"
#include "linattn/Support/DType.h"
#include "linattn/Support/Sizes.h"

#include <algorithm>
#include <cstdlib>

using namespace linattn;
using namespace linattn::ort;
using runner::fail;

void ort::check(const OrtApi *api, OrtStatus *status) {
  if (!status)
    return;
  std::string message = getErrorMessage(api, status);
  releaseStatus(api, status);
  fail(message);
}

const char *ort::getTypeName(ElementType type, const char *operand) {
  switch (type) {
  case F32:
    return "f32";
  case F16:
    return "f16";
  case BF16:
    return "bf16";
  default:
    fail(std::string("expected ") + operand +
         " to be of float, float16 or bfloat16, but got ONNX type " +
         std::to_string(type));
  }
}

linattn_dtype ort::getDType(ElementType type) {
  return type == F32 ? LINATTN_F32 : type == F16 ? LINATTN_F16 : LINATTN_BF16;
}

int64_t Tensor::count() const { return countElements(shape); }

std::string Tensor::formatShape() const {
  std::string text;
  for (int64_t extent : shape)
    text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text.empty() ? "a scalar" : text;
}

void Tensor::expectRank(size_t rank, const char *layout) const {
  if (shape.size() != rank)
    fail(std::string("expected ") + name + " to be " + layout + ", but got " +
         formatShape());
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

View::View(void *data, linattn_dtype dtype,
           std::initializer_list<int64_t> extents)
    : data(data), dtype(dtype), rank(static_cast<int32_t>(extents.size())) {
  std::copy(extents.begin(), extents.end(), shape);
}

View::View(const Tensor &tensor, std::initializer_list<int64_t> extents,
           std::initializer_list<int64_t> steps)
    : View(tensor.data, getDType(tensor.type), extents) {
  isStrided = steps.size() > 0;
  std::copy(steps.begin(), steps.end(), strides);
}

linattn_view View::get() const {
  return {data, shape, isStrided ? strides : nullptr, rank, dtype};
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

static Tensor describe(const OrtApi *api, const OrtValue *value,
                       const char *name) {
  OrtTensorTypeAndShapeInfo *info = nullptr;
  check(api, getTensorInfo(api, value, &info));
  Tensor tensor;
  tensor.name = name;
  size_t rank = 0;
  OrtStatus *status = getElementType(api, info, &tensor.type);
  if (!status)
    status = getRank(api, info, &rank);
  tensor.shape.resize(rank);
  if (!status)
    status = getDimensions(api, info, tensor.shape.data(), rank);
  releaseTensorInfo(api, info);
  check(api, status);
  check(api, getTensorData(api, const_cast<OrtValue *>(value), &tensor.data));
  return tensor;
}

std::optional<Tensor> Call::findInput(size_t index, const char *name) const {
  size_t count = 0;
  check(api, getInputCount(api, context, &count));
  if (index >= count)
    return std::nullopt;
  const OrtValue *value = nullptr;
  check(api, ort::getInput(api, context, index, &value));
  if (!value)
    return std::nullopt;
  return describe(api, value, name);
}

Tensor Call::getInput(size_t index, const char *name) const {
  if (std::optional<Tensor> tensor = findInput(index, name))
    return std::move(*tensor);
  fail(std::string("expected ") + name + ", but got none");
}

std::optional<Tensor> Call::findOutput(size_t index, const char *name,
                                       ElementType type,
                                       std::vector<int64_t> shape) const {
  size_t count = 0;
  check(api, getOutputCount(api, context, &count));
  if (index >= count)
    return std::nullopt;
  OrtValue *value = nullptr;
  check(api,
        getOutput(api, context, index, shape.data(), shape.size(), &value));
  if (!value)
    return std::nullopt;
  Tensor tensor{name, type, std::move(shape)};
  check(api, getTensorData(api, value, &tensor.data));
  return tensor;
}

Scratch Call::allocate(int64_t elements, linattn_dtype dtype) const {
  int64_t bytes =
      multiplySaturating(elements, getByteSize(static_cast<DType>(dtype)));
  void *memory = nullptr;
  // A size beyond the address space fails like one beyond this machine's
  // memory.
  if (posix_memalign(&memory, 64,
                     static_cast<size_t>(std::max<int64_t>(bytes, 1))))
    fail("out of memory: expected " + std::to_string(bytes) + " bytes");
  return Scratch(memory, std::free);
}

namespace {

/// ONNX Runtime's threads, in place of the runtime's own.
struct Pool {
  const OrtApi *api;
  OrtKernelContext *context;

  static void run(void *opaque, int64_t count,
                  void (*task)(void *ctx, int64_t i), void *ctx) {
    auto *pool = static_cast<Pool *>(opaque);
    struct Loop {
      void (*task)(void *ctx, int64_t i);
      void *ctx;
    } loop{task, ctx};
    auto runTask = [](void *opaque, size_t i) {
      auto *loop = static_cast<Loop *>(opaque);
      loop->task(loop->ctx, static_cast<int64_t>(i));
    };
    OrtStatus *status =
        parallelFor(pool->api, pool->context, runTask,
                    static_cast<size_t>(count), /*batches=*/0, &loop);
    if (!status)
      return;
    // Nothing has run yet.
    releaseStatus(pool->api, status);
    for (int64_t i = 0; i < count; ++i)
      task(ctx, i);
  }
};

/// The setting of this thread, for a scope.
class PoolScope {
public:
  explicit PoolScope(Pool &pool)
      : former(linattn_set_thread_local_pool({Pool::run, &pool})) {}
  ~PoolScope() { linattn_set_thread_local_pool(former); }
  PoolScope(const PoolScope &) = delete;

private:
  linattn_pool former;
};

} // namespace

void Call::run(const std::string &name, const std::vector<View> &views) const {
  const linattn_kernel *kernel = findKernel(name);
  if (!kernel)
    fail("expected a kernel " + name + " in this library, but got none");
  std::vector<linattn_view> all;
  all.reserve(views.size());
  for (const View &view : views)
    all.push_back(view.get());
  Pool pool{api, context};
  PoolScope scope(pool);
  check(linattn_kernel_launch(kernel, all.data(),
                              static_cast<int32_t>(all.size()), nullptr, 0,
                              nullptr));
}

void Call::run(const std::string &name,
               std::initializer_list<View> views) const {
  run(name, std::vector<View>(views));
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

/// A missing attribute and one of another type are the same error there.
bool Attributes::ok(OrtStatus *status) const {
  if (status)
    releaseStatus(api, status);
  return !status;
}

std::optional<int64_t> Attributes::findInt(const char *name) const {
  int64_t value = 0;
  if (!ok(getIntAttribute(api, info, name, &value)))
    return std::nullopt;
  return value;
}

int64_t Attributes::getPositive(const char *name) const {
  std::optional<int64_t> value = findInt(name);
  if (!value)
    fail(std::string("expected the attribute ") + name + ", but got none");
  if (*value < 1)
    fail(std::string("expected ") + name + " to be positive, but got " +
         std::to_string(*value));
  return *value;
}

float Attributes::getFloat(const char *name, float otherwise) const {
  float value = otherwise;
  return ok(getFloatAttribute(api, info, name, &value)) ? value : otherwise;
}

std::string Attributes::getString(const char *name,
                                  const char *otherwise) const {
  size_t size = 0;
  // The first call returns the size, with the null byte.
  ok(getStringAttribute(api, info, name, nullptr, &size));
  if (size == 0)
    return otherwise;
  std::string text(size, '\0');
  if (!ok(getStringAttribute(api, info, name, text.data(), &size)))
    return otherwise;
  text.resize(size - 1);
  return text;
}

//===----------------------------------------------------------------------===//
// Inference of shapes
//===----------------------------------------------------------------------===//

void InferredTensor::addFrom(const InferredTensor &other, size_t dim) {
  if (dim < other.shape.size())
    add(other.shape[dim], other.symbols[dim]);
  else
    add(-1);
}

std::optional<InferredTensor> Inference::findInput(size_t index) const {
  size_t count = 0;
  check(api, getInferredInputCount(api, context, &count));
  OrtTensorTypeAndShapeInfo *info = nullptr;
  if (index >= count)
    return std::nullopt;
  if (OrtStatus *status = getInferredInput(api, context, index, &info)) {
    releaseStatus(api, status);
    return std::nullopt;
  }
  if (!info)
    return std::nullopt;
  // The context owns it.
  InferredTensor tensor;
  size_t rank = 0;
  check(api, getElementType(api, info, &tensor.type));
  check(api, getRank(api, info, &rank));
  tensor.shape.resize(rank);
  check(api, getDimensions(api, info, tensor.shape.data(), rank));
  std::vector<const char *> symbols(rank);
  check(api, getSymbols(api, info, symbols.data(), rank));
  for (const char *symbol : symbols)
    tensor.symbols.emplace_back(symbol ? symbol : "");
  if (tensor.type == Undefined)
    return std::nullopt;
  return tensor;
}

void Inference::setOutput(size_t index, const InferredTensor &tensor) const {
  OrtTensorTypeAndShapeInfo *info = nullptr;
  check(api, createTensorInfo(api, &info));
  OrtStatus *status = setElementType(api, info, tensor.type);
  if (!status)
    status = setDimensions(api, info, tensor.shape.data(), tensor.shape.size());
  std::vector<const char *> symbols;
  for (const std::string &symbol : tensor.symbols)
    symbols.push_back(symbol.c_str());
  if (!status)
    status = setSymbols(api, info, symbols.data(), symbols.size());
  if (!status)
    status = setInferredOutput(api, context, index, info);
  releaseTensorInfo(api, info);
  check(api, status);
}

int64_t Inference::getInt(const char *name) const {
  const OrtOpAttr *attribute = nullptr;
  int64_t value = 0;
  size_t size = 0;
  OrtStatus *status = getInferredAttribute(api, context, name, &attribute);
  if (!status && attribute)
    status = readAttribute(api, attribute, IntAttribute, &value, sizeof(value),
                           &size);
  if (status)
    releaseStatus(api, status);
  return value;
}
