//===- PlanCall.h - The arrays of one call ----------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_PYTHON_PLANCALL_H
#define LINATTN_PYTHON_PLANCALL_H

#include "Plan.h"
#include "WriteGuard.h"

#include <array>
#include <optional>

namespace linattn::python {

class Program;

/// More than any op has.
inline constexpr size_t kMaxOperands = 24;
inline constexpr size_t kMaxStateParts = 4;

/// The arrays of one call.
class PlanCall {
public:
  explicit PlanCall(Plan &plan) : plan(plan), binder(plan) {}

  void import(llvm::ArrayRef<PyObject *> operands, nanobind::handle state);
  /// Takes contiguous arrays of these types and shapes without memory, and
  /// determines the extents.
  void describe(llvm::ArrayRef<BufferView> operands,
                llvm::ArrayRef<BufferView> state);
  /// The results of the described call, in the caller's layouts.
  llvm::SmallVector<BufferView, 4> describeResults() const;
  /// The program of the described call.
  Program makeProgram(int32_t numThreads);
  /// Determines the extents, and thereby the kernel.
  void bind();
  void makeOutput(nanobind::handle out);
  /// `destination` is a tuple of arrays, or None.
  void makeState(nanobind::handle given, InPlace inPlace,
                 nanobind::handle destination);
  void makeSnapshots();
  void run(int32_t numThreads);
  nanobind::object finish();

private:
  /// Throws if another thread writes the state that this call updates.
  void guardState(WriteGuard &guard) const;
  void import(nanobind::handle object, const OperandSpec &spec) {
    ImportedArray &array = imported[arrays.size()].emplace();
    if (spec.role == OperandRole::Number)
      array.view = importNumber(object, spec);
    else
      array.import(object, spec.name.c_str(), place);
    arrays.push_back(&array.view);
  }
  BufferView importNumber(nanobind::handle object, const OperandSpec &spec);
  void checkNumbers() const;
  using Views = llvm::SmallVector<BufferView, 8>;
  bool bindAsBefore();
  void bindOperands();
  void bindState();
  /// The number of the tokens' dimension, or none.
  DimNames::Id findLength() const;
  int64_t getSequences() const;
  bool mayHaveUnit() const;
  int64_t getUnitTokens(int64_t tokens) const;
  int64_t getUnitSequences() const;
  std::shared_ptr<Plan::Entry> findKernel();
  /// Runs a kernel. Throws a ValueError in the user's terms if it refuses.
  void launch(const Kernel &kernel, llvm::ArrayRef<BufferView> inputs,
              llvm::ArrayRef<BufferView> outputs, int32_t numThreads);
  void checkWritable(size_t part, nanobind::handle given) const;
  std::string translateNames(std::string message) const;
  void makeResult(const OperandSpec &spec, ResultArray &result,
                  nanobind::handle given);

  Plan &plan;
  Binder binder;
  /// Held while it runs, because calls of other threads may drop it from the
  /// plan.
  std::shared_ptr<Plan::Entry> entry;
  std::array<std::optional<ImportedArray>, kMaxOperands> imported;
  /// The numbers among them.
  std::array<double, kMaxOperands> numbers;
  /// Operands, then the state, as given and in the order of the op.
  llvm::SmallVector<const BufferView *, 8> arrays;
  Views inputs;
  /// Alternative, rank and dtype of the operands beside the tokens.
  llvm::SmallVector<int64_t, 12> others;
  llvm::SmallVector<int64_t, 24> key;
  nanobind::handle like;
  ArrayKind kind = ArrayKind::NumPy;
  Place place;
  DeviceScope scope{place};
  std::array<ResultArray, 1> output;
  std::array<ResultArray, kMaxStateParts> state, snapshots;
  /// Parts of the state that are updated in place: the caller's own arrays.
  std::array<nanobind::handle, kMaxStateParts> updated;
};

/// The results (dtype, shape) of a call with arrays (dtype, shape).
nanobind::list describeResults(Plan &plan, nanobind::sequence operands,
                               nanobind::sequence state);
/// The program of the same call.
std::shared_ptr<Program> makeProgram(Plan &plan, nanobind::sequence operands,
                                     nanobind::sequence state,
                                     nanobind::handle numThreads);

} // namespace linattn::python

#endif // LINATTN_PYTHON_PLANCALL_H
