//===- LinearAttention.cpp - The operator LinearAttention -----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Failure.h"
#include "Kernels.h"
#include "Op.h"
#include "linattn/Support/Sizes.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace linattn;
using namespace linattn::ort;
using runner::fail;

namespace {

/// The sizes of one call.
struct Sizes {
  int64_t batch, length, queryHeads, keyHeads, heads, keySize, valueSize;

  int64_t outputHeads() const { return std::max(queryHeads, heads); }
};

class LinearAttention {
public:
  static constexpr const char *kName = "LinearAttention";
  static constexpr size_t kInputs = 6, kRequiredInputs = 3, kOutputs = 2;
  static constexpr int kPastState = 3;

  explicit LinearAttention(const Attributes &attributes);

  void compute(const Call &call) const;
  static void infer(const Inference &inference);

private:
  struct Operands {
    Tensor query, key, value;
    std::optional<Tensor> past, decay, beta;
  };

  Operands read(const Call &call) const;
  Sizes measure(const Operands &operands) const;
  bool checkDecay(const Tensor &decay, const Sizes &sizes) const;
  void checkGates(const Operands &operands) const;

  bool isGated() const { return rule.compare(0, 5, "gated") == 0; }
  bool isDelta() const { return rule.find("delta") != std::string::npos; }

  int64_t queryHeads, heads;
  std::string rule;
  float scale;
};

} // namespace

/// Whether head counts divide one another.
static bool divide(int64_t a, int64_t b) { return a % b == 0 || b % a == 0; }

LinearAttention::LinearAttention(const Attributes &attributes)
    : queryHeads(attributes.getPositive("q_num_heads")),
      heads(attributes.getPositive("kv_num_heads")),
      rule(attributes.getString("update_rule", "gated_delta")),
      scale(attributes.getFloat("scale", 0)) {
  if (!divide(queryHeads, heads))
    fail("expected q_num_heads and kv_num_heads to divide one another, but "
         "got " +
         std::to_string(queryHeads) + " and " + std::to_string(heads));
  if (rule != "linear" && rule != "gated" && rule != "delta" &&
      rule != "gated_delta")
    fail("expected update_rule to be linear, gated, delta or gated_delta, but "
         "got '" +
         rule + "'");
  if (!std::isfinite(scale))
    fail("expected scale to be finite, but got " + std::to_string(scale));
  if (std::optional<int64_t> window = attributes.findInt("state_window");
      window && *window != 0)
    fail("expected state_window to be 0, but got " + std::to_string(*window) +
         ": ONNX Runtime itself keeps states to return to");
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

LinearAttention::Operands LinearAttention::read(const Call &call) const {
  Operands x{call.getInput(0, "query"),  call.getInput(1, "key"),
             call.getInput(2, "value"),  call.findInput(3, "past_state"),
             call.findInput(4, "decay"), call.findInput(5, "beta")};
  getTypeName(x.query.type, "query");
  for (Tensor *tensor :
       {&x.query, &x.key, &x.value, x.decay ? &*x.decay : nullptr,
        x.beta ? &*x.beta : nullptr}) {
    if (!tensor)
      continue;
    tensor->expectRank(3, "packed, [B, T, H·D]");
    if (tensor->type != x.query.type)
      fail(std::string("expected ") + tensor->name +
           " to have the element type of query, " +
           getTypeName(x.query.type, "query") + ", but got " +
           getTypeName(tensor->type, tensor->name));
    for (size_t dim : {0, 1})
      if (tensor->size(dim) != x.query.size(dim))
        fail(std::string("expected query and ") + tensor->name +
             (dim == 0 ? " to have the same batch size, but got "
                       : " to have the same sequence length, but got ") +
             std::to_string(x.query.size(dim)) + " and " +
             std::to_string(tensor->size(dim)));
  }
  checkGates(x);
  return x;
}

void LinearAttention::checkGates(const Operands &x) const {
  auto check = [&](const char *name, bool isThere, bool isUsed,
                   const char *rules) {
    if (isUsed && !isThere)
      fail(std::string("expected ") + name + " with update_rule " + rule +
           ", but got none");
    if (isThere && !isUsed)
      fail(std::string("expected ") + name + " only with update_rule " + rules +
           ", but got " + rule);
  };
  check("decay", x.decay.has_value(), isGated(), "gated or gated_delta");
  check("beta", x.beta.has_value(), isDelta(), "delta or gated_delta");
}

/// The size of a head, where `count` of them fill the last extent.
static int64_t getHeadSize(const Tensor &tensor, int64_t count,
                           const char *countName) {
  int64_t packed = tensor.size(2);
  if (packed % count != 0 || packed == 0)
    fail(std::string("expected the last size of ") + tensor.name +
         " to be a multiple of " + countName + ", " + std::to_string(count) +
         ", but got " + std::to_string(packed));
  return packed / count;
}

Sizes LinearAttention::measure(const Operands &x) const {
  Sizes sizes{x.query.size(0),
              x.query.size(1),
              queryHeads,
              heads,
              heads,
              getHeadSize(x.query, queryHeads, "q_num_heads"),
              getHeadSize(x.value, heads, "kv_num_heads")};
  // Key heads may be fewer, each for several heads of the values.
  int64_t packed = x.key.size(2);
  sizes.keyHeads = packed / sizes.keySize;
  if (packed == 0 || packed % sizes.keySize != 0 || heads % sizes.keyHeads != 0)
    fail("expected the last size of key to be " + std::to_string(heads) +
         " heads of " + std::to_string(sizes.keySize) +
         ", or a divisor of their number, but got " + std::to_string(packed));
  if (!divide(queryHeads, sizes.keyHeads))
    fail("expected the heads of query and key to divide one another, but got " +
         std::to_string(queryHeads) + " and " + std::to_string(sizes.keyHeads));
  if (!x.past)
    return sizes;
  getTypeName(x.past->type, "past_state");
  x.past->expectRank(4, "[B, H_kv, d_k, d_v]");
  Tensor expected;
  expected.shape = {sizes.batch, heads, sizes.keySize, sizes.valueSize};
  if (x.past->shape != expected.shape)
    fail("expected past_state to be " + expected.formatShape() + ", but got " +
         x.past->formatShape());
  return sizes;
}

/// Returns whether the decay is one number for every channel of a key.
bool LinearAttention::checkDecay(const Tensor &decay,
                                 const Sizes &sizes) const {
  int64_t last = decay.size(2);
  if (last == heads)
    return false;
  if (last == heads * sizes.keySize)
    return true;
  fail("expected the last size of decay to be kv_num_heads, " +
       std::to_string(heads) + ", or kv_num_heads·d_k, " +
       std::to_string(heads * sizes.keySize) + ", but got " +
       std::to_string(last));
}

//===----------------------------------------------------------------------===//
// Computing
//===----------------------------------------------------------------------===//

namespace {

struct Choice {
  std::string kernel;
  bool isStep;
};

} // namespace

/// The most specialized kernel for a call, by the letters of kernels.py. All
/// have the same bits for one token.
static Choice chooseKernel(const std::string &rule, const Sizes &sizes,
                           const std::string &element, bool mayStep) {
  std::string size = std::to_string(sizes.keySize), ending = "_" + element;
  bool isSquare = sizes.keySize == sizes.valueSize;
  if (std::string name = rule + "_s" + size + ending;
      isSquare && mayStep && findKernel(name))
    return {name, true};
  if (std::string name = rule + "_h" + size + ending;
      isSquare && findKernel(name))
    return {name, false};
  return {rule + ending, false};
}

void LinearAttention::compute(const Call &call) const {
  Operands x = read(call);
  Sizes sizes = measure(x);
  ElementType type = x.query.type;
  ElementType stateType = x.past ? x.past->type : type;
  int64_t B = sizes.batch, T = sizes.length, K = sizes.keySize,
          V = sizes.valueSize;
  Tensor output =
      *call.findOutput(0, "output", type, {B, T, sizes.outputHeads() * V});
  std::optional<Tensor> present =
      call.findOutput(1, "present_state", stateType, {B, heads, K, V});

  bool byChannel = x.decay && checkDecay(*x.decay, sizes);
  // A step of an additive rule has one head: the heads of a token are
  // sequences, with queries and keys of their own.
  bool isShared = queryHeads != heads || sizes.keyHeads != heads;
  Choice choice = chooseKernel(rule + (byChannel ? "_channel" : ""), sizes,
                               getTypeName(type, "query"),
                               T == 1 && (isDelta() || !isShared));
  if (choice.isStep && !isDelta())
    sizes = {B * heads, 1, 1, 1, 1, K, V};
  B = sizes.batch;

  // The kernels' state is f32, and may be updated where it is.
  int64_t H = sizes.heads;
  int64_t stateCount = countElements(std::vector<int64_t>{B, H, K, V});
  Scratch ownState(nullptr, std::free);
  void *state = present ? present->data : nullptr;
  if (stateType != F32 || !present) {
    ownState = call.allocate(stateCount, LINATTN_F32);
    state = ownState.get();
  }
  View final(state, LINATTN_F32, {B, H, K, V}), initial = final;
  if (!x.past)
    std::memset(state, 0, static_cast<size_t>(stateCount) * sizeof(float));
  else if (stateType == F32)
    initial = View(*x.past, {B, H, K, V});
  else
    call.run(
        std::string("widen_") + getTypeName(stateType, "past_state"),
        {View(*x.past, {stateCount}), View(state, LINATTN_F32, {stateCount})});

  std::vector<View> views{View(x.query, {B, T, sizes.queryHeads, K}),
                          View(x.key, {B, T, sizes.keyHeads, K}),
                          View(x.value, {B, T, H, V}), initial};
  if (x.decay)
    views.push_back(byChannel ? View(*x.decay, {B, T, H, K})
                              : View(*x.decay, {B, T, H}));
  if (x.beta) {
    int64_t last = x.beta->size(2);
    if (last != heads && last != 1)
      fail("expected the last size of beta to be kv_num_heads, " +
           std::to_string(heads) + ", or 1, but got " + std::to_string(last));
    // One number for all heads lies there for each of them.
    views.push_back(View(*x.beta, {B, T, heads, 1},
                         {T * last, last, last == 1 ? 0 : 1, 1}));
  }
  double factor = scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(K));
  views.push_back(View(factor));
  views.push_back(View(output, {B, T, sizes.outputHeads(), V}));
  views.push_back(final);
  call.run(choice.kernel, views);
  if (present && stateType != F32)
    call.run(
        std::string("narrow_") + getTypeName(stateType, "past_state"),
        {View(state, LINATTN_F32, {stateCount}), View(*present, {stateCount})});
}

void LinearAttention::infer(const Inference &inference) {
  std::optional<InferredTensor> query = inference.findInput(0),
                                value = inference.findInput(2),
                                past = inference.findInput(kPastState);
  if (!query)
    return;
  int64_t queryHeads = inference.getInt("q_num_heads"),
          heads = inference.getInt("kv_num_heads");
  auto getHeadSize = [](const std::optional<InferredTensor> &tensor,
                        int64_t count) -> int64_t {
    if (!tensor || tensor->shape.size() != 3 || tensor->shape[2] < 0 ||
        count < 1)
      return -1;
    return tensor->shape[2] / count;
  };
  int64_t valueSize = getHeadSize(value, heads);
  InferredTensor output{query->type, {}, {}};
  output.addFrom(*query, 0);
  output.addFrom(*query, 1);
  output.add(valueSize < 0 ? -1 : valueSize * std::max(queryHeads, heads));
  inference.setOutput(0, output);
  InferredTensor state{past ? past->type : query->type, {}, {}};
  state.addFrom(*query, 0);
  state.add(heads < 1 ? -1 : heads);
  state.add(getHeadSize(query, queryHeads));
  state.add(valueSize);
  inference.setOutput(1, state);
}

CustomOp &ort::getLinearAttention(int since) {
  static Op<LinearAttention> standard(27), contrib(1);
  return since == 27 ? standard : contrib;
}
