//===- LowerChunksToVector.cpp - Chunks on buffers as vector loops --------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fuses ops of chunks into one another, lowers them block by block, and gives
// each product the rows of the next chunk to prefetch. ChunkVectors emits them,
// ChunkProducts the products in tiles.
//
//===----------------------------------------------------------------------===//

#include "BlockLowering.h"
#include "ChunkOrder.h"

#include "linattn/Conversion/Passes.h"
#include "linattn/Dialect/Remarks.h"
#include "linattn/Transforms/Transforms.h"
#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNLOWERCHUNKSTOVECTORPASS
#include "linattn/Conversion/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

/// The builder before an op, for its accumulation type.
ChunkVectors &BlockLowering::at(Operation *op) {
  Type type = typeOf(op);
  b.setInsertionPoint(op);
  if (!vectors || vectors->type != type) {
    int64_t lanes = vectorBits / type.getIntOrFloatBitWidth();
    vectors.emplace(b, op->getLoc(), type, lanes, target.registers / 4);
    // Tiles fill the first cache.
    vectors->setFirstCache(target.tiles ? 0 : target.l1);
  }
  vectors->loc = op->getLoc();
  return *vectors;
}

/// Products divide the rows of the next chunk among them: only so many lines
/// can be under way.
void BlockLowering::findStreams() {
  auto loop = dyn_cast<scf::ForOp>(block.getParentOp());
  SmallVector<Operation *> products;
  for (Operation &op : block)
    if (isa<ChunkReadOp, ChunkUpdateOp>(op) && !isColumn(&op) &&
        whyNoVectors(&op, vectorBits, target.registers).empty())
      products.push_back(&op);
  if (!loop || products.empty())
    return;
  // Every view of a part of the operands, once; what is written, if only once.
  llvm::MapVector<Value, bool> views;
  // Where it begins has to be known ahead of the products.
  auto isKnown = [&](Value offset) {
    Operation *definition = offset.getDefiningOp();
    return !definition || definition->getBlock() != &block ||
           definition->isBeforeInBlock(products.front());
  };
  auto add = [&](Value x, bool isWritten) {
    auto view = x.getDefiningOp<memref::SubViewOp>();
    if (view && llvm::all_of(view.getOffsets(), isKnown))
      views[x] |= isWritten;
  };
  for (Operation &op : block) {
    if (auto structured = dyn_cast<DestinationStyleOpInterface>(op))
      for (OpOperand &operand : op.getOpOperands())
        if (isa<MemRefType>(operand.get().getType()))
          add(operand.get(), structured.isDpsInit(&operand));
    // Rows that come from or go to their tokens vector by vector.
    op.walk([&](vector::TransferReadOp read) { add(read.getBase(), false); });
    op.walk([&](vector::TransferWriteOp write) { add(write.getBase(), true); });
  }
  SmallVector<ChunkVectors::Stream> all;
  ChunkOrder order(at(products.front()), loop);
  for (auto [x, isWritten] : views)
    llvm::append_range(all, order.findStreams(x, isWritten));
  for (auto [i, stream] : llvm::enumerate(all))
    streams[products[i * products.size() / all.size()]].push_back(stream);
}

ChunkVectors::Factors BlockLowering::factorsOf(Value decay) {
  if (!decay)
    return {};
  if (const auto *known = made.factors.find(decay); known != made.factors.end())
    return known->second;
  // Both are made in front of a loop that selects one in each chunk.
  auto select = decay.getDefiningOp<arith::SelectOp>();
  ChunkVectors::Factors factors =
      select ? vectors->selected(select.getCondition(),
                                 factorsOf(select.getTrueValue()),
                                 factorsOf(select.getFalseValue()))
             : vectors->factorsOf(decay);
  return made.factors[decay] = factors;
}

Value BlockLowering::transposedKeys(Value keys) {
  auto [it, isNew] = made.keysT.try_emplace(keys);
  if (isNew)
    it->second = vectors->transposedKeys(keys);
  return it->second;
}

/// Forgets the values made of buffers that an op writes, or an op inside it.
void BlockLowering::invalidate(Operation *op) {
  // These ops pack what they write.
  bool keeps = isa<ChunkScoresOp, ChunkUpdateOp>(op);
  op->walk([&](DestinationStyleOpInterface writer) {
    for (Value output : writer.getDpsInits()) {
      if (!isa<MemRefType>(output.getType()))
        continue;
      auto isWritten = [memory = memoryOf(output)](Value buffer) {
        return memoryOf(buffer) == memory;
      };
      auto holds = [&](auto &made) { return isWritten(made.first); };
      made.keysT.remove_if(holds);
      made.factors.remove_if(holds);
      auto holdsEither = [&](auto &made) {
        return isWritten(std::get<0>(made.first)) ||
               isWritten(std::get<1>(made.first));
      };
      made.blockKeys.remove_if(holdsEither);
      made.blockRows.remove_if(holdsEither);
      made.tiles.remove_if([&](auto &made) {
        return isWritten(std::get<0>(made.first)) &&
               !(keeps && made.second.isKept);
      });
    }
  });
}

void BlockLowering::lowerScores(ChunkScoresOp op) {
  ChunkVectors::Factors factors = factorsOf(op.getDecay());
  ArrayRef<int64_t> summands = summandsOf(op);
  if (scoresInBlocks(op))
    return productsInTiles().emitDecaying(op, summands[0], blockRowsOf(op),
                                          blockKeysOf(op), factors);
  if (op.decaysTerms())
    return vectors->emitDecaying(op, factors);
  if (summands.empty())
    return vectors->emit(op, transposedKeys(op.getKeys()), factors);
  PackedTiles rows = tilesOf(op.getRows(), TileRole::Rows, summands[0]),
              keys = tilesOf(op.getKeys(), TileRole::KeyColumns, summands[1]);
  ChunkProducts products = productsInTiles();
  if (ChunkReadOp reader = findReader(op);
      reader && !rows.isFinite && !keys.isFinite) {
    size_t which = llvm::find(reader.getScores(), op.getOutput()) -
                   reader.getScores().begin();
    int64_t count = summandsOf(reader)[2 + which];
    PackedTiles scores = products.allocate(sizeOf(op.getOutput(), 2),
                                           sizeOf(op.getOutput(), 3), count);
    if (target.hasBits)
      scores.flag = vectors->scratch({b.getIndexAttr(1)}, b.getI1Type());
    products.emit(op, {rows, keys}, factors, &scores, /*otherwise=*/[] {});
    scores.isKept = true;
    made.deferred[op.getOutput()] = op;
    TileRole role =
        reader.getStrict() ? TileRole::StrictScores : TileRole::Scores;
    made.tiles[{op.getOutput(), role, count}] = scores;
    return;
  }
  products.emit(op, {rows, keys}, factors, /*packed=*/nullptr,
                [&] { emitCompact(op); });
}

void BlockLowering::lowerRead(ChunkReadOp op) {
  ChunkVectors::ReadRows rows{op.getRows(), {}, {}, {}, {}};
  if (auto it = decayedReads.find(op); it != decayedReads.end())
    rows = it->second;
  if (op.getTranspose())
    rows.rowsT = transposedKeys(rows.rows);
  linalg::FillOp fill = findFill(op);
  if (fill)
    lowered.push_back(fill);
  auto [scaled, unpack] = findOutput(op);
  if (!unpack || !whyNoVectors(unpack, vectorBits, target.registers).empty() ||
      (scaled && op.getDecay()))
    return emitRead(op, rows, bool(fill), op.getOutput());
  rows.scaled = scaled;
  if (scaled)
    lowered.push_back(scaled);
  lowered.push_back(unpack);
  Value into = unpack.getOutput();
  int64_t count = sizeOf(op.getOutput(), 2);
  if (memrefOf(into).getDimSize(2) == count)
    return emitRead(op, rows, bool(fill), into);
  ChunkVectors::AllRows all = vectors->allRowsOf(into, count, /*isRead=*/false);
  emitRead(op, rows, bool(fill), all.rows);
  vectors->writeBack(all, into);
}

/// Sums start from zero if `fromZero`, and go to `into`.
void BlockLowering::emitRead(ChunkReadOp op, const ChunkVectors::ReadRows &rows,
                             bool fromZero, Value into) {
  if (isColumn(op))
    return vectors->emitColumn(op, rows, fromZero);
  if (op.getDecay())
    return vectors->emitDecaying(op, rows, factorsOf(op.getDecay()), fromZero,
                                 into, streamsOf(op));
  ArrayRef<int64_t> summands = summandsOf(op);
  if (summands.empty())
    return vectors->emit(op, rows, fromZero, into, streamsOf(op));
  TileRole role = op.getStrict() ? TileRole::StrictScores : TileRole::Scores;
  SmallVector<PackedTiles> matrices{
      tilesOf(rows.rows, TileRole::Rows, summands[0]),
      tilesOf(op.getState(), TileRole::State, summands[1])};
  summands = summands.drop_front(2);
  for (Value scores : op.getScores()) {
    matrices.push_back(tilesOf(scores, role, summands.front()));
    summands = summands.drop_front();
  }
  for (auto [values, count] : llvm::zip_equal(op.getValues(), summands))
    matrices.push_back(tilesOf(values, TileRole::Values, count));
  productsInTiles().emit(
      op, matrices, rows, fromZero, into, streamsOf(op), [&] {
        materialize(rows.rows);
        materialize(op.getScores());
        materialize(op.getValues());
        vectors->compact().emit(op, rows, fromZero, into, /*streams=*/{});
      });
}

void BlockLowering::lowerUpdate(ChunkUpdateOp op) {
  ChunkVectors::Factors factors =
      factorsOf(op.getValueDecay() ? op.getValueDecay() : op.getDecay());
  if (isColumn(op))
    return vectors->emitColumn(op, factors);
  ArrayRef<int64_t> summands = summandsOf(op);
  if (summands.empty())
    return vectors->emit(op, factors, streamsOf(op));
  SmallVector<PackedTiles> matrices;
  size_t writes = op.getKeys().size();
  for (auto [keys, count] :
       llvm::zip_equal(op.getKeys(), summands.take_front(writes)))
    matrices.push_back(tilesOf(keys, TileRole::KeyRows, count));
  for (auto [values, count] :
       llvm::zip_equal(op.getValues(), summands.drop_front(writes))) {
    matrices.push_back(tilesOf(values, TileRole::Values, count));
    // No product of the update is with a zero in place of a number.
    if (made.deferred.contains(values))
      matrices.back().isFinite = {};
  }
  const PackedTiles *packed = nullptr;
  for (auto &[key, tiles] : made.tiles)
    if (std::get<0>(key) == op.getOutput() && tiles.isKept)
      packed = &tiles;
  ChunkProducts products = productsInTiles();
  products.emit(op, matrices, factors, packed, streamsOf(op), [&] {
    materialize(op.getKeys());
    materialize(op.getValues());
    vectors->compact().emit(op, factors, /*streams=*/{});
    if (packed)
      products.packState(op.getOutput(), packed->summands, packed);
  });
}

/// Computes once, before a loop, the values that its chunk ops need of buffers
/// it does not change.
void BlockLowering::prepare(scf::ForOp loop) {
  llvm::SmallDenseSet<Value> written;
  loop->walk([&](DestinationStyleOpInterface writer) {
    for (Value output : writer.getDpsInits())
      if (isa<MemRefType>(output.getType()))
        written.insert(memoryOf(output));
  });
  auto stays = [&](Value x) {
    return x && loop.isDefinedOutsideOfLoop(x) &&
           !written.contains(memoryOf(x));
  };
  auto pack = [&](Value matrix, TileRole role, int64_t summands) {
    if (stays(matrix))
      tilesOf(matrix, role, summands);
  };
  auto prepareFactors = [&](Value decay) {
    SmallVector<Value> decays{decay};
    if (auto select = decay ? decay.getDefiningOp<arith::SelectOp>() : nullptr)
      decays = {select.getTrueValue(), select.getFalseValue()};
    for (Value one : decays)
      if (stays(one))
        factorsOf(one);
  };
  loop->walk([&](Operation *op) {
    if (!isa<ChunkDecayOp, ChunkScoresOp, ChunkReadOp, ChunkUpdateOp>(op) ||
        !whyNoVectors(op, vectorBits, target.registers).empty())
      return;
    at(op);
    b.setInsertionPoint(loop);
    ArrayRef<int64_t> summands = summandsOf(op);
    TypeSwitch<Operation *>(op)
        .Case<ChunkDecayOp, ChunkUpdateOp>(
            [&](auto decaying) { prepareFactors(decaying.getDecay()); })
        .Case([&](ChunkScoresOp scores) {
          prepareFactors(scores.getDecay());
          if (!stays(scores.getKeys()) || scores.decaysTerms())
            return;
          if (summands.empty())
            transposedKeys(scores.getKeys());
          else
            pack(scores.getKeys(), TileRole::KeyColumns, summands[1]);
        })
        .Case([&](ChunkReadOp read) {
          prepareFactors(read.getDecay());
          if (summands.empty())
            return;
          pack(read.getState(), TileRole::State, summands[1]);
          auto counts = summands.take_back(read.getValues().size());
          for (auto [values, count] : llvm::zip_equal(read.getValues(), counts))
            pack(values, TileRole::Values, count);
        });
  });
}

void BlockLowering::lower(Operation *op) {
  ChunkVectors &v = at(op);
  TypeSwitch<Operation *>(op)
      .Case([&](ChunkPackOp pack) {
        bool hasTokens = getElementTypeOrSelf(pack.getInput()).isBF16() ||
                         made.deferred.contains(pack.getInput());
        if (!hasTokens || !isDeferrable(pack))
          return v.emit(pack);
        if (pack.getPadded()) {
          pack.getInputMutable().assign(v.allRowsOf(pack.getInput(),
                                                    sizeOf(pack.getOutput(), 2),
                                                    /*isRead=*/true)
                                            .rows);
          pack.setPadded(false);
        }
        made.deferred[wholeRowsOf(pack.getOutput())] = pack;
      })
      .Case<ChunkUnpackOp, ChunkSolveOp, FeatureMapOp>(
          [&](auto plain) { v.emit(plain); })
      .Case([&](ChunkDecayOp decay) {
        ChunkVectors::Factors factors = factorsOf(decay.getDecay());
        ChunkReadOp read = findDecayedRead(decay);
        if (read && whyNoVectors(read, vectorBits, target.registers).empty())
          decayedReads[read] = {decay.getRows(), {}, decay, factors, {}};
        else if ((tokensOf(decay.getRows()).tokens ||
                  isPerChannel(decay.getDecay())) &&
                 isDeferrable(decay))
          made.deferred[decay.getOutput()] = decay;
        else
          v.emit(decay, factors);
      })
      .Case([&](ChunkScoresOp scores) { lowerScores(scores); })
      .Case([&](ChunkReadOp read) { lowerRead(read); })
      .Case([&](ChunkUpdateOp update) { lowerUpdate(update); });
  lowered.push_back(op);
  invalidate(op);
}

void BlockLowering::run() {
  findStreams();
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (llvm::is_contained(lowered, &op))
      continue;
    // A loop may write again what its body reads, and its ops go as they are
    // lowered.
    if (op.getNumRegions() != 0)
      invalidate(&op);
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      prepare(loop);
      keepPacked(loop);
    }
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        BlockLowering(inner, target, made).run();
    auto structured = dyn_cast<DestinationStyleOpInterface>(op);
    if (!structured || !structured.hasPureBufferSemantics() ||
        !isChunkOp(&op)) {
      invalidate(&op);
      continue;
    }
    StringRef reason = whyNoVectors(&op, vectorBits, target.registers);
    if (reason.empty()) {
      lower(&op);
      continue;
    }
    remark::missed(op.getLoc(), remarkNamed("lower-chunks-to-vector"))
        << ("runs as scalar loops: it has " + reason).str();
    invalidate(&op);
  }
  if (vectors) {
    b.setInsertionPoint(block.getTerminator());
    vectors->freeScratch();
  }
  for (Operation *op : llvm::reverse(lowered))
    op->erase();
}

/// Whether a block may pass the buffer, or a view of it, on: then another
/// `memref.dealloc` may free it.
static bool isPassedOn(Value buffer) {
  return llvm::any_of(buffer.getUsers(), [](Operation *user) {
    return user->hasTrait<OpTrait::IsTerminator>() ||
           (isa<ViewLikeOpInterface>(user) && isPassedOn(user->getResult(0)));
  });
}

/// The buffers of a task's chunks lie on its stack: there are as many calls of
/// the allocator as chunks otherwise.
static void moveToStack(scf::ForallOp task) {
  constexpr int64_t mostBytes = 64 << 10, mostOfAll = 384 << 10;
  int64_t taken = 0;
  SmallVector<memref::AllocOp> buffers;
  task.walk([&](memref::AllocOp op) {
    MemRefType type = op.getType();
    if (!type.hasStaticShape() || !type.getElementType().isIntOrFloat())
      return;
    int64_t bytes = type.getNumElements() * type.getElementTypeBitWidth() / 8;
    if (!llvm::any_of(op->getUsers(), isChunkOp) || isPassedOn(op) ||
        bytes > mostBytes || taken + bytes > mostOfAll)
      return;
    taken += bytes;
    buffers.push_back(op);
  });
  OpBuilder b = OpBuilder::atBlockBegin(task.getBody());
  for (memref::AllocOp op : buffers) {
    Value buffer = memref::AllocaOp::create(
        b, op.getLoc(), op.getType(), ValueRange(), b.getI64IntegerAttr(64));
    for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
      if (isa<memref::DeallocOp>(user))
        user->erase();
    op.getResult().replaceAllUsesWith(buffer);
    op.erase();
  }
}

namespace {

struct LinAttnLowerChunksToVectorPass final
    : mlir::linattn::impl::LinAttnLowerChunksToVectorPassBase<
          LinAttnLowerChunksToVectorPass> {
  using LinAttnLowerChunksToVectorPassBase::LinAttnLowerChunksToVectorPassBase;

  LogicalResult initialize(MLIRContext *context) override {
    if (tiles < 0 || tiles > 2)
      return emitError(UnknownLoc::get(context))
             << "expected tiles to be 0, 1 or 2, but got " << int64_t(tiles);
    if (tiles && vectorBits != 512)
      return emitError(UnknownLoc::get(context))
             << "expected vector-bits to be 512 with tiles, but got "
             << int64_t(vectorBits);
    return verifyVectorTarget(context, vectorBits, registers);
  }

  void runOnOperation() override {
    getOperation()->walk([](scf::ForallOp task) { moveToStack(task); });
    BlockLowering::Target target{vectorBits, registers, l1, tiles, !exact};
    for (Block &block : getOperation()->getRegion(0))
      BlockLowering(block, target, BlockLowering::Made()).run();
  }
};

} // namespace
