//===- ScanCases.cpp - Scans as text and as numbers -----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Cases.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace linattn;
using namespace linattn::test;
using reference::UpdateRule;

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// Scales every row to unit length: a delta rule with longer keys diverges.
static void normalizeRows(Array &array) {
  int64_t size = array.shape.back();
  for (size_t start = 0; start < array.data.size(); start += size) {
    double sum = 0;
    for (int64_t d = 0; d < size; ++d)
      sum += array.data[start + d] * array.data[start + d];
    for (int64_t d = 0; d < size; ++d)
      array.data[start + d] /= std::sqrt(sum);
  }
}

/// The gates, in the order in which the op takes them.
void ScanCase::addGates(std::vector<Operand> &operands, uint64_t seed) const {
  int64_t heads = stateHeads(), count = tokenCount;
  auto add = [&](const char *name, std::vector<int64_t> shape, double low,
                 double high) -> Array & {
    int64_t tokenDim = shape.size() >= 3 ? 2 : -1;
    operands.push_back({name, dtype,
                        randomArray(std::move(shape), seed++, low, high),
                        tokenDim});
    return operands.back().array;
  };
  std::vector<int64_t> keyShape{batch, heads, count, keySize};
  std::vector<int64_t> valueShape{batch, heads, count, valueSize};
  if (decay == Decay::Head)
    add("decay", {heads}, -0.5, 0);
  if (decay == Decay::Token)
    add("decay", {batch, heads, count}, -0.5, 0);
  if (decay == Decay::Channel)
    add("decay", keyShape, -0.5, 0);
  if (hasValueDecay)
    add("value_decay", valueShape, -0.5, 0);
  if (betaRank == 3)
    add("beta", {batch, heads, count}, 0, 1);
  if (betaRank == 4)
    add("beta", valueShape, 0, 1);
  if (update == UpdateRule::Dplr) {
    normalizeRows(add("a", keyShape, -1, 1));
    normalizeRows(add("b", keyShape, -1, 1));
  }
  if (hasBonus)
    add("bonus", {heads, keySize}, -1, 1);
  if (hasErase)
    add("erase", keyShape, 0, 1);
  if (hasWrite)
    add("write", valueShape, 0, 1);
  if (hasInputGate)
    add("input_gate", {batch, heads, count}, -4, 4);
}

/// Padding may hold anything, NaN where the mask is false, but for the query,
/// which reads, and the decay.
void ScanCase::poison(std::vector<Operand> &operands, const Array &mask) {
  for (Operand &operand : operands) {
    llvm::StringRef name = operand.name;
    if (operand.tokenDim < 0 || name == "q" || name.ends_with("decay"))
      continue;
    Array &array = operand.array;
    int64_t size = array.rank() == 4 ? array.dim(3) : 1;
    for (int64_t i = 0, rows = array.data.size() / size; i < rows; ++i) {
      int64_t t = i % array.dim(2), b = i / array.dim(2) / array.dim(1);
      if (mask.at({b, t}) == 0)
        std::fill_n(array.data.begin() + i * size, size, NAN);
    }
  }
}

std::vector<ScanCase::Operand> ScanCase::makeOperands(uint64_t seed) const {
  seed *= 32;
  std::vector<Operand> operands;
  auto tokens = [&](int64_t heads, int64_t size, uint64_t part) {
    return randomArray({batch, heads, tokenCount, size}, seed + part, low,
                       high);
  };
  operands.push_back({"q", dtype, tokens(queryHeads, keySize, 0), 2});
  operands.push_back({"k", dtype, tokens(keyHeads, keySize, 1), 2});
  operands.push_back({"v", dtype, tokens(valueHeads, valueSize, 2), 2});
  if (update != UpdateRule::Add)
    normalizeRows(operands[1].array);
  if (update == UpdateRule::Oja)
    normalizeRows(operands[2].array);
  addGates(operands, seed + 3);
  if (hasMask) {
    Array mask = randomMask({batch, tokenCount}, seed + 20);
    poison(operands, mask);
    operands.push_back({"mask", DType::I1, mask, 1});
  }
  if (!offsets.empty())
    operands.push_back(
        {"cu_seqlens", DType::I32,
         Array({static_cast<int64_t>(offsets.size())},
               std::vector<double>(offsets.begin(), offsets.end())),
         -1});
  if (region == Region::Captured)
    operands.push_back({"c", accumulation(), Array({}, 0.75), -1});

  int64_t states = stateBatch(), heads = stateHeads();
  Array state({states, heads, keySize, valueSize}), z({states, heads, keySize});
  double lowest = -std::numeric_limits<double>::infinity();
  Array m({states, heads}, lowest);
  if (!startsEmpty) {
    state = randomArray(state.shape, seed + 21);
    z = randomArray(z.shape, seed + 22, 0.5, 1);
    m = randomArray(m.shape, seed + 23);
  }
  operands.push_back({"S", accumulation(), state, -1});
  if (normalize)
    operands.push_back({"z", accumulation(), z, -1});
  if (carriesMax())
    operands.push_back({"m", accumulation(), m, -1});
  return operands;
}

std::vector<Buffer> ScanCase::getInputs(uint64_t seed) const {
  std::vector<Buffer> inputs;
  for (const Operand &operand : makeOperands(seed)) {
    bool plain = operand.array.rank() == 0 || operand.name == "cu_seqlens";
    inputs.emplace_back(operand.dtype, operand.array,
                        plain ? Layout::Contiguous : layout);
  }
  return inputs;
}

std::vector<std::string> ScanCase::getNames() const {
  std::vector<std::string> names;
  for (const Operand &operand : makeOperands(0))
    names.push_back(operand.name);
  return names;
}

size_t ScanCase::find(llvm::StringRef name) const {
  std::vector<std::string> names = getNames();
  size_t position = llvm::find(names, name) - names.begin();
  EXPECT_LT(position, names.size()) << name.str();
  return position;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

std::string ScanCase::getText() const {
  std::vector<std::string> arguments, types, stateTypes;
  std::string clauses, states;
  for (const Operand &operand : makeOperands(0)) {
    std::string type = operand.array.rank() == 0
                           ? std::string(linattn::getName(operand.dtype))
                           : getTensorType(operand.dtype, operand.array.shape,
                                           extents, operand.tokenDim);
    arguments.push_back("%" + operand.name + ": " + type);
    if (operand.name == "c")
      continue;
    if (operand.name == "S" || operand.name == "z" || operand.name == "m") {
      stateTypes.push_back(type);
      const char *clause = operand.name == "S"   ? "init"
                           : operand.name == "z" ? "normalizer"
                                                 : "running_max";
      states += llvm::formatv(" {0}(%{1})", clause, operand.name).str();
      continue;
    }
    types.push_back(type);
    if (types.size() > 3)
      clauses += llvm::formatv(" {0}(%{0})", operand.name).str();
  }
  if (update == UpdateRule::Delta)
    clauses += " update(delta)";
  if (update == UpdateRule::Dplr)
    clauses += " update(dplr)";
  if (update == UpdateRule::Oja)
    clauses += " update(oja)";
  if (isExclusive)
    clauses += " readout(exclusive)";
  if (transition == reference::Transition::Before)
    clauses += " transition(before)";

  std::string out = getTensorType(
      dtype, {batch, outputHeads(), tokenCount, valueSize}, extents, 2);
  std::string sizes;
  if (extents == Extents::DynamicTokens)
    sizes = "%t";
  if (extents == Extents::Dynamic)
    sizes = "%batches, %h, %t, %e";
  types.push_back(out);
  types.insert(types.end(), stateTypes.begin(), stateTypes.end());
  std::string results = llvm::join(
      llvm::ArrayRef<std::string>(types).take_back(1 + stateTypes.size()),
      ", ");
  std::string names;
  for (size_t i = 0; i <= stateTypes.size(); ++i)
    names += llvm::formatv("{0}%r#{1}", i ? ", " : "", i).str();
  return llvm::formatv(
             "func.func @scan({0}) -> ({1}) {{\n"
             "  %c0 = arith.constant 0 : index\n"
             "  %c2 = arith.constant 2 : index\n"
             "  %c3 = arith.constant 3 : index\n"
             "  %batches = tensor.dim %q, %c0 : {2}\n"
             "  %t = tensor.dim %q, %c2 : {2}\n"
             "  %e = tensor.dim %v, %c3 : {3}\n"
             "  %h = arith.constant {4} : index\n"
             "  %into = tensor.empty({5}) : {6}\n"
             "  %r:{7} = linattn.scan %q, %k, %v{8} into(%into){9}{10} : "
             "({11}) -> ({1})\n"
             "  return {12} : {1}\n}\n",
             llvm::join(arguments, ", "), results, types[0], types[2],
             outputHeads(), sizes, out, stateTypes.size() + 1, clauses, states,
             getAttributes(isReverse ? "reverse" : ""), llvm::join(types, ", "),
             names)
      .str();
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

namespace {
/// The operands of one call of the oracle.
struct OracleCall {
  reference::ScanOperands operands;
  reference::ScanOptions options;
  reference::State state;
};
} // namespace

static void setOperand(OracleCall &call, const std::string &name, Array array) {
  reference::ScanOperands &x = call.operands;
  std::pair<const char *, std::optional<Array> *> optional[] = {
      {"decay", &x.decay},  {"value_decay", &x.valueDecay},
      {"beta", &x.beta},    {"a", &x.a},
      {"b", &x.b},          {"bonus", &x.bonus},
      {"erase", &x.erase},  {"write", &x.write},
      {"mask", &x.mask},    {"input_gate", &x.inputGate},
      {"z", &call.state.z}, {"m", &call.state.m}};
  std::pair<const char *, Array *> required[] = {
      {"q", &x.q}, {"k", &x.k}, {"v", &x.v}, {"S", &call.state.S}};
  for (auto [key, target] : optional)
    if (name == key)
      *target = array;
  for (auto [key, target] : required)
    if (name == key)
      *target = array;
}

/// Puts `part`, some tokens or states, to its place along a dimension.
static void append(Array &whole, const Array &part, int64_t axis) {
  if (whole.shape.empty()) {
    whole = part;
    return;
  }
  Array sum(whole.shape);
  sum.shape[axis] += part.shape[axis];
  sum.data.clear();
  int64_t outer = 1, inner = 1;
  for (int64_t i = 0; i < axis; ++i)
    outer *= whole.shape[i];
  for (int64_t i = axis + 1; i < whole.rank(); ++i)
    inner *= whole.shape[i];
  auto copy = [&](const Array &from, int64_t i) {
    int64_t count = from.shape[axis] * inner;
    sum.data.insert(sum.data.end(), from.data.begin() + i * count,
                    from.data.begin() + (i + 1) * count);
  };
  for (int64_t i = 0; i < outer; ++i) {
    copy(whole, i);
    copy(part, i);
  }
  whole = std::move(sum);
}

std::vector<Array>
ScanCase::getExpected(const std::vector<Buffer> &inputs) const {
  std::vector<Operand> operands = makeOperands(0);
  std::vector<Array> expected(2 + normalize.has_value() + carriesMax());
  bool packed = !offsets.empty();
  for (int64_t n = 0; n < (packed ? stateBatch() : 1); ++n) {
    OracleCall call;
    call.options.update = update;
    if (isExclusive)
      call.options.readout = reference::Readout::Exclusive;
    if (update == UpdateRule::Dplr)
      call.options.transition = transition;
    call.options.featureMap = getMap();
    call.options.normalize = normalize;
    call.options.scale = scale.value_or(1.0);
    call.options.reverse = isReverse;
    for (size_t i = 0; i < operands.size(); ++i) {
      Array array = inputs[i].toArray();
      const std::string &name = operands[i].name;
      if (packed && operands[i].tokenDim >= 0)
        array = sliceTokens(array, offsets[n], offsets[n + 1],
                            operands[i].tokenDim);
      if (packed && (name == "S" || name == "z" || name == "m"))
        array = sliceTokens(array, n, n + 1, 0);
      setOperand(call, name, std::move(array));
    }
    reference::ScanResult result =
        take(reference::scan(call.operands, call.options, call.state));
    append(expected[0], result.o, 2);
    append(expected[1], result.state.S, 0);
    if (normalize)
      append(expected[2], *result.state.z, 0);
    if (carriesMax())
      append(expected[3], *result.state.m, 0);
  }
  return expected;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

void linattn::test::checkScan(ScanCase c, llvm::ArrayRef<int64_t> lengths) {
  if (!isDrawn())
    return;
  SCOPED_TRACE(c.name);
  std::optional<Kernel> kernel = compile(c.getText(), c.compiler);
  if (!kernel)
    return;
  auto checkOnce = [&] {
    SCOPED_TRACE(std::to_string(c.tokenCount) + " tokens");
    std::vector<Buffer> inputs = c.getInputs();
    std::vector<Buffer> outputs = run(*kernel, inputs, c.layout);
    if (outputs.empty())
      return;
    std::vector<Array> expected = c.getExpected(inputs);
    ASSERT_EQ(outputs.size(), expected.size());
    const char *names[] = {"output", "state", "normalizer", "running maximum"};
    for (size_t i = 0; i < outputs.size(); ++i)
      expectClose(outputs[i], expected[i], names[i], c.tolerance);
  };
  if (lengths.empty())
    return checkOnce();
  for (int64_t length : lengths) {
    c.tokens(length);
    checkOnce();
  }
}

void linattn::test::checkScans(llvm::ArrayRef<ScanCase> cases,
                               llvm::ArrayRef<int64_t> lengths) {
  for (const ScanCase &c : cases)
    checkScan(c, lengths);
}
