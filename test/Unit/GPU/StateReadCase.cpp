//===- StateReadCase.cpp - States and reads of them, emulated -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Integration/Buffers.h"
#include "AttentionCase.h"
#include "Rounding.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

using namespace linattn;
using namespace linattn::test;
using namespace linattn::reference;

static std::string textOf(const StateReadCase &c) {
  auto tokens = [&](int64_t heads, int64_t size) {
    return llvm::formatv("tensor<{0}x{1}x?x{2}x{3}>", c.batch, heads, size,
                         getName(c.dtype))
        .str();
  };
  std::string q = tokens(c.queryHeads, c.keySize);
  std::string k = tokens(c.keyHeads, c.keySize);
  std::string v = tokens(c.valueHeads, c.valueSize);
  std::string o = tokens(c.outputHeads(), c.valueSize);
  std::string s = llvm::formatv("tensor<{0}x{1}x{2}x{3}xf32>", c.batch,
                                c.stateHeads(), c.keySize, c.valueSize);
  std::string z = llvm::formatv("tensor<{0}x{1}x{2}xf32>", c.batch,
                                c.stateHeads(), c.keySize);
  std::string mask = llvm::formatv("tensor<{0}x?xi1>", c.batch);
  std::string arguments, body;
  for (auto [name, type] : {std::pair("s", s), std::pair("z", z)}) {
    if (type == z && !c.normalize)
      continue;
    if (!c.fromZero)
      arguments += llvm::formatv(", %{0}0: {1}", name, type);
    else
      body += llvm::formatv("  %{0}e = tensor.empty() : {1}\n"
                            "  %{0}0 = linalg.fill ins(%zero : f32) "
                            "outs(%{0}e : {1}) -> {1}\n",
                            name, type);
  }
  if (c.mask)
    arguments += ", %mask: " + mask;
  const char *maps[] = {"identity", "relu", "relu2", "elu1"};
  std::string map = llvm::formatv("feature_map = #linattn.feature_map<{0}>",
                                  maps[int(c.featureMap)]);
  std::string states = c.normalize ? s + ", " + z : s;
  auto scheduled = [&](const std::string &schedule) {
    return schedule.empty() ? map : map + ", linattn.schedule = " + schedule;
  };
  body += llvm::formatv(
      "  %r:{0} = linattn.state %k, %v{1} init(%s0){2} {{{3}}\n"
      "    : ({4}, {5}{6}, {7}) -> ({7})\n",
      c.normalize ? 2 : 1, c.mask ? " mask(%mask)" : "",
      c.normalize ? " normalizer(%z0)" : "", scheduled(c.stateSchedule), k, v,
      c.mask ? ", " + mask : "", states);
  body += llvm::formatv(
      "  %o = linattn.read %q, %r#0{0} into(%e) {{{1}, scale = 0.125 : "
      "f64{2}}\n"
      "    : ({3}, {4}, {5}) -> {5}\n",
      c.normalize ? " normalizer(%r#1)" : "", scheduled(c.readSchedule),
      c.normalize ? ", normalize = #linattn.normalize<eps = 1.0e-6>" : "", q,
      states, o);
  return llvm::formatv("func.func @layer(%q: {0}, %k: {1}, %v: {2}{3}) -> "
                       "({4}, {5}) {{\n"
                       "  %c2 = arith.constant 2 : index\n"
                       "  %zero = arith.constant 0.0 : f32\n"
                       "  %t = tensor.dim %q, %c2 : {0}\n"
                       "  %e = tensor.empty(%t) : {4}\n{6}"
                       "  return %o, %r#0{7} : {4}, {5}\n}\n",
                       q, k, v, arguments, o, states, body,
                       c.normalize ? ", %r#1" : "")
      .str();
}

StateReadOutcome linattn::test::runCase(const StateReadCase &c) {
  StateReadOutcome outcome;
  CompilerOptions options;
  options.target = Target::NVVMEmulated;
  options.chip = c.chip;
  options.math = c.math;
  auto kernel = compile(textOf(c), options);
  if (!kernel)
    return outcome;
  Layout layout = c.tokensFirst ? Layout::TokensFirst : Layout::Contiguous;
  std::vector<Buffer> inputs;
  auto add = [&](DType dtype, std::vector<int64_t> shape, double low,
                 double high, Layout layout) {
    inputs.emplace_back(
        dtype,
        randomArray(std::move(shape), c.seed + inputs.size() + 1, low, high),
        layout);
  };
  add(c.dtype, {c.batch, c.queryHeads, c.queries, c.keySize}, -1.7, 1.7,
      layout);
  add(c.dtype, {c.batch, c.keyHeads, c.keys, c.keySize}, -1.7, 1.7, layout);
  add(c.dtype, {c.batch, c.valueHeads, c.keys, c.valueSize}, -1.7, 1.7, layout);
  Array initial({c.batch, c.stateHeads(), c.keySize, c.valueSize});
  Array initialZ({c.batch, c.stateHeads(), c.keySize});
  if (!c.fromZero) {
    add(DType::F32, initial.shape, -1, 1, Layout::Contiguous);
    initial = inputs.back().toArray();
    if (c.normalize) {
      add(DType::F32, initialZ.shape, 5, 6, Layout::Contiguous);
      initialZ = inputs.back().toArray();
    }
  }
  StateOptions stateOptions;
  stateOptions.featureMap.kind = c.featureMap;
  stateOptions.normalize = c.normalize;
  if (c.mask) {
    stateOptions.mask = randomMask({c.batch, c.keys}, 11);
    inputs.emplace_back(DType::I1, *stateOptions.mask);
  }
  emulator::LaunchLog log;
  std::vector<Buffer> results = run(*kernel, inputs, layout, 1);
  outcome.launches = log.getLaunches();
  if (results.empty())
    return outcome;

  auto state =
      reference::state(inputs[1].toArray(), inputs[2].toArray(), stateOptions);
  if (!state) {
    ADD_FAILURE() << state.error();
    return outcome;
  }
  for (size_t i = 0; i < initial.data.size(); ++i)
    state->S.data[i] += initial.data[i];
  if (c.normalize)
    for (size_t i = 0; i < initialZ.data.size(); ++i)
      state->z->data[i] += initialZ.data[i];
  ReadOptions readOptions;
  readOptions.featureMap.kind = c.featureMap;
  readOptions.scale = 0.125;
  if (c.normalize) {
    readOptions.normalize = Normalize();
    readOptions.normalize->eps = 1e-6;
  }
  auto output = read(inputs[0].toArray(), *state, readOptions);
  if (!output) {
    ADD_FAILURE() << output.error();
    return outcome;
  }
  outcome.ran = true;
  Array actual = results[0].toArray();
  outcome.outputError = compare(actual, *output);
  outcome.beyondRounding = findBeyondRounding(c.dtype, actual, *output);
  outcome.stateError = compare(results[1].toArray(), state->S);
  if (c.normalize)
    outcome.normalizerError = compare(results[2].toArray(), *state->z);
  return outcome;
}
