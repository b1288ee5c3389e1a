//===- Op.h - Operators as ONNX Runtime calls them --------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_RUNTIME_ONNXRUNTIME_OP_H
#define LINATTN_RUNTIME_ONNXRUNTIME_OP_H

#include "Call.h"

#include <climits>
#include <cstdlib>

namespace linattn::ort {

/// The API that the library was registered with.
extern const OrtApi *theApi;

/// The operator that `Node` computes, from a version of its domain on. A node
/// is made from its attributes; it has `compute(const Call &)`, and
/// `infer(const Inference &)` serves all nodes.
template <typename Node>
class Op : public CustomOp {
public:
  explicit Op(int since) : since(since) {
    getName = [](const CustomOp *) { return Node::kName; };
    getProvider = [](const CustomOp *) -> const char * { return nullptr; };
    getInputTypeCount = [](const CustomOp *) { return Node::kInputs; };
    getOutputTypeCount = [](const CustomOp *) { return Node::kOutputs; };
    // Any type is accepted here; the node checks which ones go together.
    getInputType = [](const CustomOp *, size_t) { return Undefined; };
    getOutputType = [](const CustomOp *, size_t) { return Undefined; };
    getInputPresence = [](const CustomOp *, size_t index) {
      return index < Node::kRequiredInputs ? Required : Optional;
    };
    getOutputPresence = [](const CustomOp *, size_t index) {
      return index == 0 ? Required : Optional;
    };
    getInputMemoryType = [](const CustomOp *, size_t) -> int32_t { return 0; };
    getStartVersion = [](const CustomOp *op) {
      return static_cast<const Op *>(op)->since;
    };
    getEndVersion = [](const CustomOp *) { return INT_MAX; };
    createKernelV2 = create;
    computeV2 = compute;
    destroyKernel = [](void *node) { delete static_cast<Node *>(node); };
    inferShapes = [](const CustomOp *, OrtShapeInferContext *context) {
      return guard(theApi, [&] { Node::infer(Inference(theApi, context)); });
    };
    getMayInplace = getInPlace;
    releaseMayInplace = [](int *inputs, int *outputs) {
      std::free(inputs);
      std::free(outputs);
    };
  }

private:
  static OrtStatus *create(const CustomOp *, const OrtApi *api,
                           const OrtKernelInfo *info, void **node) {
    return guard(api, [&] { *node = new Node(Attributes(api, info)); });
  }

  static OrtStatus *compute(void *node, OrtKernelContext *context) {
    return guard(theApi, [&] {
      static_cast<const Node *>(node)->compute(Call(theApi, context));
    });
  }

  /// present_state, the second output, may have the memory of past_state.
  static size_t getInPlace(int **inputs, int **outputs) {
    *inputs = static_cast<int *>(std::malloc(sizeof(int)));
    *outputs = static_cast<int *>(std::malloc(sizeof(int)));
    if (!*inputs || !*outputs)
      return 0;
    **inputs = Node::kPastState;
    **outputs = 1;
    return 1;
  }

  int since;
};

CustomOp &getLinearAttention(int since);
CustomOp &getCausalConv(int since);

} // namespace linattn::ort

#endif // LINATTN_RUNTIME_ONNXRUNTIME_OP_H
