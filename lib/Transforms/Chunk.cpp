//===- Chunk.cpp - Chunking is tiling of T --------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/LinAttn.h"
#include "linattn/Transforms/Passes.h"
#include "linattn/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNCHUNKPASS
#include "linattn/Transforms/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

namespace {

struct LinAttnChunkPass final
    : mlir::linattn::impl::LinAttnChunkPassBase<LinAttnChunkPass> {
  using LinAttnChunkPassBase::LinAttnChunkPassBase;

  void runOnOperation() override {
    SmallVector<std::pair<ScanOp, int64_t>> scans;
    getOperation()->walk([&](ScanOp op) {
      if (int64_t size = sizeFor(op))
        scans.push_back({op, size});
    });
    IRRewriter rewriter(&getContext());
    for (auto [op, size] : scans)
      if (failed(chunk(rewriter, op, size)))
        return signalPassFailure();
  }

private:
  /// Tokens per chunk; 0 for a scan that stays whole.
  int64_t sizeFor(ScanOp op) {
    if (!op.hasPureTensorSemantics())
      return 0;
    if (wherePossible &&
        (op.getReverse() || op.getCuSeqlens() || op.getEvery()))
      return 0;
    if (chunkSize > 0)
      return chunkSize;
    std::optional<ConfigAttr> config = op.getConfig();
    return config && config->getForm() == Form::Chunk ? config->getChunk() : 0;
  }

  LogicalResult chunk(IRRewriter &rewriter, ScanOp op, int64_t size) {
    int64_t tokens = cast<ShapedType>(op.getKey().getType()).getDimSize(2);
    if (!ShapedType::isDynamic(tokens) && tokens <= size) {
      remark::missed(op.getLoc(), remarkNamed("chunk"))
          << llvm::formatv("the {0} tokens fit one chunk of {1}", tokens, size)
                 .str();
      return success();
    }
    // Reported here, so that the tiling driver reports nothing.
    if (op.getReverse() || op.getCuSeqlens())
      return op.emitOpError("cannot be cut into chunks: ")
             << (op.getReverse() ? "it runs from the last token to the first"
                                 : "its sequences start inside the chunks");
    scf::SCFTilingOptions options;
    // Loops are (batch, head, token); a size of 0 keeps a loop whole.
    options.setTileSizes({rewriter.getIndexAttr(0), rewriter.getIndexAttr(0),
                          rewriter.getIndexAttr(size)});
    rewriter.setInsertionPoint(op);
    FailureOr<scf::SCFTilingResult> tiled = scf::tileUsingSCF(
        rewriter, cast<TilingInterface>(op.getOperation()), options);
    if (failed(tiled))
      return failure();
    remark::passed(op.getLoc(), remarkNamed("chunk"))
        << llvm::formatv("runs in chunks of {0} tokens", size).str();
    rewriter.replaceOp(op, tiled->replacements);
    return success();
  }
};

} // namespace
