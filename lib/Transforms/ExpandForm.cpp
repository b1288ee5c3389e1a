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
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
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
static void expand(RewriterBase &rewriter, Op op, int64_t chunkSize,
                   StringRef why, bool exact = false, bool forUnit = false) {
  int64_t chunk = chunkOf(op.getConfig(), chunkSize);
  remark::passed(op.getLoc(), remarkNamed("expand-form"))
      << (why.empty()
              ? llvm::formatv("becomes a loop over chunks of {0} tokens", chunk)
                    .str()
              : ("becomes a loop over tokens: " + why).str());
  Expansion expansion(rewriter, Recurrence(op), chunk, !why.empty(), exact,
                      forUnit);
  rewriter.replaceOp(op, expansion.emit());
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
    expand(rewriter, op, chunkSize, whyNotForm(op, Form::Chunk));
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
    expand(rewriter, op, chunkSize,
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
        if (!part.hasPureTensorSemantics())
          return;
        StringRef why = whyNoChunkTasks(part, /*pads=*/matrixUnit);
        if (why.empty() && matrixUnit)
          why = whyNoMatrixUnit(Recurrence(part), fastProducts);
        if (why.empty())
          return found.push_back(op);
        remark::missed(op->getLoc(), remarkNamed("expand-form"))
            << ("stays a " + op->getName().stripDialect() + ": " + why).str();
      });
    });
    IRRewriter rewriter(&getContext());
    for (Operation *op : found) {
      Operation *task = makeTasks(rewriter, op);
      rewriter.setInsertionPoint(task);
      TypeSwitch<Operation *>(task).Case<ScanOp, StateOp, ReadOp>(
          [&](auto part) {
            int64_t chunk =
                matrixUnit ? chunkOfMatrixUnit(Recurrence(part)) : chunkSize;
            expand(rewriter, part, chunk, "", /*exact=*/true,
                   /*forUnit=*/matrixUnit);
          });
      ++numExpanded;
    }
    getOperation()->walk([](ChunkPackOp op) { hoistGate(op); });
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
