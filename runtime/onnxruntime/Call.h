//===- Call.h - A call of an operator ---------------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_RUNTIME_ONNXRUNTIME_CALL_H
#define LINATTN_RUNTIME_ONNXRUNTIME_CALL_H

#include "Api.h"
#include "linattn-c/Runner.h"

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace linattn::ort {

/// The largest rank of an operand.
inline constexpr size_t kMaxRank = 4;

/// Throws a status of an API function as an exception.
void check(const OrtApi *api, OrtStatus *status);

/// Calls `code` and turns its exceptions into a status.
template <typename Code>
OrtStatus *guard(const OrtApi *api, Code code) {
  try {
    code();
    return nullptr;
  } catch (const std::exception &error) {
    return createStatus(api, InvalidArgument, error.what());
  }
}

/// An element type in the names of kernels; throws for others.
const char *getTypeName(ElementType type, const char *operand);
linattn_dtype getDType(ElementType type);

/// A tensor of ONNX Runtime, contiguous.
struct Tensor {
  const char *name = "";
  ElementType type = Undefined;
  std::vector<int64_t> shape;
  void *data = nullptr;

  int64_t size(size_t dim) const { return shape[dim]; }
  int64_t count() const;
  std::string formatShape() const;
  /// Throws unless it is of that rank, which `layout` describes.
  void expectRank(size_t rank, const char *layout) const;
};

/// A view of a tensor's memory under another shape, with its own strides where
/// they are given.
class View {
public:
  View(const Tensor &tensor, std::initializer_list<int64_t> extents,
       std::initializer_list<int64_t> steps = {});
  View(void *data, linattn_dtype dtype, std::initializer_list<int64_t> extents);
  View(double &scalar) : data(&scalar), dtype(LINATTN_F64) {}

  linattn_view get() const;

private:
  void *data;
  linattn_dtype dtype;
  int32_t rank = 0;
  bool isStrided = false;
  int64_t shape[kMaxRank], strides[kMaxRank];
};

/// Memory for the length of a call.
using Scratch = std::unique_ptr<void, void (*)(void *)>;

/// One run of a node.
class Call {
public:
  Call(const OrtApi *api, OrtKernelContext *context)
      : api(api), context(context) {}

  /// None where the node leaves the input out.
  std::optional<Tensor> findInput(size_t index, const char *name) const;
  Tensor getInput(size_t index, const char *name) const;
  /// None where the node has no such output.
  std::optional<Tensor> findOutput(size_t index, const char *name,
                                   ElementType type,
                                   std::vector<int64_t> shape) const;

  Scratch allocate(int64_t elements, linattn_dtype dtype) const;

  /// Runs a kernel on ONNX Runtime's threads: arguments first, then results.
  void run(const std::string &kernel, std::initializer_list<View> views) const;
  void run(const std::string &kernel, const std::vector<View> &views) const;

  /// Calls `task(i)` for every i in [0, count), on ONNX Runtime's threads.
  template <typename Task>
  void forEach(int64_t count, const Task &task) const {
    auto run = [](void *task, size_t i) {
      (*static_cast<const Task *>(task))(static_cast<int64_t>(i));
    };
    if (count > 0)
      check(api, parallelFor(api, context, run, static_cast<size_t>(count), 0,
                             const_cast<Task *>(&task)));
  }

private:
  const OrtApi *api;
  OrtKernelContext *context;
};

/// The attributes of a node.
class Attributes {
public:
  Attributes(const OrtApi *api, const OrtKernelInfo *info)
      : api(api), info(info) {}

  std::optional<int64_t> findInt(const char *name) const;
  int64_t getPositive(const char *name) const;
  float getFloat(const char *name, float otherwise) const;
  std::string getString(const char *name, const char *otherwise) const;

private:
  bool ok(OrtStatus *status) const;

  const OrtApi *api;
  const OrtKernelInfo *info;
};

/// A tensor as ONNX Runtime knows it before the model runs.
struct InferredTensor {
  ElementType type = Undefined;
  /// -1 where it is not known; then it may have a symbol.
  std::vector<int64_t> shape;
  std::vector<std::string> symbols;

  void add(int64_t extent, std::string symbol = "") {
    shape.push_back(extent);
    symbols.push_back(std::move(symbol));
  }
  /// Appends an extent of another tensor, which may have fewer.
  void addFrom(const InferredTensor &other, size_t dim);
};

class Inference {
public:
  Inference(const OrtApi *api, OrtShapeInferContext *context)
      : api(api), context(context) {}

  /// None where the node leaves the input out.
  std::optional<InferredTensor> findInput(size_t index) const;
  void setOutput(size_t index, const InferredTensor &tensor) const;
  /// 0 where the attribute is missing.
  int64_t getInt(const char *name) const;

private:
  const OrtApi *api;
  OrtShapeInferContext *context;
};

} // namespace linattn::ort

#endif // LINATTN_RUNTIME_ONNXRUNTIME_CALL_H
