//===- Launch.cpp - Schedules and launches of GPU kernels -----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/LinAttn.h"

using namespace mlir;
using namespace mlir::linattn;

using EmitError = function_ref<InFlightDiagnostic()>;

static LogicalResult checkRange(EmitError emit, StringRef name, int64_t value,
                                int64_t low, int64_t high) {
  if (value >= low && value <= high)
    return success();
  return emit() << "expected " << name << " to be from " << low << " to "
                << high << ", but got " << value;
}

LogicalResult ScheduleAttr::verify(EmitError emit, Form form, Mma mma,
                                   int64_t chunk, int64_t warps, int64_t stages,
                                   int64_t valueSlice, int64_t split,
                                   int64_t summands, CopyEngine copy) {
  if (form != Form::Token && form != Form::Chunk && form != Form::Quadratic)
    return emit() << "expected form to be token, chunk or quadratic, but got "
                  << stringifyForm(form);
  if (form == Form::Token && mma != Mma::Fma)
    return emit() << "expected form token to have mma fma, but got "
                  << stringifyMma(mma);
  if (copy == CopyEngine::Tma && mma != Mma::Wgmma)
    return emit() << "expected copy tma to have mma wgmma, but got "
                  << stringifyMma(mma);
  return success(
      succeeded(checkRange(emit, "chunk", chunk, 1, 256)) &&
      succeeded(checkRange(emit, "warps", warps, 1, 32)) &&
      succeeded(checkRange(emit, "stages", stages, 1, 4)) &&
      succeeded(checkRange(emit, "value_slice", valueSlice, 0, 256)) &&
      succeeded(checkRange(emit, "split", split, 1, 1 << 16)) &&
      succeeded(checkRange(emit, "summands", summands, 1, 3)));
}

LogicalResult LaunchValueAttr::verify(EmitError emit, LaunchValueKind kind,
                                      int64_t operand, int64_t dim,
                                      int64_t align) {
  if (operand < 0 || dim < 0)
    return emit() << "expected operand and dim not to be negative, but got "
                  << operand << " and " << dim;
  if (align < 1 || !llvm::isPowerOf2_64(align))
    return emit() << "expected align to be a power of two, but got " << align;
  return success();
}

LogicalResult LaunchPlanAttr::verify(EmitError emit, AffineMap grid,
                                     int64_t block, int64_t shared,
                                     ArrayRef<LaunchValueAttr> sizes,
                                     ArrayRef<LaunchValueAttr> args) {
  if (grid.getNumResults() != 3 || grid.getNumDims() != 0)
    return emit() << "expected grid to have three results and no dimension, "
                     "but got "
                  << AffineMapAttr::get(grid);
  if (grid.getNumSymbols() != sizes.size())
    return emit() << "expected grid to have one symbol for each of "
                  << sizes.size() << " sizes, but got "
                  << AffineMapAttr::get(grid);
  for (LaunchValueAttr size : sizes)
    if (size.getKind() != LaunchValueKind::Size)
      return emit() << "expected sizes to hold sizes only, but got " << size;
  return success(
      succeeded(checkRange(emit, "block", block, 1, 1024)) &&
      succeeded(checkRange(emit, "shared", shared, 0, int64_t(1) << 18)));
}

/// The plan is repeated at the launch, because a compiled kernel is a
/// `gpu.binary`, which keeps no attributes.
LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &tables) {
  StringRef name = getPlanAttrName();
  auto plan = (*this)->getAttrOfType<LaunchPlanAttr>(name);
  if (!plan)
    return emitOpError("expected an attribute ") << name;
  Operation *module =
      tables.lookupNearestSymbolFrom(*this, getKernelAttr().getRootReference());
  if (!module)
    return emitOpError("expected a module named ")
           << getKernelAttr().getRootReference();
  if (module->getNumRegions()) {
    Operation *kernel = tables.lookupNearestSymbolFrom(*this, getKernelAttr());
    if (!kernel)
      return emitOpError("expected a kernel named ") << getKernelAttr();
    if (kernel->getAttr(name) != plan)
      return emitOpError("expected ")
             << name << " to be that of " << getKernelAttr();
  }
  for (ArrayRef<LaunchValueAttr> values : {plan.getSizes(), plan.getArgs()})
    for (LaunchValueAttr value : values) {
      if (value.getOperand() >= static_cast<int64_t>(getBuffers().size()))
        return emitOpError("expected an operand for ")
               << value << " of the plan, but got " << getBuffers().size()
               << " operands";
      auto type = cast<MemRefType>(getBuffers()[value.getOperand()].getType());
      if (value.getKind() != LaunchValueKind::Pointer &&
          value.getDim() >= type.getRank())
        return emitOpError("expected a dimension for ")
               << value << " of the plan, but got " << type;
    }
  return success();
}
