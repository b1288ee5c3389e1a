//===- PlanCall.cpp - The arrays of one call ------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlanCall.h"
#include "Bindings.h"
#include "Interrupts.h"
#include "KernelObject.h"
#include "Libraries.h"
#include "linattn/Analysis/CostModel.h"
#include "linattn/CodeGen/CodeGen.h"
#include "linattn/Compiler/Compiler.h"

namespace nb = nanobind;
using namespace linattn;
using namespace linattn::python;

/// The item of a tuple; None stands for an empty one.
static nb::handle getItem(nb::handle tuple, size_t index) {
  return PyTuple_GetItem(tuple.ptr(), static_cast<Py_ssize_t>(index));
}

void PlanCall::import(llvm::ArrayRef<PyObject *> operands, nb::handle state) {
  if (operands.size() != plan.operands.size())
    throw nb::type_error(("expected " + std::to_string(plan.operands.size()) +
                          " operands, but got " +
                          std::to_string(operands.size()))
                             .c_str());
  like = operands.front();
  for (auto [operand, spec] : llvm::zip_equal(operands, plan.operands))
    import(operand, spec);
  kind = imported[0]->kind;
  if (plan.hasState)
    for (auto [index, spec] : llvm::enumerate(plan.state))
      import(getItem(state, index), spec);
  if (kind == ArrayKind::Torch && recordsForward())
    throw DispatchedTensor(plan.operands.front().name +
                           ": expected no gradients to be recorded forward, "
                           "since none are here");
  binder.isDevice = place.isDevice();
  if (plan.hasNumbers && place.isDevice())
    throw DispatchedTensor(plan.operands.front().name +
                           ": expected arrays in the memory of the CPU beside "
                           "a number, but got arrays in the memory of a GPU");
}

BufferView PlanCall::importNumber(nb::handle object, const OperandSpec &spec) {
  if (!PyFloat_Check(object.ptr()))
    throw nb::type_error(
        (spec.name + ": expected a number, but got " + describeType(object))
            .c_str());
  double &number = numbers[arrays.size()];
  number = PyFloat_AS_DOUBLE(object.ptr());
  const double *memory = &number;
  return BufferView(memory, DType::F64, {});
}

/// Checks numbers by the rules of attributes: 0, or normal in the type of sums.
void PlanCall::checkNumbers() const {
  for (auto [index, spec] : llvm::enumerate(plan.operands)) {
    if (spec.role != OperandRole::Number)
      continue;
    double number = numbers[index];
    DType type = binder.dtypeOf(spec);
    bool isNormal = type == DType::F64
                        ? std::isnormal(number)
                        : std::isnormal(static_cast<float>(number));
    if (number != 0 && !isNormal)
      throw nb::value_error((spec.name + ": expected 0 or a normal number of " +
                             getPythonName(type) + ", but got " +
                             nb::cast<std::string>(nb::str(nb::float_(number))))
                                .c_str());
  }
}

void PlanCall::bindOperands() {
  bool applied = false;
  for (auto [index, spec] : llvm::enumerate(plan.operands)) {
    const BufferView &view = *arrays[index];
    bool isTokens = spec.role == OperandRole::Tokens;
    if (!isTokens && !applied) {
      binder.applyRules();
      applied = true;
    }
    uint8_t alternative = 0;
    inputs.push_back(binder.bind(spec, view, alternative));
    if (isTokens || spec.role == OperandRole::Number)
      continue;
    // Parameters determine the number of features of gates and states.
    if (spec.role == OperandRole::Parameter)
      binder.applyRules();
    others.push_back(alternative);
    others.push_back(inputs.back().getRank());
    others.push_back(static_cast<int64_t>(view.dtype));
  }
  // Gates may have bound the sizes from which rules start.
  binder.applyRules();
}

void PlanCall::bindState() {
  if (!plan.hasState)
    return;
  uint8_t alternative = 0;
  for (auto [index, spec] : llvm::enumerate(plan.state))
    inputs.push_back(
        binder.bind(spec, *arrays[plan.operands.size() + index], alternative));
  binder.applyRules();
}

/// If the arrays are like those of the last call, nothing is looked up.
bool PlanCall::bindAsBefore() {
  if (!plan.last || place.isDevice() || !plan.last->fits(arrays))
    return false;
  binder = plan.last->binder;
  entry = plan.last->kernel;
  inputs = plan.last->bound;
  for (auto [input, array] : llvm::zip_equal(inputs, arrays)) {
    input.data = array->data;
    input.readOnly = array->readOnly;
  }
  return true;
}

void PlanCall::bind() {
  bool isKnown = bindAsBefore();
  if (!isKnown) {
    bindOperands();
    bindState();
  }
  if (plan.hasNumbers)
    checkNumbers();
  if (isKnown)
    return;
  entry = findKernel();
  // The elements of offsets matter, too.
  if (plan.hasOffsets || place.isDevice())
    return;
  plan.last = std::make_unique<Binding>(plan);
  plan.last->binder = binder;
  plan.last->kernel = entry;
  plan.last->bound = inputs;
  for (const BufferView *array : arrays)
    plan.last->given.push_back(*array);
}

DimNames::Id PlanCall::findLength() const {
  for (const Layout::UserDim &dim : binder.layoutOf(plan.operands.front()).user)
    if (plan.names.classOf(dim.id) == DimClass::Length)
      return dim.id;
  return DimNames::kNone;
}

/// The number of states in the call.
int64_t PlanCall::getSequences() const {
  for (DimNames::Id id : {plan.states, plan.batch})
    if (id != DimNames::kNone && binder.extents[id] != kUnknown)
      return binder.extents[id];
  return 1;
}

/// Rounds a size down to a power of two, so that fewer kernels are compiled.
static int64_t getSizeClass(int64_t size) {
  return llvm::bit_floor(static_cast<uint64_t>(std::max<int64_t>(size, 1)));
}

/// Classes of tokens. Up to 8 are few; below 256 schedules do not differ.
static int64_t getTokenClass(int64_t tokens) {
  constexpr int64_t few = 8, some = 64, many = 256;
  return tokens <= few ? few : tokens < many ? some : getSizeClass(tokens);
}

/// Whether a matrix unit may take the tokens of a call: 16-bit tokens of a
/// recurrence.
bool PlanCall::mayHaveUnit() const {
  static const bool hasUnit = Compiler::hasMatrixUnit();
  return hasUnit && plan.fixesHeads && !plan.state.empty() &&
         (binder.dtype == DType::F16 || binder.dtype == DType::BF16);
}

/// The least number of tokens of a class, for which a CPU's kernel is compiled:
/// from zeros a kernel of vectors, which takes half the time to compile, or
/// chunks of a matrix unit. 0 where queries and keys differ in number.
int64_t PlanCall::getUnitTokens(int64_t tokens) const {
  int64_t lengths = 0;
  for (size_t i = 0; i < plan.names.size(); ++i)
    lengths +=
        plan.names.classOf(static_cast<DimNames::Id>(i)) == DimClass::Length;
  if (plan.hasState || lengths != 1)
    return 0;
  int64_t many = fewestUnitTokens(plan.returnsState);
  return tokens < many ? 1 : many;
}

/// The same for sequences, whose number matters where the heads of one are
/// fewer than the cores.
int64_t PlanCall::getUnitSequences() const {
  static const int64_t cores = getVectorTarget().cores;
  bool hasFewHeads = false;
  for (size_t i = 0; i < plan.names.size(); ++i)
    if (plan.names.classOf(static_cast<DimNames::Id>(i)) == DimClass::Head)
      hasFewHeads |= binder.extents[i] != kUnknown && binder.extents[i] < cores;
  return hasFewHeads ? getSizeClass(std::min(getSequences(), cores)) : 0;
}

/// Decoding calls, with one token or a few that continue a state, get kernels
/// for their exact numbers of heads and tokens: every microsecond counts.
std::shared_ptr<Plan::Entry> PlanCall::findKernel() {
  DimNames::Id length = findLength();
  constexpr int64_t fewTokens = 8;
  int64_t tokens = length == DimNames::kNone ? 0 : binder.extents[length];
  bool few = tokens == 1 || (plan.hasState && plan.returnsState && tokens > 1 &&
                             tokens <= fewTokens);
  key.clear();
  key.push_back(static_cast<int64_t>(binder.dtype));
  key.push_back(place.isDevice() ? place.device + 1 : 0);
  // Schedules of a GPU, and of a matrix unit, depend on classes of the call's
  // sizes.
  if (place.isDevice() || plan.emulatesDevice)
    key.append({getSizeClass(getSequences()), getTokenClass(tokens)});
  else if (!few && mayHaveUnit())
    key.append({getUnitSequences(), getUnitTokens(tokens)});
  else
    key.append({0, 0});
  for (size_t i = 0; i < plan.names.size(); ++i) {
    bool fixed = true;
    switch (plan.names.classOf(static_cast<DimNames::Id>(i))) {
    case DimClass::Batch:
      fixed = false;
      break;
    case DimClass::Head:
      // Kernels of a GPU know their heads.
      fixed = few || plan.fixesHeads || place.isDevice();
      break;
    case DimClass::Length:
      fixed = few && static_cast<DimNames::Id>(i) == length;
      break;
    case DimClass::Feature:
      break;
    }
    key.push_back(fixed ? binder.extents[i] : Plan::kAnyExtent);
  }
  key.append(others.begin(), others.end());
  return plan.getKernel(key);
}

void PlanCall::makeResult(const OperandSpec &spec, ResultArray &result,
                          nb::handle given) {
  if (given.is_none()) {
    result.allocate(like, kind, binder.dtypeOf(spec),
                    binder.layoutOf(spec).getShape(binder.extents), place);
    return;
  }
  result.adopt(given, spec.name.c_str(), place);
  binder.checkExact(spec, result.view());
}

void PlanCall::makeOutput(nb::handle out) {
  for (const OperandSpec &spec : plan.output)
    makeResult(spec, output[0], out);
}

/// Throws a ValueError if a part of the state cannot be updated in place.
void PlanCall::checkWritable(size_t part, nb::handle given) const {
  const std::string &name = plan.state[part].name;
  const BufferView &view = inputs[plan.operands.size() + part];
  auto fail = [&](const std::string &what) {
    throw nb::value_error((name + ": expected " + what).c_str());
  };
  if (imported[plan.operands.size() + part]->kind == ArrayKind::Jax)
    fail("an array that can be updated in place, but got " +
         describeType(given) + ", whose elements are constant");
  if (view.readOnly)
    fail("a writable array to update in place, but got a read-only one");
  for (auto [extent, stride] : llvm::zip(view.shape, view.strides))
    if (extent > 1 && stride == 0)
      fail("an array whose elements have places of their own to update in "
           "place, but got one that was expanded, with a stride of 0");
}

/// Allocates the final state, or takes the memory of the initial one where
/// possible.
void PlanCall::makeState(nb::handle given, InPlace inPlace,
                         nb::handle destination) {
  if (!plan.returnsState)
    return;
  if (!destination.is_none()) {
    for (auto [index, spec] : llvm::enumerate(plan.state))
      makeResult(spec, state[index], getItem(destination, index));
    return;
  }
  const auto &results = entry->kernel.signature().results;
  for (auto [index, spec] : llvm::enumerate(plan.state)) {
    size_t argument = plan.operands.size() + index;
    if (inPlace == InPlace::Always)
      checkWritable(index, getItem(given, index));
    if (inPlace != InPlace::Never && !inputs[argument].readOnly &&
        results[plan.output.size() + index].inPlaceOf ==
            static_cast<int64_t>(argument))
      updated[index] = getItem(given, index);
    else
      makeResult(spec, state[index], nb::none());
  }
}

void PlanCall::makeSnapshots() {
  for (auto [spec, result] : llvm::zip(plan.snapshots, snapshots))
    makeResult(spec, result, nb::none());
}

/// Replaces the compiler's numbers of arguments and results by the user's
/// names.
std::string PlanCall::translateNames(std::string message) const {
  auto replace = [&](const std::string &from, const std::string &to) {
    for (size_t at; (at = message.find(from)) != std::string::npos;)
      message.replace(at, from.size(), to);
  };
  for (size_t i = 0; i < plan.output.size() + plan.state.size(); ++i)
    replace("result " + std::to_string(i),
            i < plan.output.size() ? plan.output[i].name
                                   : plan.state[i - plan.output.size()].name);
  constexpr llvm::StringRef argument = "argument ";
  for (size_t at; (at = message.find(argument)) != std::string::npos;) {
    size_t open = message.find("(%", at), close = message.find(')', at);
    if (open == std::string::npos || close == std::string::npos)
      break;
    std::string name = message.substr(open + 2, close - open - 2);
    llvm::StringRef rest =
        llvm::StringRef(message).drop_front(at + argument.size());
    size_t number;
    if (plan.hasState && !rest.consumeInteger(10, number) &&
        number - plan.operands.size() < plan.state.size())
      name = plan.state[number - plan.operands.size()].name;
    message.replace(at, close + 1 - at, name);
  }
  return message;
}

void PlanCall::guardState(WriteGuard &guard) const {
  // Steps on a GPU are queued one after another.
  if (!updated[0] || place.isDevice())
    return;
  const BufferView *rows = nullptr;
  for (auto [index, spec] : llvm::enumerate(plan.operands))
    if (spec.name == "state_indices")
      rows = &inputs[index];
  if (!guard.enter(*arrays[plan.operands.size()], rows))
    throw std::runtime_error(
        rows ? "state_indices: expected rows that no other thread writes now, "
               "but got one of a step that is still running"
             : "state: expected no other thread to write it now, but a step of "
               "it is still running");
}

void PlanCall::run(int32_t numThreads) {
  plan.countUse(*entry);
  if (isExplained(entry->kernel, inputs))
    return;
  llvm::SmallVector<BufferView, 4> outputs;
  auto add = [&](const OperandSpec &spec, const ResultArray &result) {
    outputs.push_back(
        binder.layoutOf(spec).toLogical(result.view(), binder.extents));
  };
  for (const OperandSpec &spec : plan.output)
    add(spec, output[0]);
  if (plan.returnsState)
    for (auto [index, spec] : llvm::enumerate(plan.state)) {
      if (updated[index])
        outputs.push_back(inputs[plan.operands.size() + index]);
      else
        add(spec, state[index]);
    }
  for (auto [spec, result] : llvm::zip(plan.snapshots, snapshots))
    add(spec, result);
  // Returns early, since no head may exist to divide by.
  if (llvm::all_of(outputs, [](const BufferView &view) {
        return llvm::is_contained(view.shape, 0);
      }))
    return;
  launch(entry->kernel, inputs, outputs, numThreads);
}

void PlanCall::launch(const Kernel &kernel, llvm::ArrayRef<BufferView> inputs,
                      llvm::ArrayRef<BufferView> outputs, int32_t numThreads) {
  RunOptions options;
  options.numThreads = numThreads;
  options.stream = place.stream;
  ResultArray workspace;
  if (place.isDevice()) {
    options.workspaceBytes = unwrap(kernel.workspaceSize(inputs, outputs));
    if (options.workspaceBytes > 0) {
      // Aligned for the kernel, where other libraries allocate with less
      // alignment.
      constexpr uintptr_t alignment = 256;
      auto bytes = static_cast<int64_t>(options.workspaceBytes + alignment);
      workspace.allocate(like, kind, DType::I8, {bytes}, place);
      auto address = reinterpret_cast<uintptr_t>(workspace.view().data);
      options.workspace = reinterpret_cast<void *>((address + alignment - 1) /
                                                   alignment * alignment);
    }
  }
  WriteGuard guard;
  guardState(guard);
  auto call = [&] {
    ReleaseScope release;
    return kernel.run(inputs, outputs, options);
  };
  if (llvm::Error error = call())
    throwError(std::move(error), [this](std::string message) {
      return translateNames(std::move(message));
    });
}

nb::object PlanCall::finish() {
  nb::object o = plan.output.empty() ? nb::none() : output[0].finish();
  llvm::SmallVector<nb::object, 8> results{std::move(o)};
  if (plan.returnsState)
    for (size_t i = 0; i < plan.state.size(); ++i)
      results.push_back(updated[i] ? nb::borrow(updated[i])
                                   : state[i].finish());
  for (size_t i = 0; i < plan.snapshots.size(); ++i)
    results.push_back(snapshots[i].finish());
  if (!plan.returnsState && plan.snapshots.empty())
    return results.front();
  nb::object tuple =
      nb::steal(PyTuple_New(static_cast<Py_ssize_t>(results.size())));
  for (auto [i, result] : llvm::enumerate(results))
    setTupleItem(tuple, i, result.release().ptr());
  return tuple;
}
