//===- ToKernel.cpp - Ops become kernels ----------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionKernels.h"
#include "ScanKernel.h"
#include "linattn/GPU/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNTOKERNELPASS
#include "linattn/GPU/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

namespace {

struct LinAttnToKernelPass final
    : mlir::linattn::impl::LinAttnToKernelPassBase<LinAttnToKernelPass> {
  using LinAttnToKernelPassBase::LinAttnToKernelPassBase;

  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      if (isa<ScanOp, QuadraticOp, StateOp, ReadOp>(op) &&
          op->hasAttr(LaunchOp::getScheduleAttrName()))
        ops.push_back(op);
    });
    for (Operation *op : ops)
      if (failed(llvm::TypeSwitch<Operation *, LogicalResult>(op)
                     .Case<ScanOp, QuadraticOp, StateOp, ReadOp>(
                         [&](auto typed) { return convert(typed); })))
        return signalPassFailure();
  }

private:
  /// The schedule of an op; null after an error if it cannot run it.
  template <typename OpTy>
  ScheduleAttr scheduleOf(OpTy op) {
    auto schedule = op->template getAttrOfType<ScheduleAttr>(
        LaunchOp::getScheduleAttrName());
    if (!schedule) {
      op.emitOpError("expected ")
          << LaunchOp::getScheduleAttrName() << " to be a schedule, but got "
          << op->getAttr(LaunchOp::getScheduleAttrName());
      return {};
    }
    if (std::string why = whyNotSchedule(op, schedule); !why.empty()) {
      op.emitOpError("cannot run with ") << schedule << ": " << why;
      return {};
    }
    return schedule;
  }

  LogicalResult convert(ScanOp op) {
    ScheduleAttr schedule = scheduleOf(op);
    if (!schedule)
      return failure();
    StateSource source = findStateSource(op);
    std::string name = freshName(op);
    bool isChunk = schedule.getForm() == Form::Chunk;
    auto build = !isChunk                   ? buildTokenKernel
                 : schedule.getSplit() == 1 ? buildChunkKernel
                                            : buildSegmentKernels;
    build(op, schedule, source, getOperation(), name);
    if (source.replaces)
      source.replaces->erase();
    op.erase();
    return success();
  }

  template <typename OpTy>
  LogicalResult convert(OpTy op) {
    ScheduleAttr schedule = scheduleOf(op);
    if (!schedule)
      return failure();
    buildKernel(op, schedule, getOperation(), freshName(op));
    op.erase();
    return success();
  }

  /// `<function>_<op>`, with a number where there are several.
  std::string freshName(Operation *op) {
    std::string stem = (op->getParentOfType<func::FuncOp>().getName() + "_" +
                        op->getName().stripDialect())
                           .str();
    std::string name = stem;
    for (unsigned i = 1;
         SymbolTable::lookupSymbolIn(getOperation(), name) != nullptr; ++i)
      name = stem + "_" + std::to_string(i);
    return name;
  }
};

} // namespace
