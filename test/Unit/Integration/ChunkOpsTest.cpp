//===- ChunkOpsTest.cpp - The ops of a chunk against the oracle -----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All ops in one function, in naive loops and by way of linalg: four states
// that are read by eight heads, five tokens of two batch elements.
//
//===----------------------------------------------------------------------===//

#include "Buffers.h"

#include "linattn/Reference/Chunk.h"
#include "llvm/Support/FormatVariadic.h"

#include <limits>

using namespace linattn;
using namespace linattn::reference;
using namespace linattn::test;

namespace {

using Shape = std::vector<int64_t>;

/// A function of many ops, and what is expected of each.
class Program {
public:
  /// An argument of random numbers; its name.
  std::string argument(Shape shape, double low = -1.0, double high = 1.0,
                       DType dtype = DType::F32) {
    uint64_t seed = inputs.size() + 1;
    inputs.emplace_back(dtype, dtype == DType::I1
                                   ? randomMask(shape, seed)
                                   : randomArray(shape, seed, low, high));
    types.push_back(typeOf(shape, dtype));
    return "%a" + std::to_string(inputs.size() - 1);
  }
  /// The argument as it was rounded.
  Array operator[](const std::string &name) const {
    return inputs[std::stoi(name.substr(2))].toArray();
  }

  /// An op without its types; `{0}` stands for its result's destination.
  void op(const std::string &text, const std::vector<std::string> &operands,
          const std::vector<Array> &results) {
    std::string operandTypes, resultTypes;
    for (const std::string &operand : operands)
      operandTypes += (operandTypes.empty() ? "" : ", ") +
                      types[std::stoi(operand.substr(2))];
    for (const Array &result : results) {
      resultTypes +=
          (resultTypes.empty() ? "" : ", ") + typeOf(result.shape, DType::F32);
      expected.push_back(result);
      names.push_back(text);
    }
    std::string name = "%r" + std::to_string(numOps++);
    body +=
        llvm::formatv("  {0}:{1} = linattn.chunk.{2} : ({3}) -> ({4})\n", name,
                      results.size(), text, operandTypes, resultTypes);
    for (size_t i = 0; i < results.size(); ++i) {
      returned +=
          (returned.empty() ? "" : ", ") + name + "#" + std::to_string(i);
      returnedTypes += (returnedTypes.empty() ? "" : ", ") +
                       typeOf(results[i].shape, DType::F32);
    }
  }

  void check(Target target) {
    CompilerOptions options;
    options.target = target;
    std::optional<Kernel> kernel = compile(getText(), options);
    if (!kernel)
      return;
    std::vector<Buffer> outputs = run(*kernel, inputs);
    ASSERT_EQ(outputs.size(), expected.size());
    for (size_t i = 0; i < outputs.size(); ++i)
      expectClose(outputs[i], expected[i], names[i].c_str());
  }

private:
  static std::string typeOf(const Shape &shape, DType dtype) {
    std::string type = "tensor<";
    for (int64_t size : shape)
      type += std::to_string(size) + "x";
    return type + std::string(getName(dtype)) + ">";
  }
  std::string getText() const {
    std::string arguments;
    for (size_t i = 0; i < types.size(); ++i)
      arguments += llvm::formatv("{0}%a{1}: {2}", i ? ", " : "", i, types[i]);
    return llvm::formatv("func.func @f({0}) -> ({1}) {{\n{2}  return {3} : "
                         "{1}\n}\n",
                         arguments, returnedTypes, body, returned);
  }

  std::vector<Buffer> inputs;
  std::vector<std::string> types, names;
  std::vector<Array> expected;
  std::string body, returned, returnedTypes;
  int numOps = 0;
};

constexpr int64_t B = 2, H = 4, readers = 8, C = 5, K = 6, V = 3;

void addRows(Program &p) {
  std::string keys = p.argument({B, 2, C, K}, -1, 1, DType::BF16),
              mask = p.argument({B, C}, 0, 1, DType::I1),
              gate = p.argument({B, H, C, K}), shift = p.argument({B, H, C}),
              heads = p.argument({H}), rows = p.argument({B, readers, C, V}),
              den = p.argument({B, readers, C, 1}, 1, 2),
              maxima = p.argument({B, H, C}),
              decay = p.argument({B, H, C, K}, -2, 0);
  PackOptions pack;
  pack.shift = p[shift];
  pack.gate = p[gate];
  pack.mask = p[mask];
  pack.scale = 0.5;
  pack.fill = 2.0;
  pack.reverse = true;
  p.op("pack " + keys + " shift(" + shift + ") gate(" + gate + ") mask(" +
           mask + ") into(" + gate + ") {fill = 2.0, reverse, scale = 0.5}",
       {keys, shift, gate, mask, gate}, {packChunk(p[keys], H, pack)});
  PackOptions numbers;
  numbers.shift = p[shift];
  p.op("pack " + heads + " shift(" + shift + ") into(" + shift + ")",
       {heads, shift, shift}, {packChunk(p[heads], H, numbers)});
  std::string few = p.argument({B, H, C - 1, K});
  Array padded({B, H, C, K});
  for (int64_t b = 0; b < B; ++b)
    for (int64_t h = 0; h < H; ++h)
      for (int64_t t = 0; t < C - 1; ++t)
        for (int64_t d = 0; d < K; ++d)
          padded.at({b, h, t, d}) = -2.0 * p[few].at({b, h, t, d});
  p.op("pack " + few + " into(" + gate + ") {padded, scale = -2.0}",
       {few, gate}, {padded});
  Normalize floor;
  floor.absFloor = 1.5;
  p.op("unpack " + rows + " denominator(" + den + ") running_max(" + maxima +
           ") into(" + rows +
           ") {normalize = #linattn.normalize<abs_floor = 1.5>, reverse}",
       {rows, den, maxima, rows},
       {unpackChunk(p[rows], p[den], floor, p[maxima], true)});
  p.op("decay " + gate + " by(" + decay + ") into(" + gate + ") {before}",
       {gate, decay, gate},
       {decayRows(p[gate], p[decay], DecaySpan::BeforeToken)});
  p.op("decay " + rows + " by(" + maxima + ") into(" + rows + ") {to_end}",
       {rows, maxima, rows}, {decayRows(p[rows], p[maxima], DecaySpan::ToEnd)});
  p.op("decay " + rows + " by(" + maxima + ") into(" + rows + ")",
       {rows, maxima, rows},
       {decayRows(p[rows], p[maxima], DecaySpan::FromStart)});
}

void addMaxima(Program &p) {
  std::string inputGate = p.argument({B, H, C}, -3, 3),
              decay = p.argument({B, H, C}, -2, 0),
              keys = p.argument({B, H, C, K}, -3, 3),
              channels = p.argument({B, H, C, K}, -2, 0),
              start = p.argument({B, H}, -1, 1);
  StabilizedChunk s =
      stabilizeChunk(p[inputGate], p[decay], p[start], /*steady=*/false);
  p.op("stabilize " + inputGate + " decay(" + decay + ") into(" + decay + ", " +
           inputGate + ") init(" + start + ")",
       {inputGate, decay, decay, inputGate, start},
       {s.fade, s.maxima, s.runningMax});
  s = stabilizeChunk(p[keys], p[channels], p[start], /*steady=*/true);
  p.op("stabilize " + keys + " decay(" + channels + ") into(" + channels +
           ", " + inputGate + ") init(" + start + ") {steady}",
       {keys, channels, channels, inputGate, start},
       {s.fade, s.maxima, s.runningMax});
}

void addProducts(Program &p) {
  std::string rows = p.argument({B, readers, C, K}),
              keys = p.argument({B, H, C, K}),
              channels = p.argument({B, H, C, K}, -2, 0),
              decay = p.argument({B, H, C}, -2, 0),
              bonus = p.argument({H, K}, -1, 1, DType::BF16),
              scores = p.argument({B, readers, C, C}),
              beta = p.argument({B, H, C}, 0, 1),
              values = p.argument({B, H, C, V}),
              fades = p.argument({B, H, C, V}, -2, 0),
              state = p.argument({B, H, K, V}),
              output = p.argument({B, readers, C, V});
  ScoresOptions plain;
  plain.decay = p[decay];
  p.op("scores " + rows + ", " + keys + " decay(" + decay + ") into(" + scores +
           ")",
       {rows, keys, decay, scores}, {chunkScores(p[rows], p[keys], plain)});
  ScoresOptions own{p[channels], p[bonus], true, true};
  p.op("scores " + rows + ", " + keys + " decay(" + channels + ") bonus(" +
           bonus + ") into(" + scores + ") {before, strict}",
       {rows, keys, channels, bonus, scores},
       {chunkScores(p[rows], p[keys], own)});
  for (bool transpose : {false, true})
    p.op("solve " + scores + " gate(" + beta + ") into(" + output + ")" +
             (transpose ? " {transpose}" : ""),
         {scores, beta, output},
         {solveChunk(p[scores], p[beta], p[output], transpose)});
  ChunkTerm read{p[scores], p[values]}, write{p[keys], p[values]};
  p.op("read " + rows + ", " + state + " scores(" + scores + ", " + scores +
           ") values(" + values + ", " + values + ") into(" + output +
           ") {strict}",
       {rows, state, scores, scores, values, values, output},
       {readChunk(p[rows], p[state], {read, read}, p[output],
                  {std::nullopt, /*strict=*/true})});
  for (bool strict : {false, true})
    p.op("read " + rows + ", " + state + " scores(" + scores + ") values(" +
             values + ") into(" + output + ") {adjoint" +
             (strict ? ", strict}" : "}"),
         {rows, state, scores, values, output},
         {readChunk(
             p[rows], p[state], {read}, p[output],
             {std::nullopt, strict, /*transpose=*/false, /*adjoint=*/true})});
  for (bool adjoint : {false, true})
    p.op("read " + rows + ", " + state + " scores(" + scores + ") values(" +
             values + ") decay(" + fades + ") into(" + output + ")" +
             (adjoint ? " {adjoint, strict}" : ""),
         {rows, state, scores, values, fades, output},
         {readChunk(
             p[rows], p[state], {read}, p[output],
             {p[fades], /*strict=*/adjoint, /*transpose=*/false, adjoint})});
  p.op("read " + output + ", " + state + " into(" + rows + ") {transpose}",
       {output, state, rows},
       {readChunk(p[output], p[state], {}, p[rows],
                  {std::nullopt, /*strict=*/false, /*transpose=*/true})});
  p.op("update keys(" + keys + ") values(" + values + ") decay(" + channels +
           ") value_decay(" + fades + ") into(" + state + ")",
       {keys, values, channels, fades, state},
       {updateChunk(p[state], {write}, p[channels], p[fades])});
  p.op("update decay(" + decay + ") into(" + state + ")", {decay, state},
       {updateChunk(p[state], {}, p[decay], std::nullopt)});
}

} // namespace

TEST(ChunkOps, AgreeWithTheOracle) {
  Program p;
  addRows(p);
  addMaxima(p);
  addProducts(p);
  for (Target target : {Target::Reference, Target::Linalg}) {
    SCOPED_TRACE(target == Target::Linalg ? "linalg" : "loops");
    p.check(target);
  }
}

// A token's NaN stays behind it, in rows and in scores.
TEST(ChunkOps, LeaveLaterTokensOut) {
  const char *text = R"mlir(
func.func @f(%x: tensor<1x1x3x2xf32>, %s: tensor<1x1x2x2xf32>, %d: tensor<1x1x3x3xf32>, %y: tensor<1x1x3x2xf32>) -> tensor<1x1x3x2xf32> {
  %p = linattn.chunk.scores %x, %x into(%d) : (tensor<1x1x3x2xf32>, tensor<1x1x3x2xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x3x3xf32>
  %o = linattn.chunk.read %x, %s scores(%p) values(%x) into(%y) : (tensor<1x1x3x2xf32>, tensor<1x1x2x2xf32>, tensor<1x1x3x3xf32>, tensor<1x1x3x2xf32>, tensor<1x1x3x2xf32>) -> tensor<1x1x3x2xf32>
  return %o : tensor<1x1x3x2xf32>
})mlir";
  Array x = randomArray({1, 1, 3, 2}, 1);
  x.at({0, 0, 2, 0}) = std::numeric_limits<double>::quiet_NaN();
  for (Target target : {Target::Reference, Target::Linalg}) {
    CompilerOptions options;
    options.target = target;
    std::optional<Kernel> kernel = compile(text, options);
    ASSERT_TRUE(kernel);
    std::vector<Buffer> inputs;
    inputs.emplace_back(DType::F32, x);
    for (Shape shape :
         {Shape{1, 1, 2, 2}, Shape{1, 1, 3, 3}, Shape{1, 1, 3, 2}})
      inputs.emplace_back(DType::F32, Array(shape));
    std::vector<Buffer> outputs = run(*kernel, inputs);
    ASSERT_EQ(outputs.size(), 1u);
    Array o = outputs.front().toArray();
    for (int64_t i = 0; i < 4; ++i)
      EXPECT_FALSE(std::isnan(o.data[i]));
    EXPECT_TRUE(std::isnan(o.at({0, 0, 2, 0})));
  }
}
