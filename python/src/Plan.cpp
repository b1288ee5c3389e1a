//===- Plan.cpp - The fast way to a compiled kernel -----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Python's part of a call is one dictionary lookup for the plan; everything
// that depends on the arrays happens here, in a few microseconds.
//
//===----------------------------------------------------------------------===//

#include "Plan.h"
#include "Bindings.h"
#include "KernelObject.h"

namespace nb = nanobind;
using namespace linattn;
using namespace linattn::python;
using namespace nb::literals;

/// More than any op has: 3 token arrays, 10 others, 3 of the state.
static constexpr size_t kMaxOperands = 16;

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// In a key: any extent.
static constexpr int64_t kAny = -1;
/// dtype, K, V, tokens of the queries and of the keys, Hq, Hk, Hv.
static constexpr size_t kNumSizes = 8;

llvm::SmallVector<int64_t, 8> Plan::makeKey(const Sizes &sizes) const {
  auto dtype = static_cast<int64_t>(sizes.dtype);
  // One token is decoding, where every microsecond counts. Its keys are one
  // too, unless they are a cache.
  int64_t tokens = hasQuery ? sizes.queries : sizes.keys;
  bool single = tokens == 1;
  bool singleKey = single && (sameLength || !hasQuery);
  if (!single && !fixesHeads)
    return {dtype, sizes.keySize, sizes.valueSize, kAny, kAny, kAny,
            kAny,  kAny};
  return {dtype,
          sizes.keySize,
          sizes.valueSize,
          single ? 1 : kAny,
          singleKey ? 1 : kAny,
          sizes.queryHeads,
          hasKeys ? sizes.keyHeads : sizes.stateHeads,
          hasKeys ? sizes.valueHeads : sizes.stateHeads};
}

const Kernel &Plan::getKernel(llvm::ArrayRef<int64_t> key) {
  for (const auto &entry : entries)
    if (llvm::ArrayRef<int64_t>(entry->key) == key)
      return entry->kernel;
  auto getDTypeName = [&](size_t index) {
    return std::string(getName(static_cast<DType>(key[index])));
  };
  nb::list sizes, extra;
  sizes.append(getDTypeName(0));
  for (size_t i = 1; i < kNumSizes; ++i)
    sizes.append(key[i] == kAny ? nb::none() : nb::object(nb::int_(key[i])));
  for (size_t i = kNumSizes; i < key.size(); i += 2)
    extra.append(nb::make_tuple(key[i], getDTypeName(i + 1)));
  Kernel kernel = nb::cast<Kernel>(build(sizes, extra));
  entries.push_back(std::make_unique<Entry>(
      Entry{llvm::SmallVector<int64_t, 8>(key.begin(), key.end()), kernel}));
  return entries.back()->kernel;
}

namespace {

/// The arrays of one call.
class PlanCall {
public:
  explicit PlanCall(Plan &plan) : plan(plan) {}

  void importTokens(nb::handle q, nb::handle k, nb::handle v, nb::handle S);
  void importOperands(nb::handle extra);
  void importState(nb::handle S, nb::handle z, nb::handle m);
  void makeOutput(nb::handle out);
  void makeState(nb::handle stateOut);
  void run(int32_t numThreads);
  nb::object finish();

private:
  const BufferView &import(nb::handle object, const char *name) {
    ImportedArray &array = imported[numImported++].emplace();
    array.import(object, name);
    return array.view;
  }

  llvm::SmallVector<int64_t, 4> stateShape(size_t part) const {
    llvm::SmallVector<int64_t, 4> shape = {sizes.states, sizes.stateHeads,
                                           sizes.keySize, sizes.valueSize};
    shape.truncate(4 - part);
    return shape;
  }
  size_t numStateParts() const {
    return plan.stabilized ? 3 : plan.normalized ? 2 : 1;
  }

  Plan &plan;
  Sizes sizes;
  std::array<std::optional<ImportedArray>, kMaxOperands> imported;
  size_t numImported = 0;
  llvm::SmallVector<BufferView, 8> inputs;
  llvm::SmallVector<int64_t, 8> key;
  nb::handle like;
  ArrayKind kind = ArrayKind::NumPy;
  ResultArray output;
  std::array<ResultArray, 3> state;
};

} // namespace

void PlanCall::importTokens(nb::handle q, nb::handle k, nb::handle v,
                            nb::handle S) {
  const BufferView *query = nullptr, *keys = nullptr, *values = nullptr;
  if (plan.hasQuery)
    query = &import(q, "q");
  if (plan.hasKeys) {
    keys = &import(k, "k");
    values = &import(v, "v");
  }
  like = plan.hasQuery ? q : k;
  kind = imported[0]->kind;
  // A read takes the heads and the value size from the state.
  const BufferView *given = keys ? nullptr : &import(S, kStateNames[0]);
  inferSizes(query, keys, values, given, plan.sameLength, sizes);
  for (const BufferView *tokens : {query, keys, values})
    if (tokens)
      inputs.push_back(toLogicalTokens(*tokens));
  key = plan.makeKey(sizes);
}

void PlanCall::importOperands(nb::handle extra) {
  if (plan.operands.empty())
    return;
  size_t index = 0;
  for (const OperandSpec &spec : plan.operands) {
    nb::object object = nb::borrow(
        PyTuple_GetItem(extra.ptr(), static_cast<Py_ssize_t>(index++)));
    const BufferView &view = import(object, spec.name.c_str());
    if (spec.kind == OperandKind::Offsets)
      sizes.states = checkOffsets(view, sizes);
    inputs.push_back(toLogicalOperand(spec, view, sizes));
    key.push_back(inputs.back().getRank());
    key.push_back(static_cast<int64_t>(view.dtype));
  }
}

void PlanCall::importState(nb::handle S, nb::handle z, nb::handle m) {
  if (!plan.hasState)
    return;
  std::array<nb::handle, 3> parts = {S, z, m};
  for (size_t i = 0; i < numStateParts(); ++i) {
    const BufferView &view = import(parts[i], kStateNames[i]);
    checkArray(kStateNames[i], view, sizes.accumulator(), stateShape(i));
    // A read needs no running maximum: it cancels in the quotient.
    if (plan.hasKeys || i < 2)
      inputs.push_back(view);
  }
}

void PlanCall::makeOutput(nb::handle out) {
  if (!plan.hasQuery)
    return;
  llvm::SmallVector<int64_t, 4> shape;
  if (sizes.rank > 2)
    shape.push_back(sizes.batch);
  shape.push_back(sizes.queries);
  if (sizes.rank > 3)
    shape.push_back(sizes.outputHeads);
  else if (sizes.outputHeads != 1)
    throw nb::value_error(("S: expected one head beside tokens without heads, "
                           "but got " +
                           std::to_string(sizes.outputHeads))
                              .c_str());
  shape.push_back(sizes.valueSize);
  if (out.is_none()) {
    output.allocate(like, kind, sizes.dtype, shape);
    return;
  }
  output.adopt(out, "out");
  checkArray("out", output.view(), sizes.dtype, shape);
}

void PlanCall::makeState(nb::handle stateOut) {
  if (!plan.returnsState)
    return;
  for (size_t i = 0; i < numStateParts(); ++i) {
    if (stateOut.is_none()) {
      state[i].allocate(like, kind, sizes.accumulator(), stateShape(i));
      continue;
    }
    state[i].adopt(PyTuple_GetItem(stateOut.ptr(), static_cast<Py_ssize_t>(i)),
                   kStateNames[i]);
    checkArray(kStateNames[i], state[i].view(), sizes.accumulator(),
               stateShape(i));
  }
}

/// The compiler numbers arguments and results; users know them by name.
static std::string translateNames(std::string message) {
  auto replace = [&](const std::string &from, const std::string &to) {
    for (size_t at; (at = message.find(from)) != std::string::npos;)
      message.replace(at, from.size(), to);
  };
  replace("result 0", "out");
  for (size_t at; (at = message.find("argument ")) != std::string::npos;) {
    size_t open = message.find("(%", at), close = message.find(')', at);
    if (open == std::string::npos || close == std::string::npos)
      break;
    message.replace(at, close + 1 - at,
                    message.substr(open + 2, close - open - 2));
  }
  return message;
}

void PlanCall::run(int32_t numThreads) {
  llvm::SmallVector<BufferView, 4> outputs;
  if (plan.hasQuery)
    outputs.push_back(toLogicalTokens(output.view()));
  if (plan.returnsState)
    for (size_t i = 0; i < numStateParts(); ++i)
      outputs.push_back(state[i].view());
  const Kernel &kernel = plan.getKernel(key);
  // Nothing to compute, and no head to divide by.
  if (llvm::all_of(outputs, [](const BufferView &view) {
        return view.getNumElements() == 0;
      }))
    return;
  RunOptions options;
  options.numThreads = numThreads;
  std::string message;
  {
    nb::gil_scoped_release release;
    if (llvm::Error error = kernel.run(inputs, outputs, options))
      message = llvm::toString(std::move(error));
  }
  if (!message.empty())
    throw nb::value_error(translateNames(std::move(message)).c_str());
}

nb::object PlanCall::finish() {
  nb::object o = plan.hasQuery ? output.finish() : nb::none();
  if (!plan.returnsState)
    return o;
  std::array<nb::object, 3> parts = {nb::none(), nb::none(), nb::none()};
  for (size_t i = 0; i < numStateParts(); ++i)
    parts[i] = state[i].finish();
  return nb::make_tuple(o, parts[0], parts[1], parts[2]);
}

nb::object Plan::call(nb::handle q, nb::handle k, nb::handle v,
                      nb::handle extra, nb::handle S, nb::handle z,
                      nb::handle m, nb::handle out, nb::handle stateOut,
                      nb::handle numThreads) {
  PlanCall call(*this);
  int32_t threads = parseNumThreads(numThreads);
  call.importTokens(q, k, v, S);
  call.importOperands(extra);
  call.importState(S, z, m);
  call.makeOutput(out);
  call.makeState(stateOut);
  call.run(threads);
  return call.finish();
}

static OperandKind parseOperandKind(const std::string &kind) {
  if (kind == "key_gate")
    return OperandKind::KeyGate;
  if (kind == "value_gate")
    return OperandKind::ValueGate;
  if (kind == "bonus")
    return OperandKind::Bonus;
  return kind == "mask" ? OperandKind::Mask : OperandKind::Offsets;
}

void linattn::python::registerPlan(nb::module_ &module) {
  nb::class_<Plan>(module, "Plan",
                   "What one combination of options runs, with its kernels.")
      .def(
          "__init__",
          [](Plan *self, nb::object build, nb::list operands, bool hasQuery,
             bool hasKeys, bool sameLength, bool hasState, bool returnsState,
             bool normalized, bool stabilized, bool fixesHeads) {
            new (self) Plan();
            self->build = std::move(build);
            for (nb::handle operand : operands)
              self->operands.push_back(
                  {nb::cast<std::string>(operand[0]),
                   parseOperandKind(nb::cast<std::string>(operand[1]))});
            self->hasQuery = hasQuery;
            self->hasKeys = hasKeys;
            self->sameLength = sameLength;
            self->hasState = hasState;
            self->returnsState = returnsState;
            self->normalized = normalized;
            self->stabilized = stabilized;
            self->fixesHeads = fixesHeads;
          },
          "build"_a, "operands"_a, "has_query"_a, "has_keys"_a, "same_length"_a,
          "has_state"_a, "returns_state"_a, "normalized"_a, "stabilized"_a,
          "fixes_heads"_a)
      .def_ro("normalized", &Plan::normalized)
      .def_ro("stabilized", &Plan::stabilized)
      .def("__call__", &Plan::call, "q"_a.none(), "k"_a.none(), "v"_a.none(),
           "extra"_a.none(), "S"_a.none(), "z"_a.none(), "m"_a.none(),
           "out"_a.none(), "state_out"_a.none(), "num_threads"_a.none());
}
