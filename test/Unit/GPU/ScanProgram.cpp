//===- ScanProgram.cpp - A scan as a function with operands ---------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScanProgram.h"
#include "llvm/Support/FormatVariadic.h"

using namespace linattn;
using namespace linattn::test;
using reference::Array;

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

NamedBuffer &ScanProgram::add(std::string name, DType dtype,
                              std::vector<int64_t> shape, bool tokens) {
  NamedBuffer buffer{
      name, dtype, shape, std::vector<int64_t>(shape.size(), 1), {}};
  // Row-major, or with tokens before heads.
  std::vector<size_t> order;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    order.push_back(dim);
  if (tokens && scan.tokensFirst)
    std::swap(order[1], order[2]);
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    buffer.strides[order[i]] = stride;
    stride *= shape[order[i]];
  }
  buffer.data.resize(buffer.bytes());
  buffers.push_back(std::move(buffer));
  return buffers.back();
}

/// Standard normal numbers times `scale`, or minus their magnitudes.
void ScanProgram::fill(NamedBuffer &buffer, double scale, bool negative) {
  std::vector<double> numbers(buffer.count());
  fillRandom(DType::F64, numbers.data(), numbers.size(), scan.seed,
             /*stream=*/buffers.size());
  Array array(buffer.shape);
  for (size_t i = 0; i < numbers.size(); ++i)
    array.data[i] =
        negative ? -scale * std::abs(numbers[i]) : scale * numbers[i];
  buffer.set(array);
}

void ScanProgram::addGates() {
  std::vector<int64_t> perToken{scan.batch, heads, scan.tokens};
  auto withLast = [&](int64_t size) {
    std::vector<int64_t> shape = perToken;
    shape.push_back(size);
    return shape;
  };
  auto gate = [&](std::string name, std::vector<int64_t> shape, double scale,
                  bool negative) {
    fill(add(name, scan.gates, shape, shape.size() > 2), scale, negative);
  };
  double decayScale = 0.1 * scan.decayScale;
  if (scan.decay == ScanCase::Head)
    gate("decay", {heads}, decayScale, true);
  else if (scan.decay == ScanCase::Token)
    gate("decay", perToken, decayScale, true);
  else if (scan.decay == ScanCase::Channel)
    gate("decay", withLast(scan.keySize), decayScale, true);
  if (scan.valueDecay)
    gate("value_decay", withLast(scan.valueSize), 0.1, true);
  if (scan.update == UpdateRule::Delta && scan.beta)
    gate("beta", scan.columnBeta ? withLast(scan.valueSize) : perToken, 0.5,
         false);
  // A transition that grows would be ill-conditioned.
  if (scan.update == UpdateRule::Dplr)
    for (const char *name : {"a", "b"})
      gate(name, withLast(scan.keySize), 0.5 / std::sqrt(scan.keySize), false);
  if (scan.bonus)
    gate("bonus", {heads, scan.keySize}, 1, false);
  if (scan.erase)
    gate("erase", withLast(scan.keySize), 0.5, false);
  if (scan.write)
    gate("write", withLast(scan.valueSize), 1, false);
}

/// Masked tokens hold NaN.
void ScanProgram::addMask() {
  NamedBuffer &mask =
      add("mask", DType::I1, {scan.batch, scan.tokens}, /*tokens=*/false);
  auto isWritten = [](int64_t number) { return number % 3 != 0; };
  for (int64_t i = 0; i < mask.count(); ++i)
    storeElement(DType::I1, mask.data.data(), i, isWritten(i));
  for (const char *name :
       {"key", "value", "beta", "a", "b", "erase", "write"}) {
    NamedBuffer *buffer = find(name);
    if (!buffer)
      continue;
    Array array = buffer->toArray();
    int64_t rows = array.dim(0) * array.dim(1) * array.dim(2);
    int64_t width = rows ? array.data.size() / rows : 0;
    for (int64_t i = 0; i < rows; ++i) {
      int64_t sequence = i / (array.dim(1) * array.dim(2));
      if (!isWritten(sequence * scan.tokens + i % array.dim(2)))
        std::fill_n(&array.data[i * width], width,
                    std::numeric_limits<double>::quiet_NaN());
    }
    buffer->set(array);
  }
}

ScanProgram::ScanProgram(const ScanCase &scan)
    : scan(scan), heads(std::max(scan.keyHeads, scan.valueHeads)),
      outputHeads(std::max(heads, scan.queryHeads)),
      states(scan.offsets.empty() ? scan.batch : scan.offsets.size() - 1) {
  auto tokens = [&](int64_t heads, int64_t size) {
    return std::vector<int64_t>{scan.batch, heads, scan.tokens, size};
  };
  // Keys of about unit length keep rank-1 updates stable.
  double keyScale =
      scan.update == UpdateRule::Add ? 1 : 1 / std::sqrt(scan.keySize);
  fill(add("query", scan.dtype, tokens(scan.queryHeads, scan.keySize), true), 1,
       false);
  fill(add("key", scan.dtype, tokens(scan.keyHeads, scan.keySize), true),
       keyScale, false);
  fill(add("value", scan.dtype, tokens(scan.valueHeads, scan.valueSize), true),
       1, false);
  addGates();
  if (scan.mask)
    addMask();
  if (!scan.offsets.empty()) {
    NamedBuffer &buffer = add("cu_seqlens", DType::I32, {states + 1}, false);
    for (int64_t i = 0; i <= states; ++i)
      storeElement(DType::I32, buffer.data.data(), i, scan.offsets[i]);
  }
  int64_t poolRows = states;
  if (scan.pool) {
    NamedBuffer &buffer = add("state_indices", DType::I32, {states}, false);
    poolRows = states + 2;
    for (int64_t i = 0; i < states; ++i) {
      rows.push_back(i == 1 ? -1 : poolRows - 1 - i);
      storeElement(DType::I32, buffer.data.data(), i, rows[i]);
    }
  }
  std::vector<int64_t> stateShape{poolRows, heads, scan.keySize,
                                  scan.valueSize};
  initialState = Array(stateShape);
  initialZ = Array({poolRows, heads, scan.keySize});
  if (scan.initial != ScanCase::Zero) {
    NamedBuffer &state = add("state", DType::F32, stateShape, false);
    fill(state, 1, false);
    initialState = state.toArray();
    if (scan.normalize) {
      NamedBuffer &z = add("z", DType::F32, initialZ.shape, false);
      fill(z, 1, false);
      for (int64_t i = 0; i < z.count(); ++i)
        storeElement(DType::F32, z.data.data(), i,
                     5 + std::abs(loadElement(DType::F32, z.data.data(), i)));
      initialZ = z.toArray();
    }
  }
  add("o", scan.dtype, tokens(outputHeads, scan.valueSize), true);
  add("final", DType::F32, stateShape, false);
  if (scan.normalize)
    add("final_z", DType::F32, initialZ.shape, false);
}

//===----------------------------------------------------------------------===//
// The module
//===----------------------------------------------------------------------===//

std::string ScanProgram::text() const {
  std::string arguments, clauses, types, body;
  auto isResult = [](const NamedBuffer &buffer) {
    return buffer.name == "o" || buffer.name.substr(0, 5) == "final";
  };
  std::string resultTypes, output, state, z;
  for (const NamedBuffer &buffer : buffers) {
    std::string type = buffer.type(isDynamic(buffer));
    if (buffer.name == "o")
      output = type;
    if (isResult(buffer)) {
      resultTypes += (resultTypes.empty() ? "" : ", ") + type;
      continue;
    }
    arguments += (arguments.empty() ? "%" : ", %") + buffer.name + ": " + type;
    if (buffer.name == "state" || buffer.name == "z")
      continue;
    types += type + ", ";
    if (buffer.name != "query" && buffer.name != "key" &&
        buffer.name != "value")
      clauses += " " + buffer.name + "(%" + buffer.name + ")";
  }
  for (const NamedBuffer &buffer : buffers) {
    std::string type = buffer.type(false);
    if (buffer.name == "final")
      state = type;
    if (buffer.name == "final_z")
      z = type;
  }
  if (scan.initial == ScanCase::Zero)
    for (auto [name, type] : {std::pair("state", state), std::pair("z", z)})
      if (!type.empty())
        body += llvm::formatv(
                    "  %{0}_e = tensor.empty() : {1}\n"
                    "  %{0} = linalg.fill ins(%zero : f32) outs(%{0}_e : {1}) "
                    "-> {1}\n",
                    name, type)
                    .str();
  const char *updates[] = {"add", "delta", "dplr", "oja"};
  clauses += std::string(" update(") + updates[int(scan.update)] + ")";
  if (scan.readout == Readout::Exclusive)
    clauses += " readout(exclusive)";
  if (scan.update == UpdateRule::Dplr && scan.readsBefore)
    clauses += " transition(before)";
  std::string attributes = "scale = 0.125 : f64";
  if (scan.reverse)
    attributes += ", reverse";
  if (scan.normalize)
    attributes += ", normalize = #linattn.normalize<eps = 1.0e-6>";
  const char *maps[] = {"identity", "relu", "relu2", "elu1"};
  attributes += std::string(", feature_map = #linattn.feature_map<") +
                maps[int(scan.featureMap)] + ">";
  types += output + ", " + state + (z.empty() ? "" : ", " + z);
  return llvm::formatv(
             "func.func @layer({0}) -> ({1}) {{\n"
             "  %c2 = arith.constant 2 : index\n"
             "  %zero = arith.constant 0.0 : f32\n"
             "  %t = tensor.dim %query, %c2 : {2}\n"
             "  %e = tensor.empty({11}) : {3}\n{4}"
             "  %r:{5} = linattn.scan %query, %key, %value{6} into(%e) "
             "init(%state){7} {{{8}} : ({9}) -> ({1})\n"
             "  return {10} : {1}\n}\n",
             arguments, resultTypes, buffers[0].type(isDynamic(buffers[0])),
             output, body, z.empty() ? 2 : 3, clauses,
             z.empty() ? "" : " normalizer(%z)", attributes, types,
             z.empty() ? "%r#0, %r#1" : "%r#0, %r#1, %r#2",
             isDynamic(buffers[0]) ? "%t" : "")
      .str();
}

std::string linattn::test::toText(const ScanCase &scan) {
  return ScanProgram(scan).text();
}
