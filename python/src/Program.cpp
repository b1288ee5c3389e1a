//===- Program.cpp - Calls that run without Python ------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Program.h"
#include "Arrays.h"
#include "Bindings.h"
#include "KernelObject.h"
#include "PlanCall.h"

#include <mutex>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>
#include <shared_mutex>
#include <unordered_map>

namespace nb = nanobind;
using namespace linattn;
using namespace linattn::python;
using namespace nb::literals;

//===----------------------------------------------------------------------===//
// Execution
//===----------------------------------------------------------------------===//

/// The view of a slot in the buffers of a call.
static llvm::Expected<BufferView> place(const Program::Slot &slot,
                                        llvm::ArrayRef<Program::Memory> buffers,
                                        const char *what) {
  static const double zero = 0;
  BufferView view = slot.view;
  if (slot.buffer == Program::kZeros) {
    view.data = const_cast<double *>(&zero);
    view.readOnly = true;
    return view;
  }
  auto index = static_cast<size_t>(slot.buffer);
  std::string name = what + (" " + std::to_string(index));
  if (index >= buffers.size())
    return llvm::createStringError(name + ": expected a buffer, but got none");
  const Program::Memory &buffer = buffers[index];
  if (buffer.dtype != view.dtype || buffer.numElements != view.getNumElements())
    return llvm::createStringError(
        name + ": expected " + std::to_string(view.getNumElements()) +
        " elements of " + getPythonName(view.dtype) + ", but got " +
        std::to_string(buffer.numElements) + " of " +
        getPythonName(buffer.dtype));
  view.data = buffer.data;
  return view;
}

llvm::Error Program::run(llvm::ArrayRef<Memory> arguments,
                         llvm::ArrayRef<Memory> results) const {
  llvm::SmallVector<BufferView, 8> from, to;
  for (const Slot &slot : inputs) {
    llvm::Expected<BufferView> view = place(slot, arguments, "argument");
    if (!view)
      return view.takeError();
    from.push_back(std::move(*view));
  }
  for (const Slot &slot : outputs) {
    llvm::Expected<BufferView> view = place(slot, results, "result");
    if (!view)
      return view.takeError();
    to.push_back(std::move(*view));
  }
  RunOptions options;
  options.numThreads = numThreads;
  return kernel.run(from, to, options);
}

std::vector<std::pair<int64_t, int64_t>> Program::findAliases() const {
  std::vector<std::pair<int64_t, int64_t>> aliases;
  for (auto [output, info] : llvm::zip(outputs, kernel.signature().results)) {
    if (info.inPlaceOf < 0)
      continue;
    const Slot &input = inputs[static_cast<size_t>(info.inPlaceOf)];
    if (input.buffer != kZeros && input.view.shape == output.view.shape &&
        input.view.strides == output.view.strides)
      aliases.emplace_back(input.buffer, output.buffer);
  }
  return aliases;
}

//===----------------------------------------------------------------------===//
// Programs by name
//===----------------------------------------------------------------------===//

namespace {

struct Registry {
  std::shared_mutex mutex;
  std::unordered_map<std::string, std::shared_ptr<const Program>> programs;
};

} // namespace

/// Leaked: a runtime may still call it when the interpreter ends.
static Registry &getRegistry() {
  static auto *registry = new Registry;
  return *registry;
}

static std::shared_ptr<const Program> lookUp(const std::string &name) {
  Registry &registry = getRegistry();
  std::shared_lock<std::shared_mutex> lock(registry.mutex);
  auto it = registry.programs.find(name);
  return it == registry.programs.end() ? nullptr : it->second;
}

std::shared_ptr<const Program>
linattn::python::findProgram(const std::string &name) {
  if (std::shared_ptr<const Program> program = lookUp(name))
    return program;
  nb::gil_scoped_acquire acquire;
  try {
    nb::module_::import_("linattn._jax").attr("make_program")(name);
  } catch (nb::python_error &error) {
    // The Python error must not outlive the lock of the interpreter.
    throw std::runtime_error(nb::str(error.value()).c_str());
  }
  return lookUp(name);
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

void PlanCall::describe(llvm::ArrayRef<BufferView> operands,
                        llvm::ArrayRef<BufferView> given) {
  if (operands.size() != plan.operands.size() ||
      given.size() != (plan.hasState ? plan.state.size() : 0))
    throw nb::type_error(
        ("expected " + std::to_string(plan.operands.size()) +
         " operands and a state of " +
         std::to_string(plan.hasState ? plan.state.size() : 0) +
         " arrays, but got " + std::to_string(operands.size()) + " and " +
         std::to_string(given.size()))
            .c_str());
  for (llvm::ArrayRef<BufferView> views : {operands, given})
    for (const BufferView &view : views)
      arrays.push_back(&view);
  // Elements do not exist yet. The kernels check them.
  binder.isDevice = true;
  bindOperands();
  bindState();
}

llvm::SmallVector<BufferView, 4> PlanCall::describeResults() const {
  llvm::SmallVector<BufferView, 4> results;
  auto add = [&](const OperandSpec &spec) {
    results.push_back(
        BufferView(static_cast<void *>(nullptr), binder.dtypeOf(spec),
                   binder.layoutOf(spec).getShape(binder.extents)));
  };
  for (const OperandSpec &spec : plan.output)
    add(spec);
  if (plan.returnsState)
    for (const OperandSpec &spec : plan.state)
      add(spec);
  for (const OperandSpec &spec : plan.snapshots)
    add(spec);
  return results;
}

Program PlanCall::makeProgram(int32_t numThreads) {
  std::vector<Program::Slot> from, to;
  for (auto [index, view] : llvm::enumerate(inputs))
    from.push_back({static_cast<int64_t>(index), view});
  llvm::SmallVector<const OperandSpec *, 8> specs;
  for (const OperandSpec &spec : plan.output)
    specs.push_back(&spec);
  if (plan.returnsState)
    for (const OperandSpec &spec : plan.state)
      specs.push_back(&spec);
  for (const OperandSpec &spec : plan.snapshots)
    specs.push_back(&spec);
  for (auto [index, result] : llvm::enumerate(describeResults()))
    to.push_back(
        {static_cast<int64_t>(index),
         binder.layoutOf(*specs[index]).toLogical(result, binder.extents)});
  return Program(findKernel()->kernel, std::move(from), std::move(to),
                 numThreads);
}

//===----------------------------------------------------------------------===//
// Bindings
//===----------------------------------------------------------------------===//

static DType parseDType(const std::string &dtype,
                        const std::string &name = "array") {
  for (DType known : {DType::F16, DType::BF16, DType::F32, DType::F64,
                      DType::I1, DType::I8, DType::I16, DType::I32, DType::I64})
    if (dtype == getPythonName(known))
      return known;
  throw nb::type_error((name +
                        ": expected elements of type float16, bfloat16, "
                        "float32, float64, bool, int32 or int64, but got " +
                        dtype)
                           .c_str());
}

/// Views of arrays (dtype, shape) without memory.
static llvm::SmallVector<BufferView, 8>
parseArrays(nb::sequence arrays, llvm::ArrayRef<OperandSpec> specs) {
  llvm::SmallVector<BufferView, 8> views;
  for (nb::handle array : arrays) {
    size_t index = views.size();
    DType dtype =
        parseDType(nb::cast<std::string>(array[0]),
                   index < specs.size() ? specs[index].name : "array");
    auto shape = nb::cast<std::vector<int64_t>>(array[1]);
    views.push_back(BufferView(static_cast<void *>(nullptr), dtype, shape));
  }
  return views;
}

nb::list linattn::python::describeResults(Plan &plan, nb::sequence operands,
                                          nb::sequence state) {
  auto given = parseArrays(operands, plan.operands),
       parts = parseArrays(state, plan.state);
  PlanCall call(plan);
  call.describe(given, parts);
  nb::list results;
  for (const BufferView &view : call.describeResults())
    results.append(nb::make_tuple(
        getPythonName(view.dtype),
        std::vector<int64_t>(view.shape.begin(), view.shape.end())));
  return results;
}

std::shared_ptr<Program> linattn::python::makeProgram(Plan &plan,
                                                      nb::sequence operands,
                                                      nb::sequence state,
                                                      nb::handle numThreads) {
  auto given = parseArrays(operands, plan.operands),
       parts = parseArrays(state, plan.state);
  PlanCall call(plan);
  call.describe(given, parts);
  return std::make_shared<Program>(
      call.makeProgram(parseNumThreads(numThreads)));
}

/// Slots from tuples (buffer, dtype, shape, strides).
static std::vector<Program::Slot> parseSlots(nb::sequence tuples) {
  std::vector<Program::Slot> slots;
  for (nb::handle tuple : tuples) {
    auto shape = nb::cast<std::vector<int64_t>>(tuple[2]),
         strides = nb::cast<std::vector<int64_t>>(tuple[3]);
    slots.push_back(
        {nb::cast<int64_t>(tuple[0]),
         BufferView(nullptr, parseDType(nb::cast<std::string>(tuple[1])), shape,
                    strides)});
  }
  return slots;
}

void linattn::python::registerProgram(nb::module_ &module) {
  nb::class_<Program>(module, "Program",
                      "A call of a kernel with contiguous buffers, which runs "
                      "without Python.")
      .def(
          "__init__",
          [](Program *self, const Kernel &kernel, nb::sequence inputs,
             nb::sequence outputs, nb::handle numThreads) {
            new (self) Program(kernel, parseSlots(inputs), parseSlots(outputs),
                               parseNumThreads(numThreads));
          },
          "kernel"_a, "inputs"_a, "outputs"_a, "num_threads"_a.none())
      .def_prop_ro("aliases", &Program::findAliases,
                   "Pairs of an argument and the result that may have its "
                   "buffer.");
  module.def(
      "add_program",
      [](std::string name, std::shared_ptr<Program> program) {
        Registry &registry = getRegistry();
        std::unique_lock<std::shared_mutex> lock(registry.mutex);
        registry.programs[std::move(name)] = std::move(program);
      },
      "name"_a, "program"_a, "Has XLA find a program by its name.");
  module.def(
      "xla_handler",
      [] {
        return nb::steal(PyCapsule_New(getXlaHandler(), nullptr, nullptr));
      },
      "The handler by which XLA calls programs.");
}
