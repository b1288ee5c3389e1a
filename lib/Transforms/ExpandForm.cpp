//===- ExpandForm.cpp - Recurrences as loops over chunks ------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChunkTasks.h"
#include "Expansion.h"

#include "linattn/Dialect/Einsum.h"
#include "linattn/Dialect/ScanTraits.h"
#include "linattn/Transforms/Forms.h"
#include "linattn/Transforms/Passes.h"
#include "linattn/Transforms/Transforms.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNEXPANDFORMPASS
#include "linattn/Transforms/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

static Value expandRead(OpBuilder &b, const Recurrence &read) {
  CarriedValues carried{read.output, read.state.state, Value(),
                        read.state.runningMax};
  if (Value normalizer = read.state.normalizer)
    carried.normalizer = expandColumn(b, read.op->getLoc(), normalizer);
  return ChunkSteps(b, read, carried).emitRead();
}

/// Tokens per chunk: the schedule's, if it has chunks.
static int64_t chunkOf(std::optional<ConfigAttr> config, int64_t otherwise) {
  if (config && config->getForm() == Form::Chunk && config->getChunk() > 0)
    return config->getChunk();
  return otherwise;
}

/// Replaces a scan, a state or a read by its loop: over chunks or, if `why`
/// says what is against them, over tokens.
template <typename Op>
static void expand(RewriterBase &rewriter, Op op, ExpansionOptions options,
                   StringRef why = "") {
  options.byToken = !why.empty();
  options.chunk = options.byToken ? 1 : chunkOf(op.getConfig(), options.chunk);
  std::string becomes = ("becomes a loop over tokens: " + why).str();
  if (why.empty())
    becomes = llvm::formatv("becomes a loop over chunks of {0} tokens",
                            options.chunk);
  if (options.fillsUpLast()) {
    becomes += llvm::formatv(", filled up with zeros from {0} on, and stays as "
                             "it is for fewer behind them",
                             options.fewestOfLast);
  } else if (options.forUnit) {
    becomes += ", and stays as it is for those that fill none";
    if (StringRef whyNot = whyNotFilledUp(Recurrence(op)); !whyNot.empty())
      becomes += (": " + whyNot).str();
  }
  if (options.fewest)
    becomes += llvm::formatv(", and for fewer than {0}", options.fewest);
  remark::passed(op.getLoc(), remarkNamed("expand-form")) << becomes;
  Recurrence recurrence(op);
  SmallVector<Value> results = Expansion(rewriter, recurrence, options).emit();
  if (options.norm) {
    rewriter.replaceOp(options.norm, results.front());
    results.front() = recurrence.output; // Nothing else reads them.
  }
  rewriter.replaceOp(op, results);
}

namespace {

struct ExpandScan : OpRewritePattern<ScanOp> {
  ExpandScan(MLIRContext *context, int64_t chunkSize)
      : OpRewritePattern(context), chunkSize(chunkSize) {}

  LogicalResult matchAndRewrite(ScanOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics())
      return rewriter.notifyMatchFailure(op, "not on tensors");
    if (op.getEvery())
      return rewriter.notifyMatchFailure(op, "its snapshots are not expanded");
    expand(rewriter, op, {chunkSize}, whyNotForm(op, Form::Chunk));
    return success();
  }

  int64_t chunkSize;
};

struct ExpandState : OpRewritePattern<StateOp> {
  ExpandState(MLIRContext *context, int64_t chunkSize)
      : OpRewritePattern(context), chunkSize(chunkSize) {}

  LogicalResult matchAndRewrite(StateOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics())
      return rewriter.notifyMatchFailure(op, "not on tensors");
    expand(rewriter, op, {chunkSize},
           ::linattn::whyNot(::linattn::Schedule::Chunk, getTraits(op)));
    return success();
  }

  int64_t chunkSize;
};

struct ExpandRead : OpRewritePattern<ReadOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ReadOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics())
      return rewriter.notifyMatchFailure(op, "not on tensors");
    rewriter.replaceOp(op, expandRead(rewriter, Recurrence(op)));
    return success();
  }
};

} // namespace

void mlir::linattn::populateExpandFormPatterns(RewritePatternSet &patterns,
                                               int64_t chunkSize) {
  patterns.add<ExpandScan, ExpandState>(patterns.getContext(), chunkSize);
  patterns.add<ExpandRead>(patterns.getContext());
}

namespace {

struct LinAttnExpandFormPass final
    : mlir::linattn::impl::LinAttnExpandFormPassBase<LinAttnExpandFormPass> {
  using LinAttnExpandFormPassBase::LinAttnExpandFormPassBase;

  void runOnOperation() override {
    if (failed(verifyChunkSize(getOperation(), chunkSize)))
      return signalPassFailure();
    if (fillFrom < 1 || fillFrom > 100) {
      getOperation()->emitError(
          "expected fill-from to be 1 to 100 percent, but got ")
          << int64_t(fillFrom);
      return signalPassFailure();
    }
    if (tasks)
      return expandTasks();
    getOperation()->walk([&](Operation *op) {
      auto structured = dyn_cast<DestinationStyleOpInterface>(op);
      auto scan = dyn_cast<ScanOp>(op);
      if (isa<ScanOp, StateOp, ReadOp>(op) &&
          structured.hasPureTensorSemantics() && !(scan && scan.getEvery()))
        ++numExpanded;
    });
    RewritePatternSet patterns(&getContext());
    populateExpandFormPatterns(patterns, chunkSize);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }

private:
  /// Divides recurrences into tasks, each of which loops over its chunks.
  void expandTasks() {
    SmallVector<Operation *> found;
    getOperation()->walk([&](Operation *op) {
      TypeSwitch<Operation *>(op).Case<ScanOp, StateOp, ReadOp>([&](auto part) {
        if (!part.hasPureTensorSemantics() ||
            (whereMeasured && !fastProducts && !hasTokensOf16Bits(part)))
          return;
        StringRef why = whyNoChunkTasks(part, /*pads=*/matrixUnit);
        if (why.empty() && matrixUnit)
          why = whyNoMatrixUnit(Recurrence(part), fastProducts);
        if (why.empty() && matrixUnit && whereMeasured)
          why = whyNotMeasured(Recurrence(part));
        std::string few;
        if (why.empty() && matrixUnit && hasFewTokens(part)) {
          // From zeros a sequence in a task is the op itself, too.
          if (!startsAtZero(part))
            op->setDiscardableAttr(kRemainderAttrName,
                                   UnitAttr::get(&getContext()));
          few = llvm::formatv("it has fewer than {0} tokens", fewestOf(part));
          why = few;
        }
        if (why.empty())
          return found.push_back(op);
        remark::missed(op->getLoc(), remarkNamed("expand-form"))
            << ("stays a " + op->getName().stripDialect() + ": " + why).str();
      });
    });
    IRRewriter rewriter(&getContext());
    for (Operation *op : found)
      TypeSwitch<Operation *>(op).Case<ScanOp, StateOp, ReadOp>(
          [&](auto part) { expandTask(rewriter, part); });
    getOperation()->walk([](ChunkPackOp op) { hoistGate(op); });
  }

  /// The unit of the default takes 16-bit tokens; ops on others get no remark.
  template <typename Op>
  static bool hasTokensOf16Bits(Op op) {
    Type type = getElementTypeOrSelf(Recurrence(op).rows());
    return type.getIntOrFloatBitWidth() == 16;
  }

  /// The tokens of a call, or of all its packed sequences; 0: unknown.
  int64_t tokensOf(const Recurrence &r) {
    int64_t known = cast<ShapedType>(r.rows().getType()).getDimSize(2);
    return ShapedType::isDynamic(known) ? tokens : known;
  }

  template <typename Op>
  static bool startsAtZero(Op op) {
    Recurrence r(op);
    return r.key && llvm::all_of(r.state.present(), isZeroFill);
  }

  /// The fewest tokens of a sequence that run in chunks of a matrix unit.
  template <typename Op>
  int64_t fewestOf(Op op) {
    if (!startsAtZero(op))
      return fewestOfLast(op);
    auto states = op->getResults().drop_front(isa<ScanOp>(op) ? 1 : 0);
    bool returnsState =
        llvm::any_of(states, [](Value state) { return !state.use_empty(); });
    return std::max(unitChunkOf(op), ::linattn::fewestUnitTokens(returnsState));
  }

  template <typename Op>
  static int64_t unitChunkOf(Op op) {
    return chunkOf(op.getConfig(), chunkOfMatrixUnit(Recurrence(op)));
  }

  /// The fewest tokens of a last chunk, all of it if zeros cannot fill it up.
  template <typename Op>
  int64_t fewestOfLast(Op op) {
    int64_t chunk = unitChunkOf(op);
    if (!whyNotFilledUp(Recurrence(op)).empty())
      return chunk;
    return std::max<int64_t>(chunk * fillFrom / 100, 1);
  }

  template <typename Op>
  bool hasFewTokens(Op op) {
    int64_t known = tokensOf(Recurrence(op));
    return known && known < fewestOf(op);
  }

  template <typename Op>
  void expandTask(RewriterBase &rewriter, Op op) {
    Recurrence r(op);
    ExpansionOptions options{matrixUnit ? unitChunkOf(op) : chunkSize};
    options.exact = true;
    options.forUnit = matrixUnit;
    options.fewestOfLast = matrixUnit ? fewestOfLast(op) : 0;
    if (matrixUnit && (r.offsets || !tokensOf(r))) {
      options.mayLackChunk = !startsAtZero(op);
      options.fewest = startsAtZero(op) ? fewestOf(op) : 0;
    }
    OutputNormOp norm = takeNorm(rewriter, r);
    int64_t columns = matrixUnit && !norm ? columnsOfTask(op) : 0;
    Task task = makeTasks(rewriter, r, norm, columns);
    options.norm = task.norm;
    // Behind the norm's operands, too.
    rewriter.setInsertionPointAfter(task.op);
    if (task.norm)
      rewriter.setInsertionPointAfter(task.norm);
    expand(rewriter, cast<Op>(task.op), options);
    ++numExpanded;
  }

  /// As many columns of the values as leave every core a task, if sequences and
  /// heads do not; 0: all. Each task computes the scores of its head again, so
  /// that few columns would gain nothing.
  template <typename Op>
  int64_t columnsOfTask(Op op) {
    constexpr int64_t fewest = 32;
    Recurrence r(op);
    auto states = cast<ShapedType>(r.state.state.getType());
    // Its normaliser is one for all columns.
    if (r.state.normalizer && !isa<ReadOp>(op) &&
        !op->getResults().back().use_empty())
      return 0;
    int64_t batch = states.getDimSize(0), all = states.getDimSize(3);
    if (ShapedType::isDynamic(batch))
      batch = std::max<int64_t>(sequences, 1);
    int64_t columns = all;
    for (int64_t tasks = batch * states.getDimSize(1);
         tasks < cores && columns % (2 * kTileRows) == 0 &&
         columns >= 2 * fewest;
         tasks *= 2)
      columns /= 2;
    if (columns == all)
      return 0;
    remark::passed(op->getLoc(), remarkNamed("expand-form"))
        << llvm::formatv("has {0} columns of its values in each task", columns)
               .str();
    return columns;
  }

  /// The norm that alone reads the outputs of a recurrence, with its other
  /// operands computed before it; null without one.
  static OutputNormOp takeNorm(RewriterBase &rewriter, const Recurrence &r) {
    Value output = r.output ? r.op->getResult(0) : Value();
    auto norm = output && output.hasOneUse()
                    ? dyn_cast<OutputNormOp>(*output.user_begin())
                    : OutputNormOp();
    if (!norm || norm.getInput() != output)
      return {};
    auto stays = [&](StringRef why) {
      remark::missed(norm.getLoc(), remarkNamed("expand-form"))
          << ("runs as a kernel of its own: " + why).str();
      return OutputNormOp();
    };
    if (getElementTypeOrSelf(r.state.state) !=
        getAccumulationType(getElementTypeOrSelf(norm.getOutput())))
      return stays("the recurrence computes in another type");
    SmallVector<Value> others;
    llvm::copy_if(norm->getOperands(), std::back_inserter(others),
                  [&](Value x) { return x != output; });
    if (failed(moveValueDefinitions(rewriter, others, r.op)))
      return stays("its operands are computed from the recurrence");
    remark::passed(norm.getLoc(), remarkNamed("expand-form"))
        << "is applied by the kernel of its recurrence";
    return norm;
  }

  /// Substitution grows with the chunk and runs in vectors, while products of
  /// larger chunks read and pack the state less often.
  static int64_t chunkOfMatrixUnit(const Recurrence &r) {
    return getRule(r.update).isAdditive() ? 64 : 32;
  }

  /// The decay of a head is the same in every whole chunk.
  static void hoistGate(ChunkPackOp op) {
    auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
    auto empty = op.getOutput().getDefiningOp<tensor::EmptyOp>();
    if (loop && empty && empty.getDynamicSizes().empty() &&
        cast<ShapedType>(op.getInput().getType()).getRank() == 1 &&
        empty->hasOneUse() && loop.isDefinedOutsideOfLoop(op.getInput())) {
      loop.moveOutOfLoop(empty);
      loop.moveOutOfLoop(op);
    }
  }
};

} // namespace
