//===- AttentionCase.cpp - Attention without scans, emulated --------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionCase.h"
#include "../Integration/Buffers.h"
#include "Rounding.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

using namespace linattn;
using namespace linattn::test;
using namespace linattn::reference;

static std::string typeOf(const AttentionCase &attention, int64_t heads,
                          int64_t tokens, int64_t size) {
  std::string length =
      attention.staticTokens ? std::to_string(tokens) : std::string("?");
  return llvm::formatv("tensor<{0}x{1}x{2}x{3}x{4}>", attention.batch, heads,
                       length, size, getName(attention.dtype))
      .str();
}

static std::string textOf(const AttentionCase &a) {
  std::string q = typeOf(a, a.queryHeads, a.queries, a.keySize);
  std::string k = typeOf(a, a.keyHeads, a.keys, a.keySize);
  std::string v = typeOf(a, a.valueHeads, a.keys, a.valueSize);
  std::string o = typeOf(a, a.outputHeads(), a.queries, a.valueSize);
  std::string arguments, operands, types, attributes;
  auto add = [&](const char *name, std::string type) {
    arguments += llvm::formatv(", %{0}: {1}", name, type);
    operands += llvm::formatv(" {0}(%{0})", name);
    types += ", " + type;
  };
  std::string length = a.staticTokens ? std::to_string(a.keys) : "?";
  if (a.mask)
    add("mask", llvm::formatv("tensor<{0}x{1}xi1>", a.batch, length));
  if (a.prefix)
    add("prefix", llvm::formatv("tensor<{0}xi32>", a.batch));
  attributes = llvm::formatv("scale = {0:E} : f64", a.scale);
  if (a.causal)
    attributes += ", causal";
  if (a.normalize)
    attributes += ", normalize = #linattn.normalize<eps = 1.0e-6>";
  if (!a.schedule.empty())
    attributes += ", linattn.schedule = " + a.schedule;
  return llvm::formatv(
             "func.func @layer(%q: {0}, %k: {1}, %v: {2}{3}) -> {4} {{\n"
             "  %c2 = arith.constant 2 : index\n"
             "  %t = tensor.dim %q, %c2 : {0}\n"
             "  %e = tensor.empty({5}) : {4}\n"
             "  %o = linattn.quadratic %q, %k, %v{6}{7} into(%e) {{{8}}\n"
             "    : ({0}, {1}, {2}{9}, {4}) -> {4}\n"
             "  return %o : {4}\n}\n",
             q, k, v, arguments, o, a.staticTokens ? "" : "%t", operands,
             a.linear ? "" : " weights(softmax)", attributes, types)
      .str();
}

/// Rows [begin, end) of the tokens, after `pad` rows of zeros.
static Array rowsOf(const Array &x, int64_t begin, int64_t end, int64_t pad) {
  Array result({x.dim(0), x.dim(1), pad + end - begin, x.dim(3)});
  for (int64_t b = 0; b < x.dim(0); ++b)
    for (int64_t h = 0; h < x.dim(1); ++h)
      for (int64_t t = begin; t < end; ++t)
        std::copy_n(x.row({b, h, t, 0}), x.dim(3),
                    result.row({b, h, pad + t - begin, 0}));
  return result;
}

/// Causally the last query stands at the last key: those that are missing are
/// zeros, those too many see nothing.
static Result<Array> computeReference(const AttentionCase &a, Array q, Array k,
                                      Array v, AttentionOptions options) {
  if (!a.causal)
    return attention(q, k, v, options);
  int64_t kept = std::min(a.queries, a.keys);
  q = rowsOf(q, a.queries - kept, a.queries, a.keys - kept);
  Result<Array> all = attention(q, k, v, options);
  if (!all)
    return all;
  return rowsOf(*all, a.keys - kept, a.keys, a.queries - kept);
}

AttentionOutcome linattn::test::runCase(const AttentionCase &a) {
  AttentionOutcome outcome;
  CompilerOptions options;
  options.target = Target::NVVMEmulated;
  options.chip = a.chip;
  options.copy = a.copy;
  options.math = a.math;
  std::string text = textOf(a);
  auto kernel = compile(text, options);
  if (!kernel)
    return outcome;
  Layout layout = a.tokensFirst ? Layout::TokensFirst : Layout::Contiguous;
  std::vector<Buffer> inputs;
  auto tokens = [&](int64_t heads, int64_t count, int64_t size, double range) {
    inputs.emplace_back(a.dtype,
                        randomArray({a.batch, heads, count, size},
                                    a.seed + inputs.size() + 1, -range, range),
                        layout);
  };
  tokens(a.queryHeads, a.queries, a.keySize, 1.7 * a.queryScale);
  tokens(a.keyHeads, a.keys, a.keySize, 1.7);
  tokens(a.valueHeads, a.keys, a.valueSize, 1.7);
  AttentionOptions reference;
  reference.causal = a.causal;
  reference.weights =
      a.linear ? AttentionWeights::Linear : AttentionWeights::Softmax;
  reference.scale = a.scale;
  if (a.normalize) {
    reference.normalize = Normalize();
    reference.normalize->eps = 1e-6;
  }
  if (a.mask) {
    reference.mask = randomMask({a.batch, a.keys}, 11);
    inputs.emplace_back(DType::I1, *reference.mask);
  }
  if (a.prefix) {
    reference.prefix = Array({a.batch}, double(a.keys / 2));
    inputs.emplace_back(DType::I32, *reference.prefix);
  }
  emulator::LaunchLog log;
  std::vector<Buffer> results = run(*kernel, inputs, layout, 1);
  outcome.launches = log.getLaunches();
  if (results.empty())
    return outcome;
  auto expected = computeReference(a, inputs[0].toArray(), inputs[1].toArray(),
                                   inputs[2].toArray(), reference);
  if (!expected) {
    ADD_FAILURE() << expected.error();
    return outcome;
  }
  outcome.ran = true;
  Array actual = results[0].toArray();
  outcome.error = compare(actual, *expected);
  outcome.beyondRounding = findBeyondRounding(a.dtype, actual, *expected);
  return outcome;
}
