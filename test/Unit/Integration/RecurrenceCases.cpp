//===- RecurrenceCases.cpp - Small recurrences as text and numbers --------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RecurrenceCases.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace linattn;
using namespace linattn::test;
namespace ref = linattn::reference;

//===----------------------------------------------------------------------===//
// Text and buffers
//===----------------------------------------------------------------------===//

std::string RecurrenceCase::getText() const {
  std::vector<std::string> arguments, types, front, results, names;
  std::string clauses, setup;
  auto add = [&](const Operand &operand, size_t number) {
    std::string name = llvm::formatv("%x{0}", number);
    types.push_back(getTensorType(operand.dtype, operand.array.shape, extents,
                                  operand.tokenDim));
    arguments.push_back(name + ": " + types.back());
    if (operand.clause.empty())
      front.push_back(name);
    else
      clauses += llvm::formatv(" {0}({1})", operand.clause, name);
  };
  for (size_t i = 0; i < operands.size(); ++i)
    add(operands[i], i);
  std::string output = getTensorType(dtype, outputShape, extents, tokenDim());
  std::string sizes;
  for (size_t d = 0; d < outputShape.size(); ++d)
    if (extents == Extents::Dynamic ||
        (extents == Extents::DynamicTokens && int64_t(d) == tokenDim())) {
      setup += llvm::formatv("  %c{0} = arith.constant {0} : index\n"
                             "  %d{0} = tensor.dim %x0, %c{0} : {1}\n",
                             d, types.front());
      sizes += llvm::formatv("{0}%d{1}", sizes.empty() ? "" : ", ", d);
    }
  for (const std::string &clause : outputs) {
    setup += llvm::formatv("  %{0} = tensor.empty({1}) : {2}\n", clause, sizes,
                           output);
    clauses += llvm::formatv(" {0}(%{0})", clause);
    types.push_back(output);
    results.push_back(output);
  }
  for (size_t i = 0; i < states.size(); ++i) {
    add(states[i], operands.size() + i);
    results.push_back(types.back());
  }
  for (size_t i = 0; i < results.size(); ++i)
    names.push_back(llvm::formatv("%r#{0}", i));
  return llvm::formatv("func.func @f({0}) -> ({1}) {{\n{2}"
                       "  %r:{3} = linattn.{4} {5}{6} {{{7}} : ({8}) -> ({1})\n"
                       "  return {9} : {1}\n}\n",
                       llvm::join(arguments, ", "), llvm::join(results, ", "),
                       setup, results.size(), op, llvm::join(front, ", "),
                       clauses, attributes, llvm::join(types, ", "),
                       llvm::join(names, ", "));
}

std::vector<Buffer> RecurrenceCase::getInputs(Layout layout) const {
  std::vector<Buffer> inputs;
  for (const std::vector<Operand> &part : {operands, states})
    for (const Operand &operand : part) {
      bool isInteger =
          operand.dtype == DType::I32 || operand.dtype == DType::I64;
      inputs.emplace_back(operand.dtype, operand.array,
                          isInteger ? Layout::Contiguous : layout);
    }
  return inputs;
}

std::vector<Array>
RecurrenceCase::getExpected(const std::vector<Buffer> &inputs) const {
  std::vector<Array> rounded, starts;
  for (size_t i = 0; i < inputs.size(); ++i)
    (i < operands.size() ? rounded : starts).push_back(inputs[i].toArray());
  return expect(rounded, starts);
}

RecurrenceCase RecurrenceCase::sliced(int64_t begin, int64_t end) const {
  RecurrenceCase part = *this;
  for (Operand &operand : part.operands)
    if (operand.tokenDim >= 0)
      operand.array = sliceTokens(operand.array, begin, end, operand.tokenDim);
  part.outputShape[tokenDim()] = end - begin;
  return part;
}

//===----------------------------------------------------------------------===//
// selective_scan
//===----------------------------------------------------------------------===//

static DType stateType(DType dtype) {
  return dtype == DType::F64 ? DType::F64 : DType::F32;
}

/// Two sequences of 37 channels: a vector and a bit.
constexpr int64_t batch = 2, channels = 37, states = 6;

static RecurrenceCase channelCase(const char *name, const char *op,
                                  int64_t tokens, DType dtype) {
  RecurrenceCase result;
  result.name = name;
  result.op = op;
  result.dtype = dtype;
  result.outputShape = {batch, tokens, channels};
  return result;
}

RecurrenceCase linattn::test::selectiveScanCase(int64_t tokens, DType dtype) {
  RecurrenceCase c =
      channelCase("selective_scan", "selective_scan", tokens, dtype);
  std::vector<int64_t> all{batch, tokens, channels};
  c.operands = {
      {"", dtype, randomArray(all, 1), 1},
      {"", dtype, randomArray(all, 2, -3, 1), 1},
      {"", DType::F32, randomArray({channels, states}, 3, -4, -0.1)},
      {"", dtype, randomArray({batch, tokens, states}, 4), 1},
      {"", dtype, randomArray({batch, tokens, states}, 5), 1},
      {"skip", DType::F32, randomArray({channels}, 6)},
      {"gate", dtype, randomArray(all, 7, -4, 4), 1},
      {"delta_bias", DType::F32, randomArray({channels}, 8)},
  };
  c.states = {
      {"init", stateType(dtype), randomArray({batch, channels, states}, 9)}};
  c.attributes = "delta_softplus";
  c.expect = [](const auto &x, const auto &s) -> std::vector<Array> {
    ref::SelectiveScanOperands operands{x[0], x[1], x[2], x[3], x[4]};
    operands.skip = x[5];
    operands.gate = x[6];
    operands.deltaBias = x[7];
    auto r = take(ref::selectiveScan(operands, {/*deltaSoftplus=*/true},
                                     ref::ComplexState{s[0]}));
    return {r.o, r.state.real};
  };
  return c;
}

RecurrenceCase linattn::test::groupedSelectiveCase(int64_t tokens,
                                                   DType dtype) {
  constexpr int64_t groups = 3, grouped = 3 * 37;
  RecurrenceCase c =
      channelCase("grouped selective_scan", "selective_scan", tokens, dtype);
  c.outputShape[2] = grouped;
  std::vector<int64_t> all{batch, tokens, grouped};
  c.operands = {
      {"", dtype, randomArray(all, 1), 1},
      {"", dtype, randomArray(all, 2, 0, 1), 1},
      {"", DType::F32, randomArray({grouped, states}, 3, -4, -0.1)},
      {"", dtype, randomArray({batch, groups, tokens, states}, 4), 2},
      {"", DType::F32, randomArray({grouped, states}, 5)},
  };
  c.states = {
      {"init", stateType(dtype), randomArray({batch, grouped, states}, 9)}};
  c.attributes = "reverse";
  c.expect = [](const auto &x, const auto &s) -> std::vector<Array> {
    auto r = take(ref::selectiveScan({x[0], x[1], x[2], x[3], x[4]},
                                     {false, /*reverse=*/true},
                                     ref::ComplexState{s[0]}));
    return {r.o, r.state.real};
  };
  return c;
}

static void addComplexStates(RecurrenceCase &c, DType dtype) {
  for (uint64_t part : {0, 1})
    c.states.push_back({part ? "init_imag" : "init", stateType(dtype),
                        randomArray({batch, channels, states}, 9 + part)});
}

RecurrenceCase linattn::test::s4dCase(int64_t tokens, DType dtype) {
  RecurrenceCase c = channelCase("s4d", "selective_scan", tokens, dtype);
  std::vector<int64_t> matrix{channels, states};
  c.operands = {
      {"", dtype, randomArray({batch, tokens, channels}, 1), 1},
      {"", DType::F32, randomArray({channels}, 2, 0.001, 0.1)},
      {"", DType::F32, randomArray(matrix, 3, -0.6, -0.4)},
      {"", DType::F32, randomArray(matrix, 4)},
      {"", DType::F32, randomArray(matrix, 5)},
      {"a_imag", DType::F32, randomArray(matrix, 6, 0, 200)},
      {"c_imag", DType::F32, randomArray(matrix, 7)},
  };
  addComplexStates(c, dtype);
  // A rounded factor of modulus almost 1 is off more with every power.
  c.tolerance = 1e-5;
  c.expect = [](const auto &x, const auto &s) -> std::vector<Array> {
    ref::SelectiveScanOperands operands{x[0], x[1], x[2], x[3], x[4]};
    operands.aImag = x[5];
    operands.cImag = x[6];
    auto r =
        take(ref::selectiveScan(operands, {}, ref::ComplexState{s[0], s[1]}));
    return {r.o, r.state.real, *r.state.imaginary};
  };
  return c;
}

RecurrenceCase linattn::test::complexSelectiveCase(int64_t tokens,
                                                   DType dtype) {
  RecurrenceCase c =
      channelCase("complex selective_scan", "selective_scan", tokens, dtype);
  std::vector<int64_t> all{batch, tokens, channels},
      perToken{batch, tokens, states}, matrix{channels, states};
  c.operands = {
      {"", dtype, randomArray(all, 1), 1},
      {"", dtype, randomArray(all, 2, 0, 1), 1},
      {"", DType::F32, randomArray(matrix, 3, -1, 0)},
      {"", dtype, randomArray(perToken, 4), 1},
      {"", dtype, randomArray(perToken, 5), 1},
      {"a_imag", DType::F32, randomArray(matrix, 6, -6, 6)},
      {"b_imag", dtype, randomArray(perToken, 7), 1},
      {"c_imag", dtype, randomArray(perToken, 8), 1},
  };
  addComplexStates(c, dtype);
  // A rounded factor of modulus almost 1 is off more with every power.
  c.tolerance = 1e-5;
  c.expect = [](const auto &x, const auto &s) -> std::vector<Array> {
    ref::SelectiveScanOperands operands{x[0], x[1], x[2], x[3], x[4]};
    operands.aImag = x[5];
    operands.bImag = x[6];
    operands.cImag = x[7];
    auto r =
        take(ref::selectiveScan(operands, {}, ref::ComplexState{s[0], s[1]}));
    return {r.o, r.state.real, *r.state.imaginary};
  };
  return c;
}

//===----------------------------------------------------------------------===//
// diagonal_scan, wkv4
//===----------------------------------------------------------------------===//

RecurrenceCase linattn::test::diagonalCase(int64_t tokens, DType dtype) {
  RecurrenceCase c =
      channelCase("diagonal_scan", "diagonal_scan", tokens, dtype);
  std::vector<int64_t> all{batch, tokens, channels};
  c.operands = {{"", dtype, randomArray(all, 1), 1},
                {"decay", dtype, randomArray(all, 2, -1, 0), 1}};
  c.states = {{"init", stateType(dtype), randomArray({batch, channels}, 3)}};
  c.expect = [](const auto &x, const auto &s) -> std::vector<Array> {
    auto r =
        take(ref::diagonalScan({x[0], x[1]}, false, ref::ComplexState{s[0]}));
    return {r.h.real, r.state.real};
  };
  return c;
}

RecurrenceCase linattn::test::complexDiagonalCase(int64_t tokens, DType dtype) {
  RecurrenceCase c =
      channelCase("complex diagonal_scan", "diagonal_scan", tokens, dtype);
  std::vector<int64_t> all{batch, tokens, channels};
  c.operands = {{"", dtype, randomArray(all, 1), 1},
                {"imag", dtype, randomArray(all, 2), 1},
                {"decay", DType::F32, randomArray({channels}, 3, -0.1, 0)},
                {"phase", DType::F32, randomArray({channels}, 4, -40, 40)}};
  c.outputs.push_back("into_imag");
  c.attributes = "reverse";
  for (uint64_t part : {0, 1})
    c.states.push_back({part ? "init_imag" : "init", stateType(dtype),
                        randomArray({batch, channels}, 5 + part)});
  c.expect = [](const auto &x, const auto &s) -> std::vector<Array> {
    auto r = take(ref::diagonalScan({x[0], x[2], x[1], x[3]}, true,
                                    ref::ComplexState{s[0], s[1]}));
    return {r.h.real, *r.h.imaginary, r.state.real, *r.state.imaginary};
  };
  return c;
}

RecurrenceCase linattn::test::wkv4Case(int64_t tokens, DType dtype) {
  RecurrenceCase c = channelCase("wkv4", "wkv4", tokens, dtype);
  std::vector<int64_t> all{batch, tokens, channels};
  c.operands = {{"", dtype, randomArray(all, 1, -5, 5), 1},
                {"", dtype, randomArray(all, 2), 1},
                {"decay", DType::F32, randomArray({channels}, 3, -1, 0)},
                {"bonus", DType::F32, randomArray({channels}, 4)}};
  c.states = {
      {"init", stateType(dtype), randomArray({batch, 3, channels}, 5, 0.1, 1)}};
  c.expect = [](const auto &x, const auto &s) -> std::vector<Array> {
    auto r = take(ref::wkv4({x[0], x[1], x[2], x[3]}, false, s[0]));
    return {r.o, r.state};
  };
  // Sums relative to e^m are compared relative to the same one.
  c.comparable = [](size_t number, Array result, const Array &expected) {
    if (number == 1)
      for (int64_t b = 0; b < batch; ++b)
        for (int64_t channel = 0; channel < channels; ++channel) {
          double scale = std::exp(result.at({b, 2, channel}) -
                                  expected.at({b, 2, channel}));
          result.at({b, 0, channel}) *= scale;
          result.at({b, 1, channel}) *= scale;
        }
    return result;
  };
  return c;
}

//===----------------------------------------------------------------------===//
// log_linear
//===----------------------------------------------------------------------===//

static RecurrenceCase logLinear(const char *name, int64_t queryHeads,
                                int64_t keyHeads, int64_t heads, int64_t levels,
                                int64_t tokens, DType dtype) {
  constexpr int64_t keySize = 10, valueSize = 37;
  RecurrenceCase c;
  c.name = name;
  c.op = "log_linear";
  c.dtype = dtype;
  c.outputShape = {batch, std::max(queryHeads, heads), tokens, valueSize};
  c.operands = {
      {"", dtype, randomArray({batch, queryHeads, tokens, keySize}, 1), 2},
      {"", dtype, randomArray({batch, keyHeads, tokens, keySize}, 2), 2},
      {"", dtype, randomArray({batch, heads, tokens, valueSize}, 3), 2},
      {"decay", DType::F32, randomArray({batch, heads, tokens}, 4, -0.3, 0), 2},
      {"levels", dtype, randomArray({batch, heads, tokens, levels}, 5, 0, 1),
       2}};
  c.states = {{"init", stateType(dtype),
               Array({batch, heads, levels, keySize, valueSize})}};
  c.attributes = "scale = 0.25";
  return c;
}

RecurrenceCase linattn::test::logLinearCase(int64_t tokens, DType dtype) {
  RecurrenceCase c = logLinear("log_linear", 2, 2, 2, 7, tokens, dtype);
  c.expect = [](const auto &x, const auto &) -> std::vector<Array> {
    ref::LogLinearOperands operands{x[0], x[1], x[2], x[4], x[3]};
    // The output by its definition, the states by theirs.
    return {take(ref::logLinearQuadratic(operands, {0.25})),
            take(ref::logLinear(operands, {0.25})).state};
  };
  return c;
}

/// Too few levels for the tokens, grouped heads, and sequences that go on.
RecurrenceCase linattn::test::groupedLogLinearCase(int64_t tokens,
                                                   DType dtype) {
  RecurrenceCase c = logLinear("grouped log_linear", 4, 1, 2, 4, tokens, dtype);
  c.operands.push_back({"position", DType::I32, Array({batch}, {3, 12})});
  c.states[0].array = randomArray(c.states[0].array.shape, 6);
  c.expect = [](const auto &x, const auto &s) -> std::vector<Array> {
    ref::LogLinearOperands operands{x[0], x[1], x[2], x[4], x[3]};
    auto r = take(ref::logLinear(operands, {0.25, {3, 12}}, s[0]));
    return {r.o, r.state};
  };
  return c;
}
