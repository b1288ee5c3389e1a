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

#include "Bindings.h"
#include "Interrupts.h"
#include "KernelObject.h"
#include "Libraries.h"
#include "PlanCall.h"
#include "Program.h"

#include <nanobind/stl/shared_ptr.h>

namespace nb = nanobind;
using namespace linattn;
using namespace linattn::python;
using namespace nb::literals;

/// In a key: any extent.
static constexpr int64_t kAny = -1;

/// Plans with kernels. The interpreter's lock guards them.
static std::vector<Plan *> &getPlans() {
  static auto *plans = new std::vector<Plan *>;
  return *plans;
}

// Where `Binding` is complete.
Plan::Plan() = default;
Plan::~Plan() { llvm::erase(getPlans(), this); }

//===----------------------------------------------------------------------===//
// Descriptions
//===----------------------------------------------------------------------===//

OperandSpec Plan::makeOperand(std::string name, OperandRole role,
                              const std::string &layouts) {
  OperandSpec spec{std::move(name), role, {}};
  if (role == OperandRole::Number)
    return spec;
  spec.layouts[0] = parseLayouts(layouts, names);
  // A state has all its dimensions whatever the tokens have.
  if (role == OperandRole::State || role == OperandRole::Carried ||
      role == OperandRole::Offsets || role == OperandRole::Parameter)
    return spec;
  for (RankMode mode : {RankMode::NoHeads, RankMode::NoBatch})
    for (const Layout &layout : spec.layouts[0]) {
      Layout dropped;
      if (layout.drop(mode, names, dropped))
        spec.layouts[static_cast<size_t>(mode)].push_back(dropped);
    }
  return spec;
}

void Plan::addRule(const std::string &text) {
  std::optional<SizeRule> parsed = mlir::linattn::parseSizeRule(text);
  if (!parsed)
    throw nb::value_error(("rule: expected a size, but got " + text).c_str());
  auto idOf = [&](llvm::StringRef name) {
    return name.empty() ? DimNames::kNone : names.get(name);
  };
  auto [constant, linear, quadratic] = parsed->coefficients;
  rules.push_back({parsed->kind,
                   names.get(parsed->result),
                   idOf(parsed->left),
                   idOf(parsed->right),
                   parsed->factor,
                   {constant, linear, quadratic}});
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static nb::str getDTypeName(int64_t dtype) {
  return nb::str(std::string(getName(static_cast<DType>(dtype))).c_str());
}

size_t Plan::mostKernels = 1024;

size_t Plan::getKernelCount() {
  size_t count = 0;
  for (const Plan *plan : getPlans())
    count += plan->entries.size();
  return count;
}

void Plan::countUse(Entry &entry) {
  static uint64_t calls = 0;
  entry.used = used = ++calls;
}

void Plan::dropOldestKernel() {
  Plan *owner = nullptr;
  size_t oldest = 0;
  for (Plan *plan : getPlans())
    for (auto [index, entry] : llvm::enumerate(plan->entries))
      if (!owner || entry->used < owner->entries[oldest]->used) {
        owner = plan;
        oldest = index;
      }
  if (owner->last && owner->last->kernel == owner->entries[oldest])
    owner->last.reset();
  owner->entries.erase(owner->entries.begin() + oldest);
  if (owner->entries.empty())
    llvm::erase(getPlans(), owner);
}

void Plan::add(std::shared_ptr<Entry> entry) {
  while (getKernelCount() >= mostKernels && !getPlans().empty())
    dropOldestKernel();
  if (entries.empty())
    getPlans().push_back(this);
  entries.push_back(std::move(entry));
}

std::shared_ptr<Plan::Entry> Plan::getKernel(llvm::ArrayRef<int64_t> key) {
  for (const auto &entry : entries)
    if (llvm::ArrayRef<int64_t>(entry->key) == key)
      return entry;
  nb::dict extents;
  for (size_t i = 0; i < names.size(); ++i) {
    int64_t extent = key[i + 2];
    nb::str name(names.name(static_cast<DimNames::Id>(i)).str().c_str());
    extents[name] = extent == kAny ? nb::none() : nb::object(nb::int_(extent));
  }
  nb::list others;
  for (size_t i = names.size() + 2; i < key.size(); i += 3)
    others.append(nb::make_tuple(key[i], key[i + 1], getDTypeName(key[i + 2])));
  Kernel kernel = nb::cast<Kernel>(
      build(getDTypeName(key[0]), extents, others, nb::bool_(key[1] != 0)));
  auto entry = std::make_shared<Entry>(
      Entry{llvm::SmallVector<int64_t, 24>(key.begin(), key.end()), kernel});
  add(entry);
  return entry;
}

/// The items of a tuple; None has none.
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

/// What an attribute may be: 0, or what the type of sums holds.
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
    // Parameters tell how many features gates and states have.
    if (spec.role == OperandRole::Parameter)
      binder.applyRules();
    others.push_back(alternative);
    others.push_back(inputs.back().getRank());
    others.push_back(static_cast<int64_t>(view.dtype));
  }
  // Gates may have told the sizes that rules start from.
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

/// Where the arrays are like those of the last call, nothing is looked up.
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
  // Offsets matter by their elements.
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

/// One token is decoding, where every microsecond counts, and so are a few that
/// carry a state on: such kernels are made for the heads and tokens of the
/// call.
std::shared_ptr<Plan::Entry> PlanCall::findKernel() {
  DimNames::Id length = findLength();
  constexpr int64_t fewTokens = 8;
  int64_t tokens = length == DimNames::kNone ? 0 : binder.extents[length];
  bool few = tokens == 1 || (plan.hasState && plan.returnsState && tokens > 1 &&
                             tokens <= fewTokens);
  key.clear();
  key.push_back(static_cast<int64_t>(binder.dtype));
  key.push_back(place.isDevice());
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
    key.push_back(fixed ? binder.extents[i] : kAny);
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

/// Whether part of the state can be updated in place, or a ValueError.
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

/// The final state, in the memory of the initial one if that may be.
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

/// The compiler numbers arguments and results; users know them by name.
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
  // Steps on a GPU are queued, one after another.
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
  // Nothing to compute, and no head to divide by.
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
      // Aligned for the kernel, also by allocators of other libraries.
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

/// PyTorch, if it has been imported.
static nb::handle findTorch() {
  nb::object modules = nb::module_::import_("sys").attr("modules");
  return PyDict_GetItemString(modules.ptr(), "torch");
}

/// Whether PyTorch chooses dtypes, which may agree then.
static bool usesAutocast() {
  nb::handle torch = findTorch();
  return torch && nb::hasattr(torch, "is_autocast_enabled") &&
         (nb::cast<bool>(torch.attr("is_autocast_enabled")("cpu")) ||
          nb::cast<bool>(torch.attr("is_autocast_enabled")("cuda")));
}

nb::object Plan::call(llvm::ArrayRef<PyObject *> operands, nb::handle state,
                      nb::handle out, InPlace inPlace, nb::handle numThreads,
                      nb::handle destination) {
  std::string refusal;
  const char *library = "linattn._torch";
  try {
    return run(operands, state, out, inPlace, numThreads, destination);
  } catch (const DispatchedTensor &error) {
    if (error.library == ArrayKind::Jax)
      library = "linattn._jax";
    else if (!hasNumbers && !findTorch())
      throw;
    refusal = error.what();
  } catch (const nb::builtin_exception &error) {
    if (error.type() != nb::exception_type::type_error || !usesAutocast())
      throw;
    refusal = error.what();
  }
  if (hasNumbers)
    return callWithConstants(operands, state, out, inPlace, numThreads,
                             destination);
  nb::list arrays;
  for (PyObject *operand : operands)
    arrays.append(nb::handle(operand));
  return nb::module_::import_(library).attr("dispatch")(
      nb::find(this), nb::tuple(arrays), state, out, static_cast<int>(inPlace),
      numThreads, destination, refusal);
}

/// The call by the plan whose kernels have this call's numbers as constants.
nb::object Plan::callWithConstants(llvm::ArrayRef<PyObject *> operands,
                                   nb::handle state, nb::handle out,
                                   InPlace inPlace, nb::handle numThreads,
                                   nb::handle destination) {
  llvm::SmallVector<PyObject *, 16> arrays;
  nb::list numbers;
  for (auto [operand, spec] : llvm::zip_equal(operands, this->operands)) {
    if (spec.role == OperandRole::Number)
      numbers.append(nb::handle(operand));
    else
      arrays.push_back(operand);
  }
  nb::object plan = build.attr("with_constants")(*numbers);
  return nb::cast<Plan &>(plan).call(arrays, state, out, inPlace, numThreads,
                                     destination);
}

nb::object Plan::run(llvm::ArrayRef<PyObject *> operands, nb::handle state,
                     nb::handle out, InPlace inPlace, nb::handle numThreads,
                     nb::handle destination) {
  PlanCall call(*this);
  int32_t threads = parseNumThreads(numThreads);
  call.import(operands, state);
  call.bind();
  call.makeOutput(out);
  call.makeState(state, hasState ? inPlace : InPlace::Never, destination);
  call.makeSnapshots();
  call.run(threads);
  // A `State` would go on with the new one.
  if (hasState && returnsState)
    endExplainedCall();
  return call.finish();
}

InPlace linattn::python::parseInPlace(nb::handle inPlace) {
  if (inPlace.ptr() == Py_False)
    return InPlace::Never;
  return inPlace.ptr() == Py_True ? InPlace::IfPossible : InPlace::Always;
}

static OperandRole parseRole(const std::string &role) {
  if (role == "tokens")
    return OperandRole::Tokens;
  if (role == "gate")
    return OperandRole::Gate;
  if (role == "mask")
    return OperandRole::Mask;
  if (role == "counts")
    return OperandRole::Counts;
  if (role == "offsets")
    return OperandRole::Offsets;
  if (role == "state")
    return OperandRole::State;
  if (role == "carried")
    return OperandRole::Carried;
  if (role == "parameter")
    return OperandRole::Parameter;
  if (role == "positions")
    return OperandRole::Positions;
  if (role == "number")
    return OperandRole::Number;
  throw nb::value_error(("role: expected tokens, gate, mask, counts, offsets, "
                         "state, carried, parameter, positions or number, but "
                         "got " +
                         role)
                            .c_str());
}

/// Fills in a plan; the lists have tuples (name, role, layouts).
static void describe(Plan &plan, nb::list operands, nb::list rules,
                     nb::list state, nb::handle output, nb::list snapshots) {
  auto make = [&](nb::handle item) {
    return plan.makeOperand(nb::cast<std::string>(item[0]),
                            parseRole(nb::cast<std::string>(item[1])),
                            nb::cast<std::string>(item[2]));
  };
  for (nb::handle operand : operands)
    plan.operands.push_back(make(operand));
  for (nb::handle rule : rules)
    plan.addRule(nb::cast<std::string>(rule));
  for (nb::handle part : state)
    plan.state.push_back(make(part));
  if (!output.is_none())
    plan.output.push_back(make(output));
  for (nb::handle part : snapshots)
    plan.snapshots.push_back(make(part));
  if (plan.operands.empty() ||
      plan.operands.front().role != OperandRole::Tokens)
    throw nb::value_error("operands: expected tokens first");
  if (plan.operands.size() + plan.state.size() > kMaxOperands ||
      plan.state.size() > kMaxStateParts)
    throw nb::value_error("operands: expected fewer");
  // An extent of 1 that users write.
  if (plan.names.find("1") != DimNames::kNone)
    plan.addRule("1 = 1");
  plan.batch = plan.names.find("B");
  plan.states = plan.names.find("N");
  auto has = [&](OperandRole role) {
    return llvm::any_of(plan.operands, [&](const OperandSpec &spec) {
      return spec.role == role;
    });
  };
  plan.hasOffsets = has(OperandRole::Offsets);
  plan.hasNumbers = has(OperandRole::Number);
}

void linattn::python::registerPlan(nb::module_ &module) {
  module.def("count_kernels", &Plan::getKernelCount,
             "How many kernels all plans hold.");
  module.def(
      "bound_kernels",
      [](size_t count) { return std::exchange(Plan::mostKernels, count); },
      "count"_a,
      "Sets how many kernels all plans may hold; returns the former bound.");
  nb::class_<Plan>(module, "Plan", "The kernels of one combination of options.")
      .def(
          "__init__",
          [](Plan *self, nb::object build, nb::list operands, nb::list rules,
             nb::list state, nb::object output, bool hasState,
             bool returnsState, bool fixesHeads, bool hasWideState,
             bool trustsState, nb::list snapshots) {
            new (self) Plan();
            self->build = std::move(build);
            self->hasState = hasState;
            self->returnsState = returnsState;
            self->hasWideState = hasWideState;
            self->fixesHeads = fixesHeads;
            self->trustsState = trustsState;
            describe(*self, operands, rules, state, output, snapshots);
          },
          "build"_a, "operands"_a, "rules"_a, "state"_a, "output"_a.none(),
          "has_state"_a, "returns_state"_a, "fixes_heads"_a,
          "wide_state"_a = false, "trusts_state"_a = false,
          "snapshots"_a = nb::list())
      .def_ro("build", &Plan::build, "The function that compiles its kernels.")
      .def_prop_ro("last_use", &Plan::getLastUse,
                   "When it was called last, in calls of all plans.")
      .def_prop_ro(
          "state_parts", [](const Plan &plan) { return plan.state.size(); },
          "How many arrays the state has.")
      .def(
          "__call__",
          [](Plan &plan, nb::tuple operands, nb::handle state, nb::handle out,
             nb::handle inPlace, nb::handle numThreads) {
            bool isGiven = PyTuple_Check(inPlace.ptr());
            return plan.call(itemsOf(operands), state, out,
                             isGiven ? InPlace::Never : parseInPlace(inPlace),
                             numThreads, isGiven ? inPlace : nb::none());
          },
          "operands"_a, "state"_a.none(), "out"_a.none(), "in_place"_a,
          "num_threads"_a.none())
      .def(
          "run",
          [](Plan &plan, nb::tuple operands, nb::handle state, nb::handle out,
             nb::handle inPlace, nb::handle numThreads) {
            bool isGiven = PyTuple_Check(inPlace.ptr());
            return plan.run(itemsOf(operands), state, out,
                            isGiven ? InPlace::Never : parseInPlace(inPlace),
                            numThreads, isGiven ? inPlace : nb::none());
          },
          "operands"_a, "state"_a.none(), "out"_a.none(), "in_place"_a,
          "num_threads"_a.none())
      .def("describe", &describeResults, "operands"_a, "state"_a,
           "The results of a call with arrays (dtype, shape), described like "
           "them.")
      .def("program", &makeProgram, "operands"_a, "state"_a,
           "num_threads"_a.none(),
           "A call with arrays (dtype, shape), as a `Program`.");
}
