//===- KernelShape.h - Sizes of a kernel ------------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every kernel has a shape: its op, its schedule, and the sizes that follow
// from them. Schedules are chosen by shapes, before any code is emitted; the
// class that emits the kernel derives from its shape.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GPU_KERNELSHAPE_H
#define LINATTN_LIB_GPU_KERNELSHAPE_H

#include "Summands.h"
#include "linattn/Dialect/FeatureMaps.h"
#include "linattn/Dialect/LinAttn.h"

namespace mlir::linattn {

inline int64_t staticSize(Value buffer, unsigned dim) {
  return cast<ShapedType>(buffer.getType()).getDimSize(dim);
}

template <typename OpTy>
struct KernelShape {
  OpTy op;
  ScheduleAttr schedule;

  int64_t keySize() {
    if constexpr (std::is_same_v<OpTy, QuadraticOp>)
      return staticSize(op.getKey(), 3);
    else
      return staticSize(op.getState(), 2);
  }
  int64_t valueSize() {
    if constexpr (std::is_same_v<OpTy, QuadraticOp>)
      return staticSize(op.getValue(), 3);
    else
      return staticSize(op.getState(), 3);
  }
  /// The element type of tokens, which are the first operand of every op.
  Type type() { return getElementTypeOrSelf(op->getOperand(0)); }
  Type summandType() { return summandTypeOf(type()); }
  bool isWide() { return type().isF32(); }
  int64_t elementBytes() { return isWide() ? 4 : 2; }

  int64_t warps() const { return schedule.getWarps(); }
  int64_t threads() const { return warps() * 32; }
  int64_t stages() const { return schedule.getStages(); }
  int64_t slice() const { return schedule.getValueSlice(); }
  int64_t slices() { return llvm::divideCeil(valueSize(), slice()); }
  /// Whether the last slice holds columns that do not exist.
  bool isRagged() { return valueSize() % slice() != 0; }

  FeatureMapKind featureMap() {
    return cast<FeatureMappedOpInterface>(op.getOperation())
        .getFeatureMapKind();
  }
  bool isMapped() { return featureMap() != FeatureMapKind::Identity; }
  Value emitMap(KernelBuilder &k, Value x) {
    return emitFeatureMap(k.b, k.loc,
                          cast<FeatureMappedOpInterface>(op.getOperation()), x);
  }
};

} // namespace mlir::linattn

#endif // LINATTN_LIB_GPU_KERNELSHAPE_H
