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

#include "ChunkFusion.h"
#include "ChunkOps.h"
#include "ChunkOrder.h"
#include "ChunkProducts.h"

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

namespace {

/// What a matrix in tiles is: rows, scores up to the diagonal or before it,
/// values, a state, or the rows or columns of transposed keys.
enum class TileRole {
  Rows,
  Scores,
  StrictScores,
  Values,
  State,
  KeyRows,
  KeyColumns
};

/// Tokens in bf16 that a buffer holds as they are, or negated; null if it does
/// not.
struct TileTokens {
  Value tokens;
  bool isNegated = false;
};

/// Lowers the ops of a block one after the other.
class BlockLowering {
public:
  /// Values made of buffers, valid while these stay as they are.
  struct Made {
    llvm::SmallDenseMap<Value, Value> keysT;
    llvm::SmallDenseMap<Value, ChunkVectors::Factors> factors;
    llvm::MapVector<std::tuple<Value, TileRole, int64_t>, PackedTiles> tiles;
    /// What writes a buffer that products in tiles alone read, and do not need:
    /// they take its operands.
    llvm::SmallDenseMap<Value, Operation *> deferred;
  };
  struct Target {
    int64_t vectorBits, registers, l1;
    /// Of a block of sums, each way; 0: products in vectors.
    int64_t tiles;
    /// Whether numbers have bits: elements of a field have none.
    bool hasBits;
  };

  BlockLowering(Block &block, const Target &target, Made made)
      : block(block), b(block.getParentOp()->getContext()), target(target),
        vectorBits(target.vectorBits), made(std::move(made)) {}

  void run();

private:
  void findStreams();
  void lower(Operation *op);
  void lowerScores(ChunkScoresOp op);
  void lowerRead(ChunkReadOp op);
  void lowerUpdate(ChunkUpdateOp op);
  void invalidate(Operation *op);
  void prepare(scf::ForOp loop);
  Value transposedKeys(Value keys);
  ChunkProducts productsInTiles() {
    return {*vectors, target.tiles, target.hasBits};
  }
  PackedTiles tilesOf(Value matrix, TileRole role, int64_t summands);
  PackedTiles packed(Value matrix, TileRole role, int64_t summands);
  std::optional<PackedTiles> packTokens(Value matrix, TileRole role,
                                        int64_t summands);
  bool isForTiles(Value buffer, Operation *writer);
  bool isDeferrable(ChunkPackOp pack);
  bool isDeferrable(ChunkDecayOp decay);
  ChunkReadOp findReader(ChunkScoresOp scores);
  TileTokens tokensOf(Value buffer);
  void emitCompact(ChunkScoresOp op, const ChunkVectors::Factors &factors);
  void materialize(Value buffer);
  void keepPacked(scf::ForOp loop);
  ChunkVectors::Factors factorsOf(Value decay);
  ChunkVectors &at(Operation *op);
  ArrayRef<int64_t> summandsOf(Operation *op) {
    return target.tiles ? tileSummandsOf(op) : ArrayRef<int64_t>();
  }
  ArrayRef<ChunkVectors::Stream> streamsOf(Operation *op) {
    auto it = streams.find(op);
    return it == streams.end() ? ArrayRef<ChunkVectors::Stream>() : it->second;
  }

  Block &block;
  OpBuilder b;
  const Target &target;
  int64_t vectorBits;
  Made made;
  std::optional<ChunkVectors> vectors;
  llvm::SmallDenseMap<Operation *, SmallVector<ChunkVectors::Stream>> streams;
  /// Reads, by what they read: rows that were to be decayed.
  llvm::SmallDenseMap<Operation *, ChunkVectors::ReadRows> decayedReads;
  SmallVector<Operation *> lowered;
  /// Of the scores that were just lowered.
  std::optional<std::pair<TileRole, PackedTiles>> packedScores;
};

} // namespace

/// The builder before an op, for its accumulation type.
ChunkVectors &BlockLowering::at(Operation *op) {
  Type type = typeOf(op);
  b.setInsertionPoint(op);
  if (!vectors || vectors->type != type) {
    int64_t lanes = vectorBits / type.getIntOrFloatBitWidth();
    vectors.emplace(b, op->getLoc(), type, lanes, target.registers / 4);
    vectors->setFirstCache(target.l1);
    // The first cache is full of tiles.
    if (target.tiles)
      vectors->scatteredRows = 2;
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
    if (isa<ChunkReadOp, ChunkUpdateOp>(op) &&
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
  auto [it, isNew] = made.factors.try_emplace(decay);
  if (isNew)
    it->second = vectors->factorsOf(decay);
  return it->second;
}

Value BlockLowering::transposedKeys(Value keys) {
  auto [it, isNew] = made.keysT.try_emplace(keys);
  if (isNew)
    it->second = vectors->transposedKeys(keys);
  return it->second;
}

PackedTiles BlockLowering::packed(Value matrix, TileRole role,
                                  int64_t summands) {
  ChunkProducts products = productsInTiles();
  if (auto tiles = packTokens(matrix, role, summands))
    return *tiles;
  switch (role) {
  case TileRole::Rows:
    return products.packRows(matrix, summands);
  case TileRole::Scores:
  case TileRole::StrictScores:
    return products.packScores(matrix, role == TileRole::StrictScores,
                               summands);
  case TileRole::Values:
    return products.packValues(matrix, summands);
  case TileRole::State:
    return products.packState(matrix, summands);
  case TileRole::KeyRows:
    return products.packKeyRows(matrix, transposedKeys(matrix), summands);
  case TileRole::KeyColumns:
    return products.packKeyColumns(matrix, transposedKeys(matrix), summands);
  }
  llvm_unreachable("all roles are above");
}

PackedTiles BlockLowering::tilesOf(Value matrix, TileRole role,
                                   int64_t summands) {
  // What the tokens are multiplied by, sums are.
  if (tokensOf(matrix).tokens)
    summands = 1;
  auto *known = made.tiles.find({matrix, role, summands});
  if (known != made.tiles.end())
    return known->second;
  PackedTiles tiles = packed(matrix, role, summands);
  return made.tiles[{matrix, role, summands}] = tiles;
}

/// Forgets the values made of buffers that an op writes, or an op inside it.
void BlockLowering::invalidate(Operation *op) {
  // It packs its state anew.
  bool keeps = isa<ChunkUpdateOp>(op);
  op->walk([&](DestinationStyleOpInterface writer) {
    for (Value output : writer.getDpsInits()) {
      made.keysT.erase(output);
      made.factors.erase(output);
      made.tiles.remove_if([&](auto &made) {
        return std::get<0>(made.first) == output &&
               !(keeps && made.second.isKept);
      });
    }
  });
}

void BlockLowering::lowerScores(ChunkScoresOp op) {
  ChunkVectors::Factors factors = factorsOf(op.getDecay());
  if (op.decaysTerms())
    return vectors->emitDecaying(op, factors);
  ArrayRef<int64_t> summands = summandsOf(op);
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
    made.deferred[op.getOutput()] = op;
    packedScores = {
        reader.getStrict() ? TileRole::StrictScores : TileRole::Scores, scores};
    return;
  }
  products.emit(op, {rows, keys}, factors, /*packed=*/nullptr, [&] {
    materialize(op.getRows());
    materialize(op.getKeys());
    emitCompact(op, factors);
  });
}

void BlockLowering::lowerRead(ChunkReadOp op) {
  ChunkVectors::ReadRows rows{op.getRows(), {}, {}, {}, {}};
  if (auto it = decayedReads.find(op); it != decayedReads.end())
    rows = it->second;
  if (op.getTranspose())
    rows.rowsT = transposedKeys(rows.rows);
  linalg::FillOp fill = findFill(op);
  Value into = op.getOutput();
  auto [scaled, unpack] = findOutput(op);
  if (unpack && whyNoVectors(unpack, vectorBits, target.registers).empty() &&
      !(scaled && op.getDecay())) {
    into = unpack.getOutput();
    rows.scaled = scaled;
    if (scaled)
      lowered.push_back(scaled);
    lowered.push_back(unpack);
  }
  if (fill)
    lowered.push_back(fill);
  if (op.getDecay())
    return vectors->emitDecaying(op, rows, factorsOf(op.getDecay()), bool(fill),
                                 into, streamsOf(op));
  ArrayRef<int64_t> summands = summandsOf(op);
  if (summands.empty())
    return vectors->emit(op, rows, bool(fill), into, streamsOf(op));
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
      op, matrices, rows, bool(fill), into, streamsOf(op), [&] {
        materialize(rows.rows);
        for (Value operand : op.getScores())
          materialize(operand);
        for (Value operand : op.getValues())
          materialize(operand);
        vectors->compact().emit(op, rows, bool(fill), into, /*streams=*/{});
      });
}

void BlockLowering::lowerUpdate(ChunkUpdateOp op) {
  ChunkVectors::Factors factors =
      factorsOf(op.getValueDecay() ? op.getValueDecay() : op.getDecay());
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
    for (Value operand : op.getKeys())
      materialize(operand);
    for (Value operand : op.getValues())
      materialize(operand);
    vectors->compact().emit(op, factors, /*streams=*/{});
    if (packed)
      products.packState(op.getOutput(), packed->summands, packed);
  });
}

//===----------------------------------------------------------------------===//
// Buffers that products in tiles do without
//===----------------------------------------------------------------------===//

/// Whether only products in tiles read what an op writes to its scratch memory,
/// or ops that are deferred themselves.
bool BlockLowering::isForTiles(Value buffer, Operation *writer) {
  if (!target.tiles || !target.hasBits || !isScratch(buffer))
    return false;
  return llvm::all_of(buffer.getUsers(), [&](Operation *user) {
    if (user == writer || isa<memref::DeallocOp>(user))
      return true;
    if (auto pack = dyn_cast<ChunkPackOp>(user))
      return pack.getOutput() != buffer && isDeferrable(pack);
    if (auto decay = dyn_cast<ChunkDecayOp>(user)) {
      ChunkReadOp read = findDecayedRead(decay);
      return decay.getOutput() != buffer &&
             ((read && !summandsOf(read).empty()) || isDeferrable(decay));
    }
    auto structured = dyn_cast<DestinationStyleOpInterface>(user);
    return structured && !summandsOf(user).empty() &&
           !llvm::is_contained(structured.getDpsInits(), buffer);
  });
}

bool BlockLowering::isDeferrable(ChunkPackOp pack) {
  Value input = pack.getInput();
  auto type = cast<MemRefType>(input.getType());
  double scale = pack.getScale() ? pack.getScale()->convertToDouble() : 1.0;
  return (type.getElementType().isBF16() || isScratch(input)) &&
         !pack.getShift() && !pack.getGate() && !pack.getMask() &&
         !pack.getFill() && !pack.getScaleValue() && !pack.getReverse() &&
         !pack.getPadded() && std::abs(scale) == 1.0 && type.getRank() == 4 &&
         type.hasStaticShape() && type.isLastDimUnitStride() &&
         isForTiles(pack.getOutput(), pack);
}

/// Keys that decay to the end of the chunk, by one number per token.
bool BlockLowering::isDeferrable(ChunkDecayOp decay) {
  Value output = decay.getOutput();
  return decay.getToEnd() && !isPerChannel(decay.getDecay()) &&
         isForTiles(output, decay) &&
         llvm::all_of(output.getUsers(), [&](Operation *user) {
           auto update = dyn_cast<ChunkUpdateOp>(user);
           return user == decay || isa<memref::DeallocOp>(user) ||
                  (update && llvm::is_contained(update.getKeys(), output));
         });
}

/// The read that alone takes scores, and can take them in tiles.
ChunkReadOp BlockLowering::findReader(ChunkScoresOp scores) {
  if (target.tiles != 2 || !isScratch(scores.getOutput()))
    return {};
  ChunkReadOp reader;
  for (Operation *user : scores.getOutput().getUsers()) {
    if (user == scores || isa<memref::DeallocOp>(user))
      continue;
    auto read = dyn_cast<ChunkReadOp>(user);
    if (!read || reader || summandsOf(read).empty() ||
        read->getBlock() != scores->getBlock() ||
        (read.getStrict() && !scores.getStrict()) ||
        llvm::count(read.getScores(), scores.getOutput()) != 1)
      return {};
    reader = read;
  }
  return reader;
}

TileTokens BlockLowering::tokensOf(Value buffer) {
  auto pack = dyn_cast_or_null<ChunkPackOp>(made.deferred.lookup(buffer));
  if (!pack)
    return {};
  bool isNegated = pack.getScale() && pack.getScale()->isNegative();
  TileTokens from = tokensOf(pack.getInput());
  if (!from.tokens)
    return {pack.getInput(), isNegated};
  return {from.tokens, from.isNegated != isNegated};
}

/// The tiles of a matrix whose buffer was not written.
std::optional<PackedTiles>
BlockLowering::packTokens(Value matrix, TileRole role, int64_t summands) {
  ChunkProducts products = productsInTiles();
  auto decay = dyn_cast_or_null<ChunkDecayOp>(made.deferred.lookup(matrix));
  Value rows = decay ? decay.getRows() : matrix;
  TileTokens from = tokensOf(rows);
  if (!from.tokens)
    return std::nullopt;
  switch (role) {
  case TileRole::Rows:
    return products.packTokenRows(from.tokens, from.isNegated);
  case TileRole::Values:
    return products.packTokenValues(from.tokens);
  case TileRole::KeyColumns:
    return products.packTokenKeyColumns(from.tokens);
  case TileRole::KeyRows: {
    PackedTiles columns = tilesOf(rows, TileRole::KeyColumns, 1);
    int64_t features = sizeOf(from.tokens, 3);
    if (!decay)
      return products.packTokenKeyRows(columns, features, {}, {}, 1);
    ChunkVectors::Factors factors = factorsOf(decay.getDecay());
    return products.packTokenKeyRows(columns, features, factors.between,
                                     vectors->index(sizeOf(from.tokens, 2)),
                                     summands);
  }
  case TileRole::Scores:
  case TileRole::StrictScores:
  case TileRole::State:
    return std::nullopt;
  }
  llvm_unreachable("all roles are above");
}

/// Scores with the least code, in a branch that hardly ever runs.
void BlockLowering::emitCompact(ChunkScoresOp op,
                                const ChunkVectors::Factors &factors) {
  ChunkVectors compact = vectors->compact();
  compact.emit(op, compact.transposedKeys(op.getKeys()), factors);
  compact.freeScratch();
}

/// Writes a buffer after all, for vectors.
void BlockLowering::materialize(Value buffer) {
  Operation *writer = made.deferred.lookup(buffer);
  if (!writer)
    return;
  ChunkVectors compact = vectors->compact();
  TypeSwitch<Operation *>(writer)
      .Case([&](ChunkPackOp pack) {
        materialize(pack.getInput());
        compact.emit(pack);
      })
      .Case([&](ChunkDecayOp decay) {
        materialize(decay.getRows());
        compact.emit(decay, factorsOf(decay.getDecay()));
      })
      .Case([&](ChunkScoresOp scores) {
        materialize(scores.getRows());
        materialize(scores.getKeys());
        emitCompact(scores, factorsOf(scores.getDecay()));
      });
}

/// Packs a state before a loop that reads it in tiles and updates it once: the
/// update packs it anew.
void BlockLowering::keepPacked(scf::ForOp loop) {
  for (auto update : loop.getBody()->getOps<ChunkUpdateOp>()) {
    Value state = update.getOutput();
    if (summandsOf(update).empty() || !loop.isDefinedOutsideOfLoop(state))
      continue;
    int64_t writers = 0, summands = 0;
    loop->walk([&](DestinationStyleOpInterface op) {
      writers += llvm::is_contained(op.getDpsInits(), state);
      if (auto read = dyn_cast<ChunkReadOp>(op.getOperation());
          read && read.getState() == state && !summandsOf(read).empty())
        summands = summandsOf(read)[1];
    });
    if (writers != 1 || !summands)
      continue;
    at(update);
    b.setInsertionPoint(loop);
    PackedTiles tiles = productsInTiles().packState(state, summands);
    tiles.isKept = true;
    if (tiles.isFinite) {
      tiles.flag = vectors->scratch({b.getIndexAttr(1)}, b.getI1Type());
      vectors->store(tiles.isFinite, tiles.flag, {vectors->index(0)});
    }
    made.tiles[{state, TileRole::State, summands}] = tiles;
  }
}

/// Computes once, before a loop, the values that its chunk ops need of buffers
/// it does not change.
void BlockLowering::prepare(scf::ForOp loop) {
  llvm::SmallDenseSet<Value> written;
  loop->walk([&](DestinationStyleOpInterface writer) {
    written.insert_range(writer.getDpsInits());
  });
  auto stays = [&](Value x) {
    return x && loop.isDefinedOutsideOfLoop(x) && !written.contains(x);
  };
  auto pack = [&](Value matrix, TileRole role, int64_t summands) {
    if (stays(matrix))
      tilesOf(matrix, role, summands);
  };
  loop->walk([&](Operation *op) {
    if (!isa<ChunkDecayOp, ChunkScoresOp, ChunkReadOp, ChunkUpdateOp>(op) ||
        !whyNoVectors(op, vectorBits, target.registers).empty())
      return;
    at(op);
    b.setInsertionPoint(loop);
    ArrayRef<int64_t> summands = summandsOf(op);
    TypeSwitch<Operation *>(op)
        .Case<ChunkDecayOp, ChunkUpdateOp>([&](auto decaying) {
          if (stays(decaying.getDecay()))
            factorsOf(decaying.getDecay());
        })
        .Case([&](ChunkScoresOp scores) {
          if (stays(scores.getDecay()))
            factorsOf(scores.getDecay());
          if (!stays(scores.getKeys()) || scores.decaysTerms())
            return;
          if (summands.empty())
            transposedKeys(scores.getKeys());
          else
            pack(scores.getKeys(), TileRole::KeyColumns, summands[1]);
        })
        .Case([&](ChunkReadOp read) {
          if (stays(read.getDecay()))
            factorsOf(read.getDecay());
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
        if (hasTokens && isDeferrable(pack))
          made.deferred[pack.getOutput()] = pack;
        else
          v.emit(pack);
      })
      .Case<ChunkUnpackOp, ChunkSolveOp>([&](auto plain) { v.emit(plain); })
      .Case([&](ChunkDecayOp decay) {
        ChunkVectors::Factors factors = factorsOf(decay.getDecay());
        ChunkReadOp read = findDecayedRead(decay);
        if (read && whyNoVectors(read, vectorBits, target.registers).empty())
          decayedReads[read] = {decay.getRows(), {}, decay, factors, {}};
        else if (tokensOf(decay.getRows()).tokens && isDeferrable(decay))
          made.deferred[decay.getOutput()] = decay;
        else
          v.emit(decay, factors);
      })
      .Case([&](ChunkScoresOp scores) { lowerScores(scores); })
      .Case([&](ChunkReadOp read) { lowerRead(read); })
      .Case([&](ChunkUpdateOp update) { lowerUpdate(update); });
  lowered.push_back(op);
  invalidate(op);
  if (auto scores = dyn_cast<ChunkScoresOp>(op); scores && packedScores) {
    auto [role, tiles] = *std::exchange(packedScores, std::nullopt);
    made.tiles[{scores.getOutput(), role, tiles.summands}] = tiles;
  }
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
    if (!llvm::any_of(op->getUsers(), isChunkOp) || bytes > mostBytes ||
        taken + bytes > mostOfAll)
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
