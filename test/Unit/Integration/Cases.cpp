//===- Cases.cpp - Attentions and scans as text and as numbers ------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Cases.h"
#include "../Sample.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace linattn;
using namespace linattn::test;
using reference::UpdateRule;

//===----------------------------------------------------------------------===//
// Samples
//===----------------------------------------------------------------------===//

bool linattn::test::isDrawn() {
  static const testing::TestInfo *last = nullptr;
  static unsigned number;
  const testing::TestInfo *test =
      testing::UnitTest::GetInstance()->current_test_info();
  number = test == last ? number + 1 : 0;
  last = test;
  return number == 0 ||
         isDrawn(llvm::formatv("{0}.{1} {2}", test->test_suite_name(),
                               test->name(), number));
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

std::string linattn::test::getTensorType(DType dtype,
                                         llvm::ArrayRef<int64_t> shape,
                                         Extents extents, int64_t tokenDim) {
  std::string type = "tensor<";
  for (size_t i = 0; i < shape.size(); ++i) {
    bool open =
        extents == Extents::Dynamic || (extents == Extents::DynamicTokens &&
                                        static_cast<int64_t>(i) == tokenDim);
    type += (open ? "?" : std::to_string(shape[i])) + "x";
  }
  return type + std::string(linattn::getName(dtype)) + ">";
}

/// A float literal that MLIR reads back to the same double.
static std::string getLiteral(double value) {
  return llvm::formatv("{0:e16}", value).str();
}

static std::string getNormalizeText(const Normalize &normalize) {
  std::vector<std::string> parts;
  auto add = [&](const char *name, std::optional<double> value) {
    if (value)
      parts.push_back(name + (" = " + getLiteral(*value)));
  };
  add("eps", normalize.eps);
  add("floor", normalize.floor);
  add("abs_floor", normalize.absFloor);
  add("clamp", normalize.clamp);
  return "normalize = #linattn.normalize<" + llvm::join(parts, ", ") + ">";
}

static const char *getMapKeyword(FeatureMapKind kind) {
  switch (kind) {
  case FeatureMapKind::Identity:
    return "identity";
  case FeatureMapKind::Relu:
    return "relu";
  case FeatureMapKind::Relu2:
    return "relu2";
  case FeatureMapKind::Elu1:
    return "elu1";
  case FeatureMapKind::SoftmaxKernel:
    return "softmax_kernel";
  case FeatureMapKind::Exp:
    return "exp";
  case FeatureMapKind::Custom:
    return "region";
  }
  return "";
}

/// The captured scalar of Region::Captured.
static constexpr double kCaptured = 0.75;

template <typename Derived>
reference::FeatureMap Case<Derived>::getMap() const {
  if (map != FeatureMapKind::Custom)
    return {map};
  double factor = region == Region::Captured ? kCaptured : 0.5;
  return reference::FeatureMap::fromFunction(
      [factor](double x) { return factor * x * x + 0.25; });
}

template <typename Derived>
std::string Case<Derived>::getAttributes(llvm::StringRef more) const {
  std::vector<std::string> parts;
  if (!more.empty())
    parts.push_back(more.str());
  if (map != FeatureMapKind::Identity)
    parts.push_back(llvm::formatv("feature_map = #linattn.feature_map<{0}>",
                                  getMapKeyword(map)));
  if (normalize)
    parts.push_back(getNormalizeText(*normalize));
  if (scale)
    parts.push_back("scale = " + getLiteral(*scale) + " : f64");
  std::string text = " {" + llvm::join(parts, ", ") + "}";
  if (region == Region::None)
    return text;
  std::string type(linattn::getName(accumulation()));
  return text + llvm::formatv(" phi {{\n  ^bb0(%x: {0}):\n"
                              "    %half = arith.constant 0.5 : {0}\n"
                              "    %quarter = arith.constant 0.25 : {0}\n"
                              "    %x2 = arith.mulf %x, %x : {0}\n"
                              "    %cx2 = arith.mulf %x2, {1} : {0}\n"
                              "    %y = arith.addf %cx2, %quarter : {0}\n"
                              "    linattn.yield %y : {0}\n  }",
                              type, region == Region::Captured ? "%c" : "%half")
                    .str();
}

template struct linattn::test::Case<AttentionCase>;
template struct linattn::test::Case<ScanCase>;

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

std::string AttentionCase::getText() const {
  auto tokens = [&](int64_t heads, int64_t count, int64_t size, bool isFixed) {
    return getTensorType(dtype, {batch, heads, count, size},
                         isFixed ? Extents::Static : extents, 2);
  };
  std::string q = tokens(queryHeads, queryCount, keySize, hasFixedQueries);
  std::string k = tokens(keyHeads, keyCount, keySize, false);
  std::string v = tokens(valueHeads, keyCount, valueSize, false);
  std::string o = tokens(outputHeads(), queryCount, valueSize, hasFixedQueries);
  std::string m = getTensorType(DType::I1, {batch, keyCount}, extents, 1);
  std::string arguments =
      llvm::formatv("%q: {0}, %k: {1}, %v: {2}", q, k, v).str();
  std::string types = q + ", " + k + ", " + v;
  if (hasMask) {
    arguments += ", %mask: " + m;
    types += ", " + m;
  }
  if (region == Region::Captured)
    arguments += ", %c: " + std::string(linattn::getName(accumulation()));
  std::vector<std::string> more;
  if (isCausal)
    more.push_back("causal");
  if (!config.empty())
    more.push_back("config = #linattn.config<" + config + ">");
  return llvm::formatv(
             "func.func @attention({0}) -> {1} {{\n"
             "  %o = linattn.attention %q, %k, %v{2}{3}{4} : ({5}) -> {1}\n"
             "  return %o : {1}\n}\n",
             arguments, o, hasMask ? " mask(%mask)" : "",
             isSoftmax ? " weights(softmax)" : "",
             getAttributes(llvm::join(more, ", ")), types)
      .str();
}

/// Masks share of the tokens, and all of the last batch element.
static Array makeMask(int64_t batch, int64_t count, uint64_t seed) {
  Array mask = randomMask({batch, count}, seed);
  for (int64_t t = 0; batch > 1 && t < count; ++t)
    mask.at({batch - 1, t}) = 0;
  return mask;
}

/// Padding may hold anything: NaN where the mask is false.
static void poison(Array &tokens, const Array &mask) {
  for (int64_t b = 0; b < tokens.dim(0); ++b)
    for (int64_t h = 0; h < tokens.dim(1); ++h)
      for (int64_t t = 0; t < tokens.dim(2); ++t)
        if (mask.at({b, t}) == 0)
          std::fill_n(tokens.row({b, h, t}), tokens.dim(3), NAN);
}

std::vector<Buffer> AttentionCase::getInputs(uint64_t seed) const {
  auto tokens = [&](int64_t heads, int64_t count, int64_t size, uint64_t part) {
    return randomArray({batch, heads, count, size}, 8 * seed + part, low, high);
  };
  Array q = tokens(queryHeads, queryCount, keySize, 0);
  Array k = tokens(keyHeads, keyCount, keySize, 1);
  Array v = randomArray({batch, valueHeads, keyCount, valueSize}, 8 * seed + 2);
  std::vector<Buffer> inputs;
  if (hasMask) {
    Array mask = makeMask(batch, keyCount, 8 * seed + 3);
    poison(k, mask);
    poison(v, mask);
    inputs.emplace_back(DType::I1, mask);
  }
  if (region == Region::Captured)
    inputs.emplace_back(accumulation(), Array({}, kCaptured));
  Buffer buffers[] = {Buffer(dtype, q, layout), Buffer(dtype, k, layout),
                      Buffer(dtype, v, layout)};
  inputs.insert(inputs.begin(), std::begin(buffers), std::end(buffers));
  return inputs;
}

Array AttentionCase::getExpected(const std::vector<Buffer> &inputs) const {
  reference::AttentionOptions options;
  options.causal = isCausal;
  if (isSoftmax)
    options.weights = reference::AttentionWeights::Softmax;
  options.featureMap = getMap();
  options.normalize = normalize;
  options.scale = scale.value_or(1.0);
  if (hasMask)
    options.mask = inputs[3].toArray();
  return take(reference::attention(inputs[0].toArray(), inputs[1].toArray(),
                                   inputs[2].toArray(), options));
}
