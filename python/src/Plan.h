//===- Plan.h - The fast way to a compiled kernel ---------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_PYTHON_PLAN_H
#define LINATTN_PYTHON_PLAN_H

#include "Arrays.h"
#include "linattn/Compiler/Kernel.h"

#include <array>
#include <nanobind/nanobind.h>
#include <vector>

namespace linattn::python {

/// How an operand beside the tokens is laid out.
enum class OperandKind : uint8_t {
  /// [H], [B,T,H] or [B,T,H,K]
  KeyGate,
  /// [B,T,H] or [B,T,H,V]
  ValueGate,
  /// [H,K]
  Bonus,
  /// [B,Tk]
  Mask,
  /// [N+1]
  Offsets,
};

struct OperandSpec {
  std::string name;
  OperandKind kind;
};

/// The sizes of a call. H counts states.
struct Sizes {
  int64_t batch = 1, queries = 0, keys = 0;
  int64_t queryHeads = 1, keyHeads = 1, valueHeads = 1;
  int64_t stateHeads = 1, outputHeads = 1;
  int64_t keySize = 0, valueSize = 0;
  /// States: the batch, or the number of packed sequences.
  int64_t states = 1;
  size_t rank = 4;
  DType dtype = DType::F32;

  DType accumulator() const {
    return dtype == DType::F64 ? DType::F64 : DType::F32;
  }
};

/// What one combination of options runs, and the kernels that it has compiled,
/// one for each element type and head size.
class Plan {
public:
  Plan() = default;
  Plan(const Plan &) = delete;
  Plan &operator=(const Plan &) = delete;

  /// `build((dtype, K, V, T, Hq, Hk, Hv), [(rank, dtype), …])` compiles; T and
  /// heads are None where the kernel must take any.
  nanobind::object build;
  std::vector<OperandSpec> operands;
  bool hasQuery = true, hasKeys = true;
  /// Queries and keys must be equally many: causal attention, scans.
  bool sameLength = false;
  bool hasState = false, returnsState = false;
  bool normalized = false, stabilized = false;
  /// Kernels are made for the head counts at hand, whatever T.
  bool fixesHeads = false;

  /// Returns o, or (o, S, z, m) with a returned state; None where there is
  /// none.
  nanobind::object call(nanobind::handle q, nanobind::handle k,
                        nanobind::handle v, nanobind::handle extra,
                        nanobind::handle S, nanobind::handle z,
                        nanobind::handle m, nanobind::handle out,
                        nanobind::handle stateOut, nanobind::handle numThreads);

  /// The kernel for a call; `key` is what `makeKey` gave, then rank and dtype
  /// of every operand.
  const Kernel &getKernel(llvm::ArrayRef<int64_t> key);

  llvm::SmallVector<int64_t, 8> makeKey(const Sizes &sizes) const;

private:
  struct Entry {
    llvm::SmallVector<int64_t, 8> key;
    Kernel kernel;
  };
  std::vector<std::unique_ptr<Entry>> entries;
};

/// The state arrays by position.
inline constexpr std::array<const char *, 3> kStateNames = {"S", "z", "m"};

/// [T,D], [B,T,D] or [B,T,H,D] seen as [B,H,T,D].
BufferView toLogicalTokens(const BufferView &view);

/// Fills in `sizes` from the token arrays, which may be null, or throws.
void inferSizes(const BufferView *q, const BufferView *k, const BufferView *v,
                const BufferView *S, bool sameLength, Sizes &sizes);

/// The operand as the op takes it, or throws.
BufferView toLogicalOperand(const OperandSpec &spec, const BufferView &view,
                            const Sizes &sizes);

/// Checks offsets of packed sequences; returns how many there are.
int64_t checkOffsets(const BufferView &view, const Sizes &sizes);

/// Throws unless the array has this shape and element type.
void checkArray(const char *name, const BufferView &view, DType dtype,
                llvm::ArrayRef<int64_t> shape);

} // namespace linattn::python

#endif // LINATTN_PYTHON_PLAN_H
