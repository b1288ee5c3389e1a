//===- SelectForm.cpp - Choosing the schedule -----------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Analysis/CostModel.h"
#include "linattn/Dialect/LinAttn.h"
#include "linattn/Transforms/Forms.h"
#include "linattn/Transforms/Passes.h"
#include "linattn/Transforms/Transforms.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNSELECTFORMPASS
#include "linattn/Transforms/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

namespace {

using ::linattn::fewTokens;
/// What `#linattn.config` takes.
constexpr int64_t largestSize = int64_t(1) << 20;

/// What the option `form` asks for.
struct Request {
  Form form = Form::Auto;
  int64_t chunk = ::linattn::chunkTokens;
  int64_t segment = 0; ///< 0: from the number of tokens.
};

struct LinAttnSelectFormPass final
    : mlir::linattn::impl::LinAttnSelectFormPassBase<LinAttnSelectFormPass> {
  using LinAttnSelectFormPassBase::LinAttnSelectFormPassBase;

  LogicalResult initialize(MLIRContext *context) override {
    return verifyVectorTarget(context, vectorBits, registers);
  }

  void runOnOperation() override {
    std::optional<Request> request = parseRequest();
    if (!request)
      return signalPassFailure();
    WalkResult result = getOperation()->walk([&](Operation *op) {
      if (auto scan = dyn_cast<ScanOp>(op))
        return select(scan, scan.getKey(), *request);
      if (auto state = dyn_cast<StateOp>(op))
        return select(state, state.getKey(), *request);
      if (auto read = dyn_cast<ReadOp>(op))
        return select(read, read.getQuery(), *request);
      if (auto attention = dyn_cast<AttentionOp>(op))
        selectQuadratic(attention);
      if (auto quadratic = dyn_cast<QuadraticOp>(op))
        selectQuadratic(quadratic);
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

private:
  std::optional<Request> parseRequest() {
    Request request;
    StringRef text = form;
    auto [name, size] = text.split(':');
    std::optional<Form> parsed = symbolizeForm(name);
    bool takesSize = parsed == Form::Chunk || parsed == Form::Segments;
    int64_t tokens = 0;
    if (!parsed || *parsed == Form::Quadratic ||
        (!size.empty() && (!takesSize || size.getAsInteger(10, tokens) ||
                           tokens < 1 || tokens > largestSize))) {
      getOperation()->emitError(
          "expected form to be auto, token, state_tile, chunk, segments, "
          "chunk:SIZE or segments:SIZE with a SIZE from 1 to ")
          << largestSize << ", but got " << text;
      return std::nullopt;
    }
    request.form = *parsed;
    if (tokens)
      (parsed == Form::Chunk ? request.chunk : request.segment) = tokens;
    return request;
  }

  /// What stays quadratic: panels of queries, or rows for a few of them.
  template <typename OpTy>
  void selectQuadratic(OpTy op) {
    if (op.getConfig() && op.getConfig()->getForm() != Form::Auto)
      return;
    int64_t queries = cast<ShapedType>(op.getQuery().getType()).getDimSize(2);
    bool few = !ShapedType::isDynamic(queries) && queries <= fewTokens;
    op.setConfigAttr(ConfigAttr::get(
        &getContext(), few ? Form::Token : Form::Quadratic, 0, 0, 0, 0));
    remark::passed(op.getLoc(), remarkNamed("select-form"))
        << (few ? "token: one pass over the keys for each of a few queries"
                : "quadratic: blocks of keys against panels of queries");
  }

  /// The segments' own schedule is chosen when they exist.
  WalkResult selectSegments(ScanOp op, ConfigAttr given, int64_t segment) {
    auto kept =
        given ? given
              : ConfigAttr::get(&getContext(), Form::Segments, 0, 0, 0, 0);
    op.setConfigAttr(ConfigAttr::get(&getContext(), Form::Segments,
                                     kept.getChunk(), kept.getRows(),
                                     kept.getCols(), kept.getBlock(), segment));
    remark::passed(op.getLoc(), remarkNamed("select-form"))
        << "segments: as asked for";
    return WalkResult::advance();
  }

  /// Writes the schedule of one op.
  template <typename OpTy>
  WalkResult select(OpTy op, Value tokens, Request request) {
    // A hand-written form stands; what it leaves open is filled in.
    ConfigAttr given = op.getConfigAttr();
    if (given && given.getForm() != Form::Auto) {
      request.form = given.getForm();
      if (given.getChunk())
        request.chunk = given.getChunk();
      if (given.getSegment())
        request.segment = given.getSegment();
    }
    auto size = [](Value value, int64_t dim) {
      return cast<ShapedType>(value.getType()).getDimSize(dim);
    };
    int64_t count = size(tokens, 2);
    Form chosen = request.form;
    std::string reason = "as asked for";
    if (chosen == Form::Auto) {
      bool few = !ShapedType::isDynamic(count) && count <= fewTokens;
      chosen = few ? Form::Token : Form::StateTile;
      reason = few ? "few tokens: one pass over the state"
                   : "the state stays in registers while tokens stream past";
      if constexpr (std::is_same_v<OpTy, ScanOp>)
        if (std::string why = whyNotForm(op, chosen); !why.empty()) {
          // A rank-1 update of many tokens: chunks, where they can run it.
          bool chunks = whyNotForm(op, Form::Chunk).empty();
          chosen = chunks ? Form::Chunk : Form::Token;
          reason = std::move(why);
        }
    }
    if constexpr (std::is_same_v<OpTy, ScanOp>) {
      if (failed(verifyForm(op, chosen)))
        return WalkResult::interrupt();
      if (chosen == Form::Segments)
        return selectSegments(op, given, request.segment);
    } else if (chosen == Form::Chunk || chosen == Form::Segments) {
      chosen = Form::StateTile;
    }

    Type element = getElementTypeOrSelf(op.getState());
    auto tile = ::linattn::chooseStateTile(
        {vectorBits, registers}, element.getIntOrFloatBitWidth(),
        size(op.getState(), 2), size(op.getState(), 3));
    auto keep = [&](int64_t mine, int64_t fallback) {
      return mine ? mine : fallback;
    };
    int64_t rows = keep(given ? given.getRows() : 0, tile.rows);
    int64_t cols = keep(given ? given.getCols() : 0, tile.cols);
    int64_t block = keep(given ? given.getBlock() : 0, tile.block);
    int64_t chunk = chosen == Form::Chunk ? request.chunk : 0;
    op.setConfigAttr(
        ConfigAttr::get(&getContext(), chosen, chunk, rows, cols, block));
    if (chosen == Form::Chunk)
      remark::passed(op.getLoc(), remarkNamed("select-form"))
          << llvm::formatv("chunks of {0} tokens: {1}", chunk, reason).str();
    else
      remark::passed(op.getLoc(), remarkNamed("select-form"))
          << llvm::formatv("{0}, tile {1}x{2} over {3} tokens: {4}",
                           stringifyForm(chosen), rows, cols, block, reason)
                 .str();
    return WalkResult::advance();
  }
};

} // namespace
