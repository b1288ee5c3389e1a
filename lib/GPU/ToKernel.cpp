//===- ToKernel.cpp - Scans become kernels --------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScanKernel.h"
#include "linattn/GPU/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

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
    SmallVector<ScanOp> scans;
    getOperation()->walk([&](ScanOp op) {
      if (op->hasAttr(LaunchOp::getScheduleAttrName()))
        scans.push_back(op);
    });
    for (ScanOp op : scans)
      if (failed(convert(op)))
        return signalPassFailure();
  }

private:
  LogicalResult convert(ScanOp op) {
    auto schedule =
        op->getAttrOfType<ScheduleAttr>(LaunchOp::getScheduleAttrName());
    if (!schedule)
      return op.emitOpError("expected ")
             << LaunchOp::getScheduleAttrName() << " to be a schedule, but got "
             << op->getAttr(LaunchOp::getScheduleAttrName());
    if (std::string why = whyNotSchedule(op, schedule); !why.empty())
      return op.emitOpError("cannot run with ") << schedule << ": " << why;
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

  /// `<function>_scan`, with a number where there are several.
  std::string freshName(ScanOp op) {
    std::string stem =
        (op->getParentOfType<func::FuncOp>().getName() + "_scan").str();
    std::string name = stem;
    for (unsigned i = 1;
         SymbolTable::lookupSymbolIn(getOperation(), name) != nullptr; ++i)
      name = stem + "_" + std::to_string(i);
    return name;
  }
};

} // namespace
