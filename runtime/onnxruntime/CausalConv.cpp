//===- CausalConv.cpp - The operator CausalConvWithState ------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Failure.h"
#include "Op.h"

#include <cmath>
#include <cstring>

using namespace linattn;
using namespace linattn::ort;
using runner::fail;

namespace {

class CausalConv {
public:
  static constexpr const char *kName = "CausalConvWithState";
  static constexpr size_t kInputs = 4, kRequiredInputs = 2, kOutputs = 2;
  static constexpr int kPastState = 3;

  explicit CausalConv(const Attributes &attributes);

  void compute(const Call &call) const;
  static void infer(const Inference &inference);

private:
  struct Operands {
    Tensor input, weight;
    std::optional<Tensor> bias, past;
    Tensor output;
    std::optional<Tensor> present;
  };

  Operands read(const Call &call) const;
  void runKernel(const Call &call, const Operands &operands) const;
  void runLoops(const Call &call, const Operands &operands) const;

  bool activates;
};

/// Numbers as f32: those of a tensor, or a copy of them.
class Floats {
public:
  Floats(const Call &call, const Tensor &tensor)
      : call(call), tensor(tensor), copy(nullptr, std::free) {
    if (tensor.type != F32)
      copy = call.allocate(tensor.count(), LINATTN_F32);
  }

  float *get() const {
    return static_cast<float *>(copy ? copy.get() : tensor.data);
  }
  const Floats &load() const {
    if (copy)
      call.run(std::string("widen_") + getTypeName(tensor.type, tensor.name),
               {flat(), View(copy.get(), LINATTN_F32, {tensor.count()})});
    return *this;
  }
  void store() const {
    if (copy)
      call.run(std::string("narrow_") + getTypeName(tensor.type, tensor.name),
               {View(copy.get(), LINATTN_F32, {tensor.count()}), flat()});
  }

private:
  View flat() const { return View(tensor, {tensor.count()}); }

  const Call &call;
  const Tensor &tensor;
  Scratch copy;
};

} // namespace

CausalConv::CausalConv(const Attributes &attributes) {
  std::string activation = attributes.getString("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    fail("expected activation to be none, silu or swish, but got '" +
         activation + "'");
  activates = activation != "none";
  // Of the operator of com.microsoft.
  if (std::optional<int64_t> ndim = attributes.findInt("ndim");
      ndim && *ndim != 1)
    fail("expected ndim to be 1, but got " + std::to_string(*ndim));
  if (std::optional<int64_t> window = attributes.findInt("state_window");
      window && *window != 0)
    fail("expected state_window to be 0, but got " + std::to_string(*window) +
         ": ONNX Runtime itself keeps states to return to");
}

CausalConv::Operands CausalConv::read(const Call &call) const {
  Operands x{call.getInput(0, "input"),
             call.getInput(1, "weight"),
             call.findInput(2, "bias"),
             call.findInput(3, "past_state"),
             {},
             {}};
  const char *type = getTypeName(x.input.type, "input");
  x.input.expectRank(3, "[B, C, T]");
  int64_t batch = x.input.size(0), channels = x.input.size(1);
  x.weight.expectRank(3, "[C, 1, k]");
  int64_t width = x.weight.size(2);
  if (width < 1)
    fail("expected weight to have at least one number per channel, but got " +
         x.weight.formatShape());
  Tensor expected;
  auto expect = [&](const Tensor *tensor, std::vector<int64_t> shape) {
    if (!tensor)
      return;
    if (tensor->type != x.input.type)
      fail(std::string("expected ") + tensor->name +
           " to have the element type of input, " + type + ", but got " +
           getTypeName(tensor->type, tensor->name));
    expected.shape = std::move(shape);
    if (tensor->shape != expected.shape)
      fail(std::string("expected ") + tensor->name + " to be " +
           expected.formatShape() + ", but got " + tensor->formatShape());
  };
  expect(&x.weight, {channels, 1, width});
  expect(x.bias ? &*x.bias : nullptr, {channels});
  expect(x.past ? &*x.past : nullptr, {batch, channels, width - 1});
  x.output = *call.findOutput(0, "output", x.input.type, x.input.shape);
  x.present = call.findOutput(1, "present_state", x.input.type,
                              {batch, channels, width - 1});
  return x;
}

void CausalConv::compute(const Call &call) const {
  Operands x = read(call);
  int64_t width = x.weight.size(2);
  // Those of kernels.py.
  if (width == 3 || width == 4)
    runKernel(call, x);
  else
    runLoops(call, x);
}

void CausalConv::runKernel(const Call &call, const Operands &x) const {
  linattn_dtype dtype = getDType(x.input.type);
  int64_t B = x.input.size(0), C = x.input.size(1), T = x.input.size(2),
          W = x.weight.size(2);
  auto zeros = [&](int64_t count) {
    Scratch memory = call.allocate(count, dtype);
    std::memset(memory.get(), 0,
                static_cast<size_t>(count) * (x.input.type == F32 ? 4 : 2));
    return memory;
  };
  Scratch noBias(nullptr, std::free), noPast(nullptr, std::free),
      noPresent(nullptr, std::free);
  if (!x.bias)
    noBias = zeros(C);
  if (!x.past)
    noPast = zeros(B * C * (W - 1));
  if (!x.present)
    noPresent = call.allocate(B * C * (W - 1), dtype);
  std::string name = "conv" + std::to_string(W) + (activates ? "_silu_" : "_") +
                     getTypeName(x.input.type, "input");
  call.run(name,
           {View(x.input, {B, C, T}), View(x.weight, {C, W}),
            View(x.bias ? x.bias->data : noBias.get(), dtype, {C}),
            View(x.past ? x.past->data : noPast.get(), dtype, {B, C, W - 1}),
            View(x.output, {B, C, T}),
            View(x.present ? x.present->data : noPresent.get(), dtype,
                 {B, C, W - 1})});
}

/// Other widths are rare. Terms are added in the order in which kernels do it.
void CausalConv::runLoops(const Call &call, const Operands &x) const {
  int64_t C = x.input.size(1), T = x.input.size(2), W = x.weight.size(2);
  Floats input(call, x.input), weight(call, x.weight), output(call, x.output);
  input.load();
  weight.load();
  std::optional<Floats> bias, past, present;
  if (x.bias)
    bias.emplace(call, *x.bias).load();
  if (x.past)
    past.emplace(call, *x.past).load();
  if (x.present)
    present.emplace(call, *x.present);
  bool silu = activates;
  call.forEach(x.input.size(0) * C, [&](int64_t row) {
    const float *in = input.get() + row * T, *w = weight.get() + row % C * W;
    const float *before = past ? past->get() + row * (W - 1) : nullptr;
    float *out = output.get() + row * T;
    // The input at t, from -(W - 1) on.
    auto at = [&](int64_t t) {
      return t >= 0 ? in[t] : before ? before[t + W - 1] : 0.0F;
    };
    for (int64_t t = 0; t < T; ++t) {
      float sum = bias ? bias->get()[row % C] : 0.0F;
      for (int64_t j = 0; j < W; ++j)
        sum = std::fma(w[j], at(t - (W - 1) + j), sum);
      out[t] = silu ? sum / (1 + std::exp(-sum)) : sum;
    }
    // Ascending: in place, a number is read before it is written.
    for (int64_t j = 0; present && j < W - 1; ++j)
      present->get()[row * (W - 1) + j] = at(T - (W - 1) + j);
  });
  output.store();
  if (present)
    present->store();
}

void CausalConv::infer(const Inference &inference) {
  std::optional<InferredTensor> input = inference.findInput(0),
                                weight = inference.findInput(1);
  if (!input)
    return;
  inference.setOutput(0, *input);
  InferredTensor state{input->type, {}, {}};
  state.addFrom(*input, 0);
  state.addFrom(*input, 1);
  bool known = weight && weight->shape.size() == 3 && weight->shape[2] > 0;
  state.add(known ? weight->shape[2] - 1 : -1);
  inference.setOutput(1, state);
}

CustomOp &ort::getCausalConv(int since) {
  static Op<CausalConv> standard(27), contrib(1);
  return since == 27 ? standard : contrib;
}
