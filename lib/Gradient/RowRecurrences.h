//===- RowRecurrences.h - Recurrences of single rows ------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GRADIENT_ROWRECURRENCES_H
#define LINATTN_LIB_GRADIENT_ROWRECURRENCES_H

#include "TensorBuilder.h"

namespace mlir::linattn {

/// A decay that leaves nothing: e^−1000 is 0 in every type.
inline constexpr double kForget = -1000.0;
/// The maximum of nothing: −∞ − −∞ would be NaN.
inline constexpr double kNoMaximum = -1e30;

/// h_t = e^{decay_t + i phase_t} h_{t−1} + value_t, elementwise.
struct RowScan {
  Value value;   ///< [B, H, T, V]
  Value decay;   ///< [B, H, T, V], or null
  Value state;   ///< [B, H, 1, V]
  Value offsets; ///< Of packed sequences, or null.
  bool reverse = false;
  Readout readout = Readout::Inclusive;

  /// Outputs and final state.
  ValueRange build(TensorBuilder &t) const;
};

/// A complex number or array of them; null parts are zero.
struct Complex {
  Value real, imag;
};

/// h_t = e^{decay_t + i phase_t} h_{t−1} + value_t, each element of its own.
struct ComplexRowScan {
  Complex value;      ///< [B, H, T, V]
  Value decay, phase; ///< [B, H, T, V]
  Complex state;      ///< [B, H, 1, V]
  Value offsets;      ///< Of packed sequences, or null.
  bool reverse = false;

  /// Outputs and final state.
  std::pair<Complex, Complex> build(TensorBuilder &t) const;
};

/// m_t = max(m_{t−1} + gate_t, input_t).
struct MaxRecurrence {
  Value input;   ///< [B, T, C]
  Value gate;    ///< [C] or [B, T, C], or null
  Value start;   ///< [B, C]
  Value offsets; ///< Of packed sequences, or null.
  bool reverse = false;
};

/// m_{t−1} and m_t, [B, T, C], and the last one, [B, C]. Before the first key
/// it is a large negative number.
struct RunningMaxima {
  Value previous, current, last;
};

/// As loops over tokens, which have gradients of their own.
RunningMaxima buildRunningMaxima(TensorBuilder &t, const MaxRecurrence &max);

/// e^{x − m}, at most 1: a masked key may have any finite value.
Value emitRelative(OpBuilder &b, Location loc, Value x, Value maximum);

/// log e^{m_{t−1} − m_t + gate_t}, at least `kForget`; no gate stands for 0.
Value emitRescaling(OpBuilder &b, Location loc, Value previous, Value current,
                    Value gate);

} // namespace mlir::linattn

#endif // LINATTN_LIB_GRADIENT_ROWRECURRENCES_H
