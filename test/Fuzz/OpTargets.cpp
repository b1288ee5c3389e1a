//===- OpTargets.cpp - Ops made of bytes ----------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Targets.h"

#include "llvm/ADT/StringExtras.h"

using namespace linattn::fuzz;

namespace {

using Shape = std::vector<std::string>;

/// A function around one op, whose operands are its arguments in order.
class FunctionText {
public:
  explicit FunctionText(Choices &choices) : choices(choices) {}

  /// Adds an operand, now and then of another shape, and returns its name.
  std::string add(Shape shape, llvm::StringRef element, bool isResult = false) {
    if (!shape.empty() && choices.rarely(60))
      shape[choices.byte() % shape.size()] = choices.pick({"7", "0", "?"});
    if (choices.rarely(100))
      shape.push_back("1");
    std::string type = "tensor<" + llvm::join(shape, "x") +
                       (shape.empty() ? "" : "x") + element.str() + ">";
    if (isResult)
      results.push_back(type);
    operands.push_back(type);
    return "%x" + std::to_string(operands.size() - 1);
  }

  std::string addScalar(llvm::StringRef type) {
    operands.push_back(type.str());
    return "%x" + std::to_string(operands.size() - 1);
  }

  /// The op is what stands between the results and the types.
  std::string finish(const std::string &op) const {
    std::string text = "func.func @f(", values;
    for (auto [i, type] : llvm::enumerate(operands))
      text += (i ? ", %x" : "%x") + std::to_string(i) + ": " + type;
    for (size_t i = 0; i < results.size(); ++i)
      values += (i ? ", %r#" : "%r#") + std::to_string(i);
    std::string types = llvm::join(results, ", ");
    return text + ") -> (" + types +
           ") {\n  %r:" + std::to_string(results.size()) + " = " + op + " : (" +
           llvm::join(operands, ", ") + ") -> (" + types + ")\n  return " +
           values + " : " + types + "\n}\n";
  }

  std::vector<std::string> operands, results;

private:
  Choices &choices;
};

/// A scan whose clauses go with one another, mostly.
class ScanText {
public:
  explicit ScanText(Choices &choices) : choices(choices), function(choices) {
    batch = choices.pick({"1", "2", "?"});
    heads = choices.pick({"1", "2", "?"});
    keyHeads = heads == "2" && choices.rarely(4) ? "1" : heads;
    tokens = choices.pick({"?", "5", "1", "0", "33", "100"});
    keySize = choices.pick({"8", "1", "3", "16", "?", "64"});
    valueSize = choices.pick({"4", "1", "8", "17", "?", "32"});
    element = choices.pick({"f32", "f32", "bf16", "f16", "f64"});
    gate = choices.rarely(4) ? choices.pick({"f32", "f64", "bf16"}) : element;
    sum = choices.rarely(8) || element == "f64" ? "f64" : "f32";
    update = choices.pick({"add", "add", "delta", "dplr", "oja"});
    isExclusive = choices.rarely(4);
    isPacked = batch == "1" && choices.rarely(4);
    isNormalized =
        choices.rarely(8) || (is("add") && !isExclusive && choices.rarely(3));
    hasInputGate = isNormalized && choices.rarely(3);
    map = choices.pick(
        {"", "identity", "elu1", "relu2", "exp", "region", "softmax_kernel"});
    if (hasInputGate && map == "exp")
      map = "";
  }

  std::string make() {
    std::string op = "linattn.scan " + addTokens(keyHeads, keySize) + ", " +
                     addTokens(keyHeads, keySize) + ", " +
                     addTokens(heads, valueSize) + addGates() + addRows();
    op += " update(" + update + ")";
    op += isExclusive ? " readout(exclusive)" : "";
    if (choices.rarely(8))
      op += choices.flag() ? " transition(before)" : " transition(after)";
    op += " into(" +
          function.add({batch, heads, tokens, valueSize}, element, true) + ")";
    std::string states = isPacked || hasRows ? "?" : batch;
    op += " init(" +
          function.add({states, heads, keySize, valueSize}, sum, true) + ")";
    if (isNormalized)
      op += " normalizer(" + function.add({states, heads, keySize}, sum, true) +
            ")";
    if (isNormalized && (hasInputGate || map == "exp"))
      op += " running_max(" + function.add({states, heads}, sum, true) + ")";
    return function.finish(op + makeAttributes());
  }

private:
  bool is(llvm::StringRef name) const { return update == name; }

  std::string addTokens(llvm::StringRef count, llvm::StringRef size) {
    return function.add({batch, count.str(), tokens, size.str()}, element);
  }

  /// A clause, mostly if it is `likely`.
  std::string clause(llvm::StringRef name, bool likely, const Shape &shape,
                     llvm::StringRef type) {
    if (likely == choices.rarely(120))
      return "";
    return (" " + name + "(" + function.add(shape, type) + ")").str();
  }

  std::string addGates() {
    Shape head = {batch, heads, tokens}, key = head, value = head;
    key.push_back(keySize);
    value.push_back(valueSize);
    Shape decay = choices.pick<Shape>({head, {heads}, key});
    if (hasInputGate && decay == key)
      decay = head;
    bool isDelta = is("delta"), isOja = is("oja");
    return clause("decay", choices.flag(), decay, gate) +
           clause("value_decay",
                  (isOja || (is("add") && !isNormalized)) && choices.rarely(5),
                  value, gate) +
           clause("beta", isDelta || isOja, head, gate) +
           clause("a", is("dplr"), key, gate) +
           clause("b", is("dplr"), key, gate) +
           clause("bonus", isExclusive && !isDelta && !isOja && choices.flag(),
                  {heads, keySize}, gate) +
           clause("erase", isDelta && choices.rarely(3), key, gate) +
           clause("write", isDelta && choices.rarely(3), value, gate) +
           clause("input_gate", hasInputGate, head, gate);
  }

  std::string addRows() {
    // One byte for both, so that older inputs mean what they did, mostly.
    uint8_t choice = choices.byte();
    hasRows = choice % 6 == 5;
    hasScale = choice / 6 % 4 == 3;
    return clause("mask", choices.rarely(5), {batch, tokens}, "i1") +
           clause("cu_seqlens", isPacked, {choices.flag() ? "?" : "3"},
                  choices.pick({"i32", "i64"})) +
           clause("state_indices", hasRows, {isPacked ? "?" : batch},
                  choices.pick({"i32", "i64"})) +
           (hasScale ? " scale(" + function.addScalar("f64") + ")" : "");
  }

  std::string makeAttributes() {
    std::vector<std::string> attributes;
    if (choices.rarely(4))
      attributes.push_back("reverse");
    if (choices.flag() && !hasScale)
      attributes.push_back(("scale = " +
                            choices.pick({"1.0", "0.0", "-0.5", "1.0e-320",
                                          "0x7FF8000000000000", "1.0e300"}) +
                            " : f64")
                               .str());
    if (isNormalized)
      attributes.push_back(
          ("normalize = #linattn.normalize<" +
           choices.pick({"eps = 1.0e-6", "floor = 1.0e-4", "abs_floor = 1.0",
                         "eps = 0.0, clamp = 2.0", "eps = -1.0",
                         "floor = 1.0, abs_floor = 1.0"}) +
           ">")
              .str());
    if (!map.empty())
      attributes.push_back("feature_map = #linattn.feature_map<" + map + ">");
    if (choices.rarely(3))
      attributes.push_back(makeConfig());
    std::string text =
        attributes.empty() ? "" : " {" + llvm::join(attributes, ", ") + "}";
    if (map == "region")
      text += " phi {\n  ^bb0(%a: f32):\n    %b = arith.mulf %a, %a : f32\n"
              "    linattn.yield %b : f32\n  }";
    return text;
  }

  std::string makeConfig() {
    std::string text = ("config = #linattn.config<form = " +
                        choices.pick({"auto", "token", "state_tile", "chunk",
                                      "segments", "quadratic"}))
                           .str();
    for (llvm::StringRef name :
         {"chunk", "rows", "cols", "block", "segment", "whole", "few"})
      if (choices.rarely(4))
        text += (", " + name + " = " +
                 choices.pick({"8", "16", "1", "3", "-1", "0", "1000",
                               "9223372036854775807"}))
                    .str();
    return text + ">";
  }

  Choices &choices;
  FunctionText function;
  std::string batch, heads, keyHeads, tokens, keySize, valueSize;
  std::string element, gate, sum, update, map;
  bool isExclusive, isPacked, isNormalized, hasInputGate, hasRows = false,
                                                          hasScale = false;
};

} // namespace

bool linattn::fuzz::runScan(llvm::StringRef input) {
  Choices choices(input);
  std::string text = ScanText(choices).make();
  return lowerText(text, choices);
}

//===----------------------------------------------------------------------===//
// ONNX
//===----------------------------------------------------------------------===//

static std::string makeOnnxAttributes(Choices &choices,
                                      llvm::StringRef queryHeads,
                                      llvm::StringRef heads, bool isConv) {
  auto odd = [&](llvm::StringRef value) -> llvm::StringRef {
    if (!choices.rarely(12))
      return value;
    return choices.pick({"0 : si64", "-1 : i64", "2.0 : f32", "\"2\"", "unit",
                         "4294967296 : i64", "1 : i1", "[1]", "3 : ui8",
                         "170141183460469231731687303715884105728 : i129"});
  };
  std::vector<std::string> list;
  auto add = [&](const char *name, llvm::StringRef value) {
    list.push_back((name + llvm::Twine(" = ") + value).str());
  };
  if (isConv) {
    if (choices.flag())
      add("activation",
          choices.pick({"\"silu\"", "\"swish\"", "\"none\"", "\"relu\"", "1"}));
  } else {
    add("q_num_heads", odd((queryHeads + " : si64").str()));
    add("kv_num_heads", odd((heads + " : si64").str()));
    if (choices.rarely(3))
      add("scale", choices.pick({"0.0 : f32", "1.0 : f32", "0x7FC00000 : f32",
                                 "1.0e-320 : f64", "1 : i64", "-2.0 : f64"}));
    if (choices.rarely(4))
      add("chunk_size", odd("16 : si64"));
  }
  if (choices.rarely(10))
    list.push_back(choices
                       .pick({"unknown = 1", "doc_string = 1",
                              "onnx_node_name = \"x\"", "a.b = 1"})
                       .str());
  if (choices.rarely(10))
    list.push_back(
        ("operandSegmentSizes = " +
         choices.pick({"array<i32: 1, 1, 1>", "array<i32>", "1",
                       "array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0>",
                       "array<i32: 1, 1, 1, -1, 5>", "array<i64: 1, 1>"}))
            .str());
  return llvm::join(list, ", ");
}

static std::string makeLinearAttention(Choices &choices) {
  FunctionText function(choices);
  std::string batch = choices.pick({"1", "2", "?"}).str(),
              tokens = choices.pick({"5", "?", "0"}).str();
  unsigned queryHeads = choices.pick({2, 4, 1}), heads = choices.pick({2, 1}),
           keySize = choices.pick({8, 1, 3}), valueSize = choices.pick({4, 1});
  llvm::StringRef element = choices.pick({"f32", "f16", "bf16", "f64", "i32"});
  auto packed = [&](unsigned size) {
    return function.add({batch, tokens, std::to_string(size)}, element);
  };
  std::string h = std::to_string(heads), k = std::to_string(keySize),
              v = std::to_string(valueSize);
  llvm::StringRef rule =
      choices.pick({"linear", "gated", "delta", "gated_delta", "other", ""});
  std::string op = "\"onnx.LinearAttention\"(" + packed(queryHeads * keySize) +
                   ", " + packed(heads * keySize) + ", " +
                   packed(heads * valueSize);
  if (rule != "linear" || choices.flag())
    op += ", " +
          function.add({batch, h, k, v}, choices.rarely(4) ? "f64" : "f32");
  if (rule != "linear" || choices.rarely(4))
    op += ", " + packed(choices.flag() ? heads : heads * keySize);
  if (rule.contains("delta") || choices.rarely(6))
    op += ", " + packed(choices.flag() ? heads : 1);
  if (choices.rarely(8))
    op += ", " + packed(heads * keySize);
  op += ") {" + makeOnnxAttributes(choices, std::to_string(queryHeads), h,
                                   /*isConv=*/false);
  if (!rule.empty())
    op += ", update_rule = \"" + rule.str() + "\"";
  function.results = {"tensor<" + batch + "x" + tokens + "x" +
                      std::to_string(std::max(queryHeads, heads) * valueSize) +
                      "x" + element.str() + ">"};
  if (choices.flag())
    function.results.push_back("tensor<" + batch + "x" + h + "x" + k + "x" + v +
                               "x" + element.str() + ">");
  return function.finish(op + "}");
}

static std::string makeCausalConv(Choices &choices) {
  FunctionText function(choices);
  std::string batch = choices.pick({"1", "2", "?"}).str(),
              tokens = choices.pick({"5", "?", "0"}).str(),
              channels = choices.pick({"6", "1"}).str();
  unsigned width = choices.pick({4, 1, 2});
  llvm::StringRef element = choices.pick({"f32", "f16", "bf16", "f64", "i32"});
  std::string op =
      "\"onnx.CausalConvWithState\"(" +
      function.add({batch, channels, tokens}, element) + ", " +
      function.add({channels, "1", std::to_string(width)}, element);
  if (choices.flag())
    op += ", " + function.add({channels}, element);
  Shape state = {batch, channels, std::to_string(width - 1)};
  if (choices.flag())
    op += ", " + function.add(state, element);
  function.results = {"tensor<" + batch + "x" + channels + "x" + tokens + "x" +
                          element.str() + ">",
                      "tensor<" + llvm::join(state, "x") + "x" + element.str() +
                          ">"};
  return function.finish(op + ") {" +
                         makeOnnxAttributes(choices, "1", "1",
                                            /*isConv=*/true) +
                         "}");
}

bool linattn::fuzz::runOnnx(llvm::StringRef input) {
  Choices choices(input);
  std::string text = choices.rarely(3) ? makeCausalConv(choices)
                                       : makeLinearAttention(choices);
  return lowerText(text, choices);
}
