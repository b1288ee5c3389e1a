//===- ScanKernel.h - What the kernels of a scan share ----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GPU_SCANKERNEL_H
#define LINATTN_LIB_GPU_SCANKERNEL_H

#include "KernelFunction.h"

namespace mlir::linattn {

/// Where a scan's state starts: in the state itself, in another buffer that was
/// copied into it, or at 0.
struct StateSource {
  Value buffer; ///< Null: 0.
  /// The copy or fill that the kernel makes unnecessary.
  Operation *replaces = nullptr;
};

/// Finds the copy or fill of the scan's state that precedes it. Source and
/// state may be the same memory: callers may update a state in place.
StateSource findStateSource(ScanOp op);

/// Why no kernel of `form` can run the scan, as the end of a sentence; empty if
/// one can.
std::string whyNotTokenKernel(ScanOp op);
std::string whyNotChunkKernel(ScanOp op);

/// The schedules that are chosen unless the user says otherwise.
ScheduleAttr chooseTokenSchedule(ScanOp op);
/// Null if `shared` bytes do not suffice for any.
ScheduleAttr chooseChunkSchedule(ScanOp op, int64_t shared);

/// Why a schedule cannot run the scan; empty if it can.
std::string whyNotSchedule(ScanOp op, ScheduleAttr schedule);

/// Appends the kernel to `module`; the scan itself stays.
LaunchOp buildTokenKernel(ScanOp op, ScheduleAttr schedule,
                          const StateSource &source, ModuleOp module,
                          StringRef name);
LaunchOp buildChunkKernel(ScanOp op, ScheduleAttr schedule,
                          const StateSource &source, ModuleOp module,
                          StringRef name);
LaunchOp buildColumnKernel(ScanOp op, ScheduleAttr schedule,
                           const StateSource &source, ModuleOp module,
                           StringRef name);

/// Whether the chunk form of the scan is the one whose warps own columns.
bool runsByColumns(ScanOp op);

/// The state head of a thread block and the tokens of its sequence.
struct ScanPlace {
  Value slot, head; ///< Of the state.
  Value exists;     ///< Whether the sequence has a state; null: it has.
  Value batch;      ///< Of the tokens.
  Value begin;      ///< First token, i64; null for 0.
  Value count;      ///< Number of tokens.
};

/// Wants the sizes and offsets that `locate` needs.
class ScanLocator {
public:
  ScanLocator(ScanOp op, KernelFunction &function);
  /// `state`: the number of the state, slots times heads.
  ScanPlace locate(KernelBuilder &k, Value state);
  /// Sequences times heads, in the grid.
  AffineExpr gridStates();
  /// The address of a token operand's first row, and bytes between its rows.
  std::pair<Value, Value> rowsOf(KernelBuilder &k, const ScanPlace &place,
                                 const GlobalView &view, Value head);
  /// ⌊head · heads(buffer) / heads of the state⌋.
  Value headOf(KernelBuilder &k, Value buffer, Value head);

  ScanOp op;
  KernelFunction &function;

private:
  unsigned offsets, indices;
};

inline int64_t staticSize(Value buffer, unsigned dim) {
  return cast<ShapedType>(buffer.getType()).getDimSize(dim);
}
inline int64_t rankOf(Value buffer) {
  return cast<ShapedType>(buffer.getType()).getRank();
}

inline FeatureMapKind featureMapOf(ScanOp op) {
  return cast<FeatureMappedOpInterface>(op.getOperation()).getFeatureMapKind();
}

/// Output heads per state.
inline int64_t membersOf(ScanOp op) {
  return staticSize(op.getOutput(), 1) / staticSize(op.getState(), 1);
}

/// What both kernels ask of buffers: static heads and feature sizes, unit
/// innermost strides, 16- or 32-bit tokens, f32 states.
std::string whyNotBuffers(ScanOp op);

} // namespace mlir::linattn

#endif // LINATTN_LIB_GPU_SCANKERNEL_H
