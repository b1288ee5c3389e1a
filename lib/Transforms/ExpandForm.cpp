//===- ExpandForm.cpp - Recurrences as loops over chunks ------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChunkSteps.h"

#include "linattn/Dialect/Einsum.h"
#include "linattn/Transforms/Forms.h"
#include "linattn/Transforms/Passes.h"
#include "linattn/Transforms/Transforms.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNEXPANDFORMPASS
#include "linattn/Transforms/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// Builds the loops around the chunks of one recurrence.
class Expansion {
public:
  Expansion(OpBuilder &b, const Recurrence &recurrence, int64_t chunk,
            bool byToken)
      : b(b), loc(recurrence.op->getLoc()), r(recurrence),
        chunk(byToken ? 1 : chunk), byToken(byToken) {}

  /// The results of the op.
  SmallVector<Value> emit();

private:
  /// The tokens of one sequence, or of all: a batch of one length.
  struct Span {
    OpFoldResult batch, batches;
    Value begin, end;
  };

  CarriedValues emitSequences(CarriedValues carried);
  CarriedValues emitSequence(Value sequence, CarriedValues carried);
  CarriedValues emitChunks(const Span &span, CarriedValues carried);
  CarriedValues emitChunk(const Span &span, Value position,
                          CarriedValues carried);
  CarriedValues loop(Value from, Value to, int64_t step, CarriedValues carried,
                     function_ref<CarriedValues(Value, CarriedValues)> body);
  /// Tokens [first, first + count) of the span's batch.
  Value slice(Value x, const Span &span, OpFoldResult first,
              OpFoldResult count);
  Value clearTokens(const Span &span, Value output);
  Value stateOf(Value states, OpFoldResult slot);
  Value insertState(Value state, Value states, OpFoldResult slot);
  void place(Value x, SmallVector<OpFoldResult> &offsets,
             SmallVector<OpFoldResult> &sizes);
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value element(Value x, Value position) {
    Value number = tensor::ExtractOp::create(b, loc, x, ValueRange{position});
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), number);
  }
  Value dim(Value x, int64_t position) {
    return getValueOrCreateConstantIndexOp(
        b, loc, tensor::getMixedSize(b, loc, x, position));
  }

  OpBuilder &b;
  Location loc;
  Recurrence r;
  int64_t chunk;
  bool byToken;
};

} // namespace

SmallVector<Value> Expansion::emit() {
  CarriedValues carried{r.output, r.state.state, Value(), r.state.runningMax};
  if (Value normalizer = r.state.normalizer)
    carried.normalizer = expandColumn(b, loc, normalizer);
  if (r.offsets || r.indices)
    carried = emitSequences(carried);
  else
    carried =
        emitChunks({b.getIndexAttr(0), tensor::getMixedSize(b, loc, r.key, 0),
                    index(0), dim(r.key, 2)},
                   carried);
  if (carried.normalizer)
    carried.normalizer = collapseColumn(b, loc, carried.normalizer,
                                        r.state.normalizer.getType());
  return carried.present();
}

CarriedValues
Expansion::loop(Value from, Value to, int64_t step, CarriedValues carried,
                function_ref<CarriedValues(Value, CarriedValues)> body) {
  auto loop =
      scf::ForOp::create(b, loc, from, to, index(step), carried.present());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  CarriedValues next =
      body(loop.getInductionVar(), carried.with(loop.getRegionIterArgs()));
  scf::YieldOp::create(b, loc, next.present());
  return carried.with(loop.getResults());
}

//===----------------------------------------------------------------------===//
// Sequences
//===----------------------------------------------------------------------===//

CarriedValues Expansion::emitSequences(CarriedValues carried) {
  Value count =
      r.indices
          ? dim(r.indices, 0)
          : Value(arith::SubIOp::create(b, loc, dim(r.offsets, 0), index(1)));
  return loop(index(0), count, 1, carried,
              [&](Value sequence, CarriedValues carried) {
                return emitSequence(sequence, carried);
              });
}

/// One sequence and its state, which is a row of the pool if there is one. Of a
/// sequence without a state the outputs are 0.
CarriedValues Expansion::emitSequence(Value sequence, CarriedValues carried) {
  Span span{sequence, b.getIndexAttr(1), index(0), dim(r.key, 2)};
  if (r.offsets) {
    span.batch = b.getIndexAttr(0);
    span.begin = element(r.offsets, sequence);
    span.end =
        element(r.offsets, arith::AddIOp::create(b, loc, sequence, index(1)));
  }
  auto run = [&](Value slot) {
    CarriedValues own = carried;
    for (Value *states : {&own.state, &own.normalizer, &own.runningMax})
      if (*states)
        *states = stateOf(*states, slot);
    own = emitChunks(span, own);
    CarriedValues all = carried;
    all.output = own.output;
    all.state = insertState(own.state, carried.state, slot);
    if (own.normalizer)
      all.normalizer = insertState(own.normalizer, carried.normalizer, slot);
    if (own.runningMax)
      all.runningMax = insertState(own.runningMax, carried.runningMax, slot);
    return all;
  };
  if (!r.indices)
    return run(sequence);
  Value slot = element(r.indices, sequence);
  Value exists =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, slot, index(0));
  auto branch = scf::IfOp::create(
      b, loc, ValueRange(carried.present()).getTypes(), exists,
      /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, loc, run(slot).present());
  b.setInsertionPointToStart(branch.elseBlock());
  CarriedValues untouched = carried;
  untouched.output = clearTokens(span, carried.output);
  scf::YieldOp::create(b, loc, untouched.present());
  return carried.with(branch.getResults());
}

void Expansion::place(Value x, SmallVector<OpFoldResult> &offsets,
                      SmallVector<OpFoldResult> &sizes) {
  sizes = tensor::getMixedSizes(b, loc, x);
  offsets.assign(sizes.size(), b.getIndexAttr(0));
}

Value Expansion::stateOf(Value states, OpFoldResult slot) {
  SmallVector<OpFoldResult> offsets, sizes;
  place(states, offsets, sizes);
  offsets[0] = slot;
  sizes[0] = b.getIndexAttr(1);
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(b, loc, states, offsets, sizes,
                                        strides);
}

Value Expansion::insertState(Value state, Value states, OpFoldResult slot) {
  SmallVector<OpFoldResult> offsets, sizes;
  place(states, offsets, sizes);
  offsets[0] = slot;
  sizes[0] = b.getIndexAttr(1);
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  return tensor::InsertSliceOp::create(b, loc, state, states, offsets, sizes,
                                       strides);
}

//===----------------------------------------------------------------------===//
// Chunks
//===----------------------------------------------------------------------===//

CarriedValues Expansion::emitChunks(const Span &span, CarriedValues carried) {
  // One chunk needs no loop.
  std::optional<int64_t> begin = getConstantIntValue(span.begin),
                         end = getConstantIntValue(span.end);
  if (begin == 0 && end && *end > 0 && *end <= chunk)
    return emitChunk(span, span.begin, carried);
  return loop(span.begin, span.end, chunk, carried,
              [&](Value position, CarriedValues carried) {
                return emitChunk(span, position, carried);
              });
}

Value Expansion::slice(Value x, const Span &span, OpFoldResult first,
                       OpFoldResult count) {
  SmallVector<OpFoldResult> offsets, sizes;
  place(x, offsets, sizes);
  // [B, H, T, …], or the [B, T] of a mask.
  int64_t tokenDim = sizes.size() == 2 ? 1 : 2;
  offsets[0] = span.batch;
  sizes[0] = span.batches;
  offsets[tokenDim] = first;
  sizes[tokenDim] = count;
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(b, loc, x, offsets, sizes, strides);
}

Value Expansion::clearTokens(const Span &span, Value output) {
  if (!output)
    return {};
  OpFoldResult count =
      arith::SubIOp::create(b, loc, span.end, span.begin).getResult();
  Value tokens = slice(output, span, span.begin, count);
  Value zero = arith::ConstantOp::create(
      b, loc, b.getZeroAttr(getElementTypeOrSelf(output)));
  Value cleared = linalg::FillOp::create(b, loc, zero, tokens).getResult(0);
  auto from = tokens.getDefiningOp<tensor::ExtractSliceOp>();
  return tensor::InsertSliceOp::create(
      b, loc, cleared, output, from.getMixedOffsets(), from.getMixedSizes(),
      from.getMixedStrides());
}

CarriedValues Expansion::emitChunk(const Span &span, Value position,
                                   CarriedValues carried) {
  AffineExpr at, end;
  bindDims(b.getContext(), at, end);
  OpFoldResult count = affine::makeComposedFoldedAffineMin(
      b, loc,
      AffineMap::get(2, 0, {b.getAffineConstantExpr(chunk), end - at},
                     b.getContext()),
      {position, span.end});
  // The whole chunks of a known number of tokens.
  std::optional<int64_t> begins = getConstantIntValue(span.begin),
                         ends = getConstantIntValue(span.end);
  if (chunk == 1 || (begins == 0 && ends && *ends % chunk == 0))
    count = b.getIndexAttr(chunk);
  OpFoldResult first = position;
  if (r.reverse) { // begin + end − position − count
    AffineExpr begin, size;
    bindDims(b.getContext(), at, end, begin, size);
    first = affine::makeComposedFoldedAffineApply(
        b, loc, begin + end - at - size,
        {position, span.end, span.begin, count});
  }
  Recurrence part = r;
  part.output = carried.output;
  for (Value *operand : part.tokenOperands())
    *operand = slice(*operand, span, first, count);
  ChunkSteps steps(b, part, carried);
  CarriedValues next = byToken ? steps.emitToken() : steps.emitProducts();
  if (!carried.output)
    return next;
  auto from = part.output.getDefiningOp<tensor::ExtractSliceOp>();
  next.output = tensor::InsertSliceOp::create(
      b, loc, next.output, carried.output, from.getMixedOffsets(),
      from.getMixedSizes(), from.getMixedStrides());
  return next;
}

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

/// Tokens per chunk: what the schedule says, if it says chunks.
static int64_t chunkOf(std::optional<ConfigAttr> config, int64_t otherwise) {
  if (config && config->getForm() == Form::Chunk && config->getChunk() > 0)
    return config->getChunk();
  return otherwise;
}

/// Replaces a scan or a state by its loop: over chunks or, if `why` says what
/// is against them, over tokens.
template <typename Op>
static void expand(PatternRewriter &rewriter, Op op, int64_t chunkSize,
                   StringRef why) {
  int64_t chunk = chunkOf(op.getConfig(), chunkSize);
  remark::passed(op.getLoc(), remarkNamed("expand-form"))
      << (why.empty()
              ? llvm::formatv("becomes a loop over chunks of {0} tokens", chunk)
                    .str()
              : ("becomes a loop over tokens: " + why).str());
  Expansion expansion(rewriter, Recurrence(op), chunk, !why.empty());
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
           op.getValueDecay() ? "a decay per value column does not factor into "
                                "products of chunks"
                              : "");
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
    if (chunkSize < 1) {
      getOperation()->emitError(
          "expected chunk-size to be at least 1, but got ")
          << int64_t(chunkSize);
      return signalPassFailure();
    }
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
};

} // namespace
