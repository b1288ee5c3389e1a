//===- linattn-call-bench.cpp - What a call costs -------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Calls of a ready kernel on ready views: a decode step of one head whose state
// is 4 by 4, so small that what is left is the call itself: checks of shapes,
// strides and overlaps, and the descriptors that the code takes.
//
//===----------------------------------------------------------------------===//

#include "linattn/Compiler/Compiler.h"
#include "linattn/Compiler/State.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>

using namespace linattn;

namespace {

/// The text of a step, for any number of sequences or for one.
std::string getText(bool dynamic, llvm::StringRef operands) {
  std::string n = dynamic ? "?" : "1";
  std::string tokens = "tensor<" + n + "x1x1x4xf32>",
              state = "tensor<" + n + "x1x4x4xf32>",
              scalar = "tensor<" + n + "x1x1xf32>";
  bool gated = !operands.empty();
  std::string text = "func.func @step(%q: " + tokens + ", %k: " + tokens +
                     ", %v: " + tokens + ", %s: " + state;
  if (gated)
    text += ", %g: " + scalar + ", %b: " + scalar;
  text += ") -> (" + tokens + ", " + state + ") {\n";
  text += "  %c0 = arith.constant 0 : index\n";
  if (dynamic)
    text += "  %n = tensor.dim %q, %c0 : " + tokens + "\n";
  text += "  %e = tensor.empty(" + std::string(dynamic ? "%n" : "") +
          ") : " + tokens + "\n";
  text += "  %r:2 = linattn.scan %q, %k, %v " + operands.str() +
          " into(%e) init(%s)\n    : (" + tokens + ", " + tokens + ", " +
          tokens + ", " + (gated ? scalar + ", " + scalar + ", " : "") +
          tokens + ", " + state + ") -> (" + tokens + ", " + state + ")\n";
  return text + "  return %r#0, %r#1 : " + tokens + ", " + state + "\n}\n";
}

/// Nanoseconds per call: the median of many series, and the fastest.
std::pair<double, double> measure(llvm::function_ref<void()> call) {
  constexpr int series = 101, calls = 2000;
  std::vector<double> times;
  for (int i = 0; i < series; ++i) {
    auto start = std::chrono::steady_clock::now();
    for (int j = 0; j < calls; ++j)
      call();
    std::chrono::duration<double, std::nano> time =
        std::chrono::steady_clock::now() - start;
    times.push_back(time.count() / calls);
  }
  llvm::sort(times);
  return {times[series / 2], times.front()};
}

} // namespace

int main() {
  for (bool gated : {false, true})
    for (bool dynamic : {false, true}) {
      llvm::StringRef operands =
          gated ? "decay(%g) beta(%b) update(delta)" : "";
      Kernel kernel =
          llvm::cantFail(Compiler().compile(getText(dynamic, operands)));
      std::vector<float> q(4, 0.5f), k(q), v(q), o(4), g(1, -0.1f), b(1, 0.5f);
      State state = llvm::cantFail(State::zeros(1, 1, 4, 4));
      auto view = [](std::vector<float> &data, llvm::ArrayRef<int64_t> shape) {
        return BufferView(data.data(), DType::F32, shape);
      };
      llvm::SmallVector<BufferView> inputs{view(q, {1, 1, 1, 4}),
                                           view(k, {1, 1, 1, 4}),
                                           view(v, {1, 1, 1, 4}), state.S()};
      if (gated) {
        inputs.push_back(view(g, {1, 1, 1}));
        inputs.push_back(view(b, {1, 1, 1}));
      }
      llvm::SmallVector<BufferView> outputs{view(o, {1, 1, 1, 4}), state.S()};
      RunOptions options;
      options.numThreads = 1;
      auto [median, fastest] = measure(
          [&] { llvm::cantFail(kernel.run(inputs, outputs, options)); });
      llvm::outs() << (gated ? "gated delta" : "linear") << ", "
                   << inputs.size() << " arguments, "
                   << (dynamic ? "any batch" : "static shapes") << ": "
                   << llvm::format("%.0f ns per call, fastest %.0f\n", median,
                                   fastest);
    }
  return 0;
}
