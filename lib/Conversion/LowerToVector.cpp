//===- LowerToVector.cpp - Structured ops as vector loops -----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads the schedule linattn-select-form wrote and emits it. Ops without a
// vector schedule stay, with a remark, for linattn-lower-to-loops.
//
//===----------------------------------------------------------------------===//

#include "OutputNorm.h"
#include "QuadraticTile.h"
#include "RecurrenceBuilder.h"
#include "ScanStates.h"
#include "Softmax.h"
#include "TileBuilder.h"

#include "linattn/Analysis/CostModel.h"
#include "linattn/Conversion/Passes.h"
#include "linattn/Dialect/LinAttnSweep.h"
#include "linattn/Dialect/ScanTraits.h"
#include "linattn/Transforms/Forms.h"
#include "linattn/Transforms/Prologue.h"
#include "linattn/Transforms/Transforms.h"
#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNLOWERTOVECTORPASS
#include "linattn/Conversion/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

/// The registers of the target and the op's schedule, as a tile shape for its
/// accumulation type.
template <typename OpTy>
static TileShape tileShape(OpTy op, int64_t vectorBits, int64_t registers,
                           int64_t l1 = 0) {
  auto mapped = cast<FeatureMappedOpInterface>(op.getOperation());
  int64_t lanes =
      vectorBits / getAccumulationType(mapped).getIntOrFloatBitWidth();
  // Two vectors per accumulator; half of the registers hold the tile.
  TileShape shape{lanes, registers / 4, 2 * lanes, 32};
  shape.l1 = l1;
  if (std::optional<ConfigAttr> config = op.getConfig()) {
    if (config->getRows())
      shape.rows = config->getRows();
    if (config->getCols())
      shape.cols = config->getCols();
    if (config->getBlock())
      shape.block = config->getBlock();
  }
  return shape;
}

/// Checks the assumptions of the emitters about a schedule written by hand.
static LogicalResult verifyShape(Operation *op, TileShape shape) {
  if (shape.cols % shape.lanes)
    return op->emitOpError("expected config cols to be a multiple of ")
           << shape.lanes << ", the lanes of a vector, but got " << shape.cols;
  if (!llvm::isPowerOf2_64(shape.rows) || shape.rows > 32)
    return op->emitOpError(
               "expected config rows to be a power of two up to 32, but got ")
           << shape.rows;
  if (shape.block % shape.rows)
    return op->emitOpError("expected config block to be a multiple of the ")
           << shape.rows << " rows, but got " << shape.block;
  if (isa<QuadraticOp>(op) && shape.cols % shape.rows)
    return op->emitOpError("expected config cols to be a multiple of the ")
           << shape.rows << " rows, but got " << shape.cols;
  return success();
}

static Form formOf(ScanOp op) {
  return op.getConfig() ? op.getConfig()->getForm() : Form::Auto;
}

static bool runsInChunks(ScanOp op) { return getVectorForm(op) == Form::Chunk; }

/// Sequences of up to that many tokens run token by token beside chunks.
static int64_t fewTokensOf(ScanOp op) {
  return op.getConfig() ? op.getConfig()->getFew() : 0;
}

/// Checks that the form in a scan's config can run it.
static LogicalResult verifySchedule(ScanOp op) {
  if (failed(verifyForm(op, formOf(op))))
    return failure();
  int64_t chunk = op.getConfig() ? op.getConfig()->getChunk() : 0;
  if (runsInChunks(op) && chunk > ::linattn::largestChunk)
    return op.emitOpError("expected config chunk to be at most ")
           << ::linattn::largestChunk << ", but got " << chunk;
  return success();
}

template <typename OpTy>
static StringRef whyNot(OpTy op) {
  if constexpr (std::is_same_v<OpTy, ScanOp>)
    return whyNot(op, ::linattn::Schedule::Vectors);
  else if constexpr (std::is_same_v<OpTy, QuadraticOp>)
    return whyNoQuadraticTile(op);
  else
    return {};
}

static int64_t headsOf(Value value) {
  return cast<ShapedType>(value.getType()).getDimSize(1);
}

/// The token form needs to know how many output heads read one state.
template <typename OpTy>
static bool hasKnownHeads(OpTy op) {
  if constexpr (!std::is_same_v<OpTy, StateOp>)
    return !ShapedType::isDynamic(headsOf(op.getOutput())) &&
           !ShapedType::isDynamic(headsOf(op.getState()));
  return true;
}

template <typename OpTy>
static bool runsByToken(OpTy op) {
  return op.getConfig() && op.getConfig()->getForm() == Form::Token &&
         hasKnownHeads(op);
}

/// The shape for streaming a state in memory: a block of no more tokens than
/// there are, as many tokens at once as `vectors` can accumulate, and the
/// widest panels that the rest allows, for long runs of memory.
static TileShape streamingShape(Value tokens, Value state, TileShape shape,
                                int64_t vectors) {
  auto size = [](Value value, int64_t dim) {
    return cast<ShapedType>(value.getType()).getDimSize(dim);
  };
  if (int64_t count = size(tokens, 2);
      !ShapedType::isDynamic(count) && count <= shape.block) {
    shape.block = std::max<int64_t>(count, 1);
    int64_t most = std::max<int64_t>(vectors / (shape.cols / shape.lanes), 1);
    // Passes of the same length.
    int64_t passes = llvm::divideCeil(shape.block, most);
    shape.tokensAtOnce = llvm::divideCeil(shape.block, passes);
    vectors /= shape.tokensAtOnce;
  }
  // One block of a transposed state is all that fits the registers; in a panel
  // of several, too many lines would be read at once.
  if (isTransposed(state)) {
    shape.cols = shape.lanes;
    return shape;
  }
  int64_t columns = size(state, 3);
  if (ShapedType::isDynamic(columns))
    return shape;
  int64_t padded = llvm::alignTo(columns, shape.cols);
  for (int64_t cols = 2 * shape.cols; cols <= vectors * shape.lanes; cols *= 2)
    if (padded % cols == 0)
      shape.cols = cols;
  return shape;
}

/// The most tokens of a scan that runs token by token on the state in memory;
/// null if no number of them does.
static std::optional<int64_t> mostTokensOnMemory(ScanOp op) {
  int64_t all = std::numeric_limits<int64_t>::max();
  if (runsInChunks(op)) {
    int64_t few = fewTokensOf(op);
    bool inMemory = !getRule(op).isAdditive() || hasKnownHeads(op);
    return few && inMemory ? std::optional(few) : std::nullopt;
  }
  if (getRule(op).isAdditive() && !runsByToken(op))
    return std::nullopt;
  return all;
}

namespace {

/// The fills of states that scans in chunks and states in tiles start from
/// without reading.
using ZeroFills = llvm::SmallDenseMap<Operation *, Operation *>;
/// The copies whose sources scans read before the first token instead.
using InitialStates = llvm::SmallDenseMap<Operation *, InitialCopy>;
/// The reads along the values, by the scans that stand for sweeps.
using ValueReads = llvm::SmallDenseMap<Operation *, ValueRead>;

/// Facts about the states around the scans.
struct StatesAround {
  ZeroFills zeroFills;
  InitialStates initial;
  ValueReads valueReads;
};

/// The options of the pass.
struct VectorOptions {
  int64_t vectorBits, registers, l1, tiles;
  bool exact;
};

template <typename OpTy>
struct ToVector : OpRewritePattern<OpTy>, private VectorOptions {
  ToVector(MLIRContext *context, const VectorOptions &options,
           const StatesAround &states)
      : OpRewritePattern<OpTy>(context), VectorOptions(options),
        states(states) {}

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureBufferSemantics())
      return rewriter.notifyMatchFailure(op, "not on buffers");
    if (StringRef reason = whyNot(op); !reason.empty()) {
      remark::missed(op.getLoc(), remarkNamed("lower-to-vector"))
          << llvm::formatv("runs as scalar loops: {0}", reason).str();
      return rewriter.notifyMatchFailure(op, reason);
    }
    TileShape shape = tileShape(op, vectorBits, registers, l1);
    if constexpr (std::is_same_v<OpTy, QuadraticOp>) {
      if (op.getConfig() && op.getConfig()->getForm() == Form::Token)
        lowerToQuadraticRows(rewriter, op, shape);
      else if (runsInUnit(op))
        lowerToQuadraticUnit(rewriter, op, tiles, /*hasBits=*/!exact);
      else
        lowerToQuadraticTile(rewriter, op, shape);
    } else if constexpr (std::is_same_v<OpTy, ScanOp>) {
      lowerScan(rewriter, op, shape);
    } else if (runsByToken(op)) {
      lowerToStateTile(rewriter, op, streamingShape(op, shape),
                       /*tokenForm=*/true);
    } else if constexpr (std::is_same_v<OpTy, ReadOp>) {
      lowerToReadTile(rewriter, op, shape);
    } else {
      lowerToStateTile(rewriter, op, shape, /*tokenForm=*/false,
                       states.zeroFills.contains(op));
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  bool runsInUnit(QuadraticOp op) const {
    if (!tiles || !op.getSummands())
      return false;
    StringRef why = whyNoMatrixUnit(op);
    if (!why.empty())
      remark::missed(op.getLoc(), remarkNamed("lower-to-vector"))
          << ("stays products of vectors: " + why).str();
    return why.empty();
  }

  /// Half of the registers accumulate, for each head that reads the state; a
  /// third where products take no operand from memory, so that the values fill
  /// as many. Of machines with 32 registers those with vectors of 128 bits do.
  TileShape streamingShape(OpTy op, TileShape shape) const {
    int64_t sums = registers / (vectorBits == 128 && registers == 32 ? 3 : 2);
    Value tokens;
    int64_t readers = 1;
    if constexpr (std::is_same_v<OpTy, StateOp>)
      tokens = op.getKey();
    else
      tokens = op.getQuery();
    if constexpr (!std::is_same_v<OpTy, StateOp>)
      readers = headsOf(op.getOutput()) /
                std::max<int64_t>(headsOf(op.getState()), 1);
    return ::streamingShape(tokens, op.getState(), shape,
                            sums / std::max<int64_t>(readers, 1));
  }

  void lowerScan(OpBuilder &b, ScanOp op, TileShape shape) const {
    if (runsInChunks(op))
      return lowerToChunks(b, op, shape);
    if (getRule(op).isAdditive()) {
      bool token = runsByToken(op);
      if (token)
        shape = streamingShape(op, shape);
      return lowerToStateTile(b, op, shape, token, {},
                              states.initial.lookup(op).source);
    }
    lowerTokens(b, op, shape, {});
  }

  void lowerTokens(OpBuilder &b, ScanOp op, TileShape shape,
                   LengthRange range) const {
    // Every vector of a panel has several partial sums, and two panels share
    // the nearest cache: they stay narrow.
    shape =
        ::streamingShape(op.getQuery(), op.getState(), shape, /*vectors=*/0);
    if (range.to == 1)
      shape.block = 1;
    InitialCopy initial = states.initial.lookup(op);
    auto lower = [&](Value source) {
      lowerToTokenTile(b, op, shape, range, source);
    };
    if (!initial.differs || shape.block != 1)
      return lower(initial.source);
    // A step in place: one address serves loads and stores.
    LoopBuilder(b, op.getLoc())
        .ifThenElse(
            initial.differs, [&] { lower(initial.source); },
            [&] { lower({}); });
  }

  /// Chunks, and beside them token by token what has few tokens. Each sequence
  /// is in one range of lengths, beside any others.
  void lowerToChunks(OpBuilder &b, ScanOp op, TileShape shape) const {
    ConfigAttr config = op.getConfigAttr();
    ChunkSizes sizes{::linattn::chunkTokens, 0, false, false};
    if (config && config.getChunk())
      sizes.chunk = config.getChunk();
    sizes.whole = config ? config.getWhole() : 0;
    sizes.startsAtZero = states.zeroFills.contains(op);
    sizes.endsUnused = findStateUse(op).endsUnused;
    int64_t few = fewTokensOf(op);
    if (!few)
      return lowerToChunkTile(b, op, shape, sizes, {},
                              states.valueReads.lookup(op));
    if (getRule(op).isAdditive()) {
      // A state tile would copy the state into scratch memory and back.
      bool token = hasKnownHeads(op);
      lowerToStateTile(b, op, token ? streamingShape(op, shape) : shape, token,
                       {0, few}, states.initial.lookup(op).source);
    } else {
      // A single token, which decoding has, needs no copies.
      lowerTokens(b, op, shape, {0, 1});
      if (few > 1)
        lowerTokens(b, op, shape, {2, few});
      LengthRange range{0, few};
      // Token by token a row is written in parts.
      if (OutputNormOp norm = findEpilogue(op)) {
        TileBuilder tile(b, cast<FeatureMappedOpInterface>(op.getOperation()),
                         getElementTypeOrSelf(op.getQuery()), shape);
        tile.lengths = range;
        tile.ifInRange(tile.dim(op.getKey(), 2),
                       [&] { lowerOutputNormToVector(b, norm, shape.lanes); });
      }
    }
    lowerToChunkTile(b, op, shape, sizes, {few + 1});
  }

  const StatesAround &states;
};

struct LinAttnLowerToVectorPass final
    : mlir::linattn::impl::LinAttnLowerToVectorPassBase<
          LinAttnLowerToVectorPass> {
  using LinAttnLowerToVectorPassBase::LinAttnLowerToVectorPassBase;

  LogicalResult initialize(MLIRContext *context) override {
    return verifyVectorTarget(context, vectorBits, registers);
  }

  void runOnOperation() override {
    StatesAround states;
    if (failed(replaceSweeps(states.valueReads)))
      return signalPassFailure();
    // An op whose schedule is refused must not fall back to another one.
    if (getOperation()
            ->walk([&](Operation *op) { return verifySchedule(op); })
            .wasInterrupted())
      return signalPassFailure();
    getOperation()->walk([](memref::CopyOp op) {
      remark::missed(op.getLoc(), remarkNamed("lower-to-vector"))
          << llvm::formatv("copies a whole {0}", op.getSource().getType())
                 .str();
    });
    states.zeroFills = findZeroFills();
    states.initial = takeInitialStates();
    RewritePatternSet patterns(&getContext());
    patterns.add<ToVector<ScanOp>, ToVector<StateOp>, ToVector<ReadOp>,
                 ToVector<QuadraticOp>>(
        &getContext(), VectorOptions{vectorBits, registers, l1, tiles, exact},
        states);
    populateRecurrencePatterns(patterns, vectorBits);
    populateSoftmaxPatterns(patterns, vectorBits, registers);
    populateRowPatterns(patterns, vectorBits);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    for (auto [scan, fill] : states.zeroFills)
      fill->erase();
    // The kernels have computed these rows already.
    SmallVector<Operation *> made;
    getOperation()->walk([&](linalg::LinalgOp op) {
      if (op->hasAttr(kPrologueAttrName))
        made.push_back(op);
    });
    for (Operation *op : made)
      op->erase();
  }

private:
  /// A sweep is the scan that carries its state, and another read of it, which
  /// the schedule in chunks alone knows.
  LogicalResult replaceSweeps(ValueReads &valueReads) {
    WalkResult result = getOperation()->walk([&](SweepOp op) {
      if (!op.hasPureBufferSemantics())
        return WalkResult::advance();
      ConfigAttr config =
          op.getConfig()
              ? *op.getConfig()
              : ConfigAttr::get(&getContext(), Form::Chunk, 0, 0, 0, 0);
      if (config.getForm() != Form::Chunk || config.getFew()) {
        op.emitOpError("expected config form chunk for all lengths, but got ")
            << config;
        return WalkResult::interrupt();
      }
      OpBuilder b(op);
      ScanOp scan = op.createScan(b);
      scan.setConfigAttr(config);
      valueReads[scan] = {op.getValueQuery(), op.getValueOutput(),
                          op.getDecayWrites()};
      op.erase();
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  /// Sequences that run token by token would read uninitialized memory.
  ZeroFills findZeroFills() {
    ZeroFills fills;
    auto find = [&](auto op, bool runsInTiles) {
      if (!runsInTiles || !op.hasPureBufferSemantics())
        return;
      if (Operation *fill = findStateUse(op).zeroFill)
        fills[op] = fill;
    };
    getOperation()->walk([&](ScanOp op) {
      find(op, whyNot(op).empty() && runsInChunks(op) && !fewTokensOf(op));
    });
    getOperation()->walk([&](StateOp op) { find(op, !runsByToken(op)); });
    return fills;
  }

  /// Copies of initial states are left to the lengths that other schedules run,
  /// and to sequences without tokens.
  InitialStates takeInitialStates() {
    InitialStates initial;
    getOperation()->walk([&](ScanOp op) {
      if (!op.hasPureBufferSemantics() || !whyNot(op).empty())
        return;
      std::optional<int64_t> most = mostTokensOnMemory(op);
      InitialCopy copy = findInitialCopy(op);
      if (!most || !copy.op)
        return;
      initial[op] = copy;
      OpBuilder builder(op);
      LoopBuilder b(builder, op.getLoc());
      Value tokens = b.dim(op.getKey(), 2);
      Value others = arith::OrIOp::create(
          builder, op.getLoc(),
          b.compare(arith::CmpIPredicate::slt, tokens, b.index(1)),
          b.compare(arith::CmpIPredicate::sgt, tokens, b.index(*most)));
      b.ifThen(others, [&] {
        copy.op->moveBefore(builder.getInsertionBlock(),
                            builder.getInsertionPoint());
      });
    });
    return initial;
  }

  WalkResult verifySchedule(Operation *op) {
    auto verify = [&](auto structured) -> LogicalResult {
      if (!structured.hasPureBufferSemantics() || !whyNot(structured).empty())
        return success();
      if constexpr (std::is_same_v<decltype(structured), ScanOp>)
        if (failed(::verifySchedule(structured)))
          return failure();
      return verifyShape(op, tileShape(structured, vectorBits, registers));
    };
    return TypeSwitch<Operation *, LogicalResult>(op)
        .Case<ScanOp, StateOp, ReadOp, QuadraticOp>(verify)
        .Default(success());
  }
};

} // namespace
