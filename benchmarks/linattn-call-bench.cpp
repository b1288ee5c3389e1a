//===- linattn-call-bench.cpp - Cost of a call ----------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Decode steps, calls of a ready kernel on ready views:
//
//   - of one head whose state is 4 by 4, so small that what is left is the call
//     itself: checks of shapes, strides and overlaps, and the descriptors that
//     the code takes;
//   - of 32 heads of 128, a state of 2 MiB, in turn with updates of so much
//     memory in place: what share of their bandwidth a step reaches.
//
//===----------------------------------------------------------------------===//

#include "linattn/Compiler/Compiler.h"
#include "linattn/Compiler/State.h"
#include "linattn/Peak/MemoryPeak.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>

using namespace linattn;

namespace {

enum class Decay { None, Token, Channel };

struct Rule {
  llvm::StringLiteral name;
  Decay decay;
  bool delta;
};

constexpr Rule linear{"linear", Decay::None, false},
    gatedDelta{"gated delta", Decay::Token, true};
constexpr Rule rules[] = {linear,
                          {"a decay per token", Decay::Token, false},
                          {"a decay per channel", Decay::Channel, false},
                          {"delta", Decay::None, true},
                          gatedDelta};

/// One token of one sequence, and the state that it updates in place.
class Step {
public:
  /// `dynamic`: compiled for any number of sequences.
  Step(Rule rule, int64_t heads, int64_t size, bool dynamic)
      : kernel(llvm::cantFail(
            Compiler().compile(getText(rule, heads, size, dynamic)))),
        state(llvm::cantFail(State::zeros(1, heads, size, size))) {
    auto add = [&](llvm::ArrayRef<int64_t> shape, float value) {
      memory.emplace_back(heads * size, value);
      inputs.emplace_back(memory.back().data(), DType::F32, shape);
    };
    memory.reserve(6);
    for (int i = 0; i < 3; ++i)
      add({1, heads, 1, size}, 0.125f);
    inputs.push_back(state.S());
    if (rule.decay == Decay::Token)
      add({1, heads, 1}, -0.1f);
    if (rule.decay == Decay::Channel)
      add({1, heads, 1, size}, -0.1f);
    if (rule.delta)
      add({1, heads, 1}, 0.5f);
    memory.emplace_back(heads * size);
    outputs = {{memory.back().data(), DType::F32, {1, heads, 1, size}},
               state.S()};
    options.numThreads = 1;
  }

  void run() { llvm::cantFail(kernel.run(inputs, outputs, options)); }
  size_t getNumArguments() const { return inputs.size(); }
  int64_t getStateBytes() { return state.S().getNumElements() * 4; }

private:
  static std::string getText(Rule rule, int64_t heads, int64_t size,
                             bool dynamic) {
    std::string n = dynamic ? "?x" : "1x", h = std::to_string(heads) + "x",
                d = std::to_string(size);
    std::string tokens = "tensor<" + n + h + "1x" + d + "xf32>",
                states = "tensor<" + n + h + d + "x" + d + "xf32>",
                scalars = "tensor<" + n + h + "1xf32>", arguments, operands,
                types;
    auto add = [&](llvm::StringRef name, llvm::StringRef type) {
      arguments += (", %" + name + ": " + type).str();
      operands += (" " + name + "(%" + name + ")").str();
      types += (type + ", ").str();
    };
    if (rule.decay != Decay::None)
      add("decay", rule.decay == Decay::Token ? scalars : tokens);
    if (rule.delta) {
      add("beta", scalars);
      operands += " update(delta)";
    }
    std::string text = "func.func @step(%q: " + tokens + ", %k: " + tokens +
                       ", %v: " + tokens + ", %s: " + states + arguments +
                       ") -> (" + tokens + ", " + states + ") {\n";
    if (dynamic)
      text += "  %c0 = arith.constant 0 : index\n"
              "  %n = tensor.dim %q, %c0 : " +
              tokens + "\n";
    text += "  %e = tensor.empty(" + std::string(dynamic ? "%n" : "") +
            ") : " + tokens + "\n  %r:2 = linattn.scan %q, %k, %v" + operands +
            " into(%e) init(%s)\n    : (" + tokens + ", " + tokens + ", " +
            tokens + ", " + types + tokens + ", " + states + ") -> (" + tokens +
            ", " + states + ")\n";
    return text + "  return %r#0, %r#1 : " + tokens + ", " + states + "\n}\n";
  }

  Kernel kernel;
  State state;
  std::vector<std::vector<float>> memory;
  llvm::SmallVector<BufferView> inputs, outputs;
  RunOptions options;
};

/// Nanoseconds per call.
double timeCalls(Step &step, int calls) {
  auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i)
    step.run();
  std::chrono::duration<double, std::nano> time =
      std::chrono::steady_clock::now() - start;
  return time.count() / calls;
}

double medianOf(std::vector<double> values) {
  llvm::sort(values);
  return values[values.size() / 2];
}

void measureCalls() {
  constexpr int series = 101, calls = 2000;
  for (Rule rule : {linear, gatedDelta})
    for (bool dynamic : {false, true}) {
      Step step(rule, /*heads=*/1, /*size=*/4, dynamic);
      std::vector<double> times;
      for (int i = 0; i < series; ++i)
        times.push_back(timeCalls(step, calls));
      llvm::outs() << rule.name << ", " << step.getNumArguments()
                   << " arguments, "
                   << (dynamic ? "any batch" : "static shapes") << ": "
                   << llvm::format("%.0f ns per call, fastest %.0f\n",
                                   medianOf(times), *llvm::min_element(times));
    }
}

void measureBandwidth() {
  constexpr int turns = 41, calls = 20;
  for (Rule rule : rules) {
    Step step(rule, /*heads=*/32, /*size=*/128, /*dynamic=*/false);
    int64_t bytes = step.getStateBytes();
    std::vector<double> times, shares;
    for (int i = 0; i < turns; ++i) {
      double update = measureMemoryGbytes(MemoryPass::Update, bytes,
                                          /*threads=*/1, PassTime::Median);
      step.run(); // Into the caches, as the updates were.
      times.push_back(timeCalls(step, calls));
      shares.push_back(2 * double(bytes) / times.back() / update);
    }
    llvm::outs() << rule.name << ", 32 heads of 128: "
                 << llvm::format("%.1f us per step, %.0f %% of updates in "
                                 "place\n",
                                 1e-3 * medianOf(times),
                                 100 * medianOf(shares));
  }
}

} // namespace

int main() {
  measureCalls();
  measureBandwidth();
  return 0;
}
