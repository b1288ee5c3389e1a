//===- SplitSegments.cpp - Scans over segments of T in parallel -----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SegmentedScan.h"

#include "linattn/Transforms/Forms.h"
#include "linattn/Transforms/Passes.h"
#include "linattn/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNSPLITSEGMENTSPASS
#include "linattn/Transforms/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

namespace {

struct LinAttnSplitSegmentsPass final
    : mlir::linattn::impl::LinAttnSplitSegmentsPassBase<
          LinAttnSplitSegmentsPass> {
  using LinAttnSplitSegmentsPassBase::LinAttnSplitSegmentsPassBase;

  void runOnOperation() override {
    SmallVector<ScanOp> scans;
    getOperation()->walk([&](ScanOp op) {
      if (op.hasPureTensorSemantics() && op.getConfig() &&
          op.getConfig()->getForm() == Form::Segments)
        scans.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (ScanOp op : scans)
      if (failed(split(rewriter, op)))
        return signalPassFailure();
  }

private:
  LogicalResult split(IRRewriter &rewriter, ScanOp op) {
    if (failed(verifyForm(op, Form::Segments)))
      return failure();
    ConfigAttr config = *op.getConfig();
    int64_t tokens = cast<ShapedType>(op.getKey().getType()).getDimSize(2);
    int64_t shortest =
        config.getSegment() ? config.getSegment() : shortestSegment;
    if (!ShapedType::isDynamic(tokens) && tokens <= shortest) {
      remark::missed(op.getLoc(), remarkNamed("split-segments"))
          << llvm::formatv("the {0} tokens fit one segment of {1}", tokens,
                           shortest)
                 .str();
      op.setConfigAttr(ConfigAttr::get(&getContext(), Form::Auto,
                                       config.getChunk(), config.getRows(),
                                       config.getCols(), config.getBlock()));
      return success();
    }
    FailureOr<ScanOp> single = overOneBatch(rewriter, op);
    if (failed(single))
      return failure();
    remark::passed(single->getLoc(), remarkNamed("split-segments"))
        << (config.getSegment()
                ? llvm::formatv("runs in segments of {0} tokens, in parallel",
                                config.getSegment())
                      .str()
                : std::string("runs in segments, in parallel"));
    SmallVector<Value> results = emitSegmentedScan(rewriter, *single);
    rewriter.replaceOp(*single, results);
    ++numSplit;
    return success();
  }

  /// The scan of one batch element, in a loop over the batch if there are
  /// several.
  FailureOr<ScanOp> overOneBatch(IRRewriter &rewriter, ScanOp op) {
    if (cast<ShapedType>(op.getKey().getType()).getDimSize(0) == 1)
      return op;
    scf::SCFTilingOptions options;
    options.setTileSizes({rewriter.getIndexAttr(1), rewriter.getIndexAttr(0),
                          rewriter.getIndexAttr(0)});
    rewriter.setInsertionPoint(op);
    FailureOr<scf::SCFTilingResult> tiled = scf::tileUsingSCF(
        rewriter, cast<TilingInterface>(op.getOperation()), options);
    if (failed(tiled))
      return failure();
    rewriter.replaceOp(op, tiled->replacements);
    return cast<ScanOp>(tiled->tiledOps.front());
  }
};

} // namespace
