//===- Plan.h - The fast way to a compiled kernel ---------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_PYTHON_PLAN_H
#define LINATTN_PYTHON_PLAN_H

#include "Layout.h"
#include "Tuples.h"
#include "linattn/Analysis/FeatureSize.h"
#include "linattn/Compiler/Kernel.h"

#include <memory>
#include <nanobind/nanobind.h>
#include <vector>

namespace linattn::python {

/// The role of an operand; it decides about element types and error messages.
enum class OperandRole : uint8_t {
  /// One vector per token, of the dtype of the first operand.
  Tokens,
  /// Any floating-point dtype.
  Gate,
  /// Booleans.
  Mask,
  /// Integers, one for each batch element.
  Counts,
  /// Integers [N + 1] that delimit sequences. The layout names the dimension
  /// that they delimit.
  Offsets,
  /// Part of the state, in the accumulation type.
  State,
  /// Part of the state that holds tokens, in their dtype.
  Carried,
  /// A parameter of a feature map: of any floating-point dtype, with one layout
  /// for all modes.
  Parameter,
  /// Integers, one for each token.
  Positions,
  /// A Python number, which the kernel takes as an f64 scalar.
  Number,
};

/// An operand or a result, with its possible layouts in every rank mode.
struct OperandSpec {
  std::string name;
  OperandRole role;
  std::array<std::vector<Layout>, kNumRankModes> layouts;
};

/// The memory of the final state.
enum class InPlace : uint8_t {
  Never,
  /// That of the initial state, if it is writable and the kernel allows it.
  IfPossible,
  /// The same, but arrays that are not writable are an error.
  Always,
};

/// A `SizeRule` on the plan's dimensions.
struct DimRule {
  using Kind = SizeRule::Kind;
  Kind kind;
  DimNames::Id result, left, right;
  int64_t factor;
  FeatureSizeFormula features;
};

struct Binding;

/// False, True, or 2 for `Always`.
InPlace parseInPlace(nanobind::handle inPlace);

/// The kernels of one combination of options. They are compiled on demand, one
/// for each element type and head size.
class Plan {
public:
  Plan();
  ~Plan();
  Plan(const Plan &) = delete;
  Plan &operator=(const Plan &) = delete;

  /// In a key: any extent.
  static constexpr int64_t kAnyExtent = -1;

  /// `build(dtype, {dimension: extent or None}, [(alternative, rank, dtype)],
  /// on_device, sequences, tokens)` compiles a kernel. Extents are None where
  /// it must take any extent. The list has the operands other than tokens.
  /// `sequences` and `tokens` are lower bounds of the call's, 0 where they do
  /// not matter.
  nanobind::object build;
  DimNames names;
  std::vector<DimRule> rules;
  std::vector<OperandSpec> operands;
  /// The state, in the order of the kernel's arguments and results.
  std::vector<OperandSpec> state;
  /// The result beside the state, if there is one.
  std::vector<OperandSpec> output;
  /// The states in between, which are the last results.
  std::vector<OperandSpec> snapshots;
  bool hasState = false, returnsState = false;
  /// The state is f64 for all token types.
  bool hasWideState = false;
  /// The dimensions "B" and "N", if present.
  DimNames::Id batch = DimNames::kNone, states = DimNames::kNone;
  /// Some operand delimits sequences, and thereby determines the number of
  /// states.
  bool hasOffsets = false;
  /// Calls on arrays of the CPU run a GPU's kernels in the emulator.
  bool emulatesDevice = false;
  /// Some operand is a number.
  bool hasNumbers = false;
  /// Kernels are compiled for the head counts of the call, at any T.
  bool fixesHeads = false;
  /// The state is given, so that an error names the tokens that do not fit it.
  bool trustsState = false;

  /// Adds an operand, a part of the state or the output, as `text` describes
  /// it.
  OperandSpec makeOperand(std::string name, OperandRole role,
                          const std::string &layouts);
  /// Adds a rule: "H = max(Hk, Hv)", "Tn = 2 T", "Ts = T / 64", "J = 3", or "F
  /// = features(2, 3, 1, K)" with the coefficients of a FeatureSizeFormula.
  void addRule(const std::string &text);

  /// Returns o, or (o, parts of the state…, snapshots…) where these are
  /// returned; o is None if the plan has no output. Parts that were updated in
  /// place are the given arrays. The final state goes to `destination`, a tuple
  /// of arrays, if given. Tensors that PyTorch must handle go to
  /// `linattn._torch`, and those that JAX traces to `linattn._jax`; these, and
  /// a GPU, take numbers as constants of a separate plan.
  nanobind::object call(llvm::ArrayRef<PyObject *> operands,
                        nanobind::handle state, nanobind::handle out,
                        InPlace inPlace, nanobind::handle numThreads,
                        nanobind::handle destination = nanobind::none());

  /// The same for arrays in memory. Others are a ValueError.
  nanobind::object run(llvm::ArrayRef<PyObject *> operands,
                       nanobind::handle state, nanobind::handle out,
                       InPlace inPlace, nanobind::handle numThreads,
                       nanobind::handle destination = nanobind::none());

  /// A kernel and the sizes it was compiled for.
  struct Entry {
    llvm::SmallVector<int64_t, 24> key;
    Kernel kernel;
    /// The time of its last use, counted in calls of all plans.
    uint64_t used = 0;
  };

  /// The kernel for a call. `key` is the dtype; the number of the GPU plus 1,
  /// or 0; the classes of sequences and of tokens; every extent; and the
  /// alternative, rank and dtype of every operand beside the tokens.
  std::shared_ptr<Entry> getKernel(llvm::ArrayRef<int64_t> key);

  /// Counts a call with a kernel.
  void countUse(Entry &entry);
  uint64_t getLastUse() const { return used; }

  /// The binding of the last call's arrays.
  std::unique_ptr<Binding> last;

  /// The number of kernels that all plans hold, and its bound, beyond which the
  /// least recently used one is dropped. Its next call compiles it again,
  /// unless the compiler's own caches have it.
  static size_t getKernelCount();
  static size_t mostKernels;

private:
  void add(std::shared_ptr<Entry> entry);
  nanobind::object callWithConstants(llvm::ArrayRef<PyObject *> operands,
                                     nanobind::handle state,
                                     nanobind::handle out, InPlace inPlace,
                                     nanobind::handle numThreads,
                                     nanobind::handle destination);
  static void dropOldestKernel();

  std::vector<std::shared_ptr<Entry>> entries;
  uint64_t used = 0;
};

/// Determines the extents of a call from its arrays. Throws if an array does
/// not fit.
class Binder {
public:
  explicit Binder(const Plan &plan) : plan(&plan) {
    extents.fill(kUnknown);
    boundBy.fill(0);
  }

  /// The operand in the order of the op.
  BufferView bind(const OperandSpec &spec, const BufferView &view,
                  uint8_t &alternative);
  /// Applies the rules whose sources are known.
  void applyRules();
  /// Checks an array of the caller against its single layout.
  void checkExact(const OperandSpec &spec, const BufferView &view) const;

  /// The layout of a result.
  const Layout &layoutOf(const OperandSpec &spec) const;

  DType dtypeOf(const OperandSpec &spec) const {
    if (spec.role == OperandRole::Tokens || spec.role == OperandRole::Carried)
      return dtype;
    return dtype == DType::F64 || plan->hasWideState ? DType::F64 : DType::F32;
  }

  Extents extents;
  DType dtype = DType::F32;
  RankMode mode = RankMode::Full;
  bool isFirst = true;
  /// Elements are on a device and cannot be read.
  bool isDevice = false;

private:
  BufferView bindTokens(const OperandSpec &spec, const BufferView &view);
  BufferView bindState(const OperandSpec &spec, const BufferView &view);
  void blameTokens(const OperandSpec &spec, const Layout &layout,
                   const BufferView &view) const;
  BufferView bindGate(const OperandSpec &spec, const BufferView &view,
                      uint8_t &alternative);
  void bindOffsets(const OperandSpec &spec, const BufferView &view);
  void chooseMode(const OperandSpec &spec, const BufferView &view);
  void bindExtents(const OperandSpec &spec, const Layout &layout,
                   const BufferView &view);
  [[noreturn]] void failHeads() const;
  [[noreturn]] void failRank(const OperandSpec &spec,
                             const BufferView &view) const;

  const Plan *plan;
  /// The operand that last bound an extent, for each dimension.
  std::array<const OperandSpec *, DimNames::kMax> boundBy;
};

/// The arrays of a call in the order of the op, and the extents. The next call
/// usually differs in its data only.
struct Binding {
  explicit Binding(const Plan &plan) : binder(plan) {}

  /// Whether arrays like these are bound in the same way.
  bool fits(llvm::ArrayRef<const BufferView *> arrays) const;

  Binder binder;
  llvm::SmallVector<BufferView, 8> given, bound;
  std::shared_ptr<Plan::Entry> kernel;
};

} // namespace linattn::python

#endif // LINATTN_PYTHON_PLAN_H
