//===- SelectSchedule.cpp - Choosing the schedule of a kernel -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScanKernel.h"
#include "linattn/GPU/Passes.h"
#include "linattn/Transforms/Transforms.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNSELECTSCHEDULEPASS
#include "linattn/GPU/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// Up to so many tokens the state's own traffic is what counts.
constexpr int64_t fewTokens = 8;

struct LinAttnSelectSchedulePass final
    : mlir::linattn::impl::LinAttnSelectSchedulePassBase<
          LinAttnSelectSchedulePass> {
  using LinAttnSelectSchedulePassBase::LinAttnSelectSchedulePassBase;

  void runOnOperation() override {
    getOperation()->walk([&](Operation *op) {
      if (auto scan = dyn_cast<ScanOp>(op))
        select(scan);
      else if (isa<AttentionOp, QuadraticOp, StateOp, ReadOp, FeatureMapOp,
                   OutputNormOp, RecurrenceOpInterface>(op))
        refuse(op, "no kernel", "only scans have kernels");
    });
  }

private:
  void select(ScanOp op) {
    if (op->hasAttr(LaunchOp::getScheduleAttrName()))
      return;
    if (std::string why = whyNotTokenKernel(op); !why.empty())
      return refuse(op, "no kernel", why);
    int64_t tokens = staticSize(op.getKey(), 2);
    if (!ShapedType::isDynamic(tokens) && tokens <= fewTokens &&
        !op.getCuSeqlens())
      return write(op, chooseTokenSchedule(op),
                   "few tokens: one pass over the state");
    std::string why = whyNotChunkKernel(op);
    ScheduleAttr chunks =
        why.empty() ? chooseChunkSchedule(op, shared) : ScheduleAttr();
    if (chunks)
      return write(op, chunks, "products of matrices, chunk by chunk");
    if (why.empty())
      why = llvm::formatv("its tiles do not fit {0} bytes of shared memory",
                          shared)
                .str();
    refuse(op, "not chunk", why);
    write(op, chooseTokenSchedule(op), "the recurrence, token by token");
  }

  static void write(ScanOp op, ScheduleAttr schedule, StringRef reason) {
    op->setAttr(LaunchOp::getScheduleAttrName(), schedule);
    remark::passed(op.getLoc(), remarkNamed("select-schedule"))
        << llvm::formatv("{0} kernel, {1} warps, {2} columns of the state: {3}",
                         stringifyForm(schedule.getForm()), schedule.getWarps(),
                         schedule.getValueSlice(), reason)
               .str();
  }

  static void refuse(Operation *op, StringRef what, StringRef why) {
    remark::missed(op->getLoc(), remarkNamed("select-schedule"))
        << (what + ": " + why).str();
  }
};

} // namespace
