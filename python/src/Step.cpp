//===- Step.cpp - A step like the one before ------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A large state has just passed through the caches when it is stepped again:
// anything else that a step touches is out of the caches. One that differs from
// the step before in nothing but its arrays looks nothing up.
//
//===----------------------------------------------------------------------===//

#include "Bindings.h"
#include "Plan.h"

namespace nb = nanobind;
using namespace linattn;
using namespace linattn::python;
using namespace nb::literals;

/// Whether both are the same object, or equal numbers or strings. `==` of other
/// objects may be slow or fail.
static bool isSame(PyObject *a, PyObject *b) {
  if (a == b)
    return true;
  if (Py_TYPE(a) != Py_TYPE(b) ||
      !(PyFloat_CheckExact(a) || PyLong_CheckExact(a) ||
        PyUnicode_CheckExact(a)))
    return false;
  return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
}

namespace {

class Step {
public:
  Step(nb::tuple arrays, nb::tuple options, nb::object plan, nb::tuple state,
       nb::tuple numbers)
      : options(options), owner(plan), plan(&nb::cast<Plan &>(plan)),
        state(state), numbers(numbers) {
    for (PyObject *array : itemsOf(arrays))
      present.push_back(array != Py_None);
  }

  /// The plan's results, or None if more than the arrays differs.
  nb::object call(nb::tuple arrays, nb::tuple given, nb::handle out,
                  nb::handle inPlace, nb::handle numThreads) const {
    if (getTupleSize(arrays) != present.size() ||
        !llvm::equal(itemsOf(options), itemsOf(given), isSame))
      return nb::none();
    llvm::SmallVector<PyObject *, 16> operands;
    for (auto [array, wasPresent] : llvm::zip_equal(itemsOf(arrays), present)) {
      if ((array != Py_None) != wasPresent)
        return nb::none();
      if (wasPresent)
        operands.push_back(array);
    }
    llvm::append_range(operands, itemsOf(numbers));
    return plan->call(operands, state, out, parseInPlace(inPlace), numThreads);
  }

private:
  nb::tuple options;
  nb::object owner;
  Plan *plan;
  /// The state, and the options that are operands.
  nb::tuple state, numbers;
  llvm::SmallVector<bool, 16> present;
};

/// A call of a function around a family, whose arguments are operands, the
/// initial state and options. The next call usually differs in its arrays
/// alone.
class Repeat {
public:
  /// Records from a call what a repetition needs, where possible. `operands`
  /// and `state` are the arguments of the plan, `result` is the function's
  /// result and `made` the plan's.
  void learn(nb::tuple arguments, nb::object newPlan, nb::tuple operands,
             nb::handle state, bool isInPlace, nb::tuple result,
             nb::handle made) {
    plan = nullptr;
    roles.assign(getTupleSize(arguments), kOption);
    llvm::SmallVector<nb::object, 24> options;
    for (auto [index, argument] : llvm::enumerate(itemsOf(arguments))) {
      options.push_back(nb::borrow(argument));
      size_t count = 0;
      for (auto [number, operand] : llvm::enumerate(itemsOf(operands)))
        if (operand == argument) {
          roles[index] = static_cast<int8_t>(number);
          ++count;
        }
      if (!state.is_none() && getOnly(state) == argument) {
        roles[index] = kState;
        ++count;
      }
      // Arrays are not kept. Objects that are neither arrays nor plain values
      // may change.
      if (count > 0)
        options.back() = nb::none();
      else if (!isPlain(argument))
        return;
      if (count > 1)
        return;
    }
    // An operand that is not among the arguments was computed by the function.
    for (size_t number = 0; number < getTupleSize(operands); ++number)
      if (llvm::count(roles, static_cast<int8_t>(number)) != 1)
        return;
    if (!state.is_none() && llvm::count(roles, kState) != 1)
      return;
    if (!understandResult(result, made, state, isInPlace))
      return;
    known.assign(options.begin(), options.end());
    stateType = state.is_none() ? nullptr : Py_TYPE(getOnly(state));
    numOperands = getTupleSize(operands);
    inPlace = isInPlace ? InPlace::Always : InPlace::Never;
    owner = newPlan;
    plan = &nb::cast<Plan &>(newPlan);
  }

  /// The function's results, or None if more than the arrays differs.
  nb::object call(nb::tuple arguments) {
    if (!plan || getTupleSize(arguments) != roles.size())
      return nb::none();
    llvm::SmallVector<PyObject *, 16> operands(numOperands);
    nb::object state = nb::none();
    PyObject *given = nullptr;
    for (auto [argument, role, option] :
         llvm::zip_equal(itemsOf(arguments), roles, known)) {
      if (role == kOption ? !isSame(argument, option.ptr())
                          : argument == Py_None)
        return nb::none();
      if (role == kState) {
        if (Py_TYPE(argument) != stateType)
          return nb::none();
        given = argument;
        state = nb::make_tuple(nb::handle(argument));
      } else if (role != kOption) {
        // The function converts other numbers itself.
        if (plan->operands[role].role == OperandRole::Number &&
            !PyFloat_CheckExact(argument))
          return nb::none();
        operands[role] = argument;
      }
    }
    // The call may release the lock, and another thread may change these
    // members.
    bool returnsGiven = inPlace == InPlace::Always, returns = returnsState;
    nb::object result =
        plan->call(operands, state, nb::none(), inPlace, nb::none());
    if (!PyTuple_Check(result.ptr()))
      return nb::make_tuple(result, nb::none());
    nb::handle o = getTupleItem(result, 0), final = getTupleItem(result, 1);
    if (returnsGiven && final.ptr() != given)
      nb::module_::import_("linattn._core._arrays")
          .attr("assign")(nb::handle(given), final);
    if (!returns)
      return nb::make_tuple(o, nb::none());
    return returnsGiven ? nb::make_tuple(o, nb::handle(given)) : result;
  }

private:
  static constexpr int8_t kOption = -1, kState = -2;

  static bool isPlain(PyObject *object) {
    return object == Py_None || PyBool_Check(object) ||
           PyLong_CheckExact(object) || PyFloat_CheckExact(object) ||
           PyUnicode_CheckExact(object);
  }

  /// The only part of a state, or null.
  static PyObject *getOnly(nb::handle state) {
    return getTupleSize(state) == 1 ? getTupleItem(state, 0) : nullptr;
  }

  /// Whether the function returns the plan's results: (o, None), or with a
  /// state.
  bool understandResult(nb::tuple result, nb::handle made, nb::handle state,
                        bool isInPlace) {
    llvm::SmallVector<PyObject *, 8> items = itemsOf(result);
    if (items.size() != 2)
      return false;
    returnsState = items[1] != Py_None;
    if (!PyTuple_Check(made.ptr()))
      return items[0] == made.ptr() && !returnsState;
    if (getTupleSize(made) != 2 || getTupleItem(made, 0) != items[0])
      return false;
    if (!returnsState)
      return isInPlace;
    return items[1] == (isInPlace ? getOnly(state) : getTupleItem(made, 1));
  }

  Plan *plan = nullptr;
  nb::object owner;
  llvm::SmallVector<int8_t, 24> roles;
  llvm::SmallVector<nb::object, 24> known;
  PyTypeObject *stateType = nullptr;
  size_t numOperands = 0;
  InPlace inPlace = InPlace::Never;
  bool returnsState = false;
};

} // namespace

void linattn::python::registerStep(nb::module_ &module) {
  nb::class_<Step>(module, "Step",
                   "A step of a state without its arrays, to be repeated.")
      .def(nb::init<nb::tuple, nb::tuple, nb::object, nb::tuple, nb::tuple>(),
           "arrays"_a, "options"_a, "plan"_a, "state"_a,
           "numbers"_a = nb::tuple())
      .def("__call__", &Step::call, "arrays"_a, "options"_a, "out"_a.none(),
           "in_place"_a, "num_threads"_a.none());
  nb::class_<Repeat>(module, "Repeat",
                     "A call of a function without its arrays, to be repeated.")
      .def(nb::init<>())
      .def("learn", &Repeat::learn, "arguments"_a, "plan"_a, "operands"_a,
           "state"_a.none(), "in_place"_a, "result"_a, "made"_a)
      .def("__call__", &Repeat::call, "arguments"_a);
}
