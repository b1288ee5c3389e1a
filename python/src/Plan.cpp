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

namespace nb = nanobind;
using namespace linattn;
using namespace linattn::python;

/// Plans with kernels. The interpreter's lock guards them.
static std::vector<Plan *> &getPlans() {
  static auto *plans = new std::vector<Plan *>;
  return *plans;
}

// Defined here, where `Binding` is complete.
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
  // A state has all its dimensions in every mode.
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

/// The number of entries in a key before its extents.
static constexpr size_t keyHeader = 4;

std::shared_ptr<Plan::Entry> Plan::getKernel(llvm::ArrayRef<int64_t> key) {
  for (const auto &entry : entries)
    if (llvm::ArrayRef<int64_t>(entry->key) == key)
      return entry;
  nb::dict extents;
  for (size_t i = 0; i < names.size(); ++i) {
    int64_t extent = key[i + keyHeader];
    nb::str name(names.name(static_cast<DimNames::Id>(i)).str().c_str());
    extents[name] =
        extent == kAnyExtent ? nb::none() : nb::object(nb::int_(extent));
  }
  nb::list others;
  for (size_t i = names.size() + keyHeader; i < key.size(); i += 3)
    others.append(nb::make_tuple(key[i], key[i + 1], getDTypeName(key[i + 2])));
  Kernel kernel =
      nb::cast<Kernel>(build(getDTypeName(key[0]), extents, others,
                             nb::bool_(key[1] != 0), key[2], key[3]));
  auto entry = std::make_shared<Entry>(
      Entry{llvm::SmallVector<int64_t, 24>(key.begin(), key.end()), kernel});
  add(entry);
  return entry;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// PyTorch, if it has been imported.
static nb::handle findTorch() {
  nb::object modules = nb::module_::import_("sys").attr("modules");
  return PyDict_GetItemString(modules.ptr(), "torch");
}

/// Whether PyTorch's autocast converts dtypes, which may agree afterwards.
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

/// Calls the plan whose kernels have this call's numbers as constants.
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
  // A `State` would continue from the new state.
  if (hasState && returnsState)
    endExplainedCall();
  return call.finish();
}

InPlace linattn::python::parseInPlace(nb::handle inPlace) {
  if (inPlace.ptr() == Py_False)
    return InPlace::Never;
  return inPlace.ptr() == Py_True ? InPlace::IfPossible : InPlace::Always;
}
