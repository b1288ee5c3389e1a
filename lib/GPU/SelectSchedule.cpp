//===- SelectSchedule.cpp - Choosing the schedule of a kernel -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionKernels.h"
#include "Prediction.h"
#include "Summands.h"
#include "linattn/GPU/Passes.h"
#include "linattn/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNSELECTSCHEDULEPASS
#include "linattn/GPU/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// The number of tokens up to which the traffic of the state dominates.
constexpr int64_t fewTokens = 8;
/// A schedule for few heads is taken only if its predicted time is at most this
/// share of that of the schedule for many heads.
constexpr double worthIt = 0.8;
/// Segments read keys and values twice: in sectors of memory, over every
/// operand once. With transitions keys are read for the columns of these, too,
/// and matrices move beside the states.
constexpr double mostTraffic = 1.6, mostTransitionTraffic = 4;
constexpr int64_t mostSegments = 256;
constexpr StringLiteral chunkReason = "products of matrices, chunk by chunk";

struct LinAttnSelectSchedulePass final
    : mlir::linattn::impl::LinAttnSelectSchedulePassBase<
          LinAttnSelectSchedulePass> {
  using LinAttnSelectSchedulePassBase::LinAttnSelectSchedulePassBase;

  void runOnOperation() override {
    getOperation()->walk([&](Operation *op) {
      if (isa<ScanOp, QuadraticOp, StateOp, ReadOp>(op) &&
          op->getParentOfType<scf::ForallOp>())
        refuse(op, "no kernel",
               "it is in a parallel loop, whose iterations are threads");
      else if (auto scan = dyn_cast<ScanOp>(op))
        select(scan);
      else if (auto quadratic = dyn_cast<QuadraticOp>(op))
        select(quadratic);
      else if (auto state = dyn_cast<StateOp>(op))
        select(state);
      else if (auto read = dyn_cast<ReadOp>(op))
        select(read);
      else if (isa<AttentionOp, FeatureMapOp, OutputNormOp,
                   RecurrenceOpInterface>(op))
        refuse(op, "no kernel", "an op of its kind has no kernel");
    });
  }

private:
  void select(ScanOp op) {
    if (op->hasAttr(LaunchOp::getScheduleAttrName()))
      return;
    if (std::string why = whyNotTokenKernel(op); !why.empty())
      return refuse(op, "no kernel", why);
    int64_t tokens = sizes().sizeOf(op.getKey(), 2);
    ScheduleAttr token = chooseTokenSchedule(op);
    if (!ShapedType::isDynamic(tokens) && tokens <= fewTokens &&
        !op.getCuSeqlens())
      return write(op, token, "few tokens: one pass over the state", {});
    std::string why = whyNotChunkKernel(op);
    SmallVector<ScheduleAttr> chunks;
    if (why.empty() && scanMma == Mma::Wgmma) {
      std::string notWarpgroups;
      if (ScheduleAttr schedule =
              chooseWarpgroups(op, machine(), summandsOf(op), notWarpgroups))
        return write(op, schedule, chunkReason, {});
      refuse(op, "no wgmma", notWarpgroups);
    }
    if (why.empty())
      chunks = listChunkSchedules(op, machine().shared, summandsOf(op));
    if (!chunks.empty())
      return selectChunks(op, chunks);
    if (why.empty())
      why = whyNotShared();
    refuse(op, "not chunk", why);
    write(op, token, "the recurrence, token by token", {});
  }

  template <typename OpTy>
  void select(OpTy op) {
    if (op->hasAttr(LaunchOp::getScheduleAttrName()))
      return;
    std::string why = whyNotKernel(op);
    ScheduleAttr schedule;
    if (why.empty()) {
      schedule = chooseSchedule(op, machine(), summandsOf(op));
      why = whyNotShared();
    }
    if (!schedule)
      return refuse(op, "no kernel", why);
    std::string copies;
    if constexpr (std::is_same_v<OpTy, QuadraticOp>)
      if (copy == CopyEngine::Tma)
        copies = addTensorMaps(op, schedule);
    op->setAttr(LaunchOp::getScheduleAttrName(), schedule);
    remark::passed(op.getLoc(), remarkNamed("select-schedule"))
        << llvm::formatv("{0} kernel, {1} warps, {2} tokens at a time{3}{4}{5}",
                         stringifyForm(schedule.getForm()), schedule.getWarps(),
                         schedule.getChunk(), describeProducts(op, schedule),
                         copies, describe(predict(op, schedule, machine())))
               .str();
  }

  /// Applies the option for tensor maps; returns how tiles are copied, for the
  /// remark.
  std::string addTensorMaps(QuadraticOp op, ScheduleAttr &schedule) {
    std::string why;
    schedule = chooseTensorMaps(op, schedule, machine(), why);
    return why.empty() ? ", tma" : "; cp_async, no tma: " + why;
  }

  /// That products of matrices take of what is wider than 16 bits.
  int64_t summandsOf(Operation *op) {
    if (math != ::linattn::Math::Fast)
      return allSummands;
    return getElementTypeOrSelf(op->getOperand(0)).isF32() ? 2 : 1;
  }

  std::string describeProducts(Operation *op, ScheduleAttr schedule) {
    std::string text = describeMma(op, schedule);
    // A summand's, with the one that is not stored.
    Type token = getElementTypeOrSelf(op->getOperand(0));
    int64_t bits = summandTypeOf(token).isF16() ? 11 : 8;
    if (schedule.getSummands() < allSummands)
      text += llvm::formatv("; math=fast: products take {0} summand{1} of f32, "
                            "{2} bits",
                            schedule.getSummands(),
                            schedule.getSummands() > 1 ? "s" : "",
                            bits * schedule.getSummands())
                  .str();
    return text;
  }

  /// Names the matrix instruction where the chip has more than one.
  std::string describeMma(Operation *op, ScheduleAttr schedule) {
    if (schedule.getMma() == Mma::Wgmma)
      return ", wgmma";
    if (schedule.getMma() == Mma::Fma)
      return "";
    std::string why;
    if (auto scan = dyn_cast<ScanOp>(op))
      if (chooseWarpgroups(scan, machine(), schedule.getSummands(), why))
        return "; mma_sync: scan-mma=wgmma selects warpgroups";
    if (machine().warpgroupRate > 0)
      return "; mma_sync: wgmma has kernels of quadratic attention in 16 bits "
             "and of scans by rows only";
    bool isHopper = StringRef(chip) == "sm_90";
    bool isWide = getElementTypeOrSelf(op->getOperand(0)).isF32();
    if (isHopper && schedule.getForm() == Form::Quadratic && !isWide)
      return "; mma_sync: wgmma is code for the chip sm_90a";
    return "";
  }

  std::string whyNotShared() {
    return llvm::formatv("its tiles do not fit {0} bytes of shared memory",
                         machine().shared)
        .str();
  }

  /// The chip as the options say.
  GPUMachine machine() {
    GPUMachine machine = describeGPU(chip);
    if (sms)
      machine.multiprocessors = sms;
    if (bandwidth)
      machine.bandwidth = 1e9 * double(bandwidth);
    if (shared)
      machine.shared = shared;
    return machine;
  }

  ExpectedSizes sizes() const { return {sequences, tokens}; }

  /// The sizes that are expected and not known.
  std::string describeExpected(ScanOp op) {
    std::string text;
    auto add = [&](Value buffer, unsigned dim, const char *what) {
      if (ShapedType::isDynamic(staticSize(buffer, dim)) &&
          sizes().sizeOf(buffer, dim) >= 0)
        text +=
            llvm::formatv("{0}{1} {2}", text.empty() ? "; chosen for " : ", ",
                          sizes().sizeOf(buffer, dim), what)
                .str();
    };
    add(op.getState(), 0, "sequences");
    add(op.getKey(), 2, "tokens");
    return text;
  }

  /// A schedule and how long it takes.
  struct Choice {
    ScheduleAttr schedule;
    double seconds = std::numeric_limits<double>::infinity();
  };

  /// The fastest number of segments, from 2 on, whose traffic is bounded.
  Choice splitBest(ScanOp op, ScheduleAttr schedule) {
    Choice best;
    double most =
        getRule(op).couplesRows() ? mostTransitionTraffic : mostTraffic;
    most *= operandBytes(op, sizes());
    int64_t chunks =
        llvm::divideCeil(*tokensOfSequence(op, sizes()), schedule.getChunk());
    for (int64_t split = 2; split <= std::min(chunks, mostSegments); ++split) {
      ScheduleAttr candidate = withSplit(schedule, split);
      Prediction prediction = *predict(op, candidate, machine(), sizes());
      if (prediction.bytes <= most && prediction.seconds < best.seconds)
        best = {candidate, prediction.seconds};
    }
    return best;
  }

  void selectChunks(ScanOp op, ArrayRef<ScheduleAttr> schedules) {
    std::string notSplit = whyNotSegments(op);
    std::optional<Prediction> first =
        predict(op, schedules[0], machine(), sizes());
    if (!first) {
      // Segments of few tokens would be slower than none.
      if (notSplit.empty())
        notSplit = "the number of tokens or sequences is not known";
      return write(op, schedules[0], chunkReason, "one segment: " + notSplit);
    }
    Choice whole{schedules[0], first->seconds}, split;
    std::string considered;
    auto consider = [&](Choice choice, Choice &best, double gain) {
      if (choice.schedule && choice.seconds < gain * best.seconds)
        best = choice;
    };
    for (ScheduleAttr schedule : schedules) {
      Choice choice{schedule,
                    predict(op, schedule, machine(), sizes())->seconds};
      considered += describe(choice);
      consider(choice, whole, worthIt);
      if (notSplit.empty() &&
          whyNotSchedule(op, withSplit(schedule, 2)).empty())
        consider(splitBest(op, schedule), split, 1);
    }
    if (split.schedule)
      considered += describe(split);
    Choice best = whole;
    consider(split, best, worthIt);
    considered += describe(
        {chooseTokenSchedule(op),
         predict(op, chooseTokenSchedule(op), machine(), sizes())->seconds});
    std::string note = "considered" + considered;
    if (!notSplit.empty())
      note += "; one segment: " + notSplit;
    write(op, best.schedule, chunkReason, note);
  }

  /// Of what was considered.
  static std::string describe(Choice choice) {
    ScheduleAttr schedule = choice.schedule;
    bool isToken = schedule.getForm() == Form::Token;
    std::string split;
    if (schedule.getSplit() > 1)
      split = llvm::formatv(" in {0} segments", schedule.getSplit()).str();
    return llvm::formatv(" [{0}{1} warps, {2} columns{3}: {4:F1} us]",
                         isToken ? "token, " : "", schedule.getWarps(),
                         schedule.getValueSlice(), split, 1e6 * choice.seconds)
        .str();
  }

  std::string describe(const std::optional<Prediction> &prediction) {
    if (!prediction)
      return {};
    return llvm::formatv("; predicted {0:F1} us: {1:F2} MB, {2} blocks on {3} "
                         "multiprocessors",
                         1e6 * prediction->seconds, 1e-6 * prediction->bytes,
                         prediction->blocks, machine().multiprocessors)
        .str();
  }

  void write(ScanOp op, ScheduleAttr schedule, StringRef reason,
             const std::string &note) {
    op->setAttr(LaunchOp::getScheduleAttrName(), schedule);
    std::string text =
        llvm::formatv("{0} kernel, {1} warps, {2} columns of the state",
                      stringifyForm(schedule.getForm()), schedule.getWarps(),
                      schedule.getValueSlice())
            .str();
    if (schedule.getSplit() > 1)
      text += llvm::formatv(", {0} segments", schedule.getSplit()).str();
    text += ": " + reason.str() + describeProducts(op, schedule);
    text += describe(predict(op, schedule, machine(), sizes()));
    text += describeExpected(op);
    if (!note.empty())
      text += "; " + note;
    remark::passed(op.getLoc(), remarkNamed("select-schedule")) << text;
  }

  static void refuse(Operation *op, StringRef what, StringRef why) {
    remark::missed(op->getLoc(), remarkNamed("select-schedule"))
        << (what + ": " + why).str();
  }
};

} // namespace
