//===- OnnxLinearAttention.cpp - The rules of ONNX's operator -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// The op is unregistered, so every rule of its specification is checked here.
// The numbers are those of the description of linattn-raise-onnx.
//===----------------------------------------------------------------------===//

#include "OnnxLinearAttention.h"
#include "linattn/Dialect/LinAttn.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace mlir;
using namespace mlir::linattn;

LogicalResult OnnxLinearAttention::readOperands() { // (N1)
  return readInputs(
      {&query, &key, &value, &pastState, &decay, &beta, &eraseGate},
      /*required=*/3);
}

FailureOr<int64_t> OnnxLinearAttention::readHeads(StringRef name) {
  Attribute attr = get(name);
  if (!attr)
    return op->emitOpError("expected ") << name << ", but got none";
  auto count = dyn_cast<IntegerAttr>(attr);
  if (!count)
    return fail(name + Twine(" to be an integer")) << attr;
  // ONNX counts with signed 64-bit integers; importers use either signedness.
  std::optional<int64_t> number = count.getValue().trySExtValue();
  if (!number)
    return fail(name + Twine(" to fit in 64 bits")) << attr;
  if (*number < 1)
    return fail(name + Twine(" to be positive")) << *number;
  return *number;
}

LogicalResult OnnxLinearAttention::readScale() {
  Attribute attr = get("scale");
  if (!attr)
    return success();
  auto number = dyn_cast<FloatAttr>(attr);
  if (!number)
    return fail("scale to be a number") << attr;
  scale = number.getValueAsDouble();
  Type accumulation = getAccumulationType(query.type().getElementType());
  if (!std::isfinite(scale) || !isUsableScale(scale, accumulation))
    return fail("scale to be 0 or a normal number") << attr;
  return success();
}

LogicalResult OnnxLinearAttention::readAttributes() {
  static constexpr StringRef known[] = {"q_num_heads", "kv_num_heads",
                                        "update_rule", "scale", "chunk_size"};
  for (NamedAttribute attr : op->getAttrDictionary()) { // (N10)
    if (mayHave(attr, known))
      continue;
    StringRef name = attr.getName();
    name.consume_front(prefix);
    return fail("attributes " + llvm::join(ArrayRef(known), ", "))
           << "'" << name << "'";
  }
  FailureOr<int64_t> ofQuery = readHeads("q_num_heads"); // (N3)
  if (failed(ofQuery))
    return failure();
  FailureOr<int64_t> ofKey = readHeads("kv_num_heads");
  if (failed(ofKey))
    return failure();
  queryHeads = *ofQuery;
  heads = *ofKey;
  if (queryHeads % heads != 0)
    return fail("q_num_heads to be a multiple of kv_num_heads")
           << queryHeads << " and " << heads;
  if (Attribute attr = get("update_rule")) { // (N5)
    auto name = dyn_cast<StringAttr>(attr);
    static constexpr StringRef rules[] = {"linear", "gated", "delta",
                                          "gated_delta"};
    if (!name || !llvm::is_contained(rules, name.getValue()))
      return fail("update_rule to be linear, gated, delta or gated_delta")
             << attr;
    rule = name.getValue();
  }
  if (Attribute attr = get("chunk_size"); attr && !isa<IntegerAttr>(attr))
    return fail("chunk_size to be an integer") << attr;
  return success();
}

LogicalResult OnnxLinearAttention::readPacked(OnnxInput input) { // (N2)
  if (input.type().getRank() != 3)
    return fail(input.name + Twine(" to be packed, [B, T, H·D]"))
           << input.type();
  Type element = query.type().getElementType();
  if (input.type().getElementType() != element)
    return op->emitOpError("expected ")
           << input.name << " to have the element type of query, " << element
           << ", but got " << input.type().getElementType();
  std::string of = (" of " + input.name).str();
  return success(
      succeeded(checkSize("batch size" + of, input.size(0), query.size(0))) &&
      succeeded(
          checkSize("sequence length" + of, input.size(1), query.size(1))));
}

LogicalResult OnnxLinearAttention::readHeadSize(OnnxInput input, int64_t count,
                                                StringRef countName,
                                                int64_t &size) { // (N4)
  int64_t packed = input.size(2);
  if (packed == kOpenSize)
    return success();
  if (packed % count != 0 || packed == 0)
    return op->emitOpError("expected the last size of ")
           << input.name << " to be a multiple of " << countName << ", "
           << count << ", but got " << packed;
  std::string what = ("size of a head of " + input.name).str();
  if (failed(checkSize(what, packed / count, size)))
    return failure();
  size = packed / count;
  return success();
}

LogicalResult OnnxLinearAttention::readTokens() {
  Type element = query.type().getElementType();
  if (!element.isF16() && !element.isBF16() && !element.isF32() &&
      !element.isF64())
    return fail("query to have the element type f16, bf16, f32 or f64")
           << element;
  for (OnnxInput input : {query, key, value})
    if (failed(readPacked(input)))
      return failure();
  return success(
      succeeded(readHeadSize(query, queryHeads, "q_num_heads", keySize)) &&
      succeeded(readHeadSize(key, heads, "kv_num_heads", keySize)) &&
      succeeded(readHeadSize(value, heads, "kv_num_heads", valueSize)));
}

LogicalResult OnnxLinearAttention::readGates() {
  struct Rule {
    OnnxInput gate;
    bool needed, allowed;
    StringRef rules;
  };
  for (const Rule &gate :
       {Rule{decay, isGated(), isGated(), "gated or gated_delta"},    // (N6)
        Rule{beta, isDelta(), isDelta(), "delta or gated_delta"},     // (N7)
        Rule{eraseGate, false, isDelta(), "delta or gated_delta"}}) { // (N8)
    if (gate.needed && !gate.gate)
      return op->emitOpError("expected ")
             << gate.gate.name << " with update_rule " << rule
             << ", but got none";
    if (gate.gate && !gate.allowed)
      return fail(gate.gate.name + Twine(" only with update_rule ") +
                  gate.rules)
             << rule;
    if (gate.gate && failed(readPacked(gate.gate)))
      return failure();
  }
  auto expectLast = [&](OnnxInput gate, bool fits, const Twine &expected) {
    if (gate && !fits)
      return LogicalResult(
          fail("the last size of " + gate.name + Twine(" to be ") + expected)
          << (gate.size(2) == kOpenSize ? "one that is not known"
                                        : std::to_string(gate.size(2))));
    return success();
  };
  if (decay && decay.size(2) != heads && decay.size(2) != kOpenSize &&
      keySize == kOpenSize && decay.size(2) % heads == 0)
    keySize = decay.size(2) / heads;
  int64_t channels = keySize == kOpenSize ? kOpenSize : heads * keySize;
  std::string ofHeads = "kv_num_heads, " + std::to_string(heads);
  std::string ofChannels =
      channels == kOpenSize ? "kv_num_heads·d_k"
                            : "kv_num_heads·d_k, " + std::to_string(channels);
  auto isKnown = [](OnnxInput gate, int64_t size) {
    return gate && size != kOpenSize && gate.size(2) == size;
  };
  return success(
      succeeded(expectLast(decay,
                           isKnown(decay, heads) || isKnown(decay, channels),
                           ofHeads + ", or " + ofChannels)) &&
      succeeded(expectLast(beta, isKnown(beta, heads) || isKnown(beta, 1),
                           ofHeads + ", or 1")) &&
      succeeded(expectLast(eraseGate,
                           eraseGate && (isKnown(eraseGate, channels) ||
                                         eraseGate.size(2) == kOpenSize),
                           ofChannels)));
}

LogicalResult OnnxLinearAttention::readState() { // (N9)
  if (pastState) {
    if (pastState.type().getRank() != 4)
      return fail("past_state to be [B, H_kv, d_k, d_v]") << pastState.type();
    if (!isa<FloatType>(pastState.type().getElementType()))
      return fail("past_state to have a floating-point element type")
             << pastState.type().getElementType();
    if (failed(checkSize("batch size of past_state", pastState.size(0),
                         query.size(0))) ||
        failed(checkSize("number of heads of past_state", pastState.size(1),
                         heads)) ||
        failed(
            checkSize("key size of past_state", pastState.size(2), keySize)) ||
        failed(checkSize("value size of past_state", pastState.size(3),
                         valueSize)))
      return failure();
    keySize = keySize == kOpenSize ? pastState.size(2) : keySize;
    valueSize = valueSize == kOpenSize ? pastState.size(3) : valueSize;
  }
  if (failed(readScale())) // (N10)
    return failure();
  if (scale != 0)
    return success();
  if (keySize == kOpenSize) // (N4)
    return op->emitOpError("expected scale, since it depends on the last size "
                           "of query, which is not known, but got none");
  scale = 1 / std::sqrt(static_cast<double>(keySize));
  return success();
}

LogicalResult OnnxLinearAttention::readResults() { // (N9)
  Type element = query.type().getElementType();
  auto product = [](int64_t count, int64_t size) {
    return size == kOpenSize ? kOpenSize : count * size;
  };
  SmallVector<RankedTensorType, 2> types = {
      RankedTensorType::get(
          {query.size(0), query.size(1), product(queryHeads, valueSize)},
          element),
      RankedTensorType::get({query.size(0), heads, keySize, valueSize},
                            pastState ? pastState.type().getElementType()
                                      : element)};
  for (auto [result, name, type] :
       llvm::zip_first(op->getResults(),
                       ArrayRef<StringRef>{"output", "present_state"}, types)) {
    if (isOnnxNone(result.getType()) && name == "present_state")
      continue;
    auto tensor = dyn_cast<RankedTensorType>(result.getType());
    if (!tensor || tensor.getElementType() != type.getElementType() ||
        failed(verifyCompatibleShape(tensor.getShape(), type.getShape())))
      return op->emitOpError("expected ")
             << name << " to be " << type << ", but got " << result.getType();
  }
  return success();
}
